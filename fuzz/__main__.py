"""Run the campaign: `python -m fuzz --cases 100000`."""

import argparse
import sys
import time
from pathlib import Path

from fuzz import FAMILIES, files, pieces, report
from fuzz.campaign import run, run_again

GROWTH = 200.0  # megabytes: beyond that memory does not return to where it was


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="generated cases, judged by oracles")
    parser.add_argument("--cases", type=int, default=10_000, help="how many")
    parser.add_argument("--first", type=int, help="number of the first one; else 0, or where --add takes up")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--family", choices=list(FAMILIES), help="only this one")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--files", choices=list(files.KINDS), help="files instead of estimators")
    parser.add_argument("--out", default="fuzz/failures/results.json", help="where the results go, as JSON")
    parser.add_argument("--add", action="store_true", help="add to the results that --out holds already")
    parser.add_argument(
        "--merge", nargs="+", metavar="RESULTS", help="run nothing, put these together as --out"
    )
    parser.add_argument(
        "--again", action="store_true", help="run the failing cases of --out by the present source"
    )
    parser.add_argument(
        "--write-docs", metavar="PAGE", help="run nothing, put the results of --out into PAGE"
    )
    return parser.parse_args(arguments)


def main():
    options = parse()
    if options.merge:
        report.save(pieces.merge([report.load(path) for path in options.merge]), options.out)
        print(report.show(report.load(options.out)))
        return 0
    if options.again:
        results = run_again(report.load(options.out), options.jobs)
        report.save(results, options.out)
        report.write_failures(results)
        print(report.show(results))
        return int(bool(pieces.left(results)))
    if options.write_docs:
        report.write_docs(report.load(options.out), options.write_docs)
        return 0
    if options.files:
        return int(bool(files.run(options.files, options.first or 0, options.cases, options.seconds)))
    return campaign(options)


def campaign(options):
    """Run cases, and keep what is known of them; those of earlier pieces, too, where they are added to."""
    before = [report.load(options.out)] if options.add and Path(options.out).exists() else []
    first = options.first
    if first is None:
        first = pieces.after(before[0]) if before else 0
    told = time.monotonic()

    def keep(results):
        together = pieces.merge([*before, results.as_json()])
        report.write_failures(together)
        report.save(together, options.out)
        return together

    def tell(results):
        """What is known so far: a campaign that is cut off is not lost."""
        nonlocal told
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"{sum(results.cases.values()):,} cases, {len(results.failures)} failures", file=sys.stderr)
            keep(results)

    results = run(
        options.cases,
        first=first,
        jobs=options.jobs,
        family=options.family,
        seconds=options.seconds,
        on_batch=tell,
    )
    print(report.show(keep(results)))
    return int(bool(results.failures) or results.growth() > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
