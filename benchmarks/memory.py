"""Peak memory of one fit, in a process that does nothing else; prints JSON.

    python -m benchmarks.memory dense exchange 100000 200 20 1.0   # competitor, rows, columns, k, C
    python -m benchmarks.memory sparse 20 2000,500,100,20          # news20: classes, sizes of a path
    python -m benchmarks.memory kernel 50000 50 100                # rows, columns, k

Imports, compilation and a small fit come first and are subtracted. The multiples count X itself.
"""

import json
import resource
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

from benchmarks.datasets.files import ROOT, load_news20
from benchmarks.datasets.simulated import clusters, dense
from benchmarks.objectives import lam_of
from benchmarks.solvers import COMPETITORS
from kmargin import KernelSparseSVC, sparse_svm_path

STATUS = Path("/proc/self/status")
KERNEL_C, KERNEL_GAMMA = 100.0, 0.02


def resident(field):
    """Bytes: VmRSS now, VmHWM at most. Without /proc both are the maximum so far."""
    if STATUS.exists():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_peak():
    """Let the maximum start from the present, where Linux allows it."""
    if STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5")


def peak_during(function, *arguments):
    """What a function returns, and the bytes by which the memory grew at most meanwhile."""
    forget_peak()
    before = resident("VmRSS")
    result = function(*arguments)
    return result, resident("VmHWM") - before


def measure_dense(name, n, p, k, C):
    """Bytes including X, as a multiple of X and beyond it."""
    n, p, k, C = int(n), int(p), int(k), float(C)
    competitor = COMPETITORS[name]()

    def fit(data):
        if competitor.can("fixed"):
            competitor.fixed(data.X, data.y, k, lam_of(C, len(data.y)))
        else:
            competitor.path(data.X, data.y, [C])

    fit(dense(1000, p, k))
    _, peak = peak_during(lambda: fit(dense(n, p, k)))
    size = 8 * n * p
    return {"multiple": peak / size, "bytes": peak, "bytes above X": peak - size}


def measure_sparse(n_classes, ks):
    """Bytes beyond X, and the total as a multiple of the CSR matrix."""
    warnings.simplefilter("ignore", UserWarning)
    data = load_news20().of_classes(int(n_classes))
    ks = [int(k) for k in ks.split(",")]
    fit = partial(sparse_svm_path, ks=ks, multi_class="ovr", shared=False)
    fit(*data.sample(200))
    _, taken = peak_during(fit, data.X, data.y)
    size = data.X.data.nbytes + data.X.indices.nbytes + data.X.indptr.nbytes
    return {"multiple": 1 + taken / size, "bytes": taken}


def measure_kernel(n, p, k):
    """Bytes beyond X, and accuracy."""
    data = clusters(int(n), 4000, int(p))
    for cache_size in (200, 0.1):  # the kernel matrix stored, and computed in tiles
        KernelSparseSVC(5, gamma=KERNEL_GAMMA, cache_size=cache_size).fit(data.X[:500], data.y[:500])
    model = KernelSparseSVC(int(k), C=KERNEL_C, gamma=KERNEL_GAMMA, random_state=0)
    _, peak = peak_during(model.fit, data.X, data.y)
    return {"bytes": peak, "accuracy": model.score(data.X_test, data.y_test)}


KINDS = {"dense": measure_dense, "sparse": measure_sparse, "kernel": measure_kernel}


def measure(kind, *arguments):
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", kind, *map(str, arguments)]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return json.loads(output.splitlines()[-1])


if __name__ == "__main__":
    print(json.dumps(KINDS[sys.argv[1]](*sys.argv[2:])))
