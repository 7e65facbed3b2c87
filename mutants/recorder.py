"""A pytest plugin that records seconds and executed lines (bit masks by file) of each passing test.

Fixtures may be shared, so their lines are recorded under "fixtures", and those run on import under "". Tests
that take too long, uncompiled and with coverage, are ended and not used.
"""

import json
import os
import signal
import time
import warnings
from pathlib import Path

import coverage
import pytest

MAX_TEST_SECONDS = 10.0  # processor time
seconds = {}
recording = coverage.Coverage(data_file=None, source=[str(Path("src").resolve())], config_file=False)
recording.start()


def interrupt(signum, frame):
    """End the test, but not while coverage holds its lock, which would never be released."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(str(Path(coverage.__file__).parent)):
            signal.setitimer(signal.ITIMER_PROF, 0.1)
            return
        frame = frame.f_back
    raise TimeoutError(f"the test took more than {MAX_TEST_SECONDS} s")


def pytest_collection_finish():
    signal.signal(signal.SIGPROF, interrupt)
    recording.switch_context("fixtures")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    recording.switch_context(item.nodeid)
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, MAX_TEST_SECONDS)
    try:
        yield
        seconds[item.nodeid] = time.process_time() - started
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        recording.switch_context("fixtures")


def pytest_runtest_logreport(report):
    if report.failed:
        seconds.pop(report.nodeid, None)


def pytest_sessionfinish():
    with warnings.catch_warnings(action="ignore"):
        recording.stop()
        data = recording.get_data()
    masks = {test: {} for test in [*seconds, "fixtures", ""]}
    for file in data.measured_files():
        path = Path(file).relative_to(Path.cwd()).as_posix()
        for line, contexts in data.contexts_by_lineno(file).items():
            for mask in (masks[context] for context in contexts if context in masks):
                mask[path] = mask.get(path, 0) | 1 << line
    lines = {test: {path: hex(bits) for path, bits in mask.items()} for test, mask in masks.items()}
    Path(os.environ["MUTANTS_RECORD"]).write_text(json.dumps({"seconds": seconds, "lines": lines}))
