"""Claims about the time and the memory that a fit takes, each with its case."""

import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from joblib import parallel_config

from benchmarks import memory
from benchmarks.cases.case import Case, times_faster
from benchmarks.datasets.files import load
from benchmarks.datasets.simulated import dense
from benchmarks.objectives import lam_of
from benchmarks.records import select
from benchmarks.runner import race, record_seconds, timed
from benchmarks.solvers import HEADLINE, choose
from kmargin import sparse_svm_path

C = 1.0
K = 20
SHAPES = {"quick": (20_000, 200), "default": (100_000, 200), "full": (100_000, 200)}

SECONDS, BYTES = "seconds of processor time", "bytes above X"
BASE = {  # what stays fixed while another grows
    "n": {"p": 50, "k": 10},
    "p": {"n": 2_000, "k": 20},
    "k": {"n": 10_000, "p": 1_000},
}
FIRST = {"n": 400_000, "p": 5_000, "k": 10}
N_SIZES = {"quick": 3, "default": 4, "full": 5}
N_SEEDS = {"quick": 1, "default": 3, "full": 3}

WAYS = {"one core": ("threading", 1), "threads": ("threading", 2), "processes": ("loky", 2)}
N_ROUNDS = {"quick": 2, "default": 9, "full": 15}

FITS = {
    "array": "SparseSVC(5).fit(X, y)",
    "path": "sparse_svm_path(X, y, [10, 5, 2])",
    "CSR": "SparseSVC(5).fit(sp.csr_matrix(X * (abs(X) > 1)), y)",
    "kernel": "KernelSparseSVC(5).fit(X, y)",
    "MM": "SparseSVC(5, solver='mm').fit(X, y)",
}
PROGRAM = """
import time
import numpy as np
import scipy.sparse as sp
from kmargin import KernelSparseSVC, SparseSVC, sparse_svm_path
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 40))
y = (X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(200) > 0).astype(int)
started = time.process_time()
{fit}
print(time.process_time() - started)
"""


class Dense(Case):
    """Claim: with 100,000 rows and 200 columns, k = 20 takes no longer than one dense LinearSVC, and no more
    memory than 1.3 times X.
    """

    name = "dense_100k"

    def run(self, record, scale):
        shape = SHAPES[scale]
        data = dense(*shape, K)
        competitors = choose("liblinear_l2")
        entrants = {
            HEADLINE: lambda X, y: competitors[HEADLINE].fixed(X, y, K, lam_of(C, len(y))),
            "liblinear_l2": lambda X, y: competitors["liblinear_l2"].path(X, y, [C])[0],
        }
        runs = race(entrants, data.X, data.y, small=data.sample(500))
        where = {"dataset": data.name, "seed": 0}
        record_seconds(record, runs, **where)
        del data, runs
        for name in competitors:
            multiple = memory.measure("dense", name, *shape, K, C)["multiple"]
            record.add(name, "memory over X", multiple, **where)

    def reached(self, frame):
        multiples = select(frame, metric="memory over X", competitor=HEADLINE)["value"]
        return {
            "times faster than LinearSVC": {"": times_faster(frame, HEADLINE, "liblinear_l2")},
            "memory over X": {"": float(multiples.max())},
        }


class Growth(Case):
    """Claim: at fixed k, time and memory of a fit grow at most linearly in the rows and in the columns.

    One of n, p and k is doubled at a time, the other two stay. The exponent is the slope of a least-squares
    line through the logarithms, and 1.05 is the bound: 1, and an allowance for the error of such a slope. How
    both grow with k is reported. Times are processor times, the median of three seeds; memory is the peak
    above X, in a process of its own (`memory.py`). Where n grows, the smallest fit works on 250 MB already:
    while data and work arrays outgrow the caches, a row takes up to a third longer, which would look like
    growth.
    """

    name = "growth"

    def run(self, record, scale):
        fit_seconds(500, 50, 5)  # compiles
        for parameter, first in FIRST.items():
            for level in (first * 2**step for step in range(N_SIZES[scale])):
                size = BASE[parameter] | {parameter: level}
                n, p, k = (size[name] for name in "npk")
                where = {"dataset": f"{n}x{p}, k = {k}", "parameter": parameter, "level": level}
                for seed in range(N_SEEDS[scale]):
                    record.add(HEADLINE, SECONDS, fit_seconds(n, p, k, seed), seed=seed, **where)
                taken = memory.measure("dense", HEADLINE, n, p, k, C)[BYTES]
                record.add(HEADLINE, BYTES, taken, **where)
                print(f"    {where['dataset']}: {taken / 1e6:.0f} MB above X", flush=True)

    def reached(self, frame):
        reached = {}
        for metric, what in ((SECONDS, "time"), (BYTES, "memory")):
            for parameter in FIRST:
                rows = select(frame, metric=metric, parameter=parameter)
                sizes = rows.groupby("level")["value"].median()
                if len(sizes) > 2:
                    claim = f"exponent of {what} in {'k' if parameter == 'k' else 'rows and columns'}"
                    slope, _ = np.polyfit(np.log(sizes.index.to_numpy(float)), np.log(sizes), 1)
                    reached.setdefault(claim, {})[parameter] = float(slope)
        return reached


def fit_seconds(n, p, k, seed=0):
    """Processor time of a fit."""
    data = dense(n, p, k, seed)
    return timed(choose()[HEADLINE].fixed, data.X, data.y, k, lam_of(C, n))[1]


class Cores(Case):
    """Claim: with two cores the path over all pairs of letters takes at most 0.6 of the time of one.

    The same path with one job and with two, by threads (the default) and by joblib's processes, in turns; all
    of them once before the clock starts, so that everything is compiled and the processes run. Two jobs need
    both cores for themselves, so the best turn of each counts. Processes gain less, because they have to send
    back 5,200 solutions of a few hundred microseconds each; their share is reported.
    """

    name = "cores"

    def run(self, record, scale):
        data = load("letters").of_classes(8 if scale == "quick" else None)
        where = {"dataset": data.name, "parameter": "way"}

        def path(way):
            backend, n_jobs = WAYS[way]
            with parallel_config(backend=backend, n_jobs=n_jobs):
                return sparse_svm_path(data.X, data.y, data.every_k, C=10.0, shared=False)

        expected = path("one core")
        for way in WAYS:
            same = np.array_equal(path(way).coefs, expected.coefs)
            record.add(HEADLINE, "same coefficients", same, level=way, **where)
        for _ in range(N_ROUNDS[scale]):
            for way in WAYS:
                started = time.perf_counter()
                path(way)
                seconds = time.perf_counter() - started
                record.add(HEADLINE, "seconds", seconds, level=way, **where)
                print(f"    {way:<10} {seconds:7.3f} s", flush=True)

    def reached(self, frame):
        best = select(frame, metric="seconds").groupby("level")["value"].min().reindex(list(WAYS))
        return {
            "time over one core's": {"": best["threads"] / best["one core"]},
            "time over one core's, processes": {"": best["processes"] / best["one core"]},
            "same coefficients": {"": float(select(frame, metric="same coefficients")["value"].min())},
        }


class Cold(Case):
    """Claim: the first fit on a machine takes at most 12 s of processor time, compilation included.

    A process each for a single fit of an array, a path, a fit of a CSR matrix, a kernel classifier and a fit
    by MM, with a cache folder that is empty; then the same again with the folder as it was left. Processor
    time of the fit alone, without imports.
    """

    name = "cold"

    def run(self, record, scale):
        for what in list(FITS)[:1] if scale == "quick" else FITS:
            command = [sys.executable, "-W", "ignore", "-c", PROGRAM.format(fit=FITS[what])]
            with tempfile.TemporaryDirectory() as cache:
                environment = os.environ | {"NUMBA_CACHE_DIR": cache}
                for metric in ("seconds, cold", "seconds, warm"):
                    seconds = float(subprocess.check_output(command, env=environment, text=True))
                    record.add(HEADLINE, metric, seconds, parameter="fit", level=what)
                    print(f"    {what:<8} {metric:<14} {seconds:6.2f}", flush=True)

    def reached(self, frame):
        seconds = frame.groupby(["metric", "level"])["value"].min()
        return {f"processor time, {when}": seconds[f"seconds, {when}"].to_dict() for when in ("cold", "warm")}
