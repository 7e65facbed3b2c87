"""What holds for the squared hinge, and for every sum of squared hinges."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from penalised_problems import make_problem

from kmargin import MM, SD, Exchange
from kmargin.core import squared_hinge
from kmargin.core.jit import compiled
from kmargin.core.problem import LOSSES, ArrayProblem, Hinge, Problem
from kmargin.data.design.dense import DenseDesign

numbers = st.floats(-5, 5)
values = hnp.arrays(np.float64, 6, elements=numbers)
labels = hnp.arrays(np.float64, 6, elements=st.sampled_from([-1.0, 1.0]))
weights = hnp.arrays(np.float64, 6, elements=st.floats(0.1, 3))
margins = hnp.arrays(np.float64, 6, elements=st.sampled_from([-1.0, 0.5, 1.0]))
SOME = np.array([-3.0, -1.0, -1e-9, -0.0, 0.0, 1e-300, 1e-9, 0.5, 1.0, 2.0, 1e150])


@compiled
def compiled_panel_form(r):
    """A compiled caller of each function of numbers."""
    h = squared_hinge
    return h.is_active(r), h.slope(r), h.twice_value(r), h.curvature(r), h.conjugate(r)


def test_numbers_and_arrays_are_the_same_function():
    h = squared_hinge
    arrays = h.is_active(SOME), h.slopes(SOME), 2 * h.values(SOME), h.curvatures(SOME), h.conjugates(SOME)
    np.testing.assert_array_equal(h.slopes(SOME, np), h.slopes(SOME))
    for r, *expected in zip(SOME, *arrays, strict=True):
        interpreted = h.is_active(r), h.slope(r), h.twice_value(r), h.curvature(r), h.conjugate(r)
        assert compiled_panel_form(r) == interpreted == tuple(expected)


def test_nan_stays_nan():
    assert np.isnan([squared_hinge.slope(np.nan), compiled_panel_form(np.nan)[1]]).all()
    assert np.isnan(squared_hinge.total_value(np.array([np.nan, 1.0])))


@given(r=numbers)
def test_slope_and_curvature_are_the_derivatives_of_value_and_slope(r):
    step = 1e-6
    around = np.array([r - step, r + step])
    difference = np.diff(squared_hinge.values(around))[0] / (2 * step)
    np.testing.assert_allclose(squared_hinge.slope(r), difference, atol=1e-5)
    if (squared_hinge.is_active(around) == squared_hinge.is_active(r)).all():  # else it may jump in between
        difference = np.diff(squared_hinge.slopes(around))[0] / (2 * step)
        np.testing.assert_allclose(squared_hinge.curvature(r), difference, atol=1e-5)


@given(r=numbers)
def test_a_row_that_is_not_active_adds_nothing_and_no_row_is_curved_more_than_the_bound(r):
    if not squared_hinge.is_active(r):
        assert squared_hinge.twice_value(r) == squared_hinge.slope(r) == squared_hinge.curvature(r) == 0
    assert 0 <= squared_hinge.curvature(r) <= squared_hinge.CURVATURE


@given(a=numbers, r=numbers)
def test_value_and_conjugate_meet_at_the_slope_alone(a, r):
    value = 0.5 * squared_hinge.twice_value(r)
    assert value + squared_hinge.conjugate(a) >= a * r - 1e-12
    at_slope = squared_hinge.slope(r)
    np.testing.assert_allclose(value + squared_hinge.conjugate(at_slope), at_slope * r, atol=1e-12)


@given(r=values, s=weights)
def test_totals_are_sums_of_values(r, s):
    of_rows = squared_hinge.values(r)
    for xp in (None, np):
        np.testing.assert_allclose(squared_hinge.total_value(r, xp=xp), of_rows.sum(), rtol=1e-12)
        np.testing.assert_allclose(squared_hinge.total_value(r, s, xp), s @ of_rows, rtol=1e-12)


@given(f=values, y=labels, s=weights, m=margins)
def test_the_panel_form_of_folded_rows_is_the_decision_form(f, y, s, m):
    c = np.sqrt(s / len(y))
    residual = c * m - c * y * f  # what a panel holds
    total, mean = squared_hinge.total_value(residual), squared_hinge.mean_loss(f, y, s, m)
    np.testing.assert_allclose(total, mean, atol=1e-12)
    gradient = squared_hinge.gradient(f, y, s, m)
    np.testing.assert_allclose(-c * y * squared_hinge.slopes(residual), gradient, atol=1e-12)


@given(f=values, anchor=values, y=labels, s=weights, m=margins)
def test_shifted_response_gives_a_majoriser_that_touches(f, anchor, y, s, m):
    majorizer = squared_hinge.mean_majorizer
    assert majorizer(f, anchor, y, s, m) >= squared_hinge.mean_loss(f, y, s, m) - 1e-12
    touching = squared_hinge.mean_loss(anchor, y, s, m)
    np.testing.assert_allclose(majorizer(anchor, anchor, y, s, m), touching, atol=1e-12)
    z = squared_hinge.shifted_response(anchor, y, m)
    np.testing.assert_allclose(majorizer(f, anchor, y, s, m), s @ (z - f) ** 2 / (2 * len(y)), atol=1e-12)
    step = squared_hinge.derivatives(anchor, y, np.ones(6), margin=m) / squared_hinge.CURVATURE
    np.testing.assert_allclose(z, anchor - step, atol=1e-12)


def test_a_row_at_its_margin_pays_nothing_and_is_content():
    y = np.array([1.0, -1.0])
    assert squared_hinge.mean_loss(y, y, np.ones(2)) == 0
    assert squared_hinge.mean_loss(3 * y, y, np.ones(2)) == 0
    assert not squared_hinge.is_active(squared_hinge.residual_of(y, y)).any()


@given(y=labels, s=weights, other=numbers)
def test_no_constant_is_better_than_the_best(y, s, other):
    s, loss = s / s.mean(), squared_hinge.mean_loss
    m = float(s @ y) / len(y)
    constant, best = squared_hinge.best_constant(m)
    np.testing.assert_allclose(best, loss(np.full(6, constant), y, s), atol=1e-12)
    assert best <= loss(np.full(6, other), y, s) + 1e-12
    np.testing.assert_allclose(loss(np.zeros(6), y, s), squared_hinge.AT_ZERO, rtol=1e-12)


# Sums of squared hinges: those of the package, and others that may be registered.
TERMS = LOSSES | {
    "least squares": (Hinge(), Hinge(-1.0, -1.0)),
    "another margin": (Hinge(margin=0.5, weight=2.0),),
    "three terms": (Hinge(), Hinge(margin=0.3), Hinge(-1.0, -2.0, 0.5)),
}


@pytest.fixture(params=TERMS)
def loss(request, monkeypatch):
    monkeypatch.setitem(LOSSES, request.param, TERMS[request.param])
    return request.param


def exact_loss(loss, decision, problem):
    """The mean loss by its definition."""
    f = problem.y * decision
    terms = [t.weight / 2 * np.maximum(0, t.margin - t.sign * f) ** 2 for t in LOSSES[loss]]
    return float(problem.weights @ sum(terms)) / len(problem.y)


def test_a_problem_with_another_loss_is_a_sum_of_squared_hinges(loss, rng):
    problem = make_problem(20, 4)
    other = problem.with_loss(loss)
    beta = rng.standard_normal(5)
    expected = exact_loss(loss, problem.design.decision(beta), problem)
    np.testing.assert_allclose(other.mean_loss(beta), expected, rtol=1e-12)
    loss_at = other.mean_loss
    numeric = [(loss_at(beta + 1e-6 * e) - loss_at(beta - 1e-6 * e)) / 2e-6 for e in np.eye(5)]
    np.testing.assert_allclose(other.loss_gradient(beta), numeric, atol=1e-7)


@given(y=labels, s=weights, other=numbers)
@pytest.mark.parametrize("loss", TERMS)
def test_no_constant_has_a_lower_loss_of_any_kind(y, s, other, loss):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LOSSES, loss, TERMS[loss])
        given = ArrayProblem(DenseDesign(np.zeros((6, 1))), y, s / s.mean(), 0.0)
        problem = given.with_loss(loss)
        constant, found = problem.best_constant()
        lowest = exact_loss(loss, np.full(6, constant), given)
        np.testing.assert_allclose(found, lowest, atol=1e-12)
        assert lowest <= exact_loss(loss, np.full(6, other), given) + 1e-12
        bare = replace(problem, design=DenseDesign(np.zeros((len(problem.y), 1)), fit_intercept=False))
        np.testing.assert_allclose(bare.best_constant()[1], exact_loss(loss, np.zeros(6), given))


@pytest.mark.parametrize("solver", [Exchange(), MM(), SD(gtol=1e-12)], ids=["exchange", "mm", "sd"])
def test_every_solver_minimises_every_loss(loss, solver):
    given = make_problem(30, 3)
    problem = given.with_loss(loss)
    ((found,),) = solver.solve_grid(Problem.of(problem), [[0.01]], [3], np.random.default_rng(0))
    beta = np.append(found.dense_coef(), found.intercept)
    objective = exact_loss(loss, given.design.decision(beta), given) + 0.005 * beta[:-1] @ beta[:-1]
    np.testing.assert_allclose(found.objective, objective, rtol=1e-10)
    np.testing.assert_allclose(problem.gradient(beta), 0.0, atol=1e-7)
