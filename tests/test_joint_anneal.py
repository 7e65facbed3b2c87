"""Paths of machines that share their features, from the start to the last refit."""

from dataclasses import replace

import numpy as np
import pytest

from joint_data import SIGNS, make_machines, make_units
from kmargin import MM, SD, Status
from kmargin.design import DenseDesign
from kmargin.problem import ArrayProblem
from kmargin.solvers.annealed import best_end
from kmargin.solvers.measures import Measured
from kmargin.solvers.refit import refit
from kmargin.solvers.refit_signs import refit_with_signs
from kmargin.solvers.result import Ending
from kmargin.solvers.start import bare_solution, intercept_loss
from kmargin.units import Units

SOLVERS = {"mm": MM, "sd": SD}
COLUMNS = make_units([1] * 8)


def solve(solver, machines, units, ks, rng=None):
    """What a grid of a single C yields."""
    rng = np.random.default_rng(0) if rng is None else rng
    return list(solver.iter_joint_grid(machines, [[m.lam for m in machines]], ks, units, rng))


def beta_of(solution, machine):
    return np.append(solution.dense_coef(), solution.intercept)[: machine.design.n_parameters]


def used_units(solutions, units):
    used = np.any([s.dense_coef() != 0 for s in solutions], axis=0)
    return [j for j in range(units.n_units) if used[units.columns_of(np.array([j]))].any()]


CASES = {
    "columns": ({}, COLUMNS, 3),
    "one design": ({"alike": True}, COLUMNS, 3),
    "groups": ({}, make_units([3, 1, 2, 2]), 2),
    "always in": ({}, make_units([1] * 8, fixed=[2, 5]), 3),
    "signs": ({}, make_units([1] * 8, signs=SIGNS), 3),
    "never in": ({}, make_units([2, 2, 1], 8), 2),
    "weights": ({}, make_units([1] * 8, weights=np.array([0.2, 1.0, 3.0])), 3),
    "no intercept": ({"fit_intercept": False}, COLUMNS, 3),
    "no ridge": ({"lam": 0.0}, COLUMNS, 3),
    "k = p": ({}, COLUMNS, 8),
}


@pytest.mark.parametrize("ending", ["best", "projection"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("solver", SOLVERS.values())
def test_the_machines_share_at_most_k_units_and_their_objectives_are_true(solver, name, ending):
    options, units, k = CASES[name]
    machines = make_machines(**options)
    (solutions,) = solve(solver(ending=ending), machines, units, [k])
    assert len(used_units(solutions, units)) <= k
    for solution, machine in zip(solutions, machines, strict=True):
        assert solution.n_features == 8
        assert not np.any(solution.dense_coef() * units.signs < 0)
        assert np.isin(solution.support, units.columns).all()
        np.testing.assert_allclose(solution.objective, machine.loss(beta_of(solution, machine)), rtol=1e-10)
        if ending == "best":
            assert solution.objective <= intercept_loss(machine)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_each_machine_ends_at_its_minimum_on_the_common_support(solver):
    machines, units = make_machines(), make_units([3, 1, 2, 2])
    (solutions,) = solve(solver(), machines, units, [2])
    common = units.columns_of(np.array(used_units(solutions, units)))
    for solution, machine in zip(solutions, machines, strict=True):
        assert solution.ending is Ending.REFIT
        assert solution.objective == pytest.approx(refit(machine, common)[2], rel=1e-9)


def test_a_common_support_is_refitted_whole():
    """What is 0 in a machine's projection, but in the common support, has its share in the end."""
    (machine,) = make_machines(1)
    bare, measured = bare_solution(machine, Status.CONVERGED), Measured(machine)
    *_, value, _ = refit(machine, np.array([0]))
    own = replace(bare, support=np.array([0]), coef=np.array([0.1]), objective=0.5 * (value + bare.objective))
    found = best_end(machine, own, bare, measured, np.array([0, 7]))
    np.testing.assert_array_equal(found.support, [0, 7])
    assert found.objective == pytest.approx(refit(machine, np.array([0, 7]))[2], rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_the_records_are_those_of_all_machines(solver):
    machines = make_machines()
    (solutions,) = solve(solver(), machines, COLUMNS, [3])
    assert all(solution.trace == solutions[0].trace for solution in solutions)
    assert [record.rho for record in solutions[0].trace] == pytest.approx(
        1.2 ** np.arange(len(solutions[0].trace))
    )
    assert all(s.n_iter == sum(record.n_inner for record in s.trace) for s in solutions)
    assert all(record.gradient_sq < 1e-6 for record in solutions[0].trace)


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("solver", SOLVERS.values())
def test_one_machine_is_annealed_as_by_itself(solver, jit):
    (machine,), ks = make_machines(1), [8, 5, 2, 0]
    joint = solve(solver(jit=jit), [machine], Units.of_columns(8), ks)
    alone = list(solver(jit=jit).iter_path(machine, ks, np.random.default_rng(0)))
    for (many,), one in zip(joint, alone, strict=True):
        assert (many.status, many.ending) == (one.status, one.ending)
        assert [r.n_inner for r in many.trace] == [r.n_inner for r in one.trace]
        np.testing.assert_array_equal(many.support, one.support)
        np.testing.assert_allclose(many.coef, one.coef, rtol=1e-8)
        assert many.objective == pytest.approx(one.objective, rel=1e-10)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_the_order_of_the_machines_and_of_the_features_does_not_matter(solver, rng):
    machines, weights = make_machines(), np.array([0.5, 1.0, 2.0])
    order, columns = [2, 0, 1], rng.permutation(8)
    shuffled = [
        replace(machines[m], design=DenseDesign(np.ascontiguousarray(machines[m].design.X[:, columns])))
        for m in order
    ]
    (first,) = solve(solver(), machines, make_units([1] * 8, weights=weights), [3])
    (second,) = solve(solver(), shuffled, make_units([1] * 8, weights=weights[order]), [3])
    for m, solution in zip(order, second, strict=True):
        np.testing.assert_allclose(solution.dense_coef(), first[m].dense_coef()[columns], atol=1e-7)
        assert solution.objective == pytest.approx(first[m].objective, rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_columns_of_no_unit_are_as_if_they_were_not_there(solver):
    machines, left = make_machines(), np.array([0, 2, 3, 6, 7])
    units = Units(np.arange(6), left, np.zeros(5, bool), np.zeros(8))
    without = [replace(m, design=m.design.take(left)) for m in machines]
    (some,), (fewer,) = (
        solve(solver(), machines, units, [2]),
        solve(solver(), without, Units.of_columns(5), [2]),
    )
    for one, other in zip(some, fewer, strict=True):
        np.testing.assert_array_equal(one.support, left[other.support])
        np.testing.assert_array_equal(one.coef, other.coef)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_what_is_always_in_is_in(solver):
    machines = make_machines()
    free, bound = (
        solve(solver(), machines, make_units([1] * 8, fixed=fixed), [3])[0] for fixed in ([], [2, 5])
    )
    assert not {2, 5} <= set(used_units(free, COLUMNS))
    assert {2, 5} < set(used_units(bound, COLUMNS))


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_copies_of_a_machine_choose_what_it_chooses_alone(solver):
    (machine,), settings = make_machines(1), {"gtol": 1e-14, "ending": "projection"}
    ((alone,),) = solve(solver(**settings), [machine], COLUMNS, [3])
    (copies,) = solve(solver(**settings), [machine] * 3, COLUMNS, [3])
    for copy in copies:
        np.testing.assert_array_equal(copy.support, alone.support)
        np.testing.assert_allclose(copy.coef, alone.coef, rtol=1e-2)


def test_weights_are_those_of_the_objective_that_is_annealed():
    machines, weights = make_machines(), np.array([4.0, 1.0, 0.25])
    settings = {"rtol": 0.0, "dtol": 1e-14, "gtol": 1e-18, "ending": "projection"}
    (solutions,) = solve(MM(**settings), machines, make_units([1] * 8, weights=weights), [3])
    total = sum(w * s.objective for w, s in zip(weights, solutions, strict=True))
    assert total == pytest.approx(solutions[0].trace[-1].objective, rel=1e-4)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_a_grid_is_one_path_for_each_C(solver):
    machines, ks = make_machines(2), [4, 2]
    lams = [[0.3, 0.2], [0.02, 0.01]]
    grid = list(solver().iter_joint_grid(machines, lams, ks, COLUMNS, np.random.default_rng(0)))
    paths = [
        solutions
        for ridges in lams
        for solutions in solve(
            solver(), [replace(m, lam=lam) for m, lam in zip(machines, ridges, strict=True)], COLUMNS, ks
        )
    ]
    for found, expected in zip(grid, paths, strict=True):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.coef, other.coef)


def test_each_solution_of_a_path_starts_from_the_last():
    machines, solver = make_machines(), SD(ending="projection")
    _, after = solve(solver, machines, COLUMNS, [8, 3])
    (alone,) = solve(solver, machines, COLUMNS, [3])
    assert after[0].trace != alone[0].trace


def test_random_starts_depend_on_the_generator_alone():
    machines, solver = make_machines(), SD(start="normal", ending="projection")
    first, again, other = (
        solve(solver, machines, COLUMNS, [3], np.random.default_rng(seed))[0] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first[1].coef, again[1].coef)
    assert first[0].trace != other[0].trace


@pytest.mark.parametrize("unit", [2.0**30, 2.0**-30])
def test_another_unit_of_all_data_is_another_ridge(unit):
    machines = make_machines(lam=0.1)
    large = [replace(m, design=DenseDesign(m.design.X * unit), lam=m.lam * unit**2) for m in machines]
    (plain,), (scaled,) = (solve(SD(ending="projection"), ms, COLUMNS, [3]) for ms in (machines, large))
    for one, other in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(other.coef * unit, one.coef, rtol=1e-6)
        assert other.objective == pytest.approx(one.objective, rel=1e-6)


def test_a_column_beyond_all_squares_is_survived():
    machines = make_machines()
    X = [m.design.X * np.where(np.arange(8) == 1, 1e200, 1.0) for m in machines]
    huge = [replace(m, design=DenseDesign(x)) for m, x in zip(machines, X, strict=True)]
    (solutions,) = solve(SD(), huge, COLUMNS, [3])
    for solution, machine in zip(solutions, huge, strict=True):
        assert np.isfinite(solution.objective)
        assert solution.objective <= intercept_loss(machine)


def test_without_units_and_beside_a_hopeless_ridge_the_intercepts_are_left():
    machines = make_machines()
    hopeless = [replace(m, lam=1e101) for m in machines]
    for found in (solve(SD(), machines, COLUMNS, [0]), solve(SD(), hopeless, COLUMNS, [3])):
        for solution, machine in zip(found[0], machines, strict=True):
            assert len(solution.support) == 0
            assert solution.status is Status.CONVERGED
            assert solution.intercept == pytest.approx(machine.mean_label())
            assert solution.objective == pytest.approx(intercept_loss(machine))


def test_a_projection_worse_than_no_feature_ends_at_the_intercept_or_below():
    rng = np.random.default_rng(0)
    hidden, noise = rng.choice([-1.0, 1.0], 60), 30 * rng.standard_normal(60)
    machine = ArrayProblem(DenseDesign(np.column_stack([hidden + noise, noise])), hidden, np.ones(60), 0.0, 1)
    (solutions,) = solve(SD(), [machine, replace(machine, y=-hidden)], Units.of_columns(2), [1])
    assert all(s.objective <= intercept_loss(machine) for s in solutions)


@pytest.mark.parametrize("lam", [0.02, 0.0])
def test_a_refit_with_signs_satisfies_the_conditions_of_a_minimum(lam, rng):
    signs, support = np.array(SIGNS, dtype=float), np.arange(8)
    for machine in make_machines(5, lam=lam):
        coef, intercept, objective = refit_with_signs(
            machine, support, signs, rng.standard_normal(8), rng.standard_normal()
        )
        beta = np.append(coef, intercept)
        assert objective == pytest.approx(machine.loss(beta), rel=1e-10)
        assert not np.any(coef * signs < 0)
        gradient = machine.with_k(8).gradient(beta, 1.0)
        moves = np.append((coef != 0) | (signs == 0), True)
        np.testing.assert_allclose(gradient[moves], 0.0, atol=1e-7)
        assert np.all((gradient[:8] * signs)[~moves[:8]] >= -1e-9)
        assert not moves.all()


def test_a_refit_without_signs_is_a_refit(rng):
    (machine,), support = make_machines(1), np.array([1, 4, 6])
    coef, intercept, objective = refit_with_signs(machine, support, np.zeros(3), np.zeros(3), 0.0)
    expected, at, value, _ = refit(machine, support)
    np.testing.assert_allclose(coef, expected, atol=1e-9)
    assert intercept == pytest.approx(at, abs=1e-9)
    assert objective == pytest.approx(value, rel=1e-12)
