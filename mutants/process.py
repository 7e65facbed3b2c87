"""Run tests against a mutant, in processes that have imported and collected everything beforehand.

Each process of the pool has a copy of the tree, and a child that has collected all tests once. The tests of a
mutant run in a fork of that child, whose functions get the code of the mutated source. Only a mutant that
changes what is executed on import is tried in a process that has imported the libraries, but not the package.
"""

import ast
import hashlib
import importlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import time
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numba
import pytest
from numba.core import caching

from mutants.plugin import Runner, Template

ENVIRONMENT = {"SCIPY_ARRAY_API": "1", "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}  # read on import
OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "-m", "not heavy")
OPTIONS += ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # plugins may be imported already
IGNORED = shutil.ignore_patterns(".*", "_build", "dist")
MAX_FILE_SECONDS = 3600.0  # to record a file of tests


class Stage(NamedTuple):
    """Which tests a mutant is tried against, in seconds of processor time."""

    total: float  # of all tests, by their recorded times
    longest: float  # of a test
    limit: float  # a test that takes longer has failed


STAGES = {  # the second one for mutants that survive the first
    True: (Stage(15.0, 3.0, 10.0), Stage(120.0, 30.0, 60.0)),  # compiled
    False: (Stage(15.0, 1.5, 10.0), Stage(120.0, 6.0, 60.0)),  # uncompiled
}


def import_libraries(root):
    """Import what the source and the tests import, but nothing that is in the tree itself."""
    os.environ |= ENVIRONMENT
    own = {path.stem for path in (*root.glob("*"), *root.glob("src/*"), *root.glob("tests/**/*.py"))}
    names = set()
    for path in (path for folder in ("src", "tests") for path in root.glob(f"{folder}/**/*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names.add(getattr(node, "module", None) or node.names[0].name)
    for name in sorted(names):
        if name.split(".")[0] not in own:
            with suppress(ImportError):
                importlib.import_module(name)
    assert not {path.stem for path in root.glob("src/*")} & sys.modules.keys(), (
        "mutants would not be imported"
    )


def start_process(root, folder, files):
    """Copy the tree with its bytecode and compiled code, and let numba use the latter for mutants, too."""
    global tree, collected
    tree, collected = Path(shutil.copytree(root, Path(folder, str(os.getpid())), ignore=IGNORED)), files
    sys.dont_write_bytecode, os.environ["PYTHONDONTWRITEBYTECODE"] = True, "1"
    stamp = caching._SourceFileBackedLocatorMixin.get_source_stamp
    stamps = {str(path): stamp(SimpleNamespace(_py_file=path)) for path in tree.glob("src/**/*.py")}
    caching._SourceFileBackedLocatorMixin.get_source_stamp = lambda locator: (
        stamps.get(locator._py_file) or stamp(locator)
    )


def enter_tree():
    """Work in the copy of the tree, without any output."""
    os.chdir(tree)
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(silence, stream)
    paths = [str(tree / "src"), str(tree / "tests"), str(Path(__file__).parents[1])]
    sys.path[:0] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)


def run_pytest(plugin, files, compiled):
    if not compiled:
        numba.config.DISABLE_JIT, os.environ["NUMBA_DISABLE_JIT"] = True, "1"
    pytest.main([*OPTIONS, f"--basetemp={tree}.tmp", *files], plugins=[plugin])


@cache
def start_template(compiled):
    """A process that has collected all tests, as a connection to send requests to."""
    connection, its_connection = multiprocessing.Pipe()
    if os.fork() == 0:
        try:
            connection.close()  # so that this process ends when its parent does
            multiprocessing.current_process()._config["daemon"] = False  # tests may start processes
            enter_tree()
            has_warm_up = compiled and (tree / "fuzz" / "warm.py").exists()
            template = Template(STAGES[compiled][-1], its_connection, run_in_fork, has_warm_up)
            run_pytest(template, collected[compiled], compiled)
        finally:
            os._exit(0)
    its_connection.close()
    connection.recv()  # "ready": the package must be imported before a file of it is mutated
    return connection


def ask_template(compiled, *request):
    connection = start_template(compiled)
    connection.send(request)
    return connection.recv()


def run_in_fork(function, seconds, *args):
    """Exit code of a function in a fork, or -1 if it takes too long, and what it returns, or None.

    The limit is processor time; on the clock it may take five times as long.
    """
    out = Path(f"{tree}.out")
    out.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (round(seconds), round(seconds)))
            out.write_text(json.dumps(function(*args)))
            code = 0
        finally:
            os._exit(code)
    with suppress(OSError):
        os.setpgid(pid, pid)
    code, ends = None, time.monotonic() + 5 * seconds
    try:
        while code is None and time.monotonic() < ends:
            ended, status = os.waitpid(pid, os.WNOHANG)
            code = os.waitstatus_to_exitcode(status) if ended else None
            time.sleep(0.01)
    finally:  # also after Ctrl-C: end what it has started, too
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        if code is None:
            os.waitpid(pid, 0)
    if code == 0:
        return 0, json.loads(out.read_text())
    return -1 if code in (None, -signal.SIGKILL, -signal.SIGXCPU) else code, None


def record(root, file, compiled):
    """Which tests of a file pass, their seconds, and the lines they execute.

    Kept in .mutants while the source, the test file, what tests share and the recorder stay the same.
    """
    shared = {*tree.glob("src/**/*.py"), *tree.glob("tests/**/*.py"), Path(__file__).with_name("plugin.py")}
    shared -= {*tree.glob("tests/**/test_*.py")} - {tree / file}
    key = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(shared))).hexdigest()[:16]
    kept = root / ".mutants" / f"{Path(file).stem}-{key}{'' if compiled else '-uncompiled'}.json"
    if not kept.exists():
        code, found = ask_template(compiled, "record", MAX_FILE_SECONDS, file)
        if code != 0:
            print(f"{file} is not used: its tests could not be recorded ({code}).", flush=True)
            return {"seconds": {}, "lines": {"": {}, "fixtures": {}}}
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(found))
    return json.loads(kept.read_text())


@contextmanager
def mutated(mutant):
    """Put the mutant in place of its source. Afterwards restore the source and its time of modification, so
    that its bytecode stays valid.
    """
    path = tree / mutant.path
    original, times = path.read_text("utf-8"), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_text(mutant.source, encoding="utf-8")
    os.utime(path, (0, 0))
    try:
        yield
    finally:
        path.write_text(original, encoding="utf-8")
        os.utime(path, ns=times)


def run_after_import(tests, compiled, limit):
    """Import the package from disk, where it is mutated, and return the test that fails, if any."""
    enter_tree()
    runner = Runner(limit, tests)
    run_pytest(runner, {test.partition("::")[0] for test in tests}, compiled)
    return tests[:1] if runner.items is None else runner.failed  # None: conftest.py cannot be imported


@cache
def passes_alone(test, compiled, in_memory):
    """Whether a test passes when it is run by itself, without a mutant: some pass only after other tests."""
    if in_memory:
        return ask_template(compiled, "run", MAX_FILE_SECONDS, [test]) == (0, [])
    limit = STAGES[compiled][-1].limit
    return run_in_fork(run_after_import, MAX_FILE_SECONDS, [test], compiled, limit) == (0, [])


def judge(mutant, rounds, runs_on_import):
    """The status (killed, timeout, survived) with the test that failed or the number of tests that passed."""
    n_passed = 0
    for tests, seconds, limit in rounds:
        status, detail = run_round(mutant, [*tests], seconds, limit, runs_on_import)
        if status != "survived":
            return status, detail
        n_passed += detail
    return "survived", f"{n_passed} tests pass" if n_passed else "no test executes it"


def run_round(mutant, tests, seconds, limit, runs_on_import):
    """Try a mutant against the tests of one stage.

    If only the body of a function differs, the functions in memory get the mutated code. If a test file calls
    the function on import, the package and the test files are imported anew.
    """
    compiled, in_memory = not mutant.compiled, mutant.in_function
    start_template(compiled)
    while tests:
        with mutated(mutant):
            if in_memory:
                path = str(tree / mutant.path)
                code, failed = ask_template(compiled, "judge", seconds, tests, limit, path, mutant.source)
            else:
                code, failed = run_in_fork(run_after_import, seconds, tests, compiled, limit)
        if code == 0 and (failed is None or (in_memory and not failed and runs_on_import)):
            in_memory = False
        elif code == 0 and not failed:
            break
        elif code == -1:
            return "timeout", f"{seconds:.0f} s"
        else:
            failed = failed[0] if failed else tests[0]  # the first, if the process was killed
            if passes_alone(failed, compiled, in_memory):
                return "killed", failed
            tests.remove(failed)
    return "survived", len(tests)
