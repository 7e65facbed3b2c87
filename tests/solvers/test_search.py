"""The compiled pieces of the search against a few lines of NumPy."""

from itertools import combinations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array

from kmargin.core.linalg import cholesky, smallest, solve
from kmargin.data.design.dense import DenseDesign
from kmargin.data.design.sparse import SparseDesign
from kmargin.solvers.refit.dual import dual_factor
from kmargin.solvers.refit.newton import (
    Line,
    build_gram,
    exact_step,
    make_panel,
    make_ridge,
    outside_of,
    renew_gram,
    sync_gram,
)
from kmargin.solvers.search.swap_scores import double_changes, nth_pair, score, swap_changes


class Model:
    """A random panel with a support, and the quadratic that holds on its active rows."""

    def __init__(self, seed, n=60, p=9, k=4, lam=0.05, intercept=True):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, p)) + rng.standard_normal((n, 1))
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        c = np.sqrt(rng.uniform(0.2, 2, n) / n)
        self.p, self.k = p, k
        self.panel = make_panel(DenseDesign(X, intercept), y * c, c, np.arange(p), p)
        self.ridge = make_ridge(lam, p, intercept)
        self.active = rng.random(n) < 0.6
        self.gram = np.empty((p + 2, p + 2))
        build_gram(self.panel, self.active, self.gram)
        self.H = self.gram[: p + 1, : p + 1] + np.diag(self.ridge[: p + 1])
        self.support = np.append(np.sort(rng.choice(p, k, replace=False)), p)
        self.outside = outside_of(self.support, np.ones(p, bool))
        # the minimum on the support, so that the gradient vanishes there
        self.u = np.zeros(p + 1)
        inner = np.ix_(self.support, self.support)
        self.u[self.support] = np.linalg.solve(self.H[inner], self.gram[self.support, p + 1])
        self.gradient = self.H @ self.u - self.gram[: p + 1, p + 1]

    def change(self, leaving, entering):
        """By how much the quadratic's minimum rises when features are exchanged."""
        places = [j for j in self.support if j not in leaving] + list(entering)
        v = np.zeros(self.p + 1)
        right = (self.H @ self.u - self.gradient)[places]
        v[places] = np.linalg.solve(self.H[np.ix_(places, places)], right)
        step = v - self.u
        return self.gradient @ step + step @ self.H @ step / 2

    def scores(self):
        k, m = self.k + 1, len(self.outside)
        arrays = {"drop": k, "spread": k, "gain": m, "grad": m, "schur": m, "R": (k, m), "inverse": (k, k)}
        found = {name: np.empty(shape) for name, shape in arrays.items()}
        u = self.u[self.support]
        score(self.ridge, self.support, u, self.gram, self.outside, *found.values())
        return u, found


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("intercept", [True, False])
def test_dropping_and_taking_are_scored_as_the_quadratic_says(seed, intercept):
    model = Model(seed, intercept=intercept)
    _, found = model.scores()
    drops = [model.change([j], []) for j in model.support[:-1]]
    gains = [-model.change([], [j]) for j in model.outside]
    np.testing.assert_allclose(found["drop"][:-1], drops, rtol=1e-8)
    np.testing.assert_allclose(found["gain"], gains, rtol=1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_swaps_are_scored_as_the_quadratic_says(seed):
    model = Model(seed)
    u, found = model.scores()
    change = np.empty(model.k * len(model.outside))
    swap_changes(u, found["spread"], found["grad"], found["schur"], found["R"], change)
    expected = [model.change([a], [j]) for a in model.support[:-1] for j in model.outside]
    np.testing.assert_allclose(change, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_double_swaps_are_scored_as_the_quadratic_says(seed):
    model = Model(seed)
    u, found = model.scores()
    lose, take = np.arange(model.k), np.arange(len(model.outside))
    inverse = (found["inverse"].T @ found["inverse"])[: model.k, : model.k].copy()
    cross = model.H[np.ix_(model.outside, model.outside)]
    cross = cross - model.H[np.ix_(model.outside, model.support)] @ found["R"]
    pairs_out, pairs_in = list(combinations(lose, 2)), list(combinations(take, 2))
    change = np.empty(len(pairs_out) * len(pairs_in))
    count = double_changes(u, inverse, found["grad"], found["schur"], cross, found["R"], lose, take, change)
    assert count == len(change)
    expected = [
        model.change(model.support[list(o)], model.outside[list(i)]) for o in pairs_out for i in pairs_in
    ]
    np.testing.assert_allclose(change, expected, rtol=1e-6, atol=1e-10)


def test_pairs_are_counted_in_lexicographic_order():
    assert [nth_pair(r, 5) for r in range(10)] == list(combinations(range(5), 2))


@given(
    hnp.arrays(np.float64, st.integers(1, 60), elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, np.inf, -1.0])),
    st.integers(0, 60),
)
def test_the_smallest_come_in_order_and_ties_by_index(values, c):
    c = min(c, len(values))
    out = np.empty(max(c, 1), np.int64)
    assert smallest(values, len(values), c, out) == c
    np.testing.assert_array_equal(out[:c], np.argsort(values, kind="stable")[:c])


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 8, 13, 30])
def test_cholesky_factors_and_solves(k, rng):
    A = rng.standard_normal((k, k + 3))
    H = A @ A.T
    U, dead, x = H.copy(), np.empty(k), rng.standard_normal(k)
    expected = np.linalg.solve(H, x)
    cholesky(U, k, dead)
    np.testing.assert_allclose(np.triu(U), scipy.linalg.cholesky(H), rtol=1e-8, atol=1e-10)
    solve(U, k, dead, x)
    np.testing.assert_allclose(x, expected, rtol=1e-6)


def test_a_dependent_column_gets_nothing(rng):
    A = rng.standard_normal((3, 20))
    A = np.vstack([A, A[0] - 2 * A[1]])
    H = A @ A.T
    right = H @ np.array([1.0, 2.0, 3.0, 0.0])
    U, dead, x = H.copy(), np.empty(4), right.copy()
    cholesky(U, 4, dead)
    solve(U, 4, dead, x)
    assert list(dead) == [0, 0, 0, 1]
    assert x[3] == 0
    np.testing.assert_allclose(H @ x, right, rtol=1e-8)


def test_gram_matrices_follow_the_active_rows(rng):
    panel = rng.standard_normal((7, 50))
    active = rng.random(50) < 0.5
    gram = np.empty((7, 7))
    build_gram(panel, active, gram)
    np.testing.assert_allclose(gram, panel[:, active] @ panel[:, active].T, atol=1e-12)
    for share in (0.02, 0.1, 0.9):  # a few rows are shifted in and out, many lead to a rebuild
        new = active ^ (rng.random(50) < share)
        sync_gram(panel, active, new.copy(), gram)
        np.testing.assert_array_equal(active, new)
        np.testing.assert_allclose(gram, panel[:, new] @ panel[:, new].T, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_exact_step_is_where_the_slope_vanishes(seed):
    rng = np.random.default_rng(seed)
    e, delta = rng.standard_normal(30), rng.standard_normal(30)
    dd = float(rng.choice([0.0, 0.5]))
    ud = float(delta @ np.maximum(e, 0)) - abs(rng.standard_normal()) - 0.1  # a descent direction
    t = exact_step(Line(e, delta), ud, dd)
    slope = ud + t * dd - delta @ np.maximum(e - t * delta, 0)
    assert t > 0
    if dd > 0:
        assert abs(slope) < 1e-8


@pytest.mark.parametrize("make", [DenseDesign, lambda X, **how: SparseDesign(csr_array(X), **how)])
def test_what_the_search_asks_of_X_is_what_numpy_says(make, rng):
    X = rng.standard_normal((30, 9)) * (rng.random((30, 9)) < 0.5)
    v = np.where(rng.random(30) < 0.4, rng.standard_normal(30), 0.0)
    design, bare = make(X), make(X, fit_intercept=False)
    np.testing.assert_allclose(design.slopes(v), X.T @ v, atol=1e-12)
    c = rng.uniform(0.1, 1, 30)
    mean = np.average(X, axis=0, weights=c**2)
    spread = np.sum(c[:, None] ** 2 * (X - mean) ** 2, axis=0)
    np.testing.assert_allclose(design.spread(c), spread, rtol=1e-10)
    np.testing.assert_allclose(bare.spread(c), np.sum(c[:, None] ** 2 * X**2, axis=0), rtol=1e-10)
    panel = np.zeros((4, 30))
    design.fill_panel(np.array([7, 2]), v, np.array([3, 0]), panel)
    np.testing.assert_array_equal(panel[[3, 0]], (X[:, [7, 2]] * v[:, None]).T)
    for columns in (np.array([1, 4]), np.arange(9)):
        d = rng.standard_normal(len(columns))
        np.testing.assert_allclose(design.product(columns, d), X[:, columns] @ d, atol=1e-12)
    rows = np.array([4, 9, 0])
    np.testing.assert_array_equal(design.block(rows, np.array([7, 2])), X[np.ix_(rows, [7, 2])])


def test_the_dual_factor_is_that_of_the_active_rows(rng):
    B = rng.standard_normal((6, 10))
    K, rows = B @ B.T, np.array([3, 1, 8, 5, 0, 7])
    resid = np.array([1.0, -1, 1, 1, 1, -1, 1, 1, -1])
    places, U, _ = dual_factor(K, rows, 6, resid, 0.5)
    assert [int(rows[place]) for place in places] == [3, 0, 7]
    np.testing.assert_allclose(U.T @ U, np.eye(3) + K[np.ix_(places, places)] / 0.5)


def test_a_part_of_the_gram_matrix_has_the_bits_it_has_in_the_whole(rng):
    panel, active = rng.standard_normal((9, 31)), rng.random(31) < 0.6
    whole, part = np.empty((9, 9)), np.full((9, 9), np.nan)
    build_gram(panel, active, whole)
    places, others = np.array([6, 1, 3]), np.array([0, 1, 3, 6, 8])
    renew_gram(panel, active, places, others, part)
    asked = np.zeros((9, 9), bool)
    asked[np.ix_(places, others)] = True
    np.testing.assert_array_equal(part[asked | asked.T], whole[asked | asked.T])
    assert np.isnan(part[~(asked | asked.T)]).all()
