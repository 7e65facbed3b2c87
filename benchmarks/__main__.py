"""Run the benchmarks: `python -m benchmarks`, or one of them with `--case`."""

import argparse
import time

from threadpoolctl import threadpool_limits

from benchmarks import N_THREADS
from benchmarks.cases import CASES
from benchmarks.records import RESULTS, Recorder
from benchmarks.report import write_report


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="kmargin against its peers")
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this one; may be repeated")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", dest="scale", action="store_const", const="quick", help="a minute for all")
    sizes.add_argument("--full", dest="scale", action="store_const", const="full", help="as the targets ask")
    parser.add_argument("--report", action="store_true", help="run nothing, write the tables anew")
    parser.set_defaults(scale="default")
    options = parser.parse_args()
    if options.report:
        write_report()
    else:
        for name in options.case or CASES:
            run(name, options.scale)
    print((RESULTS / "README.md").read_text())


def run(name, scale):
    """One case. Its old results stay until the new ones are complete, and if its data are missing."""
    print(f"{name} ({scale})", flush=True)
    started = time.perf_counter()
    try:
        with Recorder(name, scale) as record, threadpool_limits(N_THREADS):
            CASES[name].run(record, scale)
    except FileNotFoundError as error:
        print(f"    left out: {error}", flush=True)
        return
    write_report()
    print(f"    {time.perf_counter() - started:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()
