"""Newton steps end at the minimum by themselves: what finishes a support has nothing left to repair."""

import numpy as np
import pytest
from test_scores_by_refit import unscaled

from conftest import PROBLEMS, make_problem
from kmargin.solvers.refit.final import ColumnsAtHand, newton_by_least_squares
from kmargin.solvers.refit.folded import SignedDesign
from kmargin.solvers.refit.support import refit

ALL = PROBLEMS | {f"units {seed}": unscaled(60, 9, seed=seed, lam=1e-4) for seed in range(4)}


def minimum(problem, support):
    c = np.sqrt(problem.weights / problem.design.n_samples)
    ones = np.ones((problem.design.n_samples, int(problem.design.fit_intercept)))
    A = np.hstack([problem.design.X[:, support], ones]) * (problem.y * c)[:, None]
    ridge = np.append(np.full(len(support), problem.lam), np.zeros(ones.shape[1]))
    return newton_by_least_squares(ColumnsAtHand(A, c), ridge, np.zeros(A.shape[1]))


@pytest.fixture
def unfinished(monkeypatch):
    monkeypatch.setattr(SignedDesign, "finish", lambda self, found, ridge: found)
    monkeypatch.setattr(
        SignedDesign, "finish_in_panel", lambda self, rows, ridge, found: (found, [True] * len(found))
    )


@pytest.mark.parametrize("support", [[2], [0, 3, 5], [7, 1, 2, 4, 0, 6]], ids=str)
@pytest.mark.parametrize("name", ALL)
def test_newton_ends_at_the_minimum_unaided(name, support, unfinished):
    problem = ALL[name]
    coef, intercept, value, _ = refit(problem, support)
    u, best, _ = minimum(problem, support)
    np.testing.assert_allclose(value, best, rtol=1e-10, atol=1e-15)
    ours = np.append(coef, intercept)[: len(u)]
    np.testing.assert_allclose(ours, u, rtol=1e-6, atol=1e-7)


def test_the_dual_ends_at_the_minimum_unaided(unfinished, monkeypatch):
    monkeypatch.setattr("kmargin.solvers.solution.LARGE", 4)
    problem = make_problem(20, 50, 40, lam=0.05)
    coef, intercept, value, _ = refit(problem, np.arange(40))
    u, best, _ = minimum(problem, np.arange(40))
    np.testing.assert_allclose(value, best, rtol=1e-9)
    np.testing.assert_allclose(np.append(coef, intercept), u, atol=1e-6)
