"""Pytest plugins that run tests with a time limit, in forks of a process that has collected them already."""

import functools
import gc
import importlib
import signal
import time
import warnings
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType

import coverage
import pytest

CACHED = type(functools.cache(len))


class Runner:
    """Run the given tests until one fails; it fails, too, if it takes too much processor time."""

    def __init__(self, seconds, tests=()):
        self.seconds, self.tests = seconds, tests
        self.items, self.passed, self.failed = None, {}, []

    def pytest_runtestloop(self, session):
        self.items = {item.nodeid: item for item in session.items}
        if session.testsfailed:  # a file cannot be imported
            self.failed.append(self.tests[0])
        else:
            self.run(self.tests)
        return True

    def run(self, tests, stop_at_failure=True):
        signal.signal(signal.SIGPROF, self.interrupt)
        items = [self.items[test] for test in tests if test in self.items]
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed and stop_at_failure:
                break
        return self.failed

    def interrupt(self, signum, frame):
        raise TimeoutError(f"the test takes more than {self.seconds:g} s of processor time")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        try:
            yield
            self.passed[item.nodeid] = time.process_time() - started
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.passed.pop(report.nodeid, None)
            self.failed.append(report.nodeid)


class Recorder(Runner):
    """Record seconds and executed lines (bit masks by file) of each passing test.

    Fixtures may be shared, so their lines are recorded under "fixtures".
    """

    def __init__(self, seconds, items):
        super().__init__(seconds)
        self.items, self.coverage = items, start_coverage("fixtures")

    def interrupt(self, signum, frame):
        """Not while coverage holds its lock, which would never be released."""
        caller = frame
        while caller is not None:
            if caller.f_code.co_filename.startswith(str(Path(coverage.__file__).parent)):
                signal.setitimer(signal.ITIMER_PROF, 0.1)
                return
            caller = caller.f_back
        super().interrupt(signum, frame)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield from super().pytest_runtest_call(item))
        finally:
            self.coverage.switch_context("fixtures")


class Template(Runner):
    """Collect all tests, and then answer requests, each in a fork of this process."""

    def __init__(self, stage, connection, run_in_fork, warm_up):
        super().__init__(stage.limit)
        self.longest, self.warm_up = stage.longest, warm_up
        self.connection, self.run_in_fork = connection, run_in_fork
        self.coverage = start_coverage("")

    def pytest_runtestloop(self, session):
        self.imported = stop_coverage(self.coverage).get("", {})
        self.items = {item.nodeid: item for item in session.items}
        if self.warm_up:
            load_compiled_code()
        self.connection.send("ready")
        with suppress(EOFError):  # the parent has ended
            while True:
                action, seconds, *details = self.connection.recv()
                self.connection.send(self.run_in_fork(getattr(self, action), seconds, *details))
        return True

    def record(self, file):
        """Which tests of a file pass, their seconds, and the lines they execute; "" has those of imports."""
        plugins = next(iter(self.items.values())).config.pluginmanager
        plugins.unregister(self)
        recorder = Recorder(self.longest, self.items)
        plugins.register(recorder)
        recorder.run([test for test in self.items if test.startswith(f"{file}::")], stop_at_failure=False)
        lines = stop_coverage(recorder.coverage) | {"": self.imported}
        kept = {test: lines.get(test, {}) for test in ["", "fixtures", *recorder.passed]}
        return {"seconds": recorder.passed, "lines": kept}

    def judge(self, tests, limit, path, source):
        """The test that fails, if any, where functions have the mutated code; None if they cannot have it."""
        try:
            replace_code(path, source)
        except ValueError:
            return None
        self.seconds = limit
        return self.run(tests)


def load_compiled_code():
    """Call most compiled functions, and forget what the package's cached functions have returned."""
    importlib.import_module("fuzz.warm").warm_up()
    source = str(Path("src").resolve())
    for function in gc.get_objects():
        if isinstance(function, CACHED):
            code = getattr(function.__wrapped__, "__code__", None)
            if code is not None and code.co_filename.startswith(source):
                function.cache_clear()


def start_coverage(context):
    started = coverage.Coverage(data_file=None, source=[str(Path("src").resolve())], config_file=False)
    started.start()
    if context:
        started.switch_context(context)
    return started


def stop_coverage(started):
    """The lines executed in each context: bit masks by source file."""
    with warnings.catch_warnings(action="ignore"):
        started.stop()
        data = started.get_data()
    masks = {}
    for file in data.measured_files():
        path = Path(file).relative_to(Path.cwd()).as_posix()
        for line, contexts in data.contexts_by_lineno(file).items():
            for context in contexts:
                mask = masks.setdefault(context, {})
                mask[path] = mask.get(path, 0) | 1 << line
    return masks


def replace_code(path, source):
    """Give the functions of a file that has been imported the code of another version with the same lines.

    What holds a reference to such a function runs the new code, too. Raises ValueError if a function reads
    other variables of the function around it.
    """
    codes, found = {}, [compile(source, path, "exec", dont_inherit=True)]
    while found:
        code = found.pop()
        codes[code.co_qualname, code.co_firstlineno] = code
        found += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == path:
            place = function.__code__.co_qualname, function.__code__.co_firstlineno
            if place in codes and function.__name__ != "<lambda>":  # a line may have several of these
                function.__code__ = codes[place]
