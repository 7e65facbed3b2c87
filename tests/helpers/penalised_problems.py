"""Problems for tests: one binary problem, several that share what k counts, and both with a penalty."""

from dataclasses import dataclass, replace

import numpy as np

from kmargin.core.problem import ArrayProblem
from kmargin.core.units import Units
from kmargin.data.design.dense import DenseDesign
from kmargin.solvers.proximal.penalised import PenalisedProblem
from kmargin.solvers.solver import univariate_start


@dataclass(frozen=True)
class SizedProblem(ArrayProblem):
    """A binary problem, and how many of its features may be used."""

    k: int


def make_problem(
    n_samples=40, n_features=12, k=4, *, lam=0.01, fit_intercept=True, weighted=True, seed=0
) -> SizedProblem:
    """A random problem that is not separable."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) + 0.3
    y = np.where(X[:, 0] - X[:, -1] + rng.standard_normal(n_samples) > 0.2, 1.0, -1.0)
    weights = rng.uniform(0.2, 3.0, n_samples) if weighted else np.ones(n_samples)
    return SizedProblem(DenseDesign(X, fit_intercept), y, weights * n_samples / weights.sum(), lam, k)


# tall, wide, without an intercept, without a ridge, without weights, everything allowed, nothing allowed
PROBLEMS = {
    "tall": make_problem(60, 8, 3),
    "wide": make_problem(20, 50, 5),
    "wide, most kept": make_problem(20, 50, 40),
    "no intercept": make_problem(40, 12, 4, fit_intercept=False),
    "no ridge": make_problem(40, 12, 4, lam=0.0),
    "no weights": make_problem(40, 12, 4, weighted=False),
    "k = p": make_problem(40, 12, 12),
    "k = p, wide, no ridge": make_problem(20, 50, 50, lam=0.0),
    "k = 0": make_problem(40, 12, 0),
}


def make_units(sizes, n_features=None, *, fixed=(), signs=None) -> Units:
    """Units of neighbouring columns; the columns behind the last unit belong to none."""
    ends = np.cumsum([0, *sizes])
    n_features = ends[-1] if n_features is None else n_features
    always = np.zeros(len(sizes), bool)
    always[list(fixed)] = True
    signs = np.zeros(n_features) if signs is None else np.asarray(signs, dtype=float)
    return Units(ends, np.arange(ends[-1]), always, signs)


def make_problems(n_problems=3, n_features=8, *, lam=0.01, fit_intercept=True, n_samples=30, alike=False):
    """Problems that are not separable, each with its own rows, weights and ridge, or all with the same X."""
    problems = []
    for m in range(n_problems):
        problem = make_problem(
            n_samples if alike else n_samples + 7 * m,
            n_features,
            lam=lam * (1 + m),
            fit_intercept=fit_intercept,
            seed=0 if alike else m,
        )
        y = np.where(problem.design.X[:, m % n_features] > 0.3, problem.y, -problem.y)
        problems.append(replace(problem, y=y))
    if alike:
        first = problems[0]
        problems = [replace(problem, design=first.design, weights=first.weights) for problem in problems]
    return problems


SIGNS = [1, -1, 0, 1, 0, -1, 1, 0]
COLUMNS = make_units([1] * 8)


def of_one(problem) -> PenalisedProblem:
    """The problem of a `SizedProblem`."""
    return PenalisedProblem.of_one(problem, problem.k)


# M = 1: tall, wide, without an intercept, a ridge or weights, k = p (k = 0 is never annealed)
SINGLE = {name: of_one(problem) for name, problem in PROBLEMS.items() if problem.k > 0}

# M = 3, but for the last
SHARED = {
    "columns": PenalisedProblem.of(make_problems(), COLUMNS, 3),
    "one design": PenalisedProblem.of(make_problems(alike=True), COLUMNS, 3),
    "3 wide": PenalisedProblem.of(make_problems(n_features=60, n_samples=20), make_units([1] * 60), 5),
    "groups": PenalisedProblem.of(make_problems(), make_units([3, 1, 2, 2]), 2),
    "always in": PenalisedProblem.of(make_problems(), make_units([1] * 8, fixed=[2, 7]), 3),
    "signs": PenalisedProblem.of(make_problems(), make_units([1] * 8, signs=SIGNS), 3),
    "signs of all": PenalisedProblem.of(make_problems(), make_units([1] * 8, signs=SIGNS), 8),
    "never in": PenalisedProblem.of(make_problems(), make_units([2, 2, 1], 8), 2),
    "everything": PenalisedProblem.of(make_problems(), make_units([2, 2, 1, 3], fixed=[3], signs=SIGNS), 2),
    "3 without intercept": PenalisedProblem.of(make_problems(fit_intercept=False), COLUMNS, 3),
    "3 without ridge": PenalisedProblem.of(make_problems(lam=0.0), COLUMNS, 3),
    "3, k = p": PenalisedProblem.of(make_problems(), COLUMNS, 8),
    "3, k = p, wide, no ridge": PenalisedProblem.of(
        make_problems(n_features=60, n_samples=20, lam=0.0), make_units([1] * 60), 60
    ),
    "groups of one problem": PenalisedProblem.of(make_problems(1), make_units([3, 1, 2, 2]), 2),
}

PENALISED = SINGLE | SHARED


def start_of(penalised: PenalisedProblem) -> np.ndarray:
    return np.array([univariate_start(problem) for problem in penalised.problems])


def random_point(penalised: PenalisedProblem, rng, scale=1.0) -> np.ndarray:
    n_parameters = penalised.problems[0].design.n_parameters
    return scale * rng.standard_normal((len(penalised.problems), n_parameters))
