"""Data in blocks: every question against the same asked of an array, every solver against its own."""

import numpy as np
import pytest
from dask_data import BALANCED, cut

from kmargin.core.problem import ArrayProblem, Problem
from kmargin.data.blocks.problem import BlockDesign, block_problem
from kmargin.data.blocks.sums import Part, View, add_up
from kmargin.data.design.dense import DenseDesign
from kmargin.data.samples.array import ArraySamples
from kmargin.data.samples.blocks import BlockSamples
from kmargin.datasets import make_synthetic
from kmargin.fitting.fit import Procedure, fit_grid
from kmargin.fitting.spec import LinearBlueprint
from kmargin.solvers import SD, Exchange
from kmargin.solvers.refit.support import refit


@pytest.fixture
def data():
    X, y = make_synthetic(n_samples=200, n_features=30, random_state=3)
    rng = np.random.default_rng(0)
    codes = np.where(rng.random(200) < 0.1, y < 0, y > 0).astype(int)  # some labels are wrong
    return X + rng.standard_normal(30), codes, rng.uniform(0.5, 2.0, 200)


def problems(data, lam=1e-3, fit_intercept=True):
    """The same problem twice: in blocks, and as an array."""
    X, codes, repeats = data
    blocks = block_problem(cut(X, codes, repeats), BALANCED, lam, fit_intercept)
    weights = repeats * len(X) / repeats.sum()
    return blocks, ArrayProblem(DenseDesign(X, fit_intercept), np.where(codes, 1.0, -1.0), weights, lam)


def solve(problem, lams, ks, solver=None):
    grid = (solver or Exchange()).solve_grid(
        Problem.of(problem), [[lam] for lam in lams], ks, np.random.default_rng(0)
    )
    return [solution for (solution,) in grid]


def test_all_supports_tried_in_blocks_are_finished_as_those_of_an_array():
    """Columns that differ by 1e-8 of themselves, no ridge: a Gram matrix does not see the difference."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((30, 1))
    X = x * [1.0, -0.1, 0.2] + 1e-8 * rng.standard_normal((30, 3))
    codes = (x[:, 0] + rng.standard_normal(30) > 0).astype(int)
    blocks, whole = problems((X, codes, np.ones(30)), lam=0.0, fit_intercept=False)
    found, expected = (solve(p, [0.0], [2])[0] for p in (blocks, whole))
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sums_over_blocks_are_those_over_all_rows(data, fit_intercept, rng):
    blocks, whole = problems(data, fit_intercept=fit_intercept)
    beta = rng.standard_normal(whole.design.n_parameters)
    assert blocks.design.n_samples == 200
    np.testing.assert_allclose(blocks.loss(beta), whole.loss(beta), rtol=1e-12)
    np.testing.assert_allclose(blocks.gradient(beta), whole.gradient(beta), rtol=1e-10)
    np.testing.assert_allclose(blocks.curvature_along(beta), whole.curvature_along(beta), rtol=1e-12)
    np.testing.assert_allclose(blocks.mean_label(), whole.mean_label(), rtol=1e-12)
    for found, expected in zip(blocks.moments(), whole.moments(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    c = np.sqrt(whole.weights / 200)
    np.testing.assert_allclose(blocks.design.variance(), whole.design.spread(c), rtol=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_support_has_the_same_minimum(data, fit_intercept):
    found, expected = (
        refit(problem, np.arange(0, 30, 3)) for problem in problems(data, fit_intercept=fit_intercept)
    )
    np.testing.assert_allclose(found[0], expected[0], atol=1e-10)
    np.testing.assert_allclose(found[1:3], expected[1:3], atol=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("ks", [[6], [6, 4, 2, 1]])
def test_columns_that_a_gram_matrix_cannot_tell_apart(ks, fit_intercept, rng):
    """Nearly dependent, far from zero, or beyond the range of squares: as exact as for arrays."""
    X = rng.standard_normal((120, 6))
    X[:, 1] = X[:, 0] + 1e-6 * X[:, 1]
    X[:, 3] = 1e6 + X[:, 3] if fit_intercept else X[:, 2] + 1e-7 * X[:, 3]
    X[:, 5] *= 1e-60
    codes = (X[:, 0] - 1e6 * (X[:, 1] - X[:, 0]) + rng.standard_normal(120) > 0).astype(int)
    both = problems((X, codes, np.ones(120)), 1e-14, fit_intercept=fit_intercept)
    found, expected = (solve(each, [1e-14], ks) for each in both)
    w = np.zeros((len(ks), 6))
    for row, each in enumerate(found):
        w[row, each.support] = each.coef
        beta = np.append(w[row], each.intercept) if fit_intercept else w[row]
        np.testing.assert_allclose(each.objective, both[1].loss(beta), rtol=1e-8)
    np.testing.assert_allclose(
        [each.objective for each in found], [each.objective for each in expected], rtol=1e-6
    )


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("lam", [0.0, 1e-3, 1e-1])
@pytest.mark.parametrize("ks", [[4], [30, 20, 10, 5, 2, 1, 0]])
def test_the_search_takes_the_same_way(data, ks, lam, fit_intercept):
    solutions = [
        solve(problem, [lam], ks, Exchange(effort="fast"))
        for problem in problems(data, lam, fit_intercept=fit_intercept)
    ]
    for found, expected in zip(*solutions, strict=True):
        np.testing.assert_array_equal(found.support, expected.support)
        np.testing.assert_allclose(found.coef, expected.coef, atol=1e-8)
        np.testing.assert_allclose(found.intercept, expected.intercept, atol=1e-8)
        if lam > 0:  # rounding errors decide about a step more or less
            assert abs(found.n_iter - expected.n_iter) <= 2


def test_many_columns_are_searched_through_working_sets(rng):
    X = rng.standard_normal((150, 400))
    codes = (X[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(150) > 0).astype(int)
    solutions = [solve(problem, [1e-2, 1e-3], [20, 10, 3]) for problem in problems((X, codes, np.ones(150)))]
    for found, expected in zip(*solutions, strict=True):
        np.testing.assert_array_equal(found.support, expected.support)
        np.testing.assert_allclose(found.coef, expected.coef, atol=1e-8)


def test_steepest_descent_takes_the_same_steps(data):
    solutions = [solve(problem, [0.1], [20, 5], SD(max_outer=30)) for problem in problems(data, 0.1)]
    for found, expected in zip(*solutions, strict=True):
        np.testing.assert_array_equal(found.support, expected.support)
        np.testing.assert_allclose(found.coef, expected.coef, atol=1e-8)


def test_repeated_columns_are_found(data):
    X, codes, repeats = data
    X = np.column_stack([X, X[:, 3], np.zeros(200), X[:, 5], np.zeros(200)])
    design = BlockDesign(cut(X, codes, repeats), BALANCED)
    np.testing.assert_array_equal(design.distinct_columns(), DenseDesign(X).distinct_columns())


def test_standardised_and_rescaled_views_are_the_arrays(data, rng):
    X, codes, repeats = data
    mean, spread = rng.standard_normal(30), rng.uniform(0.5, 2, 30)
    columns = np.array([3, 1, 20])
    design = BlockDesign(cut(X, codes, repeats), BALANCED).standardized(mean, spread)
    expected = ((X - mean) / spread)[:, columns]
    found = design.take(columns).moments.mean
    np.testing.assert_allclose(found, np.average(expected, axis=0, weights=repeats), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("whole_blocks", [False, True])
def test_folds_share_out_every_row(data, whole_blocks):
    X, codes, repeats = data
    blocks = cut(X, codes, repeats)
    counts = [
        [
            BlockDesign(blocks, BALANCED._replace(part=Part(3, fold, inside, 7, whole_blocks))).n_samples
            for inside in (True, False)
        ]
        for fold in range(3)
    ]
    assert sum(inside for inside, _ in counts) == 200
    assert all(inside + outside == 200 for inside, outside in counts)


def test_rows_are_dealt_class_by_class():
    codes = np.repeat([0, 1], [90, 9])
    inside = [codes[Part(3, fold, True).rows(0, codes)] for fold in range(3)]
    assert [np.bincount(c).tolist() for c in inside] == [[30, 3]] * 3


def test_answers_are_added_in_the_order_of_the_blocks():
    assert add_up([(1e16, np.ones(1)), (1.0, np.ones(1)), (-1e16, np.ones(1))]) == (0.0, 3.0)


def test_a_view_of_two_of_three_classes_is_their_rows(rng):
    X, codes = rng.standard_normal((120, 6)), rng.integers(0, 3, 120)
    view = View(positive=2, negative=0, class_weight=np.array([1.0, 5.0, 2.0]))
    kept = codes != 1
    weights = np.where(codes[kept] == 2, 2.0, 1.0)
    whole = ArrayProblem(
        DenseDesign(X[kept]),
        np.where(codes[kept] == 2, 1.0, -1.0),
        weights * kept.sum() / weights.sum(),
        0.1,
    )
    blocks = block_problem(cut(X, codes, sizes=(30, 30)), view, 0.1)
    found, expected = (solve(p, [0.1], [2])[0] for p in (blocks, whole))
    np.testing.assert_array_equal(found.support, expected.support)
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-10)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("standardize", [True, False])
def test_machines_on_blocks_are_those_on_the_array(rng, multi_class, standardize):
    X, codes = rng.standard_normal((150, 8)) * rng.uniform(1, 5, 8) + 3.0, rng.integers(0, 3, 150)
    X[:, 0] += 4 * (codes == 1)
    repeats, factors = rng.uniform(0.5, 2.0, 150), np.array([1.0, 2.0, 0.5])
    at_hand = ArraySamples(X, codes, np.arange(3), repeats, repeats * factors[codes], np.arange(150))
    blocks = BlockSamples(cut(X, codes, repeats), np.arange(3), factors)
    blueprint = LinearBlueprint(multi_class, standardize=standardize, shared=False)
    fits = [
        fit_grid(blueprint, samples, [0.1, 1.0], [4, 2], Procedure(n_jobs=1)) for samples in (blocks, at_hand)
    ]
    models = [[s for path in fit.paths for model in path.solutions for s in model] for fit in fits]
    for found, expected in zip(*models, strict=True):
        np.testing.assert_array_equal(found.support, expected.support)
        np.testing.assert_allclose(found.coef, expected.coef, atol=1e-9)
        np.testing.assert_allclose(found.intercept, expected.intercept, atol=1e-9)
