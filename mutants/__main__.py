"""Run the tests against wrong programs, and say which of these went unnoticed."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from mutants.catalogue import ROOT, Mutant, matching, read_catalogue
from mutants.runner import Outcome, Worker, in_parallel, try_mutant, try_unmutated
from mutants.table import summarize


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="workers side by side (2)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="mutants, areas or files")
    parser.add_argument("--list", action="store_true", help="list the mutants and stop")
    parser.add_argument("--out", type=Path, help="the table (results/mutants.md, unless --only is given)")
    options = parser.parse_args()
    mutants = matching(read_catalogue(), options.only)
    if options.list:
        for mutant in mutants:
            print(f"{mutant.area:12} {mutant.file:32} {mutant.name}")
        return 0
    if not mutants:
        parser.error(f"there are no mutants by the name of {', '.join(options.only)}")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        workers = [Worker(Path(folder) / f"tree-{number}") for number in range(options.jobs)]
        try:
            outcomes = run(workers, mutants)
        finally:
            for worker in workers:
                worker.close()
    table = summarize(outcomes)
    out = options.out or (None if options.only else ROOT / "results" / "mutants.md")
    if out is not None:
        out.write_text(table, encoding="utf-8")
    print(table.split("## Killed")[0])
    unexplained = [o for o in outcomes if o.status in ("stale", "error") or is_unexplained(o)]
    return 1 if unexplained else 0


def is_unexplained(outcome: Outcome) -> bool:
    return outcome.status == "survived" and not outcome.mutant.reason


def run(workers: list[Worker], mutants: list[Mutant]) -> list[Outcome]:
    """The outcome of each mutant, in their order."""
    started = time.monotonic()
    complaints: list[str] = []
    in_parallel(
        workers,
        by_file(mutants),
        lambda worker, tests: complaints.append(try_unmutated(worker, tests)),
    )
    if any(complaints):
        sys.exit("the tests fail on the tree as it is:\n" + "\n".join(complaints))
    print(f"the tests pass on the tree as it is ({time.monotonic() - started:.0f} s)", flush=True)
    outcomes: dict[str, Outcome] = {}

    def attempt(worker: Worker, mutant: Mutant) -> None:
        outcome = outcomes[mutant.name] = try_mutant(worker, mutant)
        number = f"{len(outcomes)}/{len(mutants)}"
        print(
            f"{number:>8} {outcome.seconds:5.1f} s  {outcome.status:9} {mutant.area}: {mutant.name}"
            f"  {outcome.detail}",
            flush=True,
        )

    in_parallel(workers, mutants, attempt)
    print(f"{time.monotonic() - started:.0f} s in all")
    return [outcomes[mutant.name] for mutant in mutants]


def by_file(mutants: list[Mutant]) -> list[list[str]]:
    """The tests of all mutants without repetitions, a list for each file of tests.

    A file that is named as a whole stands for all its tests.
    """
    named = dict.fromkeys(test for mutant in mutants for test in mutant.tests)
    files: dict[str, list[str]] = {}
    for test in named:
        files.setdefault(test.split("::")[0], []).append(test)
    return [[file] if file in tests else tests for file, tests in files.items()]


if __name__ == "__main__":
    sys.exit(main())
