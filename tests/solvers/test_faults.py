"""Models of difficult numbers: true objectives, at the minimum on their support, or refused in a sentence.
Some seeds are those of problems in which errors were found.
"""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from judged import assert_minimal, assert_sound, quietly
from sklearn.metrics.pairwise import polynomial_kernel

from kmargin import MM, SD, KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV, sparse_svm_path
from kmargin.core import squared_hinge
from kmargin.data.design import variance_of_entries
from kmargin.solvers.solution import Status

BINARY = [1498, 424, 535, 962, 2264]
# MM and SD take the largest number of steps if columns have very different scales
SHORT = {"exchange": "exchange", "mm": MM(max_inner=100), "sd": SD(max_inner=100)}


def make_binary(seed, n_classes=2):
    """Random 0/1 columns, labels that do not depend on them, and a k."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(5, 60)), int(rng.integers(1, 20))
    k = int(rng.integers(1, p + 1))
    X, chance = (rng.random((n, p)) < 0.4).astype(float), rng.random(n)
    y = (chance < 0.4).astype(int) if n_classes == 2 else (chance * n_classes).astype(int)
    y[:n_classes] = np.arange(n_classes)[: len(y)] if len(np.unique(y)) < n_classes else y[:n_classes]
    return X, y, k


def make_scaled(seed, orders, n=20, p=6, kind="plain"):
    """Columns with scales from 10**-orders to 10**orders, and labels that depend on the first."""
    rng = np.random.default_rng([seed, int(orders)])
    X = rng.standard_normal((n, p))
    y = (X[:, 0] + rng.standard_normal(n) > 0).astype(int)
    y[:2] = 0, 1
    if kind == "low rank":
        X = X[:, :2] @ rng.standard_normal((2, p))
    elif kind == "zero columns":
        X[:, ::2] = 0.0
    X = X * 10.0 ** rng.uniform(-orders, orders, p)
    return X.astype(np.float32) if kind == "float32" else X, y


def make_table(kind, seed):
    """Columns of a kind, labels that depend on the first for odd seeds, k and C."""
    rng = np.random.default_rng([seed, len(kind)])
    n, p = int(rng.integers(4, 60)), int(rng.integers(1, 20))
    X = rng.standard_normal((n, p))
    if kind == "binary":
        X = (X > 0.3).astype(float)
    elif kind == "low rank":
        X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, p))
    noise = rng.standard_normal(n)
    y = (noise + (X[:, 0] - X[:, 0].mean() if seed % 2 else 0.0) > 0.25).astype(int)
    y[:2] = 0, 1
    if kind == "offset":
        X = X + 10.0 ** rng.uniform(3, 9, p)
    elif kind == "scales":
        X = X * 10.0 ** rng.uniform(-3, 3, p)
    k, C = (
        int(rng.integers(max(1, p - 2), p + 1)),
        np.inf if seed % 3 == 0 else float(10 ** rng.uniform(-3, 6)),
    )
    return X.astype(np.float32) if kind == "float32" else X, y, k, C


@pytest.mark.parametrize("seed", BINARY)
@pytest.mark.parametrize(
    ("options", "n_classes"),
    [
        ({"fit_intercept": False}, 2),
        ({"class_weight": {0: 3.0, 1: 0.5}}, 2),
        ({"multi_class": "ovo"}, 3),
        ({"multi_class": "ovr"}, 3),
    ],
)
def test_the_objective_is_that_of_the_coefficients_returned(seed, options, n_classes):
    X, y, k = make_binary(seed, n_classes)
    weights = np.random.default_rng(seed).uniform(0.1, 5.0, len(y))
    for form in (np.asarray, sp.csr_matrix, np.float32):
        model = SparseSVC(k, C=np.inf, **options)
        assert_sound(quietly(model.fit, form(X), y, weights), X, y, weights)
        np.testing.assert_array_equal(model.objective_, [s.objective for s in model.solutions_])


@pytest.mark.parametrize("seed", BINARY)
def test_the_objectives_of_a_path_are_those_of_its_coefficients(seed):
    X, y, _ = make_binary(seed)
    path = quietly(sparse_svm_path, X, y, C=np.inf)
    sign = np.where(y == 1, 1.0, -1.0)
    for coefs, intercepts, objectives in zip(path.coefs, path.intercepts, path.objectives, strict=True):
        losses = np.maximum(0, 1 - sign * (X @ coefs[0] + intercepts[0])) ** 2
        assert objectives[0] == pytest.approx(losses.mean() / 2, rel=1e-7, abs=1e-12)
    alone = 2 * y.mean() * (1 - y.mean())
    assert (path.objectives <= alone * (1 + 1e-9)).all()
    assert (np.diff(path.objectives[:, 0]) >= -1e-9).all()


@pytest.mark.parametrize("solver", SHORT)
@pytest.mark.parametrize(
    ("orders", "kind"),
    [(3, "plain"), (20, "plain"), (45, "plain"), (6, "float32"), (6, "low rank"), (6, "zero columns")],
)
def test_models_of_columns_of_very_different_scales_are_sound(solver, orders, kind):
    for seed in range(3):
        X, y = make_scaled(seed, orders, n=8 + 4 * seed, p=3 + seed, kind=kind)
        for C in (1e-8, 10.0, np.inf):
            balanced = "balanced" if kind == "zero columns" else None
            model = SparseSVC(1 + seed, C=C, solver=SHORT[solver], fit_intercept=seed > 0)
            assert_sound(quietly(model.set_params(class_weight=balanced).fit, X, y), X, y)


# seeds by kind, among them those at which updated Gram matrices are too inexact without a final refit
SEEDS = {"plain": range(4), "low rank": range(4), "offset": range(8), "scales": range(12)}
SEEDS |= {"binary": [510, 1830, *range(4)], "float32": [96, 1695, 2121, *range(3)]}


@pytest.mark.parametrize("kind", SEEDS)
def test_a_model_is_at_the_minimum_on_its_support(kind):
    for seed in SEEDS[kind]:
        X, y, k, C = make_table(kind, seed)
        model = quietly(SparseSVC(k, C=C).fit, X, y)
        assert_sound(model, X, y)
        assert_minimal(model, X, y, tiny=1e-10 if kind == "float32" else 1e-12)


@pytest.mark.parametrize("seed", [63, 65, 113, 193, 255, 284])
def test_columns_of_zeros_and_ones_without_a_ridge_are_fitted_to_the_minimum(seed):
    rng = np.random.default_rng(seed)
    n, p = [(50, 1), (10, 8), (30, 3), (20, 12)][seed % 4]
    X, y = (rng.random((n, p)) < rng.uniform(0.02, 0.6)).astype(float), np.arange(n) % 2
    for k in (p, "all"):
        model = quietly(SparseSVC(k, C=np.inf).fit, X, y)
        assert_sound(model, X, y)
        assert_minimal(model, X, y)


@pytest.mark.parametrize("solver", ["exchange", "mm", "sd"])
def test_weights_over_many_orders_of_magnitude_leave_a_model_at_its_minimum(solver):
    for seed in (77, 95, 164, 173, 275):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(5, 40)), int(rng.integers(1, 8))
        X = rng.standard_normal((n, p))
        y = (X[:, 0] + rng.standard_normal(n) > 0).astype(int)
        y[:2] = 0, 1
        weights = 10.0 ** rng.uniform(0, [10, 20, 29][seed % 3], n)
        model = SparseSVC(int(rng.integers(1, p + 1)), C=[1.0, 1e-20, np.inf][seed % 3], solver=solver)
        quietly(model.fit, X, y, weights)
        assert_sound(model, X, y, weights)
        if solver == "exchange":
            assert_minimal(model, X, y, weights)


@pytest.mark.parametrize("seed", range(4))
def test_tiles_and_a_matrix_of_large_kernel_values_give_the_same_objective(seed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(8, 40)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, p))
    y = (X[:, 0] + rng.standard_normal(n) > 0).astype(int)
    y[:2] = 0, 1
    gamma, C = float(10 ** rng.uniform(0, 3)), float(10 ** rng.uniform(-2, 4))
    degree, k = int(rng.integers(2, 5)), int(rng.integers(1, 8))
    numbers = {"degree": degree, "gamma": gamma, "coef0": 1.0}
    direct, tiles = (
        quietly(KernelSparseSVC(k, kernel="poly", C=C, **numbers, n_candidates="all", cache_size=c).fit, X, y)
        for c in (200, 1e-3)
    )
    given = quietly(KernelSparseSVC(k, kernel="precomputed", C=C).fit, polynomial_kernel(X, **numbers), y)
    assert tiles.objective_ == pytest.approx(direct.objective_, rel=1e-8, abs=1e-12)
    assert given.objective_ == pytest.approx(direct.objective_, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("kind", ["plain", "float32", "offset", "binary", "low rank"])
def test_integer_weights_equal_repeated_rows(kind):
    for seed in range(1, 11, 3):  # with a ridge
        X, y, k, C = make_table(kind, seed)
        counts = np.random.default_rng(seed).integers(1, 4, len(y))
        repeated = np.repeat(X, counts, axis=0), np.repeat(y, counts), None
        data = (X, y, counts.astype(float)), repeated
        one, other = (quietly(SparseSVC(k, C=min(C, 310.0)).fit, *each) for each in data)
        rel = 1e-6 if kind in ("float32", "offset") else 1e-8  # accuracy left by rounding errors
        assert one.objective_ == pytest.approx(other.objective_, rel=rel)
        if kind == "plain":  # other kinds may have several minima
            scale = np.abs(other.coef_).max()
            np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-5, atol=1e-6 * scale)


# Invalid weights and extreme numbers

FITS = {
    "SparseSVC": lambda X, y, w: SparseSVC(2, class_weight=w).fit(X, y),
    "KernelSparseSVC": lambda X, y, w: KernelSparseSVC(2, class_weight=w).fit(X, y),
    "SparseSVCCV": lambda X, y, w: SparseSVCCV(class_weight=w, cv=2).fit(X, y),
    "KernelSparseSVCCV": lambda X, y, w: KernelSparseSVCCV(class_weight=w, cv=2).fit(X, y),
    "sparse_svm_path": lambda X, y, w: sparse_svm_path(X, y, class_weight=w),
    "CSR": lambda X, y, w: SparseSVC(2, class_weight=w).fit(sp.csr_matrix(X), y),
    "dask": lambda X, y, w: SparseSVC(2, class_weight=w).fit(da.from_array(X), da.from_array(y)),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS.keys())
def test_an_invalid_class_weight_is_refused_with_its_class(fit):
    X, y = make_scaled(0, 0)
    for weight in (-1.0, np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match=rf"class_weight gives class 1 the weight {weight:g}"):
            fit(X, y, {0: 1.0, 1: weight})


@pytest.mark.parametrize(
    ("kernel", "seeds"),
    [("poly", (21, 120, 142, 546)), ("sigmoid", (103, 137, 417)), ("rbf", (0, 1)), ("linear", (0, 1))],
)
def test_kernel_classifiers_without_a_ridge_are_fitted(kernel, seeds):
    """The kernel matrix of 0/1 features has equal or nearly equal rows."""
    for seed in seeds:
        X, y = np.random.default_rng(seed).integers(0, 2, (10, 8)).astype(float), np.arange(10) % 2
        X = X[:, :3] if seed % 2 else X
        model = quietly(KernelSparseSVC(1 + seed % 9, kernel=kernel, C=np.inf).fit, X, y)
        assert np.isfinite(model.dual_coef_).all()
        losses = np.maximum(0, 1 - np.where(y == 1, 1, -1) * model.decision_function(X)) ** 2
        assert model.objective_[0] == pytest.approx(losses.mean() / 2, rel=1e-6, abs=1e-10)
        assert model.objective_[0] <= 0.5 + 1e-12


@pytest.mark.parametrize("solver", ["exchange", "mm", "sd"])
@pytest.mark.parametrize("C", [5e-324, 1.7e308])
def test_extreme_ridges_have_sound_models(solver, C):
    X, y = make_scaled(1, 0)
    model = quietly(SparseSVC(2, C=C, solver=solver).fit, X, y)
    assert_sound(model, X, y)
    if C < 1:
        np.testing.assert_allclose(model.coef_, 0, atol=1e-12)


@pytest.mark.parametrize("solver", ["exchange", "mm", "sd"])
@pytest.mark.parametrize("size", [1e308, 1e-300])
def test_without_a_ridge_the_scale_of_the_weights_does_not_matter(solver, size):
    X, y = make_scaled(2, 0)
    weights = np.random.default_rng(0).uniform(0.5, 1.0, len(y))
    model, plain = (
        quietly(SparseSVC(2, C=np.inf, solver=solver).fit, X, y, w) for w in (weights * size, weights)
    )
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-9)


def test_a_k_beyond_the_number_of_features_keeps_all_with_a_warning():
    X, y = make_scaled(0, 0)
    assert sparse_svm_path(X, y, ks=10**30).ks.tolist() == [6, 5, 4, 3, 2, 1]
    everything = SparseSVC("all").fit(X, y)
    with pytest.warns(UserWarning, match="is greater than the number of features, 6") as caught:
        model, path = SparseSVC(10**30).fit(X, y), sparse_svm_path(X, y, ks=[10**30, 1])
    assert len(caught) == 2
    np.testing.assert_array_equal(model.coef_, everything.coef_)
    assert path.ks.tolist() == [6, 1]
    with pytest.warns(UserWarning, match="is greater than the number of training points, 20"):
        KernelSparseSVC(10**30).fit(X, y)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_variance_of_entries_is_exact_for_large_means_and_large_entries(form, dtype):
    X = np.array([[1e25], [-1e25], [1e25]], dtype)
    assert variance_of_entries(form(X), np.ones(3)) == pytest.approx(8 / 9 * 1e50)
    X = np.full((7, 3), 0.1, dtype)
    assert variance_of_entries(form(X), np.linspace(0.1, 1.0, 7)) == 0.0
    X[0] = 0.1 + 1e-6
    assert variance_of_entries(form(X), np.ones(7)) == pytest.approx(6e-12 / 49, rel=0.1, abs=0)
    X[:, 0] = 1e4 + np.arange(7)
    X[:4, 1] = 0.0
    repeats = np.arange(1.0, 8.0)
    expected = np.var(np.repeat(X.astype(float), np.arange(1, 8), axis=0))
    assert variance_of_entries(form(X), repeats) == pytest.approx(expected, rel=1e-12)


def test_no_loss_is_negative_if_rounding_takes_the_mean_label_beyond_one():
    mean_label = 1.0 + np.finfo(float).eps
    assert squared_hinge.best_constant(mean_label) == (1.0, 0.0)
    assert squared_hinge.best_constant(-mean_label) == (-1.0, 0.0)


def test_copies_of_features_that_would_share_a_ridge_rule_out_swap_optimality():
    X = np.random.default_rng(0).standard_normal((9, 3))[:, [0, 1, 2, 0]]
    y = np.repeat([0, 1, 2], 3)
    statuses = {s.status for s in quietly(SparseSVC(2, C=1e-3).fit, X, y).solutions_}
    assert Status.SWAP_OPTIMAL not in statuses
    statuses = {s.status for s in quietly(SparseSVC(2, C=np.inf).fit, X, y).solutions_}
    assert statuses <= {Status.SWAP_OPTIMAL, Status.SETTLED}
