"""Draw faults at random, put each into a copy of the source, and list those that no test detects.

First the lines that each test executes are recorded. Then each fault is tried against the tests that execute
its statement, until one fails: quick ones that execute few lines first, and different tests before the same
test with other parameters. Faults in compiled functions are tried uncompiled: coverage does not see compiled
code, and numba's cache does not notice a change in a function that another file calls.

Each process has a copy of the tree, and a child that has collected all tests once. The tests of a fault run
in a fork of that child, whose functions get the code of the mutated source. Only a fault that changes what is
executed on import is tried in a process that has imported the libraries, but not the package.
"""

import argparse
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
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numba
import pytest
from numba.core import caching

from mutants.plugin import Runner, Template
from mutants.sample import draw_mutants

ENVIRONMENT = {"SCIPY_ARRAY_API": "1", "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}  # read on import
OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "-m", "not heavy")
OPTIONS += ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # plugins may be imported already
IGNORED = shutil.ignore_patterns(".*", "results", "_build", "dist")
MAX_SECONDS = 15.0  # of a mutant, for all its tests, by their recorded times
TEST_OVERHEAD = 0.02  # seconds of fixtures and of pytest
MAX_FILE_SECONDS = 3600.0  # to record a file of tests
UNCOMPILED = ("tests/core/", "tests/data/", "tests/solvers/")  # the tests that are recorded uncompiled, too


class Limits(NamedTuple):
    """Seconds of processor time of a test; one that takes longer is not used, or has failed."""

    recording: float
    judging: float


LIMITS = {True: Limits(3.0, 10.0), False: Limits(1.5, 10.0)}  # compiled, uncompiled


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
            enter_tree()
            has_warm_up = compiled and (tree / "fuzz" / "warm.py").exists()
            template = Template(LIMITS[compiled], its_connection, run_in_fork, has_warm_up)
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

    Kept in .mutants while the source, the test file and what test files share are the same.
    """
    shared = {*tree.glob("src/**/*.py"), *tree.glob("tests/**/*.py")}
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
    """The mutant in place of its source, which gets its time of change back, for which there is bytecode."""
    path = tree / mutant.path
    original, times = path.read_text("utf-8"), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_text(mutant.source, encoding="utf-8")
    os.utime(path, (0, 0))
    try:
        yield
    finally:
        path.write_text(original, encoding="utf-8")
        os.utime(path, ns=times)


def run_after_import(tests, compiled):
    """The test that fails, if any, where the package is imported as it is on disk."""
    enter_tree()
    runner = Runner(LIMITS[compiled].judging, tests)
    run_pytest(runner, {test.partition("::")[0] for test in tests}, compiled)
    return tests[:1] if runner.items is None else runner.failed  # None: conftest.py cannot be imported


@cache
def passes_alone(test, compiled, in_memory):
    """Not all tests that pass after others pass by themselves."""
    if in_memory:
        return ask_template(compiled, "run", MAX_FILE_SECONDS, [test]) == (0, [])
    return run_in_fork(run_after_import, MAX_FILE_SECONDS, [test], compiled) == (0, [])


def judge(mutant, tests, seconds, runs_on_import):
    """killed, timeout or survived; and the test that failed, or the number of those that did not.

    A fault in the body of a function is put into the functions in memory. If that is not enough, since a
    test file calls the function on import, the package and the test files are imported anew.
    """
    compiled, in_memory, tests = not mutant.compiled, mutant.in_function, [*tests]
    start_template(compiled)
    while tests:
        with mutated(mutant):
            if in_memory:
                path = str(tree / mutant.path)
                code, failed = ask_template(compiled, "judge", seconds, tests, path, mutant.source)
            else:
                code, failed = run_in_fork(run_after_import, seconds, tests, compiled)
        if code == 0 and (failed is None or (in_memory and not failed and runs_on_import)):
            in_memory = False
        elif code == 0 and not failed:
            return "survived", f"{len(tests)} tests pass"
        elif code == -1:
            return "timeout", f"{seconds:.0f} s"
        else:
            failed = failed[0] if failed else tests[0]  # the first, if the process was killed
            if passes_alone(failed, compiled, in_memory):
                return "killed", failed
            tests.remove(failed)
    return "survived", "no test executes it"


class Test(NamedTuple):
    """A test, what it costs, and the lines it executes: its own and those of the fixtures of its file."""

    name: str
    seconds: float
    n_lines: int
    lines: dict[str, int]  # bit masks by source file
    imported: dict[str, int]


def read_tests(records):
    for record in records:
        masks = {
            name: {path: int(mask, 16) for path, mask in files.items()}
            for name, files in record["lines"].items()
        }
        fixtures = masks["fixtures"]
        for name, seconds in record["seconds"].items():
            n_lines = sum(mask.bit_count() for mask in masks[name].values())
            lines = {
                path: masks[name].get(path, 0) | fixtures.get(path, 0) for path in masks[name] | fixtures
            }
            yield Test(name, seconds, n_lines, lines, masks[""])


def choose_tests(mutant, tests):
    """The tests that execute the statement in the order in which to try them, their time limit, and whether
    importing the tests executes it, too.

    What runs only on import is left to the tests that execute any line of the source file.
    """
    found = []
    for test in tests:
        lines, imported = (masks.get(mutant.path, 0) for masks in (test.lines, test.imported))
        if lines & mutant.lines or (lines and imported & mutant.lines):
            found.append(((0.05 + test.seconds) * (100 + test.n_lines), test))
    n_before, ordered = Counter(), []
    for cost, test in sorted(found):
        function = test.name.partition("[")[0]
        n_before[function] += 1
        ordered.append((cost * n_before[function], test))
    chosen, total = [], 0.0
    for _, test in sorted(ordered):
        if total + test.seconds <= MAX_SECONDS:
            chosen.append(test.name)
            total += test.seconds + TEST_OVERHEAD
    runs_on_import = any(test.imported.get(mutant.path, 0) & mutant.lines for test in tests)
    return chosen, 20 + 3 * total, runs_on_import


def write_table(outcomes, sample):
    count = Counter(status for _, status, _ in outcomes)
    lines = [
        f"# Mutants\n\n{sample}. Score: **{1 - count['survived'] / len(outcomes):.1%}**. {count['killed']} "
        f"killed by a failing test, {count['timeout']} by the time limit; {count['survived']} survived.\n\n"
        f"A mutant is tried against the quickest and most specific tests that execute it, as many as take "
        f"{MAX_SECONDS:g} s. Tests that take more than {LIMITS[True].recording:g} s, or uncompiled, for "
        f"faults in compiled functions, more than {LIMITS[False].recording:g} s, are not used.\n",
        "| survivor | original | mutated | |\n|---|---|---|---|",
    ]
    for mutant, status, detail in sorted(outcomes, key=lambda outcome: (outcome[0].path, outcome[0].line)):
        if status == "survived":
            cells = [f"`` {text} ``".replace("|", "\\|") for text in (mutant.original, mutant.mutated)]
            lines.append(f"| {mutant.path}:{mutant.line} | {cells[0]} | {cells[1]} | {detail} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="number of mutants (300)")
    parser.add_argument("--seed", type=int, default=7, help="seed of the sample (7)")
    parser.add_argument("--only", nargs="+", default=[""], help="source files with these in their path")
    parser.add_argument("--tests", nargs="+", default=[""], help="test files with these in their path")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes (2)")
    parser.add_argument("--minutes", type=float, default=600, help="score what is judged by then (600)")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="has src and tests")
    parser.add_argument("--out", type=Path, help="results/mutants.md, unless --only or --tests is given")
    options = parser.parse_args()
    root = options.root.resolve()
    sources, files = (
        [path.relative_to(root).as_posix() for path in sorted(root.glob(pattern))]
        for pattern in ("src/**/*.py", "tests/**/test_*.py")
    )
    sources, files = (
        [path for path in paths if any(part in path for part in parts)]
        for paths, parts in ((sources, options.only), (files, options.tests))
    )
    texts = {path: (root / path).read_text("utf-8") for path in sources}
    mutants = draw_mutants(texts, options.n, options.seed)
    if not mutants:
        parser.error(f"--only {' '.join(options.only)} leaves nothing to mutate. Use parts of paths in src.")
    import_libraries(root)
    used = {True: files, False: [file for file in files if file.startswith(UNCOMPILED)]}
    outcomes, started = [], time.monotonic()
    context = multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        context.Pool(options.jobs, start_process, (root, folder, used)) as pool,
    ):
        tests = {}
        for compiled in {not mutant.compiled for mutant in mutants}:
            requests = [(root, file, compiled) for file in used[compiled]]
            tests[compiled] = [*read_tests(pool.starmap(record, requests, chunksize=1))]
            seconds = time.monotonic() - started
            print(f"{len(tests[compiled])} tests recorded after {seconds:.0f} s", flush=True)
        jobs = [(mutant, *choose_tests(mutant, tests[not mutant.compiled])) for mutant in mutants]
        waiting = [pool.apply_async(judge, job) for job in jobs]
        for mutant, result in zip(mutants, waiting, strict=True):
            try:
                status, detail = result.get(max(0, 60 * options.minutes - (time.monotonic() - started)))
            except multiprocessing.TimeoutError:
                break
            outcomes.append((mutant, status, detail))
            print(f"{len(outcomes):4} {status:8} {mutant.path}:{mutant.line}  {detail}", flush=True)
    minutes = (time.monotonic() - started) / 60
    sample = f"The first {len(outcomes)} of " * (len(outcomes) < len(mutants))
    sample += f"{len(mutants)} mutants, drawn with seed {options.seed}"
    for parts, what in ((options.only, " from files with"), (options.tests, ", against tests with")):
        sample += f"{what} {' or '.join(parts)} in their path" * (parts != [""])
    table = write_table(outcomes, f"{sample}; {minutes:.0f} minutes with {options.jobs} processes")
    print(table)
    if options.out or options.only == options.tests == [""]:
        (options.out or root / "results" / "mutants.md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
