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
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import coverage
import pytest

from mutants.sample import Mutant

IGNORED = shutil.ignore_patterns(".*", "__pycache__", "results", "_build", "dist", "*.nb[ic]")
LIBRARIES = ("numba.extending", "scipy.optimize", "scipy.stats", "sklearn.svm", "sklearn.model_selection",
             "sklearn.datasets", "pandas", "hypothesis.extra.numpy", "joblib", "selenium.webdriver",
             "matplotlib.pyplot")  # fmt: skip
OPTIONS = ("-q", "-p", "no:cacheprovider", "--tb=no", "-m", "not heavy",
           "-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning")  # fmt: skip
MTIMES = itertools.count(1)  # of mutants: all different, so that no bytecode of another version is used
MAX_MEMORY = 3 * 2**30  # bytes per run: a fault may ask for all there is
MAX_TEST_SECONDS = 10.0  # processor time; a test that takes longer, uncompiled and with coverage, is not used
MAX_FILE_SECONDS = 3600.0  # for one test file, while the lines it executes are recorded


def set_up(root: Path, folder: Path) -> None:
    """Copy the tree, go there, and import the libraries."""
    tree = folder / str(os.getpid())
    shutil.copytree(root, tree, ignore=IGNORED)
    os.chdir(tree)
    sys.dont_write_bytecode = False
    sys.path[:0] = [str(tree / "src"), str(tree / "tests")]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
    text = "".join(path.read_text("utf-8") for path in tree.rglob("*.py"))
    for name in LIBRARIES:
        if f"import {name.split('.')[0]}" in text or f"from {name.split('.')[0]}" in text:
            importlib.import_module(name)
    if "hypothesis" in sys.modules:  # the same examples each time, and no search for smaller ones
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", derandomize=True, database=None, phases=phases)
        settings.load_profile("mutants")


def record_file(file: str, cache: Path) -> None:
    """Write to `cache` which tests of a file pass, and the lines they execute; see `Recorder`."""
    _, record = run_pytest([file], MAX_FILE_SECONDS, record=True)
    record = record or {"seconds": {}, "lines": {}, "n_failed": "all"}
    print(f"{file}: {len(record['seconds'])} tests used, {record['n_failed']} left out", flush=True)
    for stale in cache.parent.glob(f"{Path(file).stem}-{'?' * 16}.json"):
        stale.unlink()
    cache.parent.mkdir(exist_ok=True)
    cache.write_text(json.dumps(record))


def try_mutant(mutant: Mutant, batches: list[tuple[list[str], float]]) -> tuple[str, str]:
    """killed, timeout or survived; and the test that failed, or the number of those that did not."""
    file, n_passed = Path(mutant.path), 0
    original = file.read_bytes()
    for tests, seconds in batches:
        while tests:
            try:
                file.write_text(mutant.source, encoding="utf-8")
                os.utime(file, (next(MTIMES),) * 2)
                code, found = run_pytest(tests, seconds)
            finally:
                file.write_bytes(original)
            if code in (0, 5):  # passed; nothing collected, if the names of tests depend on the mutant
                break
            if code is None:
                return "timeout", f"{seconds:.0f} s"
            failed = found.get("failed", tests[0])  # the first, if the mutant cannot be imported
            if passes_unmutated(failed):
                return "killed", failed
            tests = [test for test in tests if test != failed]
        n_passed += len(tests)
    return "survived", f"{n_passed} tests pass" if n_passed else "no test executes it"


@functools.cache
def passes_unmutated(test: str) -> bool:
    """Whether a test passes by itself; not all that pass after others in their file do."""
    return run_pytest([test], 60.0 + MAX_TEST_SECONDS)[0] == 0


def run_pytest(tests: list[str], seconds: float, record: bool = False) -> tuple[int | None, dict[str, Any]]:
    """The exit code of pytest (None if it takes too long), and what the plugin found.

    `seconds` are of processor time; ten times as many may pass.
    """
    result = Path("mutants-result.json")
    result.write_text("{}")
    started, child, code = time.monotonic(), os.fork(), None
    if child == 0:
        with contextlib.suppress(BaseException):
            code = run_in_child(tests, seconds, record, result)
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


def run_in_child(tests: list[str], seconds: float, record: bool, result: Path) -> int:
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
    return code


class Selection:
    """Run the given tests, in this order, and say which failed."""

    def __init__(self, tests: list[str]) -> None:
        self.rank = {test: i for i, test in enumerate(tests)}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.rank), key=lambda i: self.rank[i.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed += [report.nodeid] if report.failed else []

    def result(self) -> dict[str, Any]:
        return {"failed": self.failed[0]} if self.failed else {}


class Recorder:
    """Record the processor time of each passing test and the lines it executes, as bit masks by file.

    Fixtures may be shared, so their lines are recorded under "fixtures", and those run on import under "".
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        source = [str(Path("src").resolve())]
        self.coverage = coverage.Coverage(data_file=None, source=source, config_file=False, messages=False)
        self.coverage.start()
        signal.signal(signal.SIGPROF, self.interrupt)

    def interrupt(self, signum: int, frame: FrameType | None) -> None:
        """End the test, but not while coverage holds its lock, which would never be released."""
        folder = str(Path(coverage.__file__).parent)
        while frame is not None:
            if frame.f_code.co_filename.startswith(folder):
                signal.setitimer(signal.ITIMER_PROF, 0.1)
                return
            frame = frame.f_back
        raise TimeoutError(f"the test took more than {MAX_TEST_SECONDS} s")

    def pytest_collection_finish(self) -> None:
        self.coverage.switch_context("fixtures")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, MAX_TEST_SECONDS)
        try:
            yield
            self.seconds[item.nodeid] = time.process_time() - started
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            self.coverage.switch_context("fixtures")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
            self.seconds.pop(report.nodeid, None)

    def result(self) -> dict[str, Any]:
        with warnings.catch_warnings(action="ignore"):
            self.coverage.stop()
            data = self.coverage.get_data()
        masks: dict[str, dict[str, int]] = {test: {} for test in [*self.seconds, "fixtures", ""]}
        for file in data.measured_files():
            path = Path(file).relative_to(Path.cwd()).as_posix()
            for line, contexts in data.contexts_by_lineno(file).items():
                for mask in (masks[context] for context in contexts if context in masks):
                    mask[path] = mask.get(path, 0) | 1 << line
        lines = {test: {path: hex(bits) for path, bits in mask.items()} for test, mask in masks.items()}
        return {"seconds": self.seconds, "lines": lines, "n_failed": len(self.failed)}
