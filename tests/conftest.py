import numpy as np
import pytest

from kmargin.datasets import make_sparse_hyperplane
from kmargin.design import DenseDesign
from kmargin.problem import Problem


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)


def make_problem(
    n_samples=40, n_features=12, k=4, *, lam=0.01, fit_intercept=True, weighted=True, seed=0
) -> Problem:
    """A random problem that is not separable."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) + 0.3
    y = np.where(X[:, 0] - X[:, -1] + rng.standard_normal(n_samples) > 0.2, 1.0, -1.0)
    weights = rng.uniform(0.2, 3.0, n_samples) if weighted else np.ones(n_samples)
    return Problem(DenseDesign(X, fit_intercept), y, weights * n_samples / weights.sum(), lam, k)


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


@pytest.fixture(params=PROBLEMS.values(), ids=PROBLEMS.keys())
def problem(request):
    return request.param


@pytest.fixture
def hyperplane():
    """200 x 30, five causal features, labels of {-1, 1}."""
    return make_sparse_hyperplane(200, 30, 5, random_state=3)
