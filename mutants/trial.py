"""What a worker process does in its own copy of the tree: run tests, with a mutant or without.

Libraries are imported once; pytest runs in a fork of the process, which imports only the package itself.
"""

import contextlib
import functools
import importlib
import itertools
import json
import math
import os
import resource
import shutil
import signal
import sys
import time
import warnings
from pathlib import Path

import coverage
import pytest

IGNORED = shutil.ignore_patterns(".*", "__pycache__", "results", "_build", "dist", "*.nb[ic]")
LIBRARIES = ("numba.extending", "scipy.optimize", "sklearn.svm", "sklearn.model_selection", "pandas",
             "hypothesis.extra.numpy", "joblib", "selenium.webdriver", "matplotlib.pyplot")  # fmt: skip
OPTIONS = ("-q", "-p", "no:cacheprovider", "--tb=no", "-m", "not heavy",
           "-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning")  # fmt: skip
MTIMES = itertools.count(1)  # of mutants: all different, so that no bytecode of another version is used
MAX_MEMORY = 3 * 2**30  # bytes per run: a fault may ask for all there is
MAX_TEST_SECONDS = 10.0  # processor time; a test that takes longer, uncompiled and with coverage, is not used
MAX_FILE_SECONDS = 3600.0  # for one test file, while the lines it executes are recorded


def set_up(root, folder):
    """Copy the tree, go there, and import the libraries."""
    tree = folder / str(os.getpid())
    shutil.copytree(root, tree, ignore=IGNORED)
    os.chdir(tree)
    sys.path[:0] = [str(tree / "src"), str(tree / "tests")]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
    for name in LIBRARIES if (tree / "src" / "kmargin").exists() else ():
        importlib.import_module(name)
    if "hypothesis" in sys.modules:  # the same examples each time, and no search for smaller ones
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", derandomize=True, database=None, phases=phases)
        settings.load_profile("mutants")


def record_file(file, cache):
    """Write to `cache` which tests of a file pass, their seconds, and the lines they execute."""
    _, record = run_pytest([file], MAX_FILE_SECONDS, record=True)
    print(f"{file}: {len(record.get('seconds', ()))} tests used", flush=True)
    cache.parent.mkdir(exist_ok=True)
    cache.write_text(json.dumps(record or {"seconds": {}, "lines": {}}))


def try_mutant(mutant, chosen):
    """killed, timeout or survived; and the test that failed, or the number of those that did not."""
    tests, seconds = chosen
    file = Path(mutant.path)
    original = file.read_bytes()
    while tests:
        try:
            file.write_text(mutant.source, encoding="utf-8")
            os.utime(file, (next(MTIMES),) * 2)
            code, found = run_pytest(tests, seconds)
        finally:
            file.write_bytes(original)
        if code in (0, 5):  # passed; nothing collected, if the names of tests depend on the mutant
            return "survived", f"{len(tests)} tests pass"
        if code is None:
            return "timeout", f"{seconds:.0f} s"
        failed = found.get("failed", tests[0])  # the first, if the mutant cannot be imported
        if passes_unmutated(failed):
            return "killed", failed
        tests = [test for test in tests if test != failed]
    return "survived", "no test executes it"


@functools.cache
def passes_unmutated(test):
    """Whether a test passes by itself; not all that pass after others in their file do."""
    return run_pytest([test], 60.0 + MAX_TEST_SECONDS)[0] == 0


def run_pytest(tests, seconds, record=False):
    """The exit code of pytest in a fork (None if it takes too long), and what the plugin found.

    `seconds` are of processor time; ten times as many may pass.
    """
    result = Path("mutants-result.json")
    result.write_text("{}")
    started, child, code = time.monotonic(), os.fork(), None
    if child == 0:
        with contextlib.suppress(BaseException):
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 5))
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            plugin = Recorder() if record else Selection(tests)
            files = dict.fromkeys(test.split("::")[0] for test in tests)
            code = int(pytest.main([*OPTIONS, *([] if record else ["-x"]), *files], plugins=[plugin]))
            result.write_text(json.dumps(plugin.result()))
        os._exit(1 if code is None else code)
    try:
        while code is None and time.monotonic() - started < 10 * seconds:
            time.sleep(0.02)
            done, status = os.waitpid(child, os.WNOHANG)
            code = os.waitstatus_to_exitcode(status) if done else None
    finally:  # also after Ctrl-C
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # and the processes it has started
    if code is None:
        os.waitpid(child, 0)
    code = None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code
    return code, json.loads(result.read_text() or "{}")


class Selection:
    """Run the given tests, in this order, and say which failed."""

    def __init__(self, tests):
        self.rank = {test: i for i, test in enumerate(tests)}
        self.failed = {}

    def pytest_collection_modifyitems(self, items):
        items[:] = sorted((i for i in items if i.nodeid in self.rank), key=lambda i: self.rank[i.nodeid])

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.setdefault("failed", report.nodeid)

    def result(self):
        return self.failed


class Recorder:
    """Record the processor time of each passing test and the lines it executes, as bit masks by file.

    Fixtures may be shared, so their lines are recorded under "fixtures", and those run on import under "".
    """

    def __init__(self):
        self.seconds = {}
        source = [str(Path("src").resolve())]
        self.coverage = coverage.Coverage(data_file=None, source=source, config_file=False, messages=False)
        self.coverage.start()
        signal.signal(signal.SIGPROF, self.interrupt)

    def interrupt(self, signum, frame):
        """End the test, but not while coverage holds its lock, which would never be released."""
        while frame is not None:
            if frame.f_code.co_filename.startswith(str(Path(coverage.__file__).parent)):
                signal.setitimer(signal.ITIMER_PROF, 0.1)
                return
            frame = frame.f_back
        raise TimeoutError(f"the test took more than {MAX_TEST_SECONDS} s")

    def pytest_collection_finish(self):
        self.coverage.switch_context("fixtures")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.coverage.switch_context(item.nodeid)
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, MAX_TEST_SECONDS)
        try:
            yield
            self.seconds[item.nodeid] = time.process_time() - started
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            self.coverage.switch_context("fixtures")

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.seconds.pop(report.nodeid, None)

    def result(self):
        with warnings.catch_warnings(action="ignore"):
            self.coverage.stop()
            data = self.coverage.get_data()
        masks = {test: {} for test in [*self.seconds, "fixtures", ""]}
        for file in data.measured_files():
            path = Path(file).relative_to(Path.cwd()).as_posix()
            for line, contexts in data.contexts_by_lineno(file).items():
                for mask in (masks[context] for context in contexts if context in masks):
                    mask[path] = mask.get(path, 0) | 1 << line
        lines = {test: {path: hex(bits) for path, bits in mask.items()} for test, mask in masks.items()}
        return {"seconds": self.seconds, "lines": lines}
