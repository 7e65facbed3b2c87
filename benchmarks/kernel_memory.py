"""Peak memory of one kernel fit beyond X, in a process that does nothing else.

    python -m benchmarks.kernel_memory 50000 50 100

Imports, compilation, a small fit and X itself come first and are subtracted.
"""

import json
import sys
import time

from benchmarks.datasets import clusters
from benchmarks.memory import forget_peak, resident
from kmargin import KernelSparseSVC

C, GAMMA = 100.0, 0.02


def main(n: int, p: int, k: int) -> None:
    data = clusters(n, 4000, p)
    for cache_size in (200, 0.1):  # the kernel held, and not held
        KernelSparseSVC(5, gamma=GAMMA, cache_size=cache_size).fit(data.X[:500], data.y[:500])
    forget_peak()
    before = resident("VmRSS")
    started = time.perf_counter()
    model = KernelSparseSVC(k, C=C, gamma=GAMMA, random_state=0).fit(data.X, data.y)
    seconds = time.perf_counter() - started
    peak = resident("VmHWM") - before
    accuracy = model.score(data.X_test, data.y_test)
    print(json.dumps({"bytes": peak, "seconds": seconds, "accuracy": accuracy}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
