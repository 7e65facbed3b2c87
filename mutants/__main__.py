"""Draw faults at random, put each into a copy of the source, and list those that no test detects.

First the lines that each test executes are recorded. Then each fault is tried against the tests that execute
its statement, until one fails: quick ones that execute few lines first, and different tests before the same
test with other parameters. Faults in compiled functions are tried uncompiled: coverage does not see compiled
code, and numba's cache does not notice a change in a function that another file calls.

Each process has a copy of the tree, and runs the tests of a fault in a fork of itself that has the libraries,
but not the package, imported already.
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

from mutants.plugin import MAX_TEST_SECONDS, Recorder, TimeLimit
from mutants.sample import draw_mutants

ENVIRONMENT = {"SCIPY_ARRAY_API": "1", "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}  # read on import
OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "-m", "not heavy")
OPTIONS += ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # plugins may be imported already
IGNORED = shutil.ignore_patterns(".*", "results", "_build", "dist")
MIN_TESTS = 40  # of a mutant, if so many execute it, however long they take
MAX_SECONDS = 30.0  # of a mutant, for all its tests, by their recorded times
MAX_FILE_SECONDS = 3600.0  # to record a file of tests
SLOWEST = {True: 5.0, False: 2.0}  # seconds of processor time of the tests used: compiled, uncompiled
UNCOMPILED = ("tests/core/", "tests/data/", "tests/solvers/")  # the tests that are recorded uncompiled, too


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


def start_process(root, folder):
    """Copy the tree with its bytecode and compiled code, and let numba use the latter for mutants, too."""
    global tree
    tree = Path(shutil.copytree(root, Path(folder, str(os.getpid())), ignore=IGNORED))
    stamp = caching._SourceFileBackedLocatorMixin.get_source_stamp
    stamps = cache(lambda path: stamp(SimpleNamespace(_py_file=path)))
    caching._SourceFileBackedLocatorMixin.get_source_stamp = lambda locator: stamps(
        locator._py_file.replace(str(tree), str(root))
    )
    if (tree / "fuzz" / "warm.py").exists():
        run_in_fork(lambda: importlib.import_module("fuzz.warm").warm_up(), MAX_FILE_SECONDS)


def run_pytest(plugin, tests, seconds, compiled):
    """Exit code of pytest in a fork (-1: it takes too long), and what the plugin wrote, if anything."""
    out = tree.parent / f"{tree.name}.out"
    out.unlink(missing_ok=True)

    def run():
        if not compiled:
            numba.config.DISABLE_JIT, os.environ["NUMBA_DISABLE_JIT"] = True, "1"
        if plugin is TimeLimit:  # keep no bytecode of mutants
            sys.dont_write_bytecode, os.environ["PYTHONDONTWRITEBYTECODE"] = True, "1"
        limit = MAX_TEST_SECONDS if plugin is TimeLimit else SLOWEST[compiled]
        return pytest.main([*OPTIONS, *tests], plugins=[plugin(out, limit)])

    return run_in_fork(run, seconds), out.read_text() if out.exists() else None


def run_in_fork(function, seconds):
    """Call a function in a fork, in the copy of the tree; its exit code, or -1 if it takes too long.

    The limit is processor time; on the clock it may take ten times as long.
    """
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (round(seconds), round(seconds)))
            os.chdir(tree)
            silence = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(silence, stream)
            paths = [str(tree / "src"), str(tree / "tests"), str(Path(__file__).parents[1])]
            sys.path[:0] = paths
            os.environ["PYTHONPATH"] = os.pathsep.join(paths)
            code = function() or 0
        finally:
            os._exit(code if isinstance(code, int) else 0)
    with suppress(OSError):
        os.setpgid(pid, pid)
    code, ends = None, time.monotonic() + 10 * seconds
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
    return -1 if code in (None, -signal.SIGKILL, -signal.SIGXCPU) else code


def record(root, file, compiled):
    """Which tests of a file pass, their seconds, and the lines they execute.

    Kept in .mutants while the source, the test file and what test files share are the same.
    """
    shared = {*root.glob("src/**/*.py"), *root.glob("tests/**/*.py")}
    shared -= {*root.glob("tests/**/test_*.py")} - {file}
    key = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(shared))).hexdigest()[:16]
    kept = root / ".mutants" / f"{file.stem}-{key}{'' if compiled else '-uncompiled'}.json"
    if not kept.exists():
        name = file.relative_to(root).as_posix()
        code, found = run_pytest(Recorder, [name], MAX_FILE_SECONDS, compiled)
        if found is None:
            print(f"{file.name} is not used: pytest ends with {code} before any test has run.", flush=True)
            return {"seconds": {}, "lines": {"": {}, "fixtures": {}}}
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(found)
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


@cache
def passes_alone(test, compiled):
    """Not all tests that pass after others pass by themselves."""
    return run_pytest(TimeLimit, [test], 10 * MAX_TEST_SECONDS, compiled)[0] == 0


def judge(mutant, tests, seconds):
    """killed, timeout or survived; and the test that failed, or the number of those that did not."""
    while tests:
        with mutated(mutant):
            code, failed = run_pytest(TimeLimit, ["-x", *tests], seconds, not mutant.compiled)
        if code == 0:
            return "survived", f"{len(tests)} tests pass"
        if code == -1:
            return "timeout", f"{seconds:.0f} s"
        failed = failed if failed in tests else tests[0]  # the first, if the mutant cannot be imported
        if passes_alone(failed, not mutant.compiled):
            return "killed", failed
        tests = [test for test in tests if test != failed]
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


def is_recorded_uncompiled(root, file):
    return file.relative_to(root).as_posix().startswith(UNCOMPILED)


def choose_tests(mutant, tests):
    """The tests that execute the statement, in the order in which to try them, and their time limit.

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
        if len(chosen) < MIN_TESTS or total + test.seconds <= MAX_SECONDS:
            chosen.append(test.name)
            total += test.seconds
    return chosen, 30 + 5 * total


def write_table(outcomes, sample):
    count = Counter(status for _, status, _ in outcomes)
    lines = [
        f"# Mutants\n\n{sample}. Score: **{1 - count['survived'] / len(outcomes):.1%}**. {count['killed']} "
        f"killed by a failing test, {count['timeout']} by the time limit; {count['survived']} survived.\n\n"
        f"A mutant is tried against the {MIN_TESTS} quickest and most specific tests that execute it, and "
        f"against others up to {MAX_SECONDS:g} s. Tests that take more than {SLOWEST[True]:g} s, or "
        f"uncompiled, for faults in compiled functions, more than {SLOWEST[False]:g} s, are not used.\n",
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
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="has src and tests")
    parser.add_argument("--out", type=Path, help="results/mutants.md, unless --only or --tests is given")
    options = parser.parse_args()
    root = options.root.resolve()
    sources, files = (
        [path for path in sorted(root.glob(pattern)) if any(part in path.as_posix() for part in parts)]
        for pattern, parts in (("src/**/*.py", options.only), ("tests/**/test_*.py", options.tests))
    )
    texts = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in sources}
    mutants = draw_mutants(texts, options.n, options.seed)
    if not mutants:
        parser.error(f"--only {' '.join(options.only)} leaves nothing to mutate. Use parts of paths in src.")
    import_libraries(root)
    outcomes, started = [], time.monotonic()
    context = multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        context.Pool(options.jobs, start_process, (root, folder)) as pool,
    ):
        tests = {}
        for compiled in {not mutant.compiled for mutant in mutants}:
            used = [
                (root, file, compiled) for file in files if compiled or is_recorded_uncompiled(root, file)
            ]
            tests[compiled] = [*read_tests(pool.starmap(record, used, chunksize=1))]
            print(
                f"{len(tests[compiled])} tests recorded after {time.monotonic() - started:.0f} s", flush=True
            )
        jobs = [(mutant, *choose_tests(mutant, tests[not mutant.compiled])) for mutant in mutants]
        waiting = [pool.apply_async(judge, job) for job in jobs]
        for mutant, result in zip(mutants, waiting, strict=True):
            status, detail = result.get()
            outcomes.append((mutant, status, detail))
            print(f"{len(outcomes):4} {status:8} {mutant.path}:{mutant.line}  {detail}", flush=True)
    minutes = (time.monotonic() - started) / 60
    sample = f"{len(mutants)} mutants, drawn with seed {options.seed}"
    for parts, what in ((options.only, " from files with"), (options.tests, ", against tests with")):
        sample += f"{what} {' or '.join(parts)} in their path" * (parts != [""])
    table = write_table(outcomes, f"{sample}; {minutes:.0f} minutes with {options.jobs} processes")
    print(table)
    if options.out or options.only == options.tests == [""]:
        (options.out or root / "results" / "mutants.md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
