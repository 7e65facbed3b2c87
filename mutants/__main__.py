"""Draw faults at random, put each into a copy of the source, and list those that no test detects.

First the lines that each test executes are recorded. Then each mutant is tried against the tests that execute
its statement, until one fails: quick ones that execute few lines first, and different tests before the same
test with other parameters. A mutant that survives the quick tests is tried against the slow ones, too.
Compiled functions are mutated uncompiled: coverage does not see compiled code.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from mutants.process import STAGES, import_libraries, judge, record, start_process
from mutants.sample import draw_mutants

TEST_OVERHEAD = 0.02  # seconds of fixtures and of pytest
UNCOMPILED = ("tests/core/", "tests/data/", "tests/solvers/")  # the tests that are recorded uncompiled, too


class Test(NamedTuple):
    """A test, what it costs, and the lines it executes: its own and those of the fixtures of its file."""

    name: str
    seconds: float
    n_lines: int
    lines: dict[str, int]  # bit masks by source file
    imported: dict[str, int]


def read_tests(records):
    for found in records:
        masks, fixtures = found["lines"], found["lines"]["fixtures"]
        for name, seconds in found["seconds"].items():
            own = masks[name]
            n_lines = sum(mask.bit_count() for mask in own.values())
            lines = {path: own.get(path, 0) | fixtures.get(path, 0) for path in own | fixtures}
            yield Test(name, seconds, n_lines, lines, masks[""])


def choose_tests(mutant, tests):
    """For each stage the tests to try, in this order, with time limits for all of them and for each; and
    whether importing the tests executes the mutated statement, too.

    A statement that runs only on import is tried against the tests that execute any line of its file.
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
    waiting, rounds = {test.name: test for _, test in sorted(ordered)}, []
    for stage in STAGES[not mutant.compiled]:
        chosen, total = [], 0.0
        for name, test in waiting.items():
            if test.seconds <= stage.longest and total + test.seconds <= stage.total:
                chosen.append(name)
                total += test.seconds + TEST_OVERHEAD
        for name in chosen:
            del waiting[name]
        rounds.append((chosen, 20 + 3 * total, stage.limit))
    runs_on_import = any(test.imported.get(mutant.path, 0) & mutant.lines for test in tests)
    return rounds, runs_on_import


def write_table(outcomes, sample):
    count, (first, last) = Counter(status for _, status, _ in outcomes), STAGES[True]
    lines = [
        f"# Mutants\n\n{sample}. Score: **{1 - count['survived'] / len(outcomes):.1%}**. {count['killed']} "
        f"killed by a failing test, {count['timeout']} by the time limit; {count['survived']} survived.\n\n"
        f"A mutant is tried against the quickest and most specific tests that execute it, as many as take "
        f"{first.total:g} s, and if it survives these, against further {last.total:g} s of tests, slow ones, "
        f"too. Tests of more than {last.longest:g} s, or uncompiled, for faults in compiled functions, of "
        f"more than {STAGES[False][-1].longest:g} s, are not used.\n",
        "| survivor | original | mutated | |\n|---|---|---|---|",
    ]
    for mutant, status, detail in sorted(outcomes, key=lambda outcome: (outcome[0].path, outcome[0].line)):
        if status == "survived":
            cells = [f"`` {text} ``".replace("|", "\\|") for text in (mutant.original, mutant.mutated)]
            lines.append(f"| {mutant.path}:{mutant.line} | {cells[0]} | {cells[1]} | {detail} |")
    return "\n".join(lines) + "\n"


def find_files(root, pattern, parts):
    """The files that match a pattern and have one of these parts in their path."""
    paths = (path.relative_to(root).as_posix() for path in sorted(root.glob(pattern)))
    return [path for path in paths if any(part in path for part in parts)]


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
    texts = {path: (root / path).read_text("utf-8") for path in find_files(root, "src/**/*.py", options.only)}
    files = find_files(root, "tests/**/test_*.py", options.tests)
    mutants = draw_mutants(texts, options.n, options.seed)
    if not mutants:
        parser.error(f"--only {' '.join(options.only)} leaves nothing to mutate. Use parts of paths in src.")
    import_libraries(root)
    used = {True: files, False: [file for file in files if file.startswith(UNCOMPILED)]}
    outcomes, started = [], time.monotonic()
    context = multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder,
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
