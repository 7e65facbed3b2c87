"""Pytest plugins: one limits the time of each test, the other also records which lines a test executes."""

import json
import signal
import time
import warnings
from pathlib import Path

import coverage
import pytest

MAX_TEST_SECONDS = 15.0  # of processor time, of a test that has taken at most a third of that before


class TimeLimit:
    """End a test that takes too long, which then has failed. Write the name of the first one that fails."""

    def __init__(self, out, seconds):
        self.out, self.seconds = Path(out), seconds

    def pytest_collection_finish(self):
        signal.signal(signal.SIGPROF, self.interrupt)

    def interrupt(self, signum, frame):
        raise TimeoutError(f"the test takes more than {self.seconds:g} s of processor time")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self):
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.out.exists():
            self.out.write_text(report.nodeid)


class Recorder(TimeLimit):
    """Record seconds and executed lines (bit masks by file) of each passing test.

    Fixtures may be shared, so their lines are recorded under "fixtures", and those run on import under "".
    """

    def __init__(self, out, seconds):
        super().__init__(out, seconds)
        self.passed = {}
        self.coverage = coverage.Coverage(
            data_file=None, source=[str(Path("src").resolve())], config_file=False
        )
        self.coverage.start()

    def interrupt(self, signum, frame):
        """Not while coverage holds its lock, which would never be released."""
        caller = frame
        while caller is not None:
            if caller.f_code.co_filename.startswith(str(Path(coverage.__file__).parent)):
                signal.setitimer(signal.ITIMER_PROF, 0.1)
                return
            caller = caller.f_back
        super().interrupt(signum, frame)

    def pytest_collection_finish(self):
        super().pytest_collection_finish()
        self.coverage.switch_context("fixtures")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.coverage.switch_context(item.nodeid)
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        try:
            yield
            self.passed[item.nodeid] = time.process_time() - started
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            self.coverage.switch_context("fixtures")

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.passed.pop(report.nodeid, None)

    def pytest_sessionfinish(self):
        with warnings.catch_warnings(action="ignore"):
            self.coverage.stop()
            data = self.coverage.get_data()
        masks = {test: {} for test in [*self.passed, "fixtures", ""]}
        for file in data.measured_files():
            path = Path(file).relative_to(Path.cwd()).as_posix()
            for line, contexts in data.contexts_by_lineno(file).items():
                for mask in (masks[context] for context in contexts if context in masks):
                    mask[path] = mask.get(path, 0) | 1 << line
        lines = {test: {path: hex(bits) for path, bits in mask.items()} for test, mask in masks.items()}
        self.out.write_text(json.dumps({"seconds": self.passed, "lines": lines}))
