"""A process that tries one mutant after another in its own copy of the tree.

What takes long to import is imported once; each trial is a fork, and imports only the package itself.
A trial is asked for by a line of JSON on the standard input and answered by one on the standard output.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

HEAVY = ("numba.extending", "scipy.optimize", "scipy.stats", "sklearn.svm", "sklearn.model_selection",
         "sklearn.datasets", "pandas", "hypothesis.extra.numpy", "joblib", "selenium.webdriver",
         "matplotlib.pyplot", "pytest")  # fmt: skip
OPTIONS = (
    *("-x", "-q", "-p", "no:cacheprovider", "--tb=short"),
    *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
)
NO_ANSWER = 70  # the exit code of a trial that could not be made
MEMORY = 3 * 2**30  # bytes that a trial may take: a mistake may well ask for all there is


def main() -> None:
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    hurry_hypothesis()
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), flush=True)


def hurry_hypothesis() -> None:
    """The same examples each time, and the first that fails as it is. What conftest asks for comes on top."""
    with contextlib.suppress(ImportError):
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", derandomize=True, database=None, phases=phases)
        settings.load_profile("mutants")


def answer(file: str | None, source: str, tests: list[str], seconds: float) -> dict[str, object]:
    """Put `source` in the place of a file, run some tests, and put the file back."""
    if file is None:
        return trial(tests, seconds, keep_bytecode=True)
    path = Path(file)
    before = path.read_bytes()
    # a file of the same length, changed within a second, would be taken for the one compiled before
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()
    try:
        path.write_text(source, encoding="utf-8")
        return trial(tests, seconds)
    finally:
        path.write_bytes(before)


def trial(tests: list[str], seconds: float, keep_bytecode: bool = False) -> dict[str, object]:
    """The exit code of pytest (None if it took too long), what it said, and how long it took."""
    log, started = Path("trial.log"), time.monotonic()
    child = os.fork()
    if child == 0:
        run_tests(log, tests, keep_bytecode)
    code = None
    while time.monotonic() - started < seconds:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # and whatever it has started
    if code is None:
        os.waitpid(child, 0)
    said = log.read_text(encoding="utf-8", errors="replace")
    return {"code": code, "said": said, "seconds": time.monotonic() - started}


def run_tests(log: Path, tests: list[str], keep_bytecode: bool) -> None:
    """The child: never returns."""
    code = NO_ANSWER
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(out, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.dont_write_bytecode = not keep_bytecode
        import pytest

        code = int(pytest.main([*OPTIONS, *tests]))
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
