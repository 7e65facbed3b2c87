"""S_k: the nearest point with at most k nonzero features, or units of features."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from penalised_problems import make_units

from kmargin.core.sparsity import UnitSparsity, count_kept, normalizer, project, select_largest
from kmargin.core.units import Units

# few distinct values, so that ties are common; and any finite ones
entries = st.one_of(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), st.floats(-1e6, 1e6))
vectors = hnp.arrays(np.float64, st.integers(1, 9), elements=entries)


def project_by_sorting(beta, k, n_features=None):
    projected = beta.copy()
    projected[np.argsort(-np.abs(beta[:n_features]), kind="stable")[k:]] = 0.0
    return projected


def project_by_compiled(beta, k, n_features, guess=0.0):
    kept = np.empty(k, dtype=np.intp)
    work, candidates = np.empty(n_features), np.empty(n_features, dtype=np.intp)
    threshold, kept_sq, distance_sq = select_largest(beta, k, n_features, guess, work, candidates, kept)
    out = beta.copy()
    out[:n_features] = 0.0
    out[kept] = beta[kept]
    assert list(kept) == sorted(set(kept))
    assert k == 0 or threshold == np.sort(np.abs(beta[:n_features]))[::-1][k - 1]
    np.testing.assert_allclose(kept_sq, np.sum(beta[kept] ** 2), rtol=1e-12)
    np.testing.assert_allclose(distance_sq, np.sum((beta - out) ** 2), rtol=1e-12)
    return out


@given(vectors, st.integers(0, 10), st.booleans(), st.floats(0, 3))
def test_all_three_projections_agree_to_the_last_bit(v, k, has_intercept, guess):
    n_features = len(v) - int(has_intercept)
    expected = project_by_sorting(v, k, n_features)
    projected = project(v, k, n_features)
    np.testing.assert_array_equal(projected, expected)
    assert not np.shares_memory(projected, v)
    if k <= n_features:
        np.testing.assert_array_equal(project_by_compiled(v, k, n_features, guess), expected)


@given(hnp.arrays(np.float64, st.integers(1, 400), elements=entries), st.integers(0, 400), st.floats(0, 3))
def test_selection_agrees_with_sorting_on_long_vectors(v, k, guess):
    k = min(k, len(v))
    np.testing.assert_array_equal(project_by_compiled(v, k, len(v), guess), project_by_sorting(v, k))


def test_sparsity_levels_round_as_in_the_papers_tables():
    # Tables 3 and 4: s = 30 % of 9 features is 33.33 % observed, 22.5 % of 64 is 21.88 %, and so on
    assert [count_kept(0.3, 9), count_kept(0.225, 64), count_kept(0.93, 180)] == [6, 50, 13]
    assert [count_kept(0.997, 500), count_kept(0.999, 500), count_kept(0.0, 500)] == [2, 1, 500]


def test_normalizer_counts_what_may_differ_plus_one():
    assert normalizer(10, 3) == 8
    assert normalizer(10, 10) == 1


# few distinct values, so that ties are common; and others, whose squares add up without rounding
sums = st.one_of(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), st.integers(-400, 400).map(lambda i: i / 4))


@st.composite
def cases(draw):
    """A matrix, units of its columns in some order, and a k with room for those that are always in."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    n_features, n_machines = sum(sizes) + draw(st.integers(0, 2)), draw(st.integers(1, 3))
    rows = st.lists(sums, min_size=n_features, max_size=n_features)
    W = np.array(draw(st.lists(rows, min_size=n_machines, max_size=n_machines)))
    fixed = draw(st.sets(st.integers(0, len(sizes) - 1), max_size=2))
    signs = draw(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=n_features, max_size=n_features))
    units = make_units(sizes, n_features, fixed=fixed, signs=signs)
    order = draw(st.permutations(range(n_features)))
    columns = np.array(order)[: sum(sizes)]
    units = Units(units.starts, columns, units.fixed, units.signs)
    return W, units, draw(st.integers(len(fixed), len(sizes) + 1))


def nearest_by_brute_force(W, k, units):
    """The least squared distance over every choice of k units, each with every choice of zeros."""
    right = np.where(W * units.signs < 0, 0.0, W)  # the nearest point of an orthant, coordinate by coordinate
    always, others = np.flatnonzero(units.fixed), np.flatnonzero(~units.fixed)
    distances = []
    for chosen in combinations(others, min(k - len(always), len(others))):
        point = np.zeros_like(W)
        columns = units.columns_of(np.array([*always, *chosen], dtype=int))
        point[:, columns] = right[:, columns]
        distances.append(np.sum((W - point) ** 2))
    return min(distances)


@given(cases())
def test_projection_is_the_nearest_point_of_S_k(case):
    W, units, k = case
    before = W.copy()
    projected = UnitSparsity(units).project(W, k)
    np.testing.assert_array_equal(W, before)
    nonzero = [j for j in range(units.n_units) if projected[:, units.columns_of(np.array([j]))].any()]
    assert len(nonzero) <= k
    assert not np.any(projected * units.signs < 0)
    assert not projected[:, np.setdiff1d(np.arange(W.shape[1]), units.columns)].any()
    distance_sq, nearest = np.sum((W - projected) ** 2), nearest_by_brute_force(W, k, units)
    np.testing.assert_allclose(distance_sq, nearest, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(UnitSparsity(units).project(projected, k), projected)


@given(st.lists(sums, min_size=1, max_size=8), st.integers(0, 9))
def test_single_columns_of_one_machine_are_S_k(row, k):
    W = np.array([row])
    found = UnitSparsity(Units.of_columns(len(row))).project(W, k)[0]
    np.testing.assert_array_equal(found, project(np.array(row), k))


def test_S_k_holds_all_only_if_nothing_is_asked_of_any_column():
    assert UnitSparsity(make_units([2, 1])).holds_all(2)
    assert not UnitSparsity(make_units([2, 1])).holds_all(1)
    assert not UnitSparsity(make_units([2, 1], 4)).holds_all(2)
    assert not UnitSparsity(make_units([2, 1], signs=[0, 1, 0])).holds_all(2)
