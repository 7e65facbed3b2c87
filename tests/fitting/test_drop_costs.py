"""What features are worth, against every fit that could tell."""

import numpy as np
import pytest

from kmargin import SparseSVC
from kmargin.core.units import UnitRequest
from kmargin.data.samples.array import read_samples
from kmargin.fitting.drop_costs import find_stand_ins, improve_by_exchanges, relative_change
from kmargin.fitting.fit import Procedure
from kmargin.fitting.spec import LinearBlueprint


def table(n_classes=2, seed=0, n=60, p=8):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, 5] = X[:, 0] + 0.2 * rng.standard_normal(n)  # a stand-in for feature 0
    score = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.standard_normal(n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def objective(X, y, columns, **arguments):
    """The mean objective of machines on some columns."""
    model = SparseSVC(k="all" if len(columns) else 0, C=0.5, **arguments)
    return model.fit(X[:, columns] if len(columns) else X, y).objective_.mean()


def worths(X, y, used, request=UnitRequest(), n_best=3):  # noqa: B008 - a named tuple, never changed
    samples = read_samples(X, y, None, None)
    return find_stand_ins(LinearBlueprint(request=request), samples, 0.5, np.array(used), Procedure(), n_best)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_costs_are_those_of_fits_without_a_feature_and_with_each_other_in_its_place(n_classes):
    X, y = table(n_classes)
    used = [0, 1, 2]
    whole = objective(X, y, used)
    found = worths(X, y, used)
    assert [worth.columns.tolist() for worth in found] == [[0], [1], [2]]
    for worth in found:
        others = [j for j in used if j != worth.columns[0]]
        assert worth.cost == pytest.approx(objective(X, y, others) / whole - 1, rel=1e-6)
        every = {j: objective(X, y, [*others, j]) / whole - 1 for j in range(3, 8)}
        best = sorted(every, key=every.get)[:3]
        assert [int(s.columns[0]) for s in worth.stand_ins] == best
        np.testing.assert_allclose([s.cost for s in worth.stand_ins], [every[j] for j in best], rtol=1e-6)
    assert found[0].stand_ins[0].columns.tolist() == [5]


def test_groups_stand_in_for_groups_and_what_is_kept_has_no_stand_in():
    X, y = table()
    groups = [0, 1, 2, 3, 3, 0, 4, 4]
    request = UnitRequest(groups=groups, keep=[1], avoid=[2])
    found = worths(X, y, [0, 5, 1], request, n_best=2)
    assert [worth.columns.tolist() for worth in found] == [[0, 5], [1]]
    assert found[1].stand_ins == ()
    whole = objective(X, y, [0, 1, 5])
    expected = {tuple(g): objective(X, y, [1, *g]) / whole - 1 for g in ([3, 4], [6, 7])}
    assert {tuple(s.columns.tolist()) for s in found[0].stand_ins} == set(expected)
    for stand_in in found[0].stand_ins:
        assert stand_in.cost == pytest.approx(expected[tuple(stand_in.columns.tolist())], rel=1e-6)
    assert found[1].cost == pytest.approx(objective(X, y, [0, 5]) / whole - 1, rel=1e-6)


def test_where_all_features_are_in_nothing_can_stand_in_nor_can_one_without_effect():
    X, y = table()
    for p in (1, 3):
        found = worths(X[:, :p], y, range(p))
        assert {(worth.stand_ins, worth.cost_of_exchange) for worth in found} == {((), np.inf)}
    assert {len(worth.stand_ins) for worth in worths(X[:, :4], y, range(2))} == {2}
    one_more = worths(X[:, :4] * [1, 1, 1, 0], y, range(2))
    assert [[one.columns.tolist() for one in worth.stand_ins] for worth in one_more] == [[[2]], [[2]]]


def test_a_change_is_relative_and_infinite_from_nothing():
    pairs = ((3.0, 2.0), (1.0, 2.0), (1.0, 0.0), (0.0, 0.0))
    assert [relative_change(*pair) for pair in pairs] == [0.5, -0.5, np.inf, 0.0]


def test_a_single_feature_has_stand_ins_and_doing_without_leaves_the_intercept():
    X, y = table()
    (worth,) = worths(X, y, [0])
    assert worth.cost == pytest.approx(objective(X, y, []) / objective(X, y, [0]) - 1)
    best = min(range(1, 8), key=lambda j: objective(X, y, [j]))
    assert worth.stand_ins[0].columns.tolist() == [best]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_exchanges_are_made_until_no_single_one_lowers_the_objective_and_then_none(n_classes):
    X, y = table(n_classes)
    samples, used = read_samples(X, y, None, None), np.array([3, 4, 6])
    fit, found = improve_by_exchanges(LinearBlueprint(), samples, 0.5, used, Procedure())
    kept = [int(worth.columns[0]) for worth in found]
    own = objective(X, y, kept)
    assert np.mean([solution.objective for solution in fit.paths[0].solutions[0]]) == pytest.approx(own)
    exchanged = [[i for i in kept if i != out] + [j] for out in kept for j in set(range(8)) - set(kept)]
    assert all(objective(X, y, columns) >= own * (1 - 1e-6) for columns in exchanged)
    assert own < objective(X, y, used)
    assert {len(worth.stand_ins) for worth in found} == {2}, "by default"
    assert improve_by_exchanges(LinearBlueprint(), samples, 0.5, np.array(kept), Procedure())[0] is None
