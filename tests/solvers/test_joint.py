"""Machines that share what k counts: units of columns, scored, exchanged and fitted in all of them."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from kmargin import Exchange
from kmargin.core.jit import meter
from kmargin.core.problem import ArrayProblem
from kmargin.core.units import Units
from kmargin.data.design import make_design
from kmargin.solvers.refit.folded import Measured
from kmargin.solvers.refit.support import refit
from kmargin.solvers.search.path import OneSize
from kmargin.solvers.search.unit_panels import JointFound, Member, Promise, by_turns, rearrange
from kmargin.solvers.search.unit_path import JointGrid
from kmargin.solvers.search.unit_search import JointPanels
from kmargin.solvers.search.unit_working_set import JointSet
from kmargin.solvers.solution import Status

# sizes 1, 3, 2, 1, 2, 3; the last two columns belong to none
GROUPS = [[4], [0, 7, 9], [1, 2], [11], [3, 10], [5, 6, 8]]
N_FEATURES = 14


def make_problems(
    seed=0, n=60, p=N_FEATURES, n_classes=3, scheme="ovo", lam=0.02, form=np.asarray, intercept=True
):
    """The machines of a problem with several classes, rows weighted."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.6 * rng.standard_normal((n, 1))
    scores = X @ (rng.standard_normal((p, n_classes)) * (rng.random((p, 1)) < 0.6))
    y = np.argmax(scores + rng.standard_normal(scores.shape), axis=1)
    weights = rng.uniform(0.3, 2.0, n)
    pairs = (
        list(combinations(range(n_classes), 2)) if scheme == "ovo" else [(None, c) for c in range(n_classes)]
    )
    problems = []
    for negative, positive in pairs:
        rows = np.flatnonzero((y == positive) | (negative is None) | (y == negative))
        design = make_design(form(np.ascontiguousarray(X[rows])), intercept)
        s = weights[rows] * len(rows) / weights[rows].sum()
        problems.append(ArrayProblem(design, np.where(y[rows] == positive, 1.0, -1.0), s, lam, p))
    return problems


def make_units(groups=GROUPS, n_features=N_FEATURES, **others):
    return replace(Units.of_groups([np.array(group) for group in groups], n_features), **others)


def members_of(problems, weights=None):
    weights = np.ones(len(problems)) if weights is None else weights
    return [Member(Measured(p).design, float(w)) for p, w in zip(problems, weights, strict=True)]


def solve(problems, units, k, solver=None, rng=None):
    lams = [[problem.lam for problem in problems]]
    (solutions,) = (solver or Exchange()).iter_joint_grid(problems, lams, [k], units, rng)
    return solutions


def total(solutions):
    return sum(solution.objective for solution in solutions)


def columns_in(units, chosen):
    return units.columns_of(np.array(sorted(chosen), np.int64))


def lowest(problems, units, chosen):
    """The sum of the minima on some units."""
    return sum(refit(problem, columns_in(units, chosen))[2] for problem in problems)


def units_of(solutions, units):
    used = np.unique(np.concatenate([solution.support for solution in solutions]))
    return {j for j in range(units.n_units) if np.isin(columns_in(units, [j]), used).any()}


def quadratic_minimum(problem, columns, resid):
    """Of the quadratic that holds on the rows active at a point, over some columns and the intercept."""
    c = np.sqrt(problem.weights / len(problem.y))
    t = problem.y * c
    X = np.column_stack([problem.design.X[:, columns], np.ones(len(t))])
    A, b = (X * t[:, None])[resid > 0], c[resid > 0]
    ridge = np.diag(np.append(np.full(len(columns), problem.lam), 0.0))
    u = np.linalg.solve(A.T @ A + ridge, A.T @ b)
    return 0.5 * np.sum((b - A @ u) ** 2) + 0.5 * u @ ridge @ u


def residuals(problem, found, columns):
    """At the coefficients of one machine."""
    c = np.sqrt(problem.weights / len(problem.y))
    return c * (1 - problem.y * (problem.design.X[:, columns] @ found[:-1] + found[-1]))


@pytest.fixture(params=["groups", "columns"])
def fitted(request):
    """Three machines of different weights at their minimum on two units; what a direct minimisation says."""
    units = make_units() if request.param == "groups" else Units.of_columns(N_FEATURES)
    problems, weights = make_problems(), np.array([1.0, 0.5, 2.0])
    support = np.array([2, 4, 1])
    start = JointFound.start(support, units, 3)
    joint = JointSet(members_of(problems, weights), units, problems[0].lam, units.n_units, start, 1e-12)
    found = joint.found()

    def value_with(chosen):
        columns, now = columns_in(units, chosen), units.columns_of(found.support)
        return sum(
            weight * quadratic_minimum(problem, columns, residuals(problem, u, now))
            for problem, weight, u in zip(problems, weights, found.parts, strict=True)
        )

    return joint, units, value_with


class TestScores:
    def test_what_a_unit_costs_and_gains_is_what_a_direct_minimisation_says(self, fitted):
        joint, _, value_with = fitted
        outside = joint.outside()
        scores, inside, here = joint.score(outside), joint.support.tolist(), joint.value
        for a, unit in enumerate(inside):
            assert scores.drop[a] == pytest.approx(value_with(set(inside) - {unit}) - here, rel=1e-8)
        for b, unit in enumerate(outside):
            assert scores.gain[b] == pytest.approx(here - value_with({*inside, unit}), rel=1e-8)

    def test_so_is_what_every_exchange_of_one_unit_for_another_does(self, fitted):
        joint, _, value_with = fitted
        outside = joint.outside()
        scores, inside, here = joint.score(outside), joint.support.tolist(), joint.value
        for a, gone in enumerate(inside):
            for b, come in enumerate(outside):
                after = value_with(({*inside} - {gone}) | {int(come)})
                assert scores.change[a, b] == pytest.approx(after - here, rel=1e-7, abs=1e-12)

    def test_so_is_what_every_exchange_of_two_for_two_does(self, fitted):
        joint, _, value_with = fitted
        outside = joint.outside()
        joint.score(outside)
        lose, take = np.array([2, 0, 1]), np.arange(len(outside))[::-1]
        pairs_out, pairs_in = list(combinations(range(3), 2)), list(combinations(range(len(take)), 2))
        change = joint.score_pairs(outside, lose, take, pairs_out, pairs_in)
        inside, here = joint.support.tolist(), joint.value
        for r, out in enumerate(pairs_out):
            for s, come in enumerate(pairs_in):
                gone = {inside[lose[a]] for a in out}
                after = value_with(({*inside} - gone) | {int(outside[take[b]]) for b in come})
                assert change[r, s] == pytest.approx(after - here, rel=1e-7, abs=1e-12)

    def test_a_unit_that_is_fixed_costs_more_than_all_others_gain(self):
        units = make_units(fixed=np.array([False, False, True, False, False, False]))
        problems = make_problems()
        start = JointFound.start(np.array([2, 4]), units, 3)
        joint = JointSet(members_of(problems), units, 0.02, units.n_units, start, 1e-12)
        assert joint.score(joint.outside()).drop[0] == np.inf
        assert joint.score(joint.outside()).drop[1] < np.inf

    def test_a_column_that_says_what_the_support_says_gains_nothing(self):
        problems = make_problems(lam=0.0, n=80)
        doubled = []
        for problem in problems:
            X = problem.design.X.copy()
            X[:, 3] = X[:, 4]
            doubled.append(replace(problem, design=make_design(X)))
        units = make_units([[4, 0], [3], [3 + 3, 1]])
        start = JointFound.start(np.array([0]), units, 3)
        joint = JointSet(members_of(doubled), units, 0.0, units.n_units, start, 1e-12)
        gain = joint.score(joint.outside()).gain
        assert gain[0] == pytest.approx(0.0, abs=1e-12)
        assert gain[1] > 1e-6


class TestSearch:
    @pytest.mark.parametrize("scheme", ["ovo", "ovr"])
    @pytest.mark.parametrize("seed", range(8))
    def test_the_best_units_of_all_are_found_where_all_can_be_tried(self, seed, scheme):
        lam = [0.1, 0.01, 1e-3, 0.0][seed % 4]
        problems, units = make_problems(seed, scheme=scheme, lam=lam, n=50 + 10 * seed), make_units()
        k = 1 + seed % 5
        solutions = solve(problems, units, k)
        best = min(lowest(problems, units, chosen) for chosen in combinations(range(6), k))
        assert total(solutions) <= best * (1 + 1e-7) + 1e-12
        assert len(units_of(solutions, units)) <= k

    @pytest.mark.parametrize("seed", range(4))
    def test_a_claim_that_no_exchange_helps_is_true(self, seed):
        problems, units = make_problems(seed, n=80, p=40, lam=0.01), Units.of_columns(40)
        solutions = solve(problems, units, 6, Exchange(effort="thorough"))
        assert all(solution.status is Status.SWAP_OPTIMAL for solution in solutions)
        chosen = units_of(solutions, units)
        value = total(solutions)
        for gone in chosen:
            for come in set(range(40)) - chosen:
                assert lowest(problems, units, chosen - {gone} | {come}) >= value * (1 - 1e-8)

    def test_one_machine_with_single_columns_is_found_as_by_its_own_search(self):
        for seed in range(5):
            (problem, *_) = make_problems(seed, n=90, p=25, n_classes=2)
            units = Units.of_columns(25)
            alone = list(Exchange().iter_grid(problem, [problem.lam], [8, 4, 2], None))
            joint = list(Exchange().iter_joint_grid([problem], [[problem.lam]], [8, 4, 2], units, None))
            for one, (other,) in zip(alone, joint, strict=True):
                assert other.objective <= one.objective * 1.02

    def test_many_columns_are_searched_through_a_working_set(self):
        rng = np.random.default_rng(5)
        n, p = 150, 700
        X = rng.standard_normal((n, p))
        y = np.argmax(X[:, [3, 300, 650]] + 0.3 * rng.standard_normal((n, 3)), axis=1)
        problems = [
            ArrayProblem(make_design(X), np.where(y == c, 1.0, -1.0), np.ones(n), 0.01, p) for c in range(3)
        ]
        solutions = solve(problems, Units.of_columns(p), 3)
        assert units_of(solutions, Units.of_columns(p)) == {3, 300, 650}
        assert "renewed" in solutions[0].regime.value
        pairs = Units.of_groups([np.array([2 * j, 2 * j + 1]) for j in range(p // 2)], p)
        assert units_of(solve(problems, pairs, 3), pairs) == {1, 150, 325}

    def test_a_path_keeps_the_best_of_each_size_and_never_gets_worse_with_more(self):
        problems, units = make_problems(3, n=100), make_units()
        grid = Exchange().iter_joint_grid(problems, [[0.02] * 3, [0.002] * 3], [6, 4, 2, 1, 0], units, None)
        values = np.array([total(solutions) for solutions in grid]).reshape(2, 5)
        assert (np.diff(values, axis=1) >= -1e-12).all()
        assert (values[1] <= values[0] + 1e-12).all()

    def test_the_order_of_machines_does_not_matter(self):
        problems, units = make_problems(4), make_units()
        forth, back = solve(problems, units, 3), solve(problems[::-1], units, 3)
        assert units_of(forth, units) == units_of(back, units)
        for one, other in zip(forth, back[::-1], strict=True):
            np.testing.assert_allclose(one.dense_coef(), other.dense_coef(), rtol=1e-6, atol=1e-9)

    def test_a_machine_twice_is_a_machine_of_double_weight(self):
        problems, units = make_problems(6), make_units()
        twice = members_of([problems[0], problems[0], problems[1]])
        doubled = members_of(problems[:2], [2.0, 1.0])
        ends = []
        for members in (twice, doubled):
            start = JointFound.start(np.empty(0, np.int64), units, len(members))
            joint = JointSet(members, units, 0.02, units.n_units, start, 1e-10)
            joint.resize(3)
            ends.append((set(joint.support.tolist()), joint.value))
        assert ends[0][0] == ends[1][0]
        assert ends[0][1] == pytest.approx(ends[1][1], rel=1e-9)

    def test_the_objective_reported_is_that_of_the_coefficients(self):
        problems, units = make_problems(7, intercept=False), make_units()
        for problem, solution in zip(problems, solve(problems, units, 3), strict=True):
            assert solution.objective == pytest.approx(problem.loss(solution.dense_coef()), rel=1e-12)
            assert solution.intercept == 0.0

    def test_sparse_rows_give_what_dense_ones_give(self):
        units = make_units()
        dense, sparse = (solve(make_problems(8, form=form), units, 3) for form in (np.asarray, csr_matrix))
        for one, other in zip(dense, sparse, strict=True):
            np.testing.assert_array_equal(one.support, other.support)
            np.testing.assert_allclose(one.coef, other.coef, rtol=1e-8)


class TestFixed:
    def test_what_is_fixed_is_in_and_counts(self):
        problems = make_problems(9)
        for unit in range(6):
            units = make_units(fixed=np.arange(6) == unit)
            solutions = solve(problems, units, 2)
            used = units_of(solutions, units)
            assert unit in used
            assert len(used) <= 2
            best = min(lowest(problems, units, {unit, other}) for other in range(6) if other != unit)
            assert total(solutions) <= best * (1 + 1e-7)

    def test_only_what_is_fixed_is_in_where_there_is_room_for_no_more(self):
        units = make_units(fixed=np.arange(6) < 2)
        problems = make_problems(10)
        solutions = solve(problems, units, 2)
        assert units_of(solutions, units) == {0, 1}
        assert total(solutions) == pytest.approx(lowest(problems, units, {0, 1}), rel=1e-8)

    def test_a_column_of_no_unit_is_never_in(self):
        solutions = solve(make_problems(11), make_units(), 6)
        assert not np.isin(np.concatenate([s.support for s in solutions]), [12, 13]).any()


class TestUnits:
    def test_units_without_columns_are_gone(self):
        units = make_units().without(np.array([4, 9, 1]))
        assert [columns_in(units, [j]).tolist() for j in range(units.n_units)] == [
            [0, 7], [2], [11], [3, 10], [5, 6, 8],
        ]  # fmt: skip

    def test_plain_units_are_single_columns_that_come_and_go_as_they_please(self):
        plain = Units.of_columns(5)
        assert plain.are_plain
        assert not plain.without(np.array([2])).are_plain
        assert not replace(plain, fixed=np.arange(5) == 1).are_plain
        assert not replace(plain, signs=np.array([0.0, 0, 1, 0, 0])).are_plain
        assert not Units.of_groups([np.array([0, 1]), np.array([2])], 3).are_plain

    def test_totals_are_sums_over_the_columns_of_a_unit(self):
        values = np.arange(14.0)
        np.testing.assert_array_equal(make_units().total(values), [4, 16, 3, 11, 13, 19])


def test_a_fit_beyond_all_numbers_ends_no_less(monkeypatch):
    units, problems = make_units(), make_problems(12)
    start = JointFound.start(np.arange(6), units, 3)
    joint = JointSet(members_of(problems), units, 0.02, units.n_units, start, 1e-10)

    def overflow(stack, far, idx, coefs, give_up, limit, tol, values):
        values[:] = np.inf
        return np.inf, 1

    monkeypatch.setattr("kmargin.solvers.search.unit_panels.refit_each", overflow)
    with meter.forced(False):
        joint.resize(2)
    assert len(joint.support) == 2
    assert joint.value == np.inf


@pytest.mark.parametrize("groups", [GROUPS, [[0, 7], [1, 2], [3, 10]]], ids=["unequal", "equal"])
def test_a_group_promises_what_its_columns_gain_together(groups, rng):
    problem, units = make_problems()[0], make_units(groups)
    promise, slopes = Promise(Measured(problem).design, units), rng.standard_normal(N_FEATURES)
    promise.go_to(0.02)
    weights = problem.weights / problem.weights.sum()
    A = (problem.design.X - weights @ problem.design.X) * np.sqrt(weights)[:, None]
    gains = np.ones(units.n_units)
    promise.add_gains(slopes, 0.5, gains)
    for unit, gain in enumerate(2 * (gains - 1)):
        columns = columns_in(units, [unit])
        curvature = A[:, columns].T @ A[:, columns] + 0.02 * np.eye(len(columns))
        step = np.linalg.solve(curvature, slopes[columns])
        assert gain == pytest.approx(slopes[columns] @ step, rel=1e-6)


def test_units_of_several_lists_take_turns():
    lists = [np.array([7, 3, 1]), np.array([3, 9]), np.array([], np.int64)]
    assert by_turns(lists).tolist() == [7, 3, 9, 1]


def test_a_support_that_was_searched_from_in_vain_is_not_searched_again(monkeypatch):
    problems, units = make_problems(), make_units()
    grid = JointGrid(problems, [1.0] * 3, [1.0] * 3, units, [3], Exchange()._effort())
    start = JointFound.start(np.array([0, 1, 2]), units, 3)
    first = grid.exchange(0.02, 3, start, grid.effort)
    tries = []
    monkeypatch.setattr(JointSet, "search", lambda *_, **__: tries.append(1))
    again = grid.exchange(0.02, 3, first, grid.effort)
    assert tries == []
    assert again.value == pytest.approx(first.value, rel=1e-12)
    grid.exchange(0.02, 3, first, grid.effort._replace(max_swaps=99))
    assert tries, "another effort may find what this one did not"


@pytest.mark.parametrize("compiling", [False, True], ids=["interpreted", "compiled"])
@pytest.mark.parametrize(
    ("units", "size"),
    [(Units.of_columns(N_FEATURES), 6), (Units.of_columns(N_FEATURES), N_FEATURES), (make_units(), 5),
     (make_units(fixed=np.arange(6) == 5), 6)],
    ids=["working set", "all", "groups", "groups, one fixed"],
)  # fmt: skip
def test_machines_in_one_memory_do_what_each_does_in_its_own(monkeypatch, units, size, compiling):
    problems, weights = make_problems(3), np.array([1.0, 0.5, 2.0])

    def search():
        start = JointFound.start(np.array([0, 5]), units, 3)
        joint = JointSet(members_of(problems, weights), units, 0.02, size, start, 1e-9)
        joint.resize(4)
        joint.settle(Exchange()._effort())
        joint.resize(3)
        joint.settle(Exchange()._effort())
        scores = joint.score(joint.outside())
        return joint.found(), (scores.drop, scores.gain, scores.change)

    with meter.forced(compiling):
        together, scores = search()
        monkeypatch.setattr(JointPanels, "_make_stack", lambda self: None)
        alone, others = search()
    np.testing.assert_array_equal(together.support, alone.support)
    assert together.values == alone.values
    for ours, theirs in zip((*together.parts, *scores), (*alone.parts, *others), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_unit_is_found_that_promises_only_where_another_is_gone(rng):
    cause = rng.standard_normal(60)
    blurred = cause + 0.15 * rng.standard_normal(60)
    X = np.column_stack([blurred, cause, rng.standard_normal((60, 200))])
    problems = [
        ArrayProblem(make_design(X, True), np.where(cause > edge, 1.0, -1.0), np.ones(60), 0.02, 202)
        for edge in (-0.5, 0.5)
    ]
    units, effort = Units.of_columns(202), Exchange()._effort()
    for looks, expected in ((0, 0), (8, 1)):
        start = JointFound.start(np.array([0]), units, 2)
        joint = JointSet(members_of(problems), units, 0.02, 9, start, 1e-9)
        joint.settle(effort._replace(max_double_swaps=looks))
        assert joint.support.tolist() == [expected]


def test_after_an_exchange_each_column_has_its_place_and_its_coefficient(rng):
    units = make_units()
    place_of = rng.permutation(N_FEATURES)
    for _ in range(20):
        support = rng.permutation(units.n_units)[: rng.integers(1, 6)]
        lose = rng.permutation(len(support))[: rng.integers(0, len(support) + 1)]
        outside = np.setdiff1d(np.arange(units.n_units), support)
        take = rng.permutation(outside)[: rng.integers(0, len(outside) + 1)]
        coefs = rng.standard_normal((2, len(units.columns_of(support)) + 1))
        chosen, idx, moved = rearrange(units.starts, units.columns, place_of, 99, support, coefs, lose, take)
        np.testing.assert_array_equal(chosen, [*np.delete(support, lose), *take])
        np.testing.assert_array_equal(idx, [*place_of[units.columns_of(chosen)], 99])
        for before, after in zip(coefs, moved, strict=True):
            by_column = dict(zip(units.columns_of(support), before[:-1], strict=True))
            new = set(units.columns_of(take))
            wanted = [0.0 if j in new else by_column[j] for j in units.columns_of(chosen)]
            np.testing.assert_array_equal(after, [*wanted, before[-1]])


@pytest.mark.parametrize(("noise", "is_clear"), [(0.1, True), (30.0, False)])
def test_sizes_beside_are_left_alone_only_where_a_support_stands_far_above_all_others(
    monkeypatch, rng, noise, is_clear
):
    X = rng.standard_normal((80, 600))
    y = np.where(X[:, :4].sum(axis=1) + noise * rng.standard_normal(80) > 0, 1.0, -1.0)
    problem = ArrayProblem(make_design(X, True), y, np.ones(80), 0.05, 600)
    units, asides = Units.of_groups(list(np.arange(600).reshape(-1, 2)), 600), []
    monkeypatch.setattr(OneSize, "_go_aside", lambda self, lam, k: asides.append(k))
    solve([problem], units, 2)
    assert asides == ([] if is_clear else [2])


def test_what_is_found_does_not_depend_on_what_panels_were_used_for_before(rng):
    X = rng.standard_normal((60, 40))
    y = np.where(X[:, :6].sum(axis=1) + 2 * rng.standard_normal(60) > 0, 1.0, -1.0)
    problem = ArrayProblem(make_design(X, True), y, np.ones(60), 0.02, 40)
    units, effort = Units.of_groups(np.arange(40).reshape(20, 2), 40), Exchange()._effort()
    start, other = (JointFound.start(np.array(support), units, 1) for support in ([0, 7, 9], [11, 12, 19]))
    new = JointSet(members_of([problem]), units, 0.02, 6, start, 1e-9, capacity=9)
    used = JointSet(members_of([problem]), units, 0.5, 8, other, 1e-9, capacity=9)
    assert used.has_room(6)
    used.settle(effort)
    used.renew()
    used.start_again(0.02, start, 6)
    for joint in (new, used):
        joint.renew()
    np.testing.assert_array_equal(new.outside(), used.outside())
    for joint in (new, used):
        joint.settle(effort)
    np.testing.assert_array_equal(new.support, used.support)
    np.testing.assert_allclose(new.coefs, used.coefs, rtol=1e-8, atol=1e-12)
    assert new.value == pytest.approx(used.value, rel=1e-12)
