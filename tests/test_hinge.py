import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kmargin import hinge

values = hnp.arrays(np.float64, 6, elements=st.floats(-5, 5))
labels = hnp.arrays(np.float64, 6, elements=st.sampled_from([-1.0, 1.0]))
weights = hnp.arrays(np.float64, 6, elements=st.floats(0.1, 3))


@given(values, labels, weights)
def test_gradient_is_the_derivative_of_the_loss(f, y, s):
    step = 1e-6
    numeric = [
        (hinge.loss(f + step * e, y, s) - hinge.loss(f - step * e, y, s)) / (2 * step) for e in np.eye(6)
    ]
    np.testing.assert_allclose(hinge.gradient(f, y, s), numeric, atol=1e-6)


@given(values, values, labels, weights)
def test_shifted_response_gives_a_majoriser_that_touches(f, anchor, y, s):
    def majoriser(decision):
        return s @ (hinge.shifted_response(anchor, y) - decision) ** 2 / (2 * len(y))

    assert majoriser(f) >= hinge.loss(f, y, s) - 1e-12
    np.testing.assert_allclose(majoriser(anchor), hinge.loss(anchor, y, s), atol=1e-12)


def test_a_sample_on_its_margin_costs_nothing():
    y = np.array([1.0, -1.0])
    assert hinge.loss(y, y, np.ones(2)) == 0
    assert hinge.loss(3 * y, y, np.ones(2)) == 0
    assert hinge.loss(0 * y, y, np.ones(2)) == 0.5
