"""S_k of units: the k of largest norm over all machines, among coefficients of the right signs."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from penalised_problems import make_units

from kmargin.core.sparsity import UnitSparsity, project, project_units_by_sorting
from kmargin.core.units import Units

# few distinct values, so that ties are common; and others, whose squares add up without rounding
entries = st.one_of(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), st.integers(-400, 400).map(lambda i: i / 4))


@st.composite
def cases(draw):
    """A matrix, units of its columns in some order, and a k with room for those that are always in."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    n_features, n_machines = sum(sizes) + draw(st.integers(0, 2)), draw(st.integers(1, 3))
    rows = st.lists(entries, min_size=n_features, max_size=n_features)
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


@given(cases())
def test_the_right_signs_are_the_nearest_point_among_all_choices_of_zeros(case):
    W, units, _ = case
    everything = make_units([W.shape[1]], signs=units.signs)
    projected = UnitSparsity(everything).project(W, 1)
    for machine, row in zip(W, projected, strict=True):
        for entry, sign, new in zip(machine, units.signs, row, strict=True):
            allowed = [value for value in (entry, 0.0) if value * sign >= 0]
            assert (entry - new) ** 2 == min((entry - value) ** 2 for value in allowed)


@given(cases())
def test_the_projection_and_its_naive_twin_agree(case):
    W, units, k = case
    np.testing.assert_array_equal(UnitSparsity(units).project(W, k), project_units_by_sorting(W, k, units))


@given(cases())
def test_projecting_twice_is_projecting_once(case):
    W, units, k = case
    once = UnitSparsity(units).project(W, k)
    np.testing.assert_array_equal(UnitSparsity(units).project(once, k), once)


@given(st.lists(entries, min_size=1, max_size=8), st.integers(0, 9))
def test_single_columns_of_one_machine_are_S_k(row, k):
    W = np.array([row])
    np.testing.assert_array_equal(
        UnitSparsity(Units.of_columns(len(row))).project(W, k)[0], project(np.array(row), k)
    )


def test_what_is_always_in_counts_and_stays_however_small():
    W = np.array([[3.0, 0.1, 2.0], [3.0, 0.0, 2.0]])
    units = make_units([1, 1, 1], fixed=[1])
    np.testing.assert_array_equal(UnitSparsity(units).project(W, 2), [[3.0, 0.1, 0.0], [3.0, 0.0, 0.0]])
    np.testing.assert_array_equal(UnitSparsity(units).project(W, 1), [[0.0, 0.1, 0.0], [0.0, 0.0, 0.0]])


def test_units_of_the_same_norm_are_kept_in_index_order():
    W = np.array([[1.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    projected = UnitSparsity(Units.of_columns(3)).project(W, 2)
    np.testing.assert_array_equal(projected, [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])


def test_a_norm_counts_only_what_has_the_right_sign():
    W = np.array([[-9.0, 1.0]])
    projected = UnitSparsity(make_units([1, 1], signs=[1, 0])).project(W, 1)
    np.testing.assert_array_equal(projected, [[0.0, 1.0]])


def test_S_k_holds_all_only_if_nothing_is_asked_of_any_column():
    assert UnitSparsity(make_units([2, 1])).holds_all(2)
    assert not UnitSparsity(make_units([2, 1])).holds_all(1)
    assert not UnitSparsity(make_units([2, 1], 4)).holds_all(2)
    assert not UnitSparsity(make_units([2, 1], signs=[0, 1, 0])).holds_all(2)
