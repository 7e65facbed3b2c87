"""Claims about the compiled loops of MM and SD, each a ratio measured within one run:

1. At 80 x 4 a compiled step is at least 10 times faster than one of the readable loop (`trace="steps"`).
2. At 641 x 10000 a compiled step takes no longer than the BLAS calls it makes.
3. At p = 10,000 selection is at least 3 times faster than sorting, for every k the paper's grid uses.

The time of a step is that of a fit with many steps minus that of one with few, divided by their difference.
"""

import time
import warnings

import numpy as np

from benchmarks.cases.case import Case
from benchmarks.records import select
from kmargin import MM, SD, SparseSVC
from kmargin.datasets import make_sparse_hyperplane

BLAS_SHAPE = 641, 10_000, 50  # rows, columns, k


class Loops(Case):
    name = "loops"

    def run(self, record, scale):
        for topic, part, ratio in measure():
            print(f"    {topic:<14} {part:<9} {ratio:8.2f}", flush=True)
            record.add("kmargin", topic, ratio, dataset=part)

    def reached(self, frame):
        return {
            topic: dict(select(frame, metric=topic)[["dataset", "value"]].itertuples(index=False))
            for topic in frame["metric"].unique()
        }


def measure():
    """Topic, part and ratio of each claim, as they are measured."""
    for solver in (MM, SD):
        readable = step_seconds(solver, 80, 4, 2, 400, trace="steps")
        yield "compiled step", solver.__name__, readable / step_seconds(solver, 80, 4, 2, 20_000)
    for solver in (MM, SD):
        yield "BLAS calls", solver.__name__, blas_seconds(solver) / step_seconds(solver, *BLAS_SHAPE, 100)
    yield from (("selection", f"k = {k}", ratio) for k, ratio in selection_ratios())


def best_seconds(function, repeats=7):
    """The best of several runs, after one that warms up."""
    function()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def step_seconds(solver, n, p, k, n_steps, **options):
    """Of one inner step for a single rho."""
    X, y = make_sparse_hyperplane(n, p, k, random_state=0)

    def fit(max_inner):
        machine = solver(rhos=[1.0], max_inner=max_inner, gtol=0.0, ending="projection", **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            SparseSVC(k, C=np.inf, solver=machine).fit(X, y)

    few = max(1, n_steps // 10)
    many_seconds, few_seconds = (best_seconds(lambda m=m: fit(m)) for m in (n_steps, few))
    return (many_seconds - few_seconds) / (n_steps - few)


def blas_seconds(solver):
    """The matrix-vector products of one step and nothing else, with the outputs given."""
    n, p, k = BLAS_SHAPE
    X, _ = make_sparse_hyperplane(n, p, k, random_state=0)
    row, column = np.ones(n), np.ones(p)
    if solver is SD:
        return best_seconds(lambda: (np.dot(row, X, out=column), np.dot(X, column, out=row)), 30)
    U, s, V = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    V, coords = np.ascontiguousarray(V.T), np.ones(len(s))
    kept, weights = V[: k + 1].copy(), np.ones(k + 1)

    def products():
        np.dot(U, coords, out=row)
        np.dot(row, U, out=coords)
        np.dot(weights, kept)
        np.dot(V, coords, out=column)

    return best_seconds(products, 30)


def selection_ratios():
    """Seconds of sorting over those of selection, for each k."""
    from kmargin.core.sparsity import project_by_sorting, select_largest  # not public

    beta = np.random.default_rng(0).standard_normal(10_000)
    work, candidates = np.empty_like(beta), np.empty(len(beta), dtype=np.intp)
    for k in (7750, 5500, 1000, 100, 10):
        kept = np.empty(k, dtype=np.intp)
        arguments = beta, k, len(beta), 0.0, work, candidates, kept
        sorting = best_seconds(lambda k=k: project_by_sorting(beta, k))
        yield k, sorting / best_seconds(lambda arguments=arguments: select_largest(*arguments))
