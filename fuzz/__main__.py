"""Run the campaign: `python -m fuzz --cases 100000`."""

import argparse
import sys
import time

from fuzz import FAMILIES, files, report
from fuzz.campaign import run

GROWTH = 200.0  # megabytes: beyond that memory does not return to where it was


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="generated cases, judged by oracles")
    parser.add_argument("--cases", type=int, default=10_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--family", choices=list(FAMILIES), help="only this one")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--files", choices=list(files.KINDS), help="files instead of estimators")
    parser.add_argument("--out", default="fuzz/failures/results.json", help="where the results go, as JSON")
    parser.add_argument(
        "--write-docs", metavar="PAGE", help="run nothing, put the results of --out into PAGE"
    )
    return parser.parse_args(arguments)


def main():
    options = parse()
    if options.write_docs:
        report.write_docs(report.load(options.out), options.write_docs)
        return 0
    if options.files:
        return int(bool(files.run(options.files, options.first, options.cases, options.seconds)))
    told = time.monotonic()

    def keep(results):
        report.write_failures(results)
        report.save(results.as_json(), options.out)

    def tell(results):
        """What is known so far: a campaign that is cut off is not lost."""
        nonlocal told
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"{sum(results.cases.values()):,} cases, {len(results.failures)} failures", file=sys.stderr)
            keep(results)

    results = run(
        options.cases,
        first=options.first,
        jobs=options.jobs,
        family=options.family,
        seconds=options.seconds,
        on_batch=tell,
    )
    keep(results)
    print(report.show(results.as_json()))
    return int(bool(results.failures) or results.growth() > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
