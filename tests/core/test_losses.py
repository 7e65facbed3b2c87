"""What holds of every loss, and where it is written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kmargin.core import squared_hinge
from kmargin.core.jit import compiled
from kmargin.core.problem import LOSSES

numbers = st.floats(-5, 5)
values = hnp.arrays(np.float64, 6, elements=numbers)
labels = hnp.arrays(np.float64, 6, elements=st.sampled_from([-1.0, 1.0]))
weights = hnp.arrays(np.float64, 6, elements=st.floats(0.1, 3))
SOME = np.array([-3.0, -1.0, -1e-9, -0.0, 0.0, 1e-300, 1e-9, 0.5, 1.0, 2.0, 1e150])

every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


# A compiled caller for each function of numbers, as loops have it.


@compiled
def compiled_panel_form(r):
    h = squared_hinge
    return h.is_active(r), h.slope(r), h.twice_value(r), h.curvature(r), h.conjugate(r)


@compiled
def compiled_decision_form(f, y, s):
    h = squared_hinge
    return h.residual_of(f, y), h.twice_weighted_value(f, y, s), h.derivative(f, y, s)


def test_numbers_and_arrays_are_the_same_function():
    h = squared_hinge
    arrays = h.is_active(SOME), h.slopes(SOME), 2 * h.values(SOME), h.curvatures(SOME), h.conjugates(SOME)
    for r, *expected in zip(SOME, *arrays, strict=True):
        interpreted = h.is_active(r), h.slope(r), h.twice_value(r), h.curvature(r), h.conjugate(r)
        assert compiled_panel_form(r) == interpreted == tuple(expected)


@given(values, labels, weights)
def test_numbers_and_arrays_are_the_same_function_of_decisions(f, y, s):
    h = squared_hinge
    residual = h.residual_of(f, y)
    np.testing.assert_array_equal(h.slopes(residual, np), h.slopes(residual))
    for i in range(len(f)):
        arguments = f[i], y[i], s[i]
        interpreted = h.residual_of(f[i], y[i]), h.twice_weighted_value(*arguments), h.derivative(*arguments)
        assert compiled_decision_form(*arguments) == interpreted
        assert interpreted[0] == residual[i]
        np.testing.assert_allclose(interpreted[1], 2 * s[i] * h.values(residual)[i], rtol=1e-14)
        assert interpreted[2] == h.derivatives(f, y, s)[i]


def test_what_is_no_number_does_not_pass_for_content():
    assert np.isnan([squared_hinge.slope(np.nan), compiled_panel_form(np.nan)[1]]).all()
    assert np.isnan(squared_hinge.total_value(np.array([np.nan, 1.0])))


@every_loss
@given(r=numbers)
def test_slope_and_curvature_are_the_derivatives_of_value_and_slope(loss, r):
    step = 1e-6
    around = np.array([r - step, r + step])
    difference = np.diff(loss.values(around))[0] / (2 * step)
    np.testing.assert_allclose(loss.slope(r), difference, atol=1e-5)
    if (loss.is_active(around) == loss.is_active(r)).all():  # else it may jump in between
        difference = np.diff(loss.slopes(around))[0] / (2 * step)
        np.testing.assert_allclose(loss.curvature(r), difference, atol=1e-5)


@every_loss
@given(r=numbers)
def test_a_row_that_is_not_active_adds_nothing_and_no_row_is_curved_more_than_the_bound(loss, r):
    if not loss.is_active(r):
        assert loss.twice_value(r) == loss.slope(r) == loss.curvature(r) == 0
    assert 0 <= loss.curvature(r) <= loss.CURVATURE


@every_loss
def test_the_conjugate_is_the_supremum_that_defines_it(loss):
    r = np.linspace(-400, 400, 80001)  # in steps of .01
    value = loss.values(r)
    for a in np.linspace(-3, 3, 25):
        supremum = np.max(a * r - value)
        if loss.conjugates(np.array([a]))[0] == np.inf:
            assert supremum > 90
        else:
            np.testing.assert_allclose(loss.conjugates(np.array([a]))[0], supremum, atol=1e-4)


@every_loss
@given(a=numbers, r=numbers)
def test_value_and_conjugate_meet_at_the_slope_alone(loss, a, r):
    value = 0.5 * loss.twice_value(r)
    assert value + loss.conjugate(a) >= a * r - 1e-12
    at_slope = loss.slope(r)
    np.testing.assert_allclose(value + loss.conjugate(at_slope), at_slope * r, atol=1e-12)


@every_loss
@given(r=values, s=weights)
def test_totals_are_sums_of_values_and_of_conjugates(loss, r, s):
    for xp in (None, np):
        np.testing.assert_allclose(loss.total_value(r, xp=xp), loss.values(r).sum(), rtol=1e-12)
        np.testing.assert_allclose(loss.total_value(r, s, xp), s @ loss.values(r), rtol=1e-12)
    for a in (r, loss.slopes(r)):
        np.testing.assert_allclose(loss.total_conjugate(a), loss.conjugates(a).sum(), rtol=1e-12)


@every_loss
@given(f=values, y=labels, s=weights)
def test_the_panel_form_of_folded_rows_is_the_decision_form(loss, f, y, s):
    s = s / s.mean()
    c = np.sqrt(s / len(y))
    residual = c - c * y * f  # what a panel holds
    np.testing.assert_allclose(loss.total_value(residual), loss.mean_loss(f, y, s), atol=1e-12)
    np.testing.assert_allclose(-c * y * loss.slopes(residual), loss.gradient(f, y, s), atol=1e-12)


@every_loss
@given(f=values, y=labels, s=weights)
def test_gradient_is_the_derivative_of_the_loss(loss, f, y, s):
    step = 1e-6
    numeric = [
        (loss.mean_loss(f + step * e, y, s) - loss.mean_loss(f - step * e, y, s)) / (2 * step)
        for e in np.eye(6)
    ]
    np.testing.assert_allclose(loss.gradient(f, y, s), numeric, atol=1e-6)


@every_loss
@given(f=values, anchor=values, y=labels, s=weights)
def test_shifted_response_gives_a_majoriser_that_touches(loss, f, anchor, y, s):
    assert loss.mean_majorizer(f, anchor, y, s) >= loss.mean_loss(f, y, s) - 1e-12
    np.testing.assert_allclose(
        loss.mean_majorizer(anchor, anchor, y, s), loss.mean_loss(anchor, y, s), atol=1e-12
    )
    np.testing.assert_allclose(
        loss.mean_majorizer(f, anchor, y, s),
        loss.CURVATURE * s @ (loss.shifted_response(anchor, y) - f) ** 2 / (2 * len(y)),
        atol=1e-12,
    )


@every_loss
@given(f=values, y=labels)
def test_the_shifted_response_is_a_step_against_the_derivative(loss, f, y):
    step = loss.derivatives(f, y, np.ones(6)) / loss.CURVATURE
    np.testing.assert_allclose(loss.shifted_response(f, y), f - step, atol=1e-12)


@every_loss
@given(f=values, y=labels, s=weights)
def test_a_weighted_response_is_the_response_weighted(loss, f, y, s):
    root = 2.0 ** np.round(np.log2(s))  # so that rounding moves nobody across a margin
    np.testing.assert_array_equal(
        loss.shifted_response(root * f, y, root, np), root * loss.shifted_response(f, y)
    )


def test_a_row_at_its_margin_pays_nothing_and_is_content():
    y = np.array([1.0, -1.0])
    assert squared_hinge.mean_loss(y, y, np.ones(2)) == 0
    assert squared_hinge.mean_loss(3 * y, y, np.ones(2)) == 0
    assert not squared_hinge.is_active(squared_hinge.residual_of(y, y)).any()


@every_loss
@given(y=labels, s=weights, other=numbers)
def test_no_constant_is_better_than_the_best(loss, y, s, other):
    s = s / s.mean()
    m = float(s @ y) / len(y)
    best = loss.loss_of_best_constant(m)
    np.testing.assert_allclose(best, loss.mean_loss(np.full(6, loss.best_constant(m)), y, s), atol=1e-12)
    assert best <= loss.mean_loss(np.full(6, other), y, s) + 1e-12
    np.testing.assert_allclose(loss.mean_loss(np.zeros(6), y, s), loss.AT_ZERO, rtol=1e-12)
