"""Draw faults at random, put each into a copy of the source, and list those that no test detects."""

import argparse
import hashlib
import json
import multiprocessing
import os
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from mutants.sample import draw_mutants
from mutants.trial import record_file, set_up, try_mutant

# Tests run uncompiled: coverage does not see compiled code, and numba's cache does not notice a change in
# a function that another file calls. SciPy reads its variable when it is imported.
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
ENVIRONMENT = THREADS | {"NUMBA_DISABLE_JIT": "1", "SCIPY_ARRAY_API": "1", "MPLBACKEND": "agg"}
MAX_MUTANT_SECONDS = 120.0  # of tests per mutant, by their recorded times; slower ones are left out


def record_tests(root, files, pool):
    """(name, seconds, lines by source file) of each passing test, and the lines that are executed on import.

    Records are kept in .mutants while the source, the test file and what test files share are the same.
    """
    shared = {*root.glob("src/**/*.py"), *root.glob("tests/**/*.py")} - {*root.glob("tests/**/test_*.py")}
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(shared))).digest()
    keys = [hashlib.sha256(digest + file.read_bytes()).hexdigest()[:16] for file in files]
    caches = [root / ".mutants" / f"{file.stem}-{key}.json" for file, key in zip(files, keys, strict=True)]
    missing = [(file, cache) for file, cache in zip(files, caches, strict=True) if not cache.exists()]
    for job in [pool.submit(record_file, f.relative_to(root).as_posix(), cache) for f, cache in missing]:
        job.result()
    tests, imported = [], {}
    for record in (json.loads(cache.read_text()) for cache in caches):
        lines = {name: {p: int(mask, 16) for p, mask in m.items()} for name, m in record["lines"].items()}
        imported = merge(imported, lines.get("", {}))
        for name, seconds in record["seconds"].items():
            tests.append((name, seconds, merge(lines[name], lines["fixtures"])))
    return tests, imported


def merge(a, b):
    return {path: a.get(path, 0) | b.get(path, 0) for path in a | b}


def choose_tests(mutant, tests, imported):
    """The tests that execute the statement, fastest first, and their time limit.

    What runs only on import is left to the tests that execute any line of the source file, or else to all.
    """
    chosen = [test for test in tests if test[2].get(mutant.path, 0) & mutant.lines]
    if not chosen and imported.get(mutant.path, 0) & mutant.lines:
        chosen = [test for test in tests if mutant.path in test[2]] or tests
    names, total = [], 0.0
    for name, seconds, _ in sorted(chosen, key=lambda test: test[1]):
        total += seconds
        if total > MAX_MUTANT_SECONDS:
            break
        names.append(name)
    return names, 30 + 5 * total


def write_table(outcomes, sample):
    count = Counter(status for _, status, _ in outcomes)
    lines = [
        f"# Mutants\n\n{sample} Score: **{1 - count['survived'] / len(outcomes):.1%}**. {count['killed']} "
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
    parser.add_argument(
        "--only", nargs="+", default=[""], help="source files with one of these in their path"
    )
    parser.add_argument("--tests", nargs="+", default=[""], help="test files with these in their path")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes (2)")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="has src and tests")
    parser.add_argument("--out", type=Path, help="results/mutants.md, unless --only or --tests is given")
    options = parser.parse_args()
    root, is_whole = options.root.resolve(), options.only == options.tests == [""]
    sources, files = (
        [path for path in sorted(root.glob(pattern)) if any(part in path.as_posix() for part in parts)]
        for pattern, parts in (("src/**/*.py", options.only), ("tests/**/test_*.py", options.tests))
    )
    texts = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in sources}
    mutants = draw_mutants(texts, options.n, options.seed)
    if not mutants:
        parser.error(f"--only {' '.join(options.only)} leaves nothing to mutate. Use parts of paths in src.")
    os.environ |= ENVIRONMENT
    outcomes, spawn = [], multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        ProcessPoolExecutor(options.jobs, spawn, set_up, (root, Path(folder))) as pool,
    ):
        recorded = record_tests(root, files, pool)
        found = pool.map(
            try_mutant, mutants, *zip(*(choose_tests(m, *recorded) for m in mutants), strict=True)
        )
        for mutant, (status, detail) in zip(mutants, found, strict=True):
            outcomes.append((mutant, status, detail))
            print(f"{len(outcomes):4} {status:8} {mutant.path}:{mutant.line}  {detail}", flush=True)
    sample = f"{len(mutants)} mutants, drawn with seed {options.seed}"
    sample += f" from files with {' or '.join(options.only)} in their path" * (options.only != [""])
    sample += f", against test files with {' or '.join(options.tests)} in their path" * (
        options.tests != [""]
    )
    table = write_table(outcomes, sample + ".")
    print(table)
    if options.out or is_whole:
        (options.out or root / "results" / "mutants.md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
