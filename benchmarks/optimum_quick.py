"""How often single fits, paths and all swaps reach the best of all supports: a table in half a minute.

    python -m benchmarks.optimum_quick            # all small tables; the worst misses below the table
    python -m benchmarks.optimum_quick --seeds 4  # fewer simulated ones, or more

Nothing is written. The case `global_optimum` measures the same, and the pairs of letters, for the record.
"""

import argparse
import time

import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks import N_THREADS
from benchmarks.datasets.small import simulated, small_tables
from benchmarks.optima import SEEDS, find_optima
from benchmarks.optimality import fits_of, missed, outcomes, summary

SHOWN = 25  # misses


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.optimum_quick")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of each simulated family")
    options = parser.parse_args()
    started = time.perf_counter()
    with threadpool_limits(N_THREADS):
        for _ in fits_of(simulated("gaussian", 80, 14, (2,), 0), 1e-2):  # compiled from here on
            pass
        tables = list(small_tables(options.seeds))
        frame = pd.DataFrame(outcomes(tables, find_optima(tables, keep=False)))
    with pd.option_context("display.width", 200, "display.max_columns", 20, "display.max_rows", 100):
        print(summary(frame).T.round(4).to_string())
        worst = missed(frame)
        print(f"\n{len(worst)} fits where a way misses the optimum (excess in %):")
        print(worst.head(SHOWN).round(4).to_string())
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
