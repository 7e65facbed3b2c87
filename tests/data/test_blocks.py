"""Data in blocks: each sum and each search against that of an array; what blocks answer and remember."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from dask_data import BALANCED, cut

from kmargin import BlockKFold, SparseSVCCV
from kmargin.core.problem import ArrayProblem, Problem
from kmargin.data.blocks import Block, sums
from kmargin.data.blocks.problem import BlockDesign, block_problem
from kmargin.data.blocks.sums import Part, add_up, examine, show_columns, weigh
from kmargin.data.design.dense import DenseDesign
from kmargin.data.samples.blocks import BlockSamples, FoldsInBlocks
from kmargin.datasets import make_synthetic
from kmargin.solvers import Exchange
from kmargin.solvers.refit.rows import make_rows


def distinct_columns(design):
    return np.setdiff1d(np.arange(design.n_features), design.repeated_columns)


@pytest.fixture
def data():
    X, y = make_synthetic(n_samples=200, n_features=30, random_state=3)
    rng = np.random.default_rng(0)
    codes = np.where(rng.random(200) < 0.1, y < 0, y > 0).astype(int)  # some labels are wrong
    return X + rng.standard_normal(30), codes, rng.uniform(0.5, 2.0, 200)


@pytest.fixture
def few():
    """Some rows have no weight."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 6))
    codes = (X[:, 0] + rng.standard_normal(30) > 0).astype(int)
    repeats = rng.uniform(0.5, 2.0, 30)
    repeats[[2, 11, 20]] = 0.0
    return X, codes, repeats


def problems(data, lam=1e-3, fit_intercept=True):
    """The same problem twice: in blocks, and as an array of the rows that have a weight."""
    blocks = block_problem(cut(*data), BALANCED, lam, fit_intercept)
    X, codes, repeats = (array[data[2] > 0] for array in data)
    weights = repeats * len(X) / repeats.sum()
    return blocks, ArrayProblem(DenseDesign(X, fit_intercept), np.where(codes, 1.0, -1.0), weights, lam)


def as_rows(data):
    """The rows as a search sees them, in blocks and as an array."""
    return [make_rows(problem) for problem in problems(data, 0.1)]


def solve(problem, lams, ks, solver=None):
    solver, rng = solver or Exchange(), np.random.default_rng(0)
    grid = solver.solve_grid(Problem.of(problem), [[lam] for lam in lams], ks, rng)
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
    found, expected = make_rows(blocks).variance, make_rows(whole).variance
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(expected, whole.design.spread(np.sqrt(whole.weights / 200)), rtol=1e-10)


@pytest.mark.parametrize(("ks", "fit_intercept"), [([6], True), ([6, 4, 2, 1], True), ([6, 2], False)])
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
    objectives = ([each.objective for each in solutions] for solutions in (found, expected))
    np.testing.assert_allclose(*objectives, rtol=1e-6)


@pytest.mark.parametrize(
    ("ks", "lam", "b"), [([4], 0.0, True), ([30, 20, 10, 5, 2, 1, 0], 1e-3, True), ([20, 5, 1], 1e-1, False)]
)
def test_the_search_takes_the_same_way(data, ks, lam, b):
    solutions = [solve(each, [lam], ks, Exchange(effort="fast")) for each in problems(data, lam, b)]
    for found, expected in zip(*solutions, strict=True):
        np.testing.assert_array_equal(found.support, expected.support)
        np.testing.assert_allclose(found.coef, expected.coef, atol=1e-8)
        np.testing.assert_allclose(found.intercept, expected.intercept, atol=1e-8)
        if lam > 0:  # rounding errors decide about a step more or less
            assert abs(found.n_iter - expected.n_iter) <= 2


@pytest.mark.parametrize("whole_blocks", [False, True])
def test_folds_share_out_every_row(data, whole_blocks):
    samples = BlockSamples(cut(*data, sizes=(50, 60, 40)), np.arange(2), np.ones(2))
    cv, n_repeats = (BlockKFold(3), 1) if whole_blocks else (3, 2)
    model = SparseSVCCV(cv=cv, repeats=n_repeats, random_state=4)
    folds, seed = FoldsInBlocks(model, samples, weighted=not whole_blocks), model._fold_seed()
    train = [samples.part for samples in folds.parts()]
    expected = [Part(3, fold, False, seed + r, whole_blocks) for r in range(n_repeats) for fold in range(3)]
    assert train == expected
    assert folds.tests == [part._replace(inside=True) for part in train]
    views = [[BALANCED._replace(part=part) for part in parts] for parts in (folds.tests, train)]
    sizes = [[BlockDesign(samples.X, view).n_samples for view in each] for each in views]
    assert np.sum(sizes, axis=0).tolist() == [200] * len(folds)
    assert sum(sizes[0]) == 200 * n_repeats
    w = np.ones(200) if whole_blocks else data[2]
    assert folds.n_tested == pytest.approx(w.sum() ** 2 / (w @ w))
    assert folds.test_ratio == pytest.approx(np.mean(np.divide(*sizes)))
    model.cv, model.repeats = (cv, 2) if whole_blocks else (None, 1)
    with pytest.raises(ValueError, match="would repeat the same folds") if whole_blocks else nullcontext():
        assert len(FoldsInBlocks(model, samples, False)) == 5


def test_answers_are_added_in_the_order_of_the_blocks():
    assert add_up([(1e16, np.ones(1)), (1.0, np.ones(1)), (-1e16, np.ones(1))]) == (0.0, 3.0)


IDX = np.array([0, 2, 5])  # two columns and the intercept of a panel of five


def test_tags_are_equal_for_the_same_active_rows_and_differ_for_others(few):
    remote = as_rows(few)[0].problem.design.panel(np.array([4, 1, 3, -1, -1]), 5)
    rng = np.random.default_rng(0)
    known = {}
    for _ in range(60):
        u = rng.standard_normal(3) * 0.7
        active, tags = [], []
        for panel in remote.objects:
            resid = panel.values[-1] - u @ panel.values[IDX]
            active.append(resid > 0)
            tags.append(sums.evaluate(panel, IDX, u).tag)
            assert sums.full_gram(panel, IDX, u)[1] == tags[-1]
        rows = np.concatenate(active).tobytes()
        assert known.setdefault(tuple(tags), rows) == rows
    assert len(known) > 20
    assert len(set(known.values())) == len(known)


def test_slopes_and_active_rows_of_a_support(few):
    remote, here = as_rows(few)
    columns, u = np.array([5, 0]), np.array([0.5, -0.4, 0.2])
    slopes, n_active = remote.problem.design.slopes(columns, u)
    np.testing.assert_allclose(slopes, here.descent(here.residual(columns, u)), atol=1e-12)
    assert n_active == here.count_active(columns, u)


def test_a_gradient_given_away_may_be_changed(few):
    design = BlockDesign(cut(*few), BALANCED)
    beta = np.linspace(-1, 1, 7)
    loss, gradient = design.loss_and_gradient(beta)
    gradient[:] = 0.0
    again = design.loss_and_gradient(beta)
    assert again[0] == loss
    assert again[1].any()
    assert design.loss_and_gradient(2 * beta)[0] != loss  # and what is remembered is remembered of its point


def test_columns_that_differ_in_hidden_rows_alone_are_equal(few):
    X, codes, repeats = few
    X = np.column_stack([X, X[:, 3], np.zeros((30, 2))])
    X[repeats == 0, 6] += 9.0
    design = BlockDesign(cut(X, codes, repeats), BALANCED)
    np.testing.assert_array_equal(distinct_columns(design), [0, 1, 2, 3, 4, 5, 7])
    np.testing.assert_array_equal(design.largest(), np.abs(X[repeats > 0]).max(axis=0))
    X[0, 6] += 1.0
    design = BlockDesign(cut(X, codes, repeats), BALANCED)
    np.testing.assert_array_equal(distinct_columns(design), np.arange(8))


def test_a_subset_of_a_subset_of_standardised_columns_is_counted_within_it(few, rng):
    X, codes, repeats = few
    mean, spread = rng.standard_normal(6), rng.uniform(0.5, 2, 6)
    scaled = (X - mean) / spread
    design = BlockDesign(cut(X, codes, repeats), BALANCED).standardized(mean, spread)
    twice = np.average((scaled - mean) / spread, axis=0, weights=repeats)
    np.testing.assert_allclose(design.standardized(mean, spread).moments.mean, twice, atol=1e-12)
    design = design.take(np.array([5, 3, 1])).take(np.array([2, 0]))
    np.testing.assert_allclose(design.moments.mean, np.average(scaled[:, [1, 5]], axis=0, weights=repeats))
    view = BALANCED._replace(center=mean, scale=spread)
    shown = weigh(Block(0, X, codes, repeats), view)
    np.testing.assert_allclose(show_columns(shown, view, np.array([4, 2])), scaled[:, [4, 2]])


def test_rows_are_dealt_class_by_class_by_the_seed_and_blocks_begin_to_deal_in_turn():
    codes = np.repeat([0, 1], [90, 9])
    inside = [codes[Part(3, fold, True).rows(0, codes)] for fold in range(3)]
    assert [np.bincount(c).tolist() for c in inside] == [[30, 3]] * 3
    codes = np.zeros(9, dtype=int)
    dealt = [Part(3, 0, True, seed).rows(0, codes) for seed in range(8)]
    assert len({rows.tobytes() for rows in dealt}) > 4
    # one row of a class in each block: they go to different folds
    lonely = [[Part(3, fold, True).rows(i, np.zeros(1, int))[0] for fold in range(3)] for i in range(3)]
    np.testing.assert_array_equal(lonely, np.eye(3, dtype=bool))


def test_predictions_are_counted_by_true_class_then_by_the_one_predicted():
    X = np.array([[1.0], [2.0], [-1.0], [-2.0], [3.0]])
    codes = np.array([1, 0, 0, 0, 1])
    repeats = np.array([1.0, 2.0, 4.0, 0.0, 8.0])
    block, part = Block(0, X, codes, repeats), Part(1, 0, True)
    machine = np.array([0]), np.array([[[1.0]], [[-1.0]]]), np.array([[0.0], [0.0]])
    weighted = sums.confusions(block, part, *machine, 2, "ovo", True)
    np.testing.assert_array_equal(weighted[0], [[4, 2], [0, 9]])
    np.testing.assert_array_equal(weighted[1], [[2, 4], [9, 0]])
    counted = sums.confusions(block, part, *machine, 2, "ovo", False)
    np.testing.assert_array_equal(counted[0], [[1, 1], [0, 2]])
    assert sums.class_totals(block, part, 2).tolist() == [[0, 0], [2, 2]]
    for weighted, inside, found in [
        (1, True, [8, 15 / 8, 85 / 64]),
        (0, True, [1, 4, 4]),
        (1, False, [0] * 3),
    ]:
        np.testing.assert_allclose(sums.weight_sums(block, part._replace(inside=inside), weighted), found)
    small = block._replace(repeats=repeats / 16)
    np.testing.assert_allclose(sums.weight_sums(small, part, True), [0.5, 15 / 8, 85 / 64])


def test_more_classes_than_a_byte_holds_keep_their_codes():
    np.testing.assert_array_equal(sums.to_codes(np.array([0, 598, 300]), np.arange(0, 600, 2)), [0, 299, 150])


def test_a_look_at_a_block_counts_its_classes_by_rows_and_by_weight():
    X = np.arange(8.0).reshape(4, 2)
    found = examine(Block(3, X, np.array([5, 7, 5, 5]), np.array([1.0, 2.0, 0.0, 4.0])))
    assert (found.shape, found.unusable, found.complaint, found.bad_weight) == ((4, 2), None, "", None)
    np.testing.assert_array_equal(found.classes, [5, 7])
    np.testing.assert_array_equal(found.counts, [3, 1])
    np.testing.assert_array_equal(found.totals, [5.0, 2.0])
    large = Block(0, np.full((5, 3), 1e308), np.zeros(5, int), np.ones(5))
    assert examine(large).unusable is None  # though their sum overflows
    for bad, what in [(np.inf, "infinity"), (np.nan, "NaN")]:
        X[1:, 1] = bad, -np.inf, 0.0
        found = examine(Block(3, X[:, [0, 1, 1]], np.ones(4), np.array([1, -2.0, 0, 0])))
        assert found[3:6] == ((what, 1), "", (1, -2.0))
    for y, words in [
        ([[0], [1], [1], [1]], "y should be a 1d array, got an array of 2 dimensions"),
        ([1, "a", 2, "b"], "y holds labels that cannot be put in order"),
        ([None, "a", "b", "a"], "y contains missing values"),
        ([pd.NA, "a", "b", "a"], "y contains missing values"),
        ([0.0, np.nan, 1.0, 1.0], "y contains NaN"),
        ([0.0, 1.0, 1.5, 2.5], "y holds 1.5, which is not a class"),
    ]:
        y = np.array(y, object if "b" in map(str, y) else None)
        found = examine(Block(0, np.ones((4, 1)), y, np.ones(4)))
        assert words in found.complaint
        assert len(found.classes) == len(found.counts) == 0
    with pytest.raises(TypeError, match=r"X holds blocks of type numpy\.MaskedArray"):
        examine(large._replace(X=np.ma.ones((5, 3))))
