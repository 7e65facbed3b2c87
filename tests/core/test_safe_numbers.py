"""Weights, counts, kernels and float32: numbers are brought to where they can be trusted, or refused."""

from dataclasses import replace

import numpy as np
import pytest
from penalised_problems import make_problem

from kmargin import SparseSVC
from kmargin.core import validation
from kmargin.core.labels import Pair, normalize
from kmargin.core.scaling import Scaling
from kmargin.data.samples import Designs
from kmargin.data.samples.array import read_samples
from kmargin.fitting.decisions import Kernel
from kmargin.fitting.fit import in_single_precision, round_solution
from kmargin.solvers import Solution, Status
from kmargin.solvers.refit.support import refit
from kmargin.solvers.solver import bare_solution


@pytest.mark.parametrize(("unit", "total"), [(1, 12), (1e-300, 12e-300), (1e300, 12e300), (2e307, np.inf)])
def test_weights_come_to_sum_to_their_number_whatever_their_unit(unit, total):
    weights = np.array([1.0, 3.0, 0.5, 7.5])
    normal, found = normalize(weights * unit)
    np.testing.assert_allclose(normal, weights / 3.0, rtol=1e-15)
    np.testing.assert_allclose(found, total)


@pytest.mark.parametrize("n_features", [1, 2, 10, 37])
def test_a_number_of_ks_is_log_spaced_and_bounded_by_what_it_counts(n_features):
    for count in (1, 2, n_features, 3 * n_features):
        spaced = {int(k) for k in np.round(np.geomspace(n_features, 1, count))}
        assert set(validation.resolve_ks(count, n_features)) == spaced
    enough = int(n_features * np.log(n_features + 1)) + 2
    for count in (enough, 10**15):
        assert sorted(validation.resolve_ks(count, n_features)) == list(range(1, n_features + 1))
    # what is left out from there on is what would be listed anyway
    assert set(np.round(np.geomspace(n_features, 1, enough))) == set(range(1, n_features + 1))


def test_the_ridge_is_that_of_LinearSVC_and_infinite_where_it_is_no_number():
    assert validation.ridge(0.5, 8) == 0.125
    assert validation.ridge(1e-300, 1e-300) == np.inf
    assert validation.ridge(np.inf, 3.0) == 0.0
    assert validation.ridge(1e10, 1e301) == pytest.approx(5e-312)


def test_a_kernel_with_values_that_are_not_finite_is_refused_even_if_their_sum_may_overflow():
    X = np.array([[1e60, 1.0], [2.0, 3.0]])
    with pytest.raises(ValueError, match=r"not finite.*1e\+60"):
        Kernel("poly", 1e200, 3, 0.0)(X, X)
    with pytest.raises(ValueError, match="not finite"):
        Kernel(lambda A, B: np.full((len(A), len(B)), np.nan), 1.0, 3, 0.0)(X, X)
    K = Kernel("linear", 1.0, 3, 0.0)(np.full((3, 1), 1e154), np.full((3, 1), 1e154))
    np.testing.assert_allclose(K, 1e308)


def solution(value, coef=(0.1, 0.7), status=Status.SWAP_OPTIMAL):
    return Solution(np.arange(len(coef)), np.array(coef), 1 / 3, 6, value, 0.0, status, 1)


def single(scaled):
    """A problem whose data are float32, perhaps standardised, and its designs."""
    problem = make_problem(30, 6, 2, lam=0.02)
    samples = read_samples(problem.design.X.astype(np.float32), problem.y, None, None)
    designs = samples.designs(True, scaled)
    return designs, replace(problem, design=designs.problem(Pair(0, 1), [1.0])[0].design)


@pytest.mark.parametrize("scaled", [False, True])
def test_a_model_in_float32_has_its_own_objective_and_nothing_that_is_zero(scaled):
    """A kernel of such a point may be infinite, and 0 times that is no number."""
    designs, problem = single(scaled)
    rounded = round_solution(solution(0.2, coef=(0.1, 0.7, 1e-60)), designs, problem)
    np.testing.assert_array_equal(rounded.support, [0, 1])
    np.testing.assert_array_equal(rounded.coef, np.array([0.1, 0.7], np.float32))
    assert rounded.intercept == np.float32(1 / 3)
    X, coef = designs.X[:, :2].astype(float), rounded.coef
    short = np.maximum(0, 1 - problem.y * (X @ coef + rounded.intercept))
    in_units = coef * (designs.scaling.scales[:2] if scaled else 1.0)
    expected = problem.weights @ short**2 / 60 + 0.01 * in_units @ in_units
    np.testing.assert_allclose(rounded.objective, expected, rtol=1e-12)


@pytest.mark.parametrize("standardize", [False, True])
def test_a_column_in_two_units_loses_nothing_in_float32_without_a_ridge(rng, standardize):
    for signs in (None, [1, 1]):
        x = rng.standard_normal(30).astype(np.float32)
        X, y = np.column_stack([x, x * np.float32(2.54)]), x + 2 * rng.standard_normal(30) > 0
        models = [SparseSVC(k, C=np.inf, standardize=standardize, signs=signs).fit(X, y) for k in (1, 2)]
        one, two = (model.objective_[0] for model in models)
        assert two <= one * (1 + 1e-6)
        assert signs is None or (models[1].coef_ >= 0).all()


def test_scaling_is_undone_and_done_again(rng):
    designs = Designs()
    designs.scaling = Scaling(np.arange(6.0), np.arange(6.0) + 2)
    there = solution(0.2)
    back = designs.restore(there)
    coef, intercept = designs.scaling.scale_coefs(back.support, back.coef, back.intercept)
    np.testing.assert_allclose(coef, there.coef)
    np.testing.assert_allclose(intercept, there.intercept)


def test_rounding_takes_back_claims_and_leaves_at_least_the_intercept():
    designs, problem = single(False)
    bare = bare_solution(problem, Status.SETTLED)
    assert round_solution(solution(0.2), designs, problem).objective > bare.objective
    coef, intercept, least, _ = refit(problem, np.arange(2))
    left = in_single_precision(solution(0.2), designs, problem, np.zeros(6))
    np.testing.assert_allclose(left.objective, least, rtol=1e-6)  # refitted, since rounding seems to raise it
    left = in_single_precision(solution(9.0), designs, problem, np.zeros(6))
    assert len(left.support) == 0
    np.testing.assert_allclose(left.objective, bare.objective, rtol=1e-6)
    good = replace(solution(0.2, coef), intercept=intercept)
    value = round_solution(good, designs, problem).objective
    assert value < bare.objective
    for claimed, status in ((value, Status.SWAP_OPTIMAL), (value * 0.99, Status.SETTLED)):
        left = in_single_precision(replace(good, objective=claimed), designs, problem, np.zeros(6))
        assert (left.objective, left.status) == (value, status)
