import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kmargin.data.design import distinct_columns
from kmargin.data.design.dense import DenseDesign


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(1, 6))
def test_of_equal_columns_the_first_is_kept(labels, n_samples):
    values = np.random.default_rng(0).standard_normal((n_samples, 6)) + 1
    X = values[:, labels]
    expected = [j for j, label in enumerate(labels) if label not in labels[:j]]
    np.testing.assert_array_equal(distinct_columns(X), expected)


def test_nearly_equal_columns_are_distinct():
    X = np.random.default_rng(0).standard_normal((10, 3))
    X = np.column_stack([X, X[:, 0] * (1 + 1e-15)])
    assert len(distinct_columns(X)) == 4


def test_columns_of_zeros_are_equal_too():
    np.testing.assert_array_equal(distinct_columns(np.zeros((4, 3))), [0])


def test_the_intercept_is_the_last_parameter():
    X = np.arange(6.0).reshape(3, 2)
    design = DenseDesign(X)
    np.testing.assert_array_equal(design.decision(np.array([1.0, 0.0, 10.0])), X[:, 0] + 10)
    np.testing.assert_array_equal(design.adjoint(np.ones(3)), [*X.sum(axis=0), 3])
    bare = DenseDesign(X, fit_intercept=False)
    np.testing.assert_array_equal(bare.decision(np.array([1.0, 0.0])), X[:, 0])
    np.testing.assert_array_equal(bare.adjoint(np.ones(3)), X.sum(axis=0))


def test_a_usable_array_is_not_copied():
    X = np.zeros((4, 2))
    assert DenseDesign(X).X is X
