"""Draw faults at random, put each into a copy of the source, and list those that no test detects."""

import argparse
import hashlib
import json
import multiprocessing
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from mutants.sample import Mutant, draw_mutants
from mutants.trial import record_file, set_up, try_mutant

# Tests run uncompiled: coverage does not see compiled code, and numba's cache does not notice a change in
# a function that another file calls. SciPy reads its variable when it is imported.
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
ENVIRONMENT = THREADS | {"NUMBA_DISABLE_JIT": "1", "SCIPY_ARRAY_API": "1", "MPLBACKEND": "agg"}
MAX_MUTANT_SECONDS = 120.0  # of tests per mutant, by their recorded times; slower ones are left out
Lines = dict[str, int]  # bit masks of executed lines, by file


class Test(NamedTuple):
    name: str
    file: str
    seconds: float
    lines: Lines


def record_tests(root: Path, only: Sequence[str], pool: Executor) -> tuple[list[Test], Lines]:
    """All tests that pass, and the lines that are executed on import.

    Records are kept in .mutants while the source, the test file and what test files share are the same.
    """
    files = [path for path in sorted(root.glob("tests/**/test_*.py")) if matches(path.name, only)]
    shared = {*root.glob("src/**/*.py"), *root.glob("tests/**/*.py")} - {*root.glob("tests/**/test_*.py")}
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(shared))).digest()
    caches, missing = [], []
    for file in files:
        key = hashlib.sha256(digest + file.read_bytes()).hexdigest()[:16]
        caches.append(root / ".mutants" / f"{file.stem}-{key}.json")
        if not caches[-1].exists():
            missing.append(pool.submit(record_file, file.relative_to(root).as_posix(), caches[-1]))
    for future in missing:
        future.result()
    tests, imported = list[Test](), Lines()
    for record in (json.loads(cache.read_text()) for cache in caches):
        lines = {name: {p: int(mask, 16) for p, mask in m.items()} for name, m in record["lines"].items()}
        imported = merge(imported, lines.get("", {}))
        for name, seconds in record["seconds"].items():
            tests.append(Test(name, name.split("::")[0], seconds, merge(lines[name], lines["fixtures"])))
    return tests, imported


def merge(a: Lines, b: Lines) -> Lines:
    return {path: a.get(path, 0) | b.get(path, 0) for path in a | b}


def choose_tests(mutant: Mutant, tests: list[Test], imported: Lines) -> list[tuple[list[str], float]]:
    """Batches of tests with their time limits, each longer than the one before.

    First the tests that execute the statement, fastest file first; then the others of these files, which may
    use what the former have computed. What runs only on import is left to the tests that execute any line of
    the source file, or else to all.
    """
    covering = [test for test in tests if test.lines.get(mutant.path, 0) & mutant.lines]
    if not covering and imported.get(mutant.path, 0) & mutant.lines:
        covering = [test for test in tests if mutant.path in test.lines] or tests
    cost: dict[str, float] = {}
    for test in covering:
        cost[test.file] = cost.get(test.file, 0.0) + test.seconds
    chosen = {test.name for test in covering}
    order = sorted(
        (test for test in tests if test.file in cost),
        key=lambda test: (test.name not in chosen, cost[test.file], test.file, test.seconds),
    )
    batches: list[tuple[list[str], float]] = []
    total, batch_end = 0.0, 0.0
    for test in order:
        if total >= batch_end:
            batch_end = max(1.0, 4 * total)
            batches.append(([], 30 + 5 * batch_end))
        total += test.seconds
        if total > MAX_MUTANT_SECONDS:
            break
        batches[-1][0].append(test.name)
    return batches


def matches(path: str, parts: Sequence[str]) -> bool:
    return not parts or any(part in path for part in parts)


def write_table(outcomes: list[tuple[Mutant, str, str]], sample: str) -> str:
    count = Counter(status for _, status, _ in outcomes)
    lines = [
        "# Mutants", "",
        f"{sample} Score: **{1 - count['survived'] / len(outcomes):.1%}**. {count['killed']} were killed by "
        f"a failing test, {count['timeout']} by the time limit, {count['survived']} survived.", "",
        "| survivor | original | mutated | |", "|---|---|---|---|",
    ]  # fmt: skip
    for mutant, status, detail in sorted(outcomes, key=lambda outcome: (outcome[0].path, outcome[0].line)):
        if status == "survived":
            cells = [f"`` {text} ``".replace("|", "\\|") for text in (mutant.original, mutant.mutated)]
            lines.append(f"| {mutant.path}:{mutant.line} | {cells[0]} | {cells[1]} | {detail} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--n", type=int, default=300, help="number of mutants (300)")
    parser.add_argument("--seed", type=int, default=7, help="seed of the sample (7)")
    parser.add_argument("--only", nargs="+", default=[], help="source files with one of these in their path")
    parser.add_argument("--tests", nargs="+", default=[], help="test files with one of these in their name")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes (2)")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="has src and tests")
    parser.add_argument("--out", type=Path, help="results/mutants.md, unless --only or --tests is given")
    options = parser.parse_args()
    root = options.root.resolve()
    paths = [path.relative_to(root).as_posix() for path in root.glob("src/**/*.py")]
    sources = {path: (root / path).read_text("utf-8") for path in paths if matches(path, options.only)}
    mutants = draw_mutants(sources, options.n, options.seed)
    if not mutants:
        parser.error(f"--only {' '.join(options.only)} leaves nothing to mutate. Use parts of paths in src.")
    os.environ |= ENVIRONMENT
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ProcessPoolExecutor(
        options.jobs, multiprocessing.get_context("spawn"), set_up, (root, Path(folder))
    ) as pool:  # fmt: skip
        recorded = record_tests(root, options.tests, pool)
        found = pool.map(try_mutant, mutants, [choose_tests(mutant, *recorded) for mutant in mutants])
        for mutant, (status, detail) in zip(mutants, found, strict=True):
            outcomes.append((mutant, status, detail))
            print(f"{len(outcomes):4} {status:8} {mutant.path}:{mutant.line}  {detail}", flush=True)
    sample = f"{len(mutants)} mutants, drawn with seed {options.seed}"
    sample += f" from files with {' or '.join(options.only)} in their path" * bool(options.only)
    sample += f", against test files with {' or '.join(options.tests)} in their name" * bool(options.tests)
    table = write_table(outcomes, sample + ".")
    print(table)
    if options.out or not (options.only or options.tests):
        (options.out or root / "results" / "mutants.md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
