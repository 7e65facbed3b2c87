"""Draw faults at random, put each into a copy of the source, and list those that no test detects."""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants.sample import draw_mutants

# Tests run uncompiled: coverage does not see compiled code, and numba's cache does not notice a change in
# a function that another file calls. SciPy reads its variable when it is imported.
ENVIRONMENT = {"NUMBA_DISABLE_JIT": "1", "SCIPY_ARRAY_API": "1", "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "-rfE", "-m", "not heavy")
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "results", "_build", "dist", "*.nb[ic]")
MAX_MUTANT_SECONDS = 120.0  # of tests per mutant, by their recorded times; slower ones are left out
MAX_FILE_SECONDS = 3600.0  # for one test file, while the lines it executes are recorded


def run_pytest(root, tests, seconds, mutant=None, record=None):
    """Exit code of pytest in a copy of the tree (-1: it takes too long), and the first test that failed."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(shutil.copytree(root, Path(folder, "tree"), ignore=IGNORED))
        if mutant is not None:
            (tree / mutant.path).write_text(mutant.source, encoding="utf-8")
        paths = [str(tree / "src"), str(tree / "tests"), str(Path(__file__).parents[1])]
        environment = os.environ | ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(paths)}
        environment["MUTANTS_RECORD"] = str(record)
        plugin = ["-x"] if record is None else ["-p", "mutants.recorder"]
        command = [sys.executable, "-m", "pytest", *OPTIONS, *plugin, *tests]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        with subprocess.Popen(command, cwd=tree, env=environment, start_new_session=True, **pipes) as run:
            try:
                output, _ = run.communicate(timeout=seconds)
            except BaseException as error:  # also Ctrl-C: end what it has started, too
                os.killpg(run.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    return -1, None
                raise
    failed = re.search(r"(?m)^(?:FAILED|ERROR) (.*?)(?: - .*)?$", output)
    return run.returncode, failed and failed[1]


def record(root, file):
    """Which tests of a file pass, their seconds, and the lines they execute.

    Kept in .mutants while the source, the test file and what test files share are the same.
    """
    shared = {*root.glob("src/**/*.py"), *root.glob("tests/**/*.py")}
    shared -= {*root.glob("tests/**/test_*.py")} - {file}
    key = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(shared))).hexdigest()[:16]
    cache = root / ".mutants" / f"{file.stem}-{key}.json"
    if not cache.exists():
        cache.parent.mkdir(exist_ok=True)
        run_pytest(root, [file.relative_to(root).as_posix()], MAX_FILE_SECONDS, record=cache)
    return json.loads(cache.read_text()) if cache.exists() else {"seconds": {}, "lines": {}}


def judge(root, mutant, tests, seconds):
    """killed, timeout or survived; and the test that failed, or the number of those that did not."""
    while tests:
        code, failed = run_pytest(root, tests, seconds, mutant)
        if code == 0:
            return "survived", f"{len(tests)} tests pass"
        if code == -1:
            return "timeout", f"{seconds:.0f} s"
        failed = failed if failed in tests else tests[0]  # the first, if the mutant cannot be imported
        if run_pytest(root, [failed], seconds)[0] == 0:  # not all that pass after others pass by themselves
            return "killed", failed
        tests = [test for test in tests if test != failed]
    return "survived", "no test executes it"


def choose_tests(mutant, records):
    """The tests that execute the statement, fastest first, and their time limit.

    What runs only on import is left to the tests that execute any line of the source file.
    """
    timed = []
    for record in records:
        masks = {name: int(m.get(mutant.path, "0"), 16) for name, m in record["lines"].items()}
        imported = masks.get("", 0) & mutant.lines
        for test, seconds in record["seconds"].items():
            if (masks[test] | masks["fixtures"]) & mutant.lines or (imported and masks[test]):
                timed.append((seconds, test))
    tests, total = [], 0.0
    for seconds, test in sorted(timed):
        total += seconds
        if total > MAX_MUTANT_SECONDS:
            break
        tests.append(test)
    return tests, 10 * (30 + 5 * total)


def write_table(outcomes, sample):
    count = Counter(status for _, status, _ in outcomes)
    lines = [
        f"# Mutants\n\n{sample}. Score: **{1 - count['survived'] / len(outcomes):.1%}**. {count['killed']} "
        f"killed by a failing test, {count['timeout']} by the time limit; {count['survived']} survived.\n",
        "| survivor | original | mutated | |\n|---|---|---|---|",
    ]
    for mutant, status, detail in sorted(outcomes, key=lambda outcome: (outcome[0].path, outcome[0].line)):
        if status == "survived":
            cells = [f"`` {text} ``".replace("|", "\\|") for text in (mutant.original, mutant.mutated)]
            lines.append(f"| {mutant.path}:{mutant.line} | {cells[0]} | {cells[1]} | {detail} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
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
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        records = list(pool.map(lambda file: record(root, file), files))
        found = pool.map(lambda mutant: judge(root, mutant, *choose_tests(mutant, records)), mutants)
        for mutant, (status, detail) in zip(mutants, found, strict=True):
            outcomes.append((mutant, status, detail))
            print(f"{len(outcomes):4} {status:8} {mutant.path}:{mutant.line}  {detail}", flush=True)
    sample = f"{len(mutants)} mutants, drawn with seed {options.seed}"
    for parts, what in ((options.only, " from files with"), (options.tests, ", against tests with")):
        sample += f"{what} {' or '.join(parts)} in their path" * (parts != [""])
    table = write_table(outcomes, sample)
    print(table)
    if options.out or options.only == options.tests == [""]:
        (options.out or root / "results" / "mutants.md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
