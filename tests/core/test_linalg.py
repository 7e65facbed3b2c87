"""Small dense linear algebra, as compiled loops include it, against numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmargin.core.jit import compiled
from kmargin.core.linalg import cholesky, order_smallest, solve


@compiled
def factor_and_solve(H, k, x):
    cholesky(H, k)
    solve(H, k, x)


def factor_and_solve_as_written(H, k, x):
    cholesky(H, k)
    solve(H, k, x)


@pytest.mark.parametrize("function", [factor_and_solve, factor_and_solve_as_written])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 8, 11])
def test_cholesky_and_solve_are_those_of_numpy(function, k, rng):
    A = rng.standard_normal((20, k))
    H, x = A.T @ A, rng.standard_normal(k)
    U, found = np.pad(H, (0, 2)), x.copy()
    function(U, k, found)
    np.testing.assert_allclose(np.triu(U[:k, :k]), np.linalg.cholesky(H).T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found, np.linalg.solve(H, x), rtol=1e-9)


@pytest.mark.parametrize("place", [1, 4, 6])
def test_a_column_that_depends_on_earlier_ones_gets_the_coefficient_0(place, rng):
    A = rng.standard_normal((20, 7))
    A[:, place] = A[:, :place] @ rng.standard_normal(place)
    b = rng.standard_normal(20)
    x = A.T @ b
    factor_and_solve(A.T @ A, 7, x)
    assert x[place] == 0.0
    others = np.delete(np.arange(7), place)
    np.testing.assert_allclose(x[others], np.linalg.lstsq(A[:, others], b, rcond=None)[0], rtol=1e-8)


few_values = st.one_of(st.integers(-2, 2).map(float), st.sampled_from([np.inf, -np.inf, np.nan]))


@given(st.lists(few_values, max_size=30), st.integers(0, 35))
def test_the_smallest_values_come_in_order_ties_by_position_without_infinity_and_nan(values, count):
    values = np.array(values, np.float64)
    order = [i for i in np.argsort(values, kind="stable") if values[i] < np.inf]
    assert order_smallest(values, count).tolist() == order[: max(count, 0)]
