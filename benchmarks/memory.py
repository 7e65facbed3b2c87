"""Peak memory of one fit, in a process that does nothing else: prints it as a multiple of X, and without X.

    python -m benchmarks.memory exchange 100000 200 20 1.0

Imports, compilation and a small fit come first and are subtracted; in the multiple X itself counts.
"""

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.datasets import dense
from benchmarks.datasets.files import ROOT
from benchmarks.grids import lam_of
from benchmarks.solvers import COMPETITORS

STATUS = Path("/proc/self/status")


def resident(field: str) -> int:
    """Bytes: VmRSS now, VmHWM at most. Without /proc both are the maximum so far."""
    if STATUS.exists():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_peak() -> None:
    """Let the maximum start from the present, where Linux allows it."""
    if STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5")


def fit(name: str, X: np.ndarray, y: np.ndarray, k: int, C: float) -> None:
    competitor = COMPETITORS[name]()
    if competitor.can("fixed"):
        competitor.fixed(X, y, k, lam_of(C, len(y)))
    else:
        competitor.path(X, y, [C])


def main(name: str, n: int, p: int, k: int, C: float) -> None:
    small = dense(1000, p, k)
    fit(name, small.X, small.y, k, C)
    forget_peak()
    before = resident("VmRSS")
    data = dense(n, p, k)
    fit(name, data.X, data.y, k, C)
    peak = resident("VmHWM") - before
    above = peak - data.X.nbytes
    print(json.dumps({"multiple": peak / data.X.nbytes, "bytes": peak, "bytes above X": above}))


def measure(name: str, n: int, p: int, k: int, C: float) -> dict[str, float]:
    """The same from elsewhere: what a process of its own prints."""
    command = [sys.executable, "-m", "benchmarks.memory", name, *map(str, (n, p, k, C))]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return json.loads(output)


if __name__ == "__main__":
    name, n, p, k, C = sys.argv[1:]
    main(name, int(n), int(p), int(k), float(C))
