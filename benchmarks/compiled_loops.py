"""Claims about the compiled loops, each a ratio measured within this run.

1. At 80 x 4 a compiled step is at least 10 times faster than the NumPy twin's.
2. At 641 x 10000 a compiled step takes no longer than the BLAS calls it makes.
3. At p = 10,000 selection is at least 3 times faster than sorting, for every k the paper's grid uses.

Run with `make bench CASE=loops`, or by itself: `python benchmarks/compiled_loops.py`. One thread for
everything.
"""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from kmargin import MM, SD
from kmargin.core.problem import ArrayProblem, Problem
from kmargin.core.sparsity import project_by_sorting, select_largest
from kmargin.data.design.dense import DenseDesign
from kmargin.datasets import make_sparse_hyperplane
from kmargin.solvers.proximal.anneal import ProximalDistance
from kmargin.solvers.proximal.penalised import PenalisedProblem
from kmargin.solvers.solver import univariate_start


class Claim(NamedTuple):
    """A ratio, and what it may not fall below."""

    topic: str
    part: str
    text: str
    ratio: float
    bound: float


def seconds(function: Callable[[], object], repeats: int = 7) -> float:
    """The best of several runs, after one that warms up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def make_problem(n: int, p: int, k: int) -> Problem:
    X, y = make_sparse_hyperplane(n, p, k, random_state=0)
    return ArrayProblem(DenseDesign(X), y.astype(float), np.ones(n), 0.0, k)


def per_step(solver: type[ProximalDistance], problem: Problem, n_steps: int, readable: bool = False) -> float:
    penalised, start = PenalisedProblem.of_one(problem), univariate_start(problem)[None]
    configured = solver(max_inner=n_steps)
    descend = (configured._readable_descent if readable else configured._descent)(penalised)
    return seconds(lambda: descend(penalised, start, 1.0, 0.0)) / n_steps


def blas_calls(solver: type[ProximalDistance], problem: Problem) -> float:
    """The matrix-vector products of one step and nothing else, with the outputs given."""
    if solver is MM:
        U, s, V = problem.design.thin_svd(problem.weights)
        row, column, coords = np.ones(len(U)), np.ones(len(V)), np.ones(len(s))
        kept = V[: problem.k + 1].copy()
        weights = np.ones(len(kept))

        def products() -> None:
            np.dot(U, coords, out=row)
            np.dot(row, U, out=coords)
            np.dot(weights, kept)
            np.dot(V, coords, out=column)

    else:
        X = problem.design.X
        row, column = np.ones(X.shape[0]), np.ones(X.shape[1])

        def products() -> None:
            np.dot(row, X, out=column)
            np.dot(X, column, out=row)

    return seconds(products, repeats=30)


def measure() -> Iterator[Claim]:
    """The claims one by one, as they are measured."""
    small, wide = make_problem(80, 4, 2), make_problem(641, 10_000, 50)
    for solver in (MM, SD):
        ratio = per_step(solver, small, 400, readable=True) / per_step(solver, small, 400)
        name = solver.__name__
        yield Claim("compiled step", name, f"{name}: NumPy twin / compiled, a step at 80 x 4", ratio, 10)
    for solver in (MM, SD):
        ratio = blas_calls(solver, wide) / per_step(solver, wide, 100)
        name = solver.__name__
        text = f"{name}: its BLAS calls / compiled, a step at 641 x 10000"
        yield Claim("BLAS calls", name, text, ratio, 0.97)
    rng = np.random.default_rng(0)
    beta = rng.standard_normal(10_000)
    work, candidates = np.empty_like(beta), np.empty(len(beta), dtype=np.intp)
    for k in (7750, 5500, 1000, 100, 10):
        sort = seconds(lambda k=k: project_by_sorting(beta, k))
        kept = np.empty(k, dtype=np.intp)
        select = seconds(
            lambda k=k, kept=kept: select_largest(beta, k, len(beta), 0.0, work, candidates, kept)
        )
        text = f"sorting / selection, p = 10000, k = {k}"
        yield Claim("selection", f"k = {k}", text, sort / select, 3)


def report(claim: Claim) -> None:
    verdict = "holds" if claim.ratio >= claim.bound else "FAILS"
    print(f"{claim.text:<62} {claim.ratio:>8.2f}   {verdict} (at least {claim.bound:g})")


if __name__ == "__main__":
    with threadpool_limits(1):
        print(f"{'claim':<62} {'ratio':>8}")
        for claim in measure():
            report(claim)
