"""The exact minimum on a given support, and supports that are found."""

import numpy as np
import pytest
from penalised_problems import PROBLEMS
from search_problems import lowest_by_lbfgs, make_case, make_search

from kmargin import SparseSVC, sparse_svm_path
from kmargin.datasets import make_sparse_hyperplane, make_synthetic
from kmargin.solvers.refit.support import refit


@pytest.mark.parametrize("support", [[2], [0, 3, 5], list(range(1, 8))], ids=len)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_refit_reaches_the_minimum_of_lbfgs(name, support):
    problem, support = PROBLEMS[name], np.array(support)
    coef, intercept, objective, n_steps = refit(problem, support)
    beta = np.zeros(problem.design.n_features + 1)
    beta[support], beta[-1] = coef, intercept
    assert objective == pytest.approx(problem.loss(beta[: problem.design.n_parameters]), rel=1e-10)
    assert objective == pytest.approx(lowest_by_lbfgs(problem, support), rel=1e-7, abs=1e-12)
    assert problem.design.fit_intercept or intercept == 0.0
    if objective > 1e-9:  # else there are several minima
        again = refit(problem, support, coef, intercept)
        np.testing.assert_allclose([*again[0], again[3] > n_steps], [*coef, False], rtol=1e-6)


def test_a_gram_matrix_that_lost_its_digits_is_computed_anew():
    problem = make_case([1] * 6)
    search, expected = make_search(problem, [4, 0, 2]), make_search(problem, [4, 0, 3])
    search.panels.gram[:] = np.nan
    search.move(np.array([2]), np.array([3]))
    np.testing.assert_allclose(search.values, expected.values, rtol=1e-9)
    np.testing.assert_allclose(search.coefs, expected.coefs, rtol=1e-6)


# The search


def test_the_support_of_the_papers_simulation_is_recovered():
    X, y, coef = make_sparse_hyperplane(1000, 200, 20, random_state=0, return_coef=True)
    model = SparseSVC(k=20, C=1 / (2 * 0.01 * 1000), solver="exchange").fit(X, y)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(coef))


def test_of_repeated_features_the_first_is_used_with_a_warning():
    X, y = make_sparse_hyperplane(100, 6, 3, random_state=0)
    doubled = np.hstack([X, X])
    with pytest.warns(UserWarning, match=r"6 features repeat an earlier one .*the first of each is used"):
        model = SparseSVC(k=4, solver="exchange").fit(doubled, y)
    np.testing.assert_array_equal(model.coef_[0, :6], SparseSVC(k=4, solver="exchange").fit(X, y).coef_[0])
    assert not model.coef_[0, 6:].any()


@pytest.mark.parametrize("ks", [[500, 388], [388], [388, 100]])
def test_every_size_has_a_solution_if_a_few_features_separate_the_classes(ks):
    X, y = make_synthetic(60, 500, random_state=0)
    for (solution,) in sparse_svm_path(X, y, ks, C=np.inf).solutions:
        assert solution.objective <= 1e-20
        assert len(solution.support) <= 388 or len(solution.support) == 500
