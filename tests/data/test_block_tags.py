"""What blocks answer and remember: tags of active rows, hidden rows, folds, counted predictions."""

import numpy as np
import pytest
from dask_data import BALANCED, cut

from kmargin.core.arrays import HOST
from kmargin.core.problem import ArrayProblem
from kmargin.data.blocks import Block, sums
from kmargin.data.blocks.problem import BlockDesign, block_problem
from kmargin.data.blocks.sums import Part, examine, show_columns, weigh
from kmargin.data.design.dense import DenseDesign
from kmargin.solvers.refit.rows import make_rows


@pytest.fixture
def data():
    """Some rows have no weight."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 6))
    codes = (X[:, 0] + rng.standard_normal(30) > 0).astype(int)
    repeats = rng.uniform(0.5, 2.0, 30)
    repeats[[2, 11, 20]] = 0.0
    return X, codes, repeats


def both(data, fit_intercept=True):
    """The same rows in blocks and in memory, as a search sees them; here those of weight zero are gone."""
    X, codes, repeats = data
    kept = repeats > 0
    weights = repeats[kept] * kept.sum() / repeats.sum()
    problem = ArrayProblem(
        DenseDesign(X[kept], fit_intercept), np.where(codes[kept], 1.0, -1.0), weights, 0.1
    )
    return make_rows(block_problem(cut(*data), BALANCED, 0.1, fit_intercept)), make_rows(problem)


IDX = np.array([0, 2, 5])  # two columns and the intercept of a panel of five


def test_places_without_a_column_are_empty(data):
    remote, here = both(data)
    parts = remote.problem.design.panel(np.array([4, -1, 3, -1, -1]), 5).things
    values = np.hstack([panel.values for panel in parts])
    expected = np.vstack([here.columns(np.array([4, 3])).T, here.c])
    np.testing.assert_allclose(values[[0, 2, 5, 6]], expected, atol=1e-12)
    assert not values[[1, 3, 4]].any()


def test_tags_are_equal_for_the_same_active_rows_and_differ_for_others(data):
    remote = both(data)[0].problem.design.panel(np.array([4, 1, 3, -1, -1]), 5)
    rng = np.random.default_rng(0)
    known = {}
    for _ in range(60):
        u = rng.standard_normal(3) * 0.7
        active, tags = [], []
        for panel in remote.things:
            resid = panel.values[-1] - u @ panel.values[IDX]
            active.append(resid > 0)
            tags.append(sums.evaluate(panel, IDX, u).tag)
            assert sums.full_gram(panel, IDX, u)[1] == tags[-1]
        assert (
            known.setdefault(tuple(tags), np.concatenate(active).tobytes())
            == np.concatenate(active).tobytes()
        )
    assert len(known) > 20
    assert len(set(known.values())) == len(known)


def test_as_many_active_rows_are_not_the_same_active_rows():
    values = np.ones((3, 4))
    panel = sums.PanelBlock(values, np.random.default_rng([1, 0]).random(4))
    one = sums._tag(HOST, panel, np.array([1.0, 1.0, -1.0, -1.0]))
    other = sums._tag(HOST, panel, np.array([1.0, -1.0, 1.0, -1.0]))
    assert one != other
    assert one == panel.tags[0] + panel.tags[1]
    at_the_margin = np.array([1.0, -1.0, 0.0, -1.0])
    assert sums._tag(HOST, panel, at_the_margin) == panel.tags[0]


def test_slopes_and_active_rows_of_a_support(data):
    remote, here = both(data)
    columns, u = np.array([5, 0]), np.array([0.5, -0.4, 0.2])
    slopes, n_active = remote.problem.design.slopes(columns, u)
    np.testing.assert_allclose(slopes, here.descent(here.residual(columns, u)), atol=1e-12)
    assert n_active == here.count_active(columns, u)


def test_a_gradient_given_away_may_be_changed(data):
    design = BlockDesign(cut(*data), BALANCED)
    beta = np.linspace(-1, 1, 7)
    loss, gradient = design.loss_and_gradient(beta)
    gradient[:] = 0.0
    again = design.loss_and_gradient(beta)
    assert again[0] == loss
    assert again[1].any()
    assert design.loss_and_gradient(2 * beta)[0] != loss  # and what is remembered is remembered of its point


def test_columns_that_differ_in_hidden_rows_alone_are_equal(data):
    X, codes, repeats = data
    X = np.column_stack([X, X[:, 3]])
    X[repeats == 0, 6] += 1.0
    design = BlockDesign(cut(X, codes, repeats), BALANCED)
    np.testing.assert_array_equal(design.distinct_columns(), np.arange(6))
    X[0, 6] += 1.0
    design = BlockDesign(cut(X, codes, repeats), BALANCED)
    np.testing.assert_array_equal(design.distinct_columns(), np.arange(7))


def test_a_subset_of_a_subset_is_counted_within_it(data):
    design = BlockDesign(cut(*data), BALANCED).take(np.array([5, 3, 1])).take(np.array([2, 0]))
    X, _, repeats = data
    np.testing.assert_allclose(design.moments.mean, np.average(X[:, [1, 5]], axis=0, weights=repeats))


def test_some_columns_of_a_scaled_view_have_their_own_scales(data, rng):
    X, codes, repeats = data
    view = BALANCED._replace(center=rng.standard_normal(6), scale=rng.uniform(1, 3, 6))
    shown = weigh(Block(0, X, codes, repeats), view)
    columns = np.array([4, 2])
    expected = ((X - view.center) / view.scale)[:, columns]
    np.testing.assert_allclose(show_columns(shown, view, columns), expected)


def test_folds_depend_on_the_seed_and_blocks_begin_to_deal_in_turn():
    codes = np.zeros(9, dtype=int)
    dealt = [Part(3, 0, True, seed).rows(0, codes) for seed in range(8)]
    assert len({rows.tobytes() for rows in dealt}) > 4
    # one row of a class in each block: they go to different folds
    lonely = [
        [bool(Part(3, fold, True).rows(number, np.zeros(1, int))[0]) for fold in range(3)]
        for number in range(3)
    ]
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
    totals = sums.class_totals(block, part._replace(n_folds=2), 2)
    assert totals.sum() == 4


def test_more_classes_than_a_byte_holds_keep_their_codes():
    classes = np.arange(0, 600, 2)
    np.testing.assert_array_equal(sums.to_codes(np.array([0, 598, 300]), classes), [0, 299, 150])


def test_a_look_at_a_block_counts_its_classes_by_rows_and_by_weight():
    X = np.arange(8.0).reshape(4, 2)
    found = examine(Block(3, X, np.array([5, 7, 5, 5]), np.array([1.0, 2.0, 0.0, 4.0])))
    assert (found.shape, found.unusable, found.complaint, found.bad_weight) == ((4, 2), None, "", None)
    np.testing.assert_array_equal(found.classes, [5, 7])
    np.testing.assert_array_equal(found.counts, [3, 1])
    np.testing.assert_array_equal(found.totals, [5.0, 2.0])


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_a_look_at_a_block_finds_what_is_no_number(value, what):
    X = np.ones((5, 3))
    X[2, 1] = value
    block = Block(0, X, np.zeros(5, int), np.ones(5))
    assert examine(block).unusable == (what, 1)
    assert examine(block._replace(X=np.full((5, 3), 1e308))).unusable is None  # a sum may overflow


def test_a_look_at_a_block_finds_labels_that_are_no_classes():
    block = Block(0, np.ones((3, 1)), np.array([0.0, 1.5, 1.0]), np.ones(3))
    assert "y holds 1.5, which is not a class" in examine(block).complaint
    assert "NaN" in examine(block._replace(codes=np.array([0.0, np.nan, 1.0]))).complaint
    assert examine(block._replace(codes=np.array([0.0, 2.0, 1.0]))).complaint == ""
