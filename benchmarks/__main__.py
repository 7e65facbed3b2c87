"""Run the benchmarks: `python -m benchmarks`, or one of them with `--case`."""

import argparse
import sys
import time

from threadpoolctl import threadpool_limits

from benchmarks import N_THREADS
from benchmarks.cases import CASES
from benchmarks.records import RESULTS, Recorder
from benchmarks.report import write_plot, write_report


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="kmargin against its peers")
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this one; may be repeated")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", dest="scale", action="store_const", const="quick", help="a minute for all")
    sizes.add_argument("--full", dest="scale", action="store_const", const="full", help="as the targets ask")
    parser.add_argument("--report", action="store_true", help="run nothing, write table and plots anew")
    parser.set_defaults(scale="default")
    return parser.parse_args(arguments)


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
    write_plot(name)
    write_report()
    print(f"    {time.perf_counter() - started:.0f} s in all", flush=True)


def main():
    options = parse()
    names = options.case or list(CASES)
    if options.report:
        for name in names:
            if (RESULTS / f"{name}.csv").is_file():
                write_plot(name)
        write_report()
    else:
        for name in names:
            run(name, options.scale)
    print((RESULTS / "README.md").read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
