"""Regression tests: wrong objectives, endless loops, exceptions, and rounding errors of extreme numbers.

The seeds include those of the problems in which the errors were found.
"""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from judged import assert_sound, each_machine, quietly

from kmargin import (
    MM,
    SD,
    Ending,
    Exchange,
    KernelSparseSVC,
    KernelSparseSVCCV,
    SparseSVC,
    SparseSVCCV,
    sparse_svm_path,
)
from kmargin.core import squared_hinge
from kmargin.data.design import variance_of_entries
from kmargin.fitting.decisions import Kernel
from kmargin.solvers.solution import Status

BINARY = [1498, 424, 535, 962, 2264]
ANNEALINGS = {"mm": MM, "sd": SD}
# MM and SD take the largest number of steps if columns have very different scales
SHORT = {"exchange": Exchange(), "mm": MM(max_inner=100), "sd": SD(max_inner=100)}


def make_binary(seed, n_classes=2):
    """Random 0/1 columns, labels that do not depend on them, and a k."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(5, 60)), int(rng.integers(1, 20))
    k = int(rng.integers(1, p + 1))
    X, chance = (rng.random((n, p)) < 0.4).astype(float), rng.random(n)
    y = (chance < 0.4).astype(int) if n_classes == 2 else (chance * n_classes).astype(int)
    y[:n_classes] = np.arange(n_classes)[: len(y)] if len(np.unique(y)) < n_classes else y[:n_classes]
    return X, y, k


def make_scaled(seed, orders, n=20, p=6):
    """Columns with scales from 10**-orders to 10**orders, and labels that depend on the first."""
    rng = np.random.default_rng([seed, int(orders)])
    X = rng.standard_normal((n, p))
    y = (X[:, 0] + rng.standard_normal(n) > 0).astype(int)
    y[:2] = 0, 1
    return X * 10.0 ** rng.uniform(-orders, orders, p), y


# Objectives


@pytest.mark.parametrize("seed", BINARY)
@pytest.mark.parametrize(
    "way",
    ["weights", "class weights", "three classes", "one against the rest", "no intercept", "CSR", "float32"],
)
def test_the_objective_is_that_of_the_coefficients_returned(seed, way):
    X, y, k = make_binary(seed, n_classes=3 if way in ("three classes", "one against the rest") else 2)
    weights = np.random.default_rng(seed).uniform(0.1, 5.0, len(y)) if way == "weights" else None
    model = SparseSVC(
        k,
        C=np.inf,
        fit_intercept=way != "no intercept",
        multi_class="ovr" if way == "one against the rest" else "ovo",
        class_weight={0: 3.0, 1: 0.5} if way == "class weights" else None,
    )
    given = sp.csr_matrix(X) if way == "CSR" else X.astype(np.float32) if way == "float32" else X
    assert_sound(quietly(model.fit, given, y, weights), X, y, weights)
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
@pytest.mark.parametrize("orders", [3, 8, 20])
def test_no_model_is_worse_than_the_intercept_alone(solver, orders):
    for seed in range(3):
        X, y = make_scaled(seed, orders)
        for C in (1e-3, 10.0, np.inf):
            model = SparseSVC(1 + seed % 3, C=C, solver=SHORT[solver], fit_intercept=seed % 4 > 0)
            assert_sound(quietly(model.fit, X, y), X, y)


@pytest.mark.parametrize("solver", ["mm", "sd"])
def test_mm_and_sd_return_the_best_of_projection_refit_and_intercept(solver):
    seen = set()
    for seed in range(12):
        X, y = make_scaled(seed, 3 * (seed % 3), p=5)
        best, projected = (
            quietly(SparseSVC(2, C=np.inf, solver=ANNEALINGS[solver](ending=ending, max_inner=100)).fit, X, y)
            for ending in ("best", "projection")
        )
        ((task, w, _, solution),) = each_machine(best, X, y)
        ((_, paper_w, paper_b, paper),) = each_machine(projected, X, y)
        assert paper.ending is Ending.PROJECTION
        assert paper.trace == solution.trace
        assert paper.objective == pytest.approx(float(task.objective(paper_w, paper_b)), rel=1e-7)
        assert solution.objective <= min(paper.objective, float(task.constant())) * (1 + 1e-12)
        if solution.ending is Ending.INTERCEPT:
            assert not w.any()
        elif solution.ending is Ending.REFIT:
            assert set(np.flatnonzero(w)) <= set(np.flatnonzero(paper_w))
        else:
            np.testing.assert_array_equal(w, paper_w)
        seen.add(solution.ending)
    assert Ending.REFIT in seen


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


@pytest.mark.parametrize("solver", ["exchange", "mm", "sd"])
def test_columns_of_extreme_scales_have_sound_models(solver):
    for seed in range(6 if solver == "exchange" else 3):
        X, y = make_scaled(seed, 45, n=8 + seed, p=3 + seed)
        model = SparseSVC(1 + seed % 4, C=[1.0, 1e6, np.inf][seed % 3], solver=solver)
        assert_sound(quietly(model.fit, X, y), X, y)


@pytest.mark.parametrize(
    ("kind", "seeds"),
    [
        ("float32", (27, 64, 81, 117, 190, 310, 486)),
        ("low rank", (51, 114, 117, 219, 559)),
        ("zero columns", (81, 108, 310, 486, 559)),
    ],
)
def test_columns_over_twelve_orders_of_magnitude_are_fitted(kind, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(4, 20)), int(rng.integers(2, 12))
        X = rng.standard_normal((n, p))
        if kind == "low rank":
            X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, p))
        elif kind == "zero columns":
            X[:, ::2] = 0.0
        X = X * 10.0 ** rng.uniform(-6, 6, p)
        X = X.astype(np.float32) if kind == "float32" else X
        y = np.arange(n) % 2
        for C in (1e6, 1e-8):
            balanced = "balanced" if kind == "zero columns" else None
            model = quietly(SparseSVC(int(rng.integers(1, p + 1)), C=C, class_weight=balanced).fit, X, y)
            assert_sound(model, X, y)


@pytest.mark.parametrize(
    ("kernel", "seeds"),
    [("poly", (21, 120, 142, 546)), ("sigmoid", (103, 137, 417)), ("rbf", (0, 1)), ("linear", (0, 1))],
)
def test_kernel_classifiers_without_a_ridge_are_fitted(kernel, seeds):
    """The kernel matrix of 0/1 features has equal or nearly equal rows."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 2, (10, 8)).astype(float), np.arange(10) % 2
        X = X[:, :3] if seed % 2 else X
        model = quietly(KernelSparseSVC(1 + seed % 9, kernel=kernel, C=np.inf).fit, X, y)
        assert np.isfinite(model.dual_coef_).all()
        losses = np.maximum(0, 1 - np.where(y == 1, 1, -1) * model.decision_function(X)) ** 2
        assert model.objective_[0] == pytest.approx(losses.mean() / 2, rel=1e-6, abs=1e-10)
        assert model.objective_[0] <= 0.5 + 1e-12


@pytest.mark.parametrize("solver", ["exchange", "mm", "sd"])
@pytest.mark.parametrize("C", [5e-324, 1e-300, 1.7e308])
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


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.coo_array])
def test_gamma_scale_of_a_sparse_matrix_is_that_of_the_array(form):
    X, y = make_scaled(0, 0)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model, plain = (KernelSparseSVC(3, gamma="scale").fit(A, y, weights) for A in (form(X), X))
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), rtol=1e-6)


@pytest.mark.parametrize("name", ["degree", "coef0"])
def test_an_invalid_kernel_parameter_is_refused(name):
    X, y = make_scaled(0, 0)
    for value in (np.nan, np.inf, None, "3"):
        with pytest.raises(ValueError, match=f"{name}=.* is not valid"):
            KernelSparseSVC(2, kernel="poly", **{name: value}).fit(X, y)


def test_a_k_beyond_the_number_of_features_keeps_all_with_a_warning():
    X, y = make_scaled(0, 0)
    assert sparse_svm_path(X, y, ks=10**30).ks.tolist() == [6, 5, 4, 3, 2, 1]
    everything = SparseSVC("all").fit(X, y)
    with pytest.warns(UserWarning, match="is greater than the number of features, 6"):
        model = SparseSVC(10**30).fit(X, y)
    np.testing.assert_array_equal(model.coef_, everything.coef_)
    with pytest.warns(UserWarning, match="is greater than the number of features, 6"):
        path = sparse_svm_path(X, y, ks=[10**30, 1])
    assert path.ks.tolist() == [6, 1]
    with pytest.warns(UserWarning, match="is greater than the number of training points, 20"):
        KernelSparseSVC(10**30).fit(X, y)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("way", ["__call__", "quickly"])
def test_kernel_values_of_near_points_are_exact_if_other_points_are_very_far(way, form):
    points = np.array([[0.0, 0.0], [1e8, 0.0], [1e8 + 1.0, 2.0], [0.0, 1e27], [1e17, 1e27]])
    exact = np.exp(-0.1 * ((points[:, None] - points) ** 2).sum(axis=2))
    assert exact[1, 2] == pytest.approx(np.exp(-0.5))
    K = getattr(Kernel("rbf", 0.1, 3, 0.0), way)(form(points), form(points.copy()))
    np.testing.assert_allclose(K, exact, rtol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_variance_of_entries_is_exact_for_large_means_and_large_entries(form, dtype):
    X = np.array([[1e25], [-1e25], [1e25]], dtype)
    assert variance_of_entries(form(X), np.ones(3)) == pytest.approx(8 / 9 * 1e50)
    X = np.full((7, 3), 0.1, dtype)
    assert variance_of_entries(form(X), np.linspace(0.1, 1.0, 7)) == 0.0
    X[:, 0] = 1e4 + np.arange(7)
    X[:4, 1] = 0.0
    repeats = np.arange(1.0, 8.0)
    expected = np.var(np.repeat(X.astype(float), np.arange(1, 8), axis=0))
    assert variance_of_entries(form(X), repeats) == pytest.approx(expected, rel=1e-12)


def test_no_loss_is_negative_if_rounding_takes_the_mean_label_beyond_one():
    mean_label = 1.0 + np.finfo(float).eps
    assert squared_hinge.best_constant(mean_label) == 1.0
    assert squared_hinge.loss_of_best_constant(mean_label) == 0.0
    assert squared_hinge.loss_of_best_constant(-mean_label) == 0.0


def test_copies_of_features_that_would_share_a_ridge_rule_out_swap_optimality():
    X = np.random.default_rng(0).standard_normal((9, 3))[:, [0, 1, 2, 0]]
    y = np.repeat([0, 1, 2], 3)
    statuses = {s.status for s in quietly(SparseSVC(2, C=1e-3).fit, X, y).solutions_}
    assert Status.SWAP_OPTIMAL not in statuses
    statuses = {s.status for s in quietly(SparseSVC(2, C=np.inf).fit, X, y).solutions_}
    assert statuses <= {Status.SWAP_OPTIMAL, Status.SETTLED}
