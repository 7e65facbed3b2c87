"""Run the campaign: `python -m fuzz --cases 100000`."""

import argparse
import sys

from fuzz import FAMILIES, campaign
from fuzz.files import KINDS, run_files


def main():
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="generated cases, judged by oracles")
    parser.add_argument("--cases", type=int, default=10_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--family", choices=list(FAMILIES), help="only this one")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--files", choices=list(KINDS), help="files instead of estimators")
    options = parser.parse_args()
    if options.files:
        return int(bool(run_files(options.files, options.first, options.cases, options.seconds)))
    named = {name: getattr(options, name) for name in ("first", "jobs", "family", "seconds")}
    results = campaign.run(options.cases, verbose=True, **named)
    print(results.table(), results.summary(), sep="\n\n")
    return int(bool(results.failures) or results.growth() > campaign.MAX_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
