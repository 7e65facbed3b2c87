"""What once went wrong: objectives that were not the model's, loops without end, exceptions of our own.

Problems are those in which it was found, and their kin. A loop without end would show as a test without end.
"""

from dataclasses import replace

import array_api_strict
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from judged import assert_minimal, assert_sound, each_machine, quietly
from sklearn import config_context

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
from kmargin.core.design import Affine
from kmargin.core.problem import ArrayProblem
from kmargin.core.validation import resolve_ks
from kmargin.data.design import variance_of_entries
from kmargin.data.design.dense import DenseDesign
from kmargin.data.samples import LinearDesigns
from kmargin.fitting.decisions import Kernel
from kmargin.fitting.tasks import worth_its_digits
from kmargin.solvers.exchange import claim
from kmargin.solvers.proximal.anneal import best_ending
from kmargin.solvers.refit.final import newton_step, shortest
from kmargin.solvers.refit.folded import Candidate, Measured
from kmargin.solvers.solution import Status
from kmargin.solvers.solver import bare_solution

BINARY = [1498, 424, 535, 962, 2264]
ANNEALINGS = {"mm": MM, "sd": SD}
# an annealing of columns of very different sizes takes all the steps it may
SHORT = {"exchange": Exchange(), "mm": MM(max_inner=100), "sd": SD(max_inner=100)}


def make_binary(seed, n_classes=2):
    """0/1 columns that know nothing of the labels, and a k."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(5, 60)), int(rng.integers(1, 20))
    k = int(rng.integers(1, p + 1))
    X, chance = (rng.random((n, p)) < 0.4).astype(float), rng.random(n)
    y = (chance < 0.4).astype(int) if n_classes == 2 else (chance * n_classes).astype(int)
    y[:n_classes] = np.arange(n_classes)[: len(y)] if len(np.unique(y)) < n_classes else y[:n_classes]
    return X, y, k


def make_scaled(seed, orders, n=20, p=6):
    """Columns up to so many orders of magnitude from one, and labels that one of them knows something of."""
    rng = np.random.default_rng([seed, int(orders)])
    X = rng.standard_normal((n, p))
    y = (X[:, 0] + rng.standard_normal(n) > 0).astype(int)
    y[:2] = 0, 1
    return X * 10.0 ** rng.uniform(-orders, orders, p), y


# The objective is the model's


@pytest.mark.parametrize("seed", BINARY)
def test_the_objective_is_that_of_the_coefficients_returned(seed):
    X, y, k = make_binary(seed)
    model = quietly(SparseSVC(k, C=np.inf).fit, X, y)
    assert_sound(model, X, y)
    np.testing.assert_array_equal(model.objective_, [s.objective for s in model.solutions_])


@pytest.mark.parametrize("seed", BINARY)
@pytest.mark.parametrize(
    "way",
    ["weights", "class weights", "three classes", "one against the rest", "no intercept", "CSR", "float32"],
)
def test_the_objective_is_that_of_the_coefficients_returned_however_it_is_asked(seed, way):
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


@pytest.mark.parametrize("seed", BINARY)
def test_the_objective_of_a_cross_validated_model_is_that_of_its_coefficients(seed):
    X, y, _ = make_binary(seed)
    model = quietly(SparseSVCCV(ks=[1, 2], Cs=[1.0, np.inf], cv=2).fit, X, y)
    losses = np.maximum(0, 1 - np.where(y == 1, 1, -1) * (X @ model.coef_[0] + model.intercept_)) ** 2
    ridge = np.sum(model.coef_**2) / (4 * model.C_ * len(y)) if np.isfinite(model.C_) else 0.0
    assert model.objective_[0] == pytest.approx(losses.mean() / 2 + ridge, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("solver", SHORT)
@pytest.mark.parametrize("orders", [3, 8, 20])
def test_no_model_is_worse_than_the_intercept_alone(solver, orders):
    for seed in range(6):
        X, y = make_scaled(seed, orders)
        for C in (1e-3, 10.0, np.inf):
            model = SparseSVC(1 + seed % 3, C=C, solver=SHORT[solver], fit_intercept=seed % 4 > 0)
            assert_sound(quietly(model.fit, X, y), X, y)


@pytest.mark.parametrize("solver", ["mm", "sd"])
def test_an_annealing_says_what_it_ended_with(solver):
    """Each end is the best of the three, and the reference agrees which it is."""
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


def test_an_exchange_ends_with_its_search():
    X, y = make_scaled(0, 0)
    assert SparseSVC(2).fit(X, y).solutions_[0].ending is Ending.SEARCH


# Every loop has an end, every weight is checked

BAD_WEIGHTS = {"negative": -1.0, "nan": np.nan, "inf": np.inf, "-inf": -np.inf}
FITS = {
    "SparseSVC": lambda X, y, w: SparseSVC(2, class_weight=w).fit(X, y),
    "mm": lambda X, y, w: SparseSVC(2, class_weight=w, solver="mm").fit(X, y),
    "sd": lambda X, y, w: SparseSVC(2, class_weight=w, solver="sd").fit(X, y),
    "KernelSparseSVC": lambda X, y, w: KernelSparseSVC(2, class_weight=w).fit(X, y),
    "SparseSVCCV": lambda X, y, w: SparseSVCCV(class_weight=w, cv=2).fit(X, y),
    "KernelSparseSVCCV": lambda X, y, w: KernelSparseSVCCV(class_weight=w, cv=2).fit(X, y),
    "sparse_svm_path": lambda X, y, w: sparse_svm_path(X, y, class_weight=w),
    "CSR": lambda X, y, w: SparseSVC(2, class_weight=w).fit(sp.csr_matrix(X), y),
    "dask": lambda X, y, w: SparseSVC(2, class_weight=w).fit(da.from_array(X), da.from_array(y)),
}


@pytest.mark.parametrize("weight", BAD_WEIGHTS.values(), ids=BAD_WEIGHTS.keys())
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS.keys())
def test_a_class_weight_that_is_no_weight_is_refused_with_its_class(fit, weight):
    X, y = make_scaled(0, 0)
    with pytest.raises(ValueError, match=r"class_weight gives class 1 the weight (-1|nan|-?inf)"):
        fit(X, y, {0: 1.0, 1: weight})


@pytest.mark.parametrize("weight", BAD_WEIGHTS.values(), ids=BAD_WEIGHTS.keys())
def test_a_class_weight_that_is_no_weight_is_refused_for_arrays_of_a_device(weight):
    X, y = (array_api_strict.asarray(a, device=array_api_strict.Device("device1")) for a in make_scaled(0, 0))
    with (
        config_context(array_api_dispatch=True),
        pytest.raises(ValueError, match="class_weight gives class 0 the weight"),
    ):
        SparseSVC(2, class_weight={0: weight, 1: 1.0}).fit(X, y)


@pytest.mark.parametrize("solver", ["exchange", "mm", "sd"])
def test_columns_of_any_size_have_finite_models_and_an_end(solver):
    for seed in range(12 if solver == "exchange" else 4):
        X, y = make_scaled(seed, 150, n=8 + seed, p=3 + seed)
        model = SparseSVC(1 + seed % 4, C=[1.0, 1e6, np.inf][seed % 3], solver=solver)
        assert_sound(quietly(model.fit, X, y), X, y)


# Exceptions that were ours


@pytest.mark.parametrize(
    ("kind", "seeds"),
    [
        ("float32", (27, 64, 81, 117, 190, 310, 486)),
        ("low rank", (51, 114, 117, 219, 559)),
        ("zero columns", (81, 108, 310, 486, 559)),
    ],
)
def test_columns_over_twelve_orders_of_magnitude_are_fitted(kind, seeds):
    for seed in (*seeds, *range(5)):
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


def test_counts_of_any_unit_have_a_path():
    for seed in (495, 661, 859, 1619, 1765, *range(10)):
        rng = np.random.default_rng(seed)
        n, p = 3 + seed % 3, int(rng.integers(26, 80))
        X = rng.poisson(rng.uniform(0.1, 2.0), (n, p)) * 10.0 ** rng.uniform(-8, 8, p)
        path = quietly(sparse_svm_path, X, np.arange(n) % 2, [1, 5, 26], C=486)
        assert np.isfinite(path.coefs).all()
        assert (np.diff(path.objectives[:, 0]) >= -1e-9).all()


@pytest.mark.parametrize(
    ("kernel", "seeds"),
    [("poly", (21, 120, 142, 546)), ("sigmoid", (103, 137, 417)), ("rbf", ()), ("linear", ())],
)
def test_kernel_machines_without_a_ridge_are_fitted(kernel, seeds):
    """A kernel of zeros and ones has rows that repeat each other, or nearly so."""
    for seed in (*seeds, *range(6)):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 2, (10, 8)).astype(float), np.arange(10) % 2
        X = X[:, :3] if seed % 2 else X
        model = quietly(KernelSparseSVC(1 + seed % 9, kernel=kernel, C=np.inf).fit, X, y)
        assert np.isfinite(model.dual_coef_).all()
        losses = np.maximum(0, 1 - np.where(y == 1, 1, -1) * model.decision_function(X)) ** 2
        assert model.objective_[0] == pytest.approx(losses.mean() / 2, rel=1e-6, abs=1e-10)
        assert model.objective_[0] <= 0.5 + 1e-12


@pytest.mark.parametrize("solver", ["mm", "sd"])
@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_an_annealing_of_columns_that_cannot_be_squared_is_that_of_columns_of_order_one(solver, scale):
    X, y = make_scaled(3, 0)
    model = quietly(SparseSVC(2, C=np.inf, solver=solver).fit, X * scale, y)
    plain = quietly(SparseSVC(2, C=np.inf, solver=solver).fit, X, y)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-6)


def test_one_huge_column_leaves_a_path_of_the_others():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 6))
    X[:, 5] *= 1e37
    y = rng.integers(0, 3, 12)
    path = sparse_svm_path(X, y, [6, 5, 4, 3, 2, 1], C=1.0)
    assert np.isfinite(path.coefs).all()
    assert (np.diff(path.objectives, axis=0) >= -1e-9).all()


@pytest.mark.parametrize("solver", ["exchange", "mm", "sd"])
@pytest.mark.parametrize("C", [1e-320, 5e-324, 1e-300, 1e300, 1.7e308])
def test_any_ridge_that_can_be_written_has_a_model(solver, C):
    X, y = make_scaled(1, 0)
    model = quietly(SparseSVC(2, C=C, solver=solver).fit, X, y)
    assert_sound(model, X, y)
    if C < 1:
        np.testing.assert_allclose(model.coef_, 0, atol=1e-12)


@pytest.mark.parametrize("solver", ["exchange", "mm", "sd"])
@pytest.mark.parametrize("size", [1e308, 1e40, 1e-300])
def test_without_a_ridge_the_unit_of_the_weights_does_not_matter(solver, size):
    X, y = make_scaled(2, 0)
    weights = np.random.default_rng(0).uniform(0.5, 1.0, len(y))
    model, plain = (
        quietly(SparseSVC(2, C=np.inf, solver=solver).fit, X, y, w) for w in (weights * size, weights)
    )
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-9)


@pytest.mark.parametrize("standardize", [False, True])
def test_weights_of_any_size_can_be_cross_validated(standardize):
    X, y = make_scaled(2, 0)
    weights = np.random.default_rng(0).uniform(0.5, 1.0, len(y))
    model, plain = (
        SparseSVCCV(ks=[1, 2], Cs=[np.inf], cv=2, standardize=standardize).fit(X, y, w)
        for w in (weights * 1e307, weights)
    )
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.coo_array])
def test_the_scale_of_a_sparse_matrix_is_that_of_the_array(form):
    X, y = make_scaled(0, 0)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model, plain = (KernelSparseSVC(3, gamma="scale").fit(A, y, weights) for A in (form(X), X))
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), rtol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, None, "3"])
@pytest.mark.parametrize("name", ["degree", "coef0"])
def test_a_kernels_number_that_is_none_is_refused(name, value):
    X, y = make_scaled(0, 0)
    with pytest.raises(ValueError, match=f"{name}=.* is not valid"):
        KernelSparseSVC(2, kernel="poly", **{name: value}).fit(X, y)


# A count is bounded by what it counts


@pytest.mark.parametrize("count", [10**9, 10**18, 10**30])
def test_more_values_of_k_than_there_are_is_all_of_them(count):
    X, y = make_scaled(0, 0)
    assert sparse_svm_path(X, y, ks=count).ks.tolist() == [6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize("n_features", [1, 2, 5, 40, 1000])
def test_so_many_values_of_k_that_all_are_taken_leave_out_none_below_either(n_features):
    everything = list(range(n_features, 0, -1))
    enough = int(n_features * np.log(n_features + 1)) + 2
    assert resolve_ks(enough, n_features) == everything
    rounded = np.round(np.geomspace(n_features, 1, enough)).astype(int)
    assert sorted(set(rounded.tolist()), reverse=True) == everything


@pytest.mark.parametrize("p", [6, 40])
def test_a_thorough_search_ends_no_higher_than_the_default(p):
    X, y = make_scaled(0, 0, n=40, p=p)
    endless = Exchange(effort="thorough")
    model, plain = (SparseSVC(2, solver=solver).fit(X, y) for solver in (endless, "exchange"))
    assert model.objective_ <= plain.objective_ * (1 + 1e-9)
    path, plain = (sparse_svm_path(X, y, [4, 2, 1], solver=solver) for solver in (endless, "exchange"))
    assert (path.objectives <= plain.objectives * (1 + 1e-9)).all()


def test_a_k_beyond_all_bounds_keeps_everything_and_says_so():
    X, y = make_scaled(0, 0)
    everything = SparseSVC("all").fit(X, y)
    with pytest.warns(UserWarning, match="is greater than the number of features, 6"):
        model = SparseSVC(10**30).fit(X, y)
    np.testing.assert_array_equal(model.coef_, everything.coef_)
    with pytest.warns(UserWarning, match="is greater than the number of features, 6"):
        path = sparse_svm_path(X, y, ks=[10**30, 1])
    assert path.ks.tolist() == [6, 1]
    with pytest.warns(UserWarning, match="is greater than the number of training points, 20"):
        KernelSparseSVC(10**30).fit(X, y)


# Numbers of very different sizes beside each other


@pytest.mark.parametrize("heavy", [0, 1, 2])
@pytest.mark.parametrize(("C", "most", "least"), [(1e-8, 1e280, 1e-80), (1e-12, 1.0, 1e-300)])
def test_machines_with_ridges_of_all_sizes_keep_their_own(heavy, C, most, least):
    """A machine of two light classes has a ridge of 1e70, or beyond all numbers, beside others of 1e-273."""
    y = np.repeat([0, 1, 2], 3)
    X, weights = np.random.default_rng(0).standard_normal((9, 2)), np.where(y == heavy, most, least)
    model = SparseSVC(1, C=C).fit(X, y, weights)
    assert_sound(model, X, y, weights)
    assert_minimal(model, X, y, weights)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("way", ["__call__", "quickly"])
def test_near_points_are_told_apart_beside_others_that_are_very_far(way, form):
    points = np.array([[0.0, 0.0], [1e8, 0.0], [1e8 + 1.0, 2.0], [0.0, 1e27], [1e17, 1e27]])
    exact = np.exp(-0.1 * ((points[:, None] - points) ** 2).sum(axis=2))
    assert exact[1, 2] == pytest.approx(np.exp(-0.5))
    K = getattr(Kernel("rbf", 0.1, 3, 0.0), way)(form(points), form(points.copy()))
    np.testing.assert_allclose(K, exact, rtol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_entries_of_single_precision_are_squared_in_double_precision(form):
    X = np.array([[1e25], [-1e25], [1e25]], np.float32)
    assert variance_of_entries(form(X), np.ones(3)) == pytest.approx(8 / 9 * 1e50)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_entries_have_no_variance(form, dtype):
    """And what there is of it is not lost beside a large mean, nor are zeros forgotten."""
    X = np.full((7, 3), 0.1, dtype)
    assert variance_of_entries(form(X), np.linspace(0.1, 1.0, 7)) == 0.0
    X[:, 0] = 1e4 + np.arange(7)
    X[:4, 1] = 0.0
    repeats = np.arange(1.0, 8.0)
    expected = np.var(np.repeat(X.astype(float), np.arange(1, 8), axis=0))
    assert variance_of_entries(form(X), repeats) == pytest.approx(expected, rel=1e-12)


LABELS = np.arange(8) % 2
# Columns that differ by the label in their last digit: half their difference is the label, unless it is lost.
NEARLY_ONE = np.column_stack([np.full(8, 1e16), 1e16 + np.where(LABELS == 1, 2.0, -2.0)])


def nearly_one_problem():
    design = DenseDesign(NEARLY_ONE, fit_intercept=False)
    return ArrayProblem(design, np.where(LABELS == 1, 1.0, -1.0), np.ones(8), 0.0, 2)


def test_a_model_that_is_a_matter_of_rounding_gives_way_to_the_intercept():
    problem = nearly_one_problem()
    exact = Candidate(np.arange(2), np.array([-0.5, 0.5, 0.0]), 0.0)
    left = Measured(problem).leave(0.0, exact)
    assert left.doubt == pytest.approx(0.5 * (np.finfo(float).eps * 1e16) ** 2)
    bare = bare_solution(problem, Status.SWAP_OPTIMAL)
    trusted, given_up = (
        Exchange()._solution(problem, found, np.arange(2), 1, bare) for found in (exact, left)
    )
    assert trusted.coef.tolist() == [-0.5, 0.5]
    assert given_up.coef.size == 0
    assert given_up.status is Status.LIMITED
    assert claim(exact._replace(all_tried=True)) is Status.SWAP_OPTIMAL
    assert claim(left._replace(all_tried=True)) is Status.LIMITED


def test_an_annealing_that_ends_with_a_matter_of_rounding_gives_way_to_the_intercept():
    problem = nearly_one_problem()
    bare = bare_solution(problem, Status.CONVERGED)
    found = replace(bare, support=np.arange(2), coef=np.array([-0.5, 0.5]), objective=0.0)
    found = replace(found, ending=Ending.PROJECTION)
    assert best_ending(problem, found, bare, Measured(problem)).ending is Ending.INTERCEPT
    assert best_ending(problem, bare, bare, Measured(problem), np.arange(2)).ending is not Ending.REFIT


def test_a_ridge_next_to_nothing_beside_the_columns_still_tells_the_smallest_coefficients():
    """More features than rows: of all models without a loss, the one of the least ridge."""
    rng = np.random.default_rng(0)
    X, y = 1e6 * rng.standard_normal((9, 400)), np.arange(9) % 2
    assert_minimal(SparseSVC(350, C=2.0).fit(X, y), X, y, tiny=0.0)


def test_no_objective_is_negative_where_one_class_weighs_next_to_nothing():
    mean_label = 1.0 + np.finfo(float).eps
    assert squared_hinge.best_constant(mean_label) == 1.0
    assert squared_hinge.loss_of_best_constant(mean_label) == 0.0
    assert squared_hinge.loss_of_best_constant(-mean_label) == 0.0


@pytest.mark.parametrize("center", [1.0, 1e16])
def test_a_standardised_model_is_worth_its_digits_in_the_data_given(center):
    problem = nearly_one_problem()
    designs = LinearDesigns(np.float64, True, Affine(np.array([center, 0.0]), np.ones(2)))
    bare = bare_solution(problem, Status.SWAP_OPTIMAL)
    found = replace(bare, support=np.arange(1), coef=np.ones(1), objective=0.2)
    left = worth_its_digits(found, designs, problem)
    assert (left is found) == (center == 1.0)
    assert left.objective == (0.2 if center == 1.0 else 0.5)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_a_newton_step_by_rows_is_that_by_columns(has_intercept):
    rng = np.random.default_rng(0)
    rows, resid, v = rng.standard_normal((4, 9)), rng.standard_normal(4), rng.standard_normal(9)
    root = rng.uniform(0.1, 1.0, 9)
    root[-1] *= not has_intercept
    by_columns = shortest(np.vstack([rows, np.diag(root)]), np.append(resid, -root * v))
    np.testing.assert_allclose(newton_step(rows, resid, root, v), by_columns, rtol=1e-10)


def test_a_coefficient_that_no_active_row_sees_is_left_to_its_ridge_however_weak_that_is():
    rng = np.random.default_rng(0)
    rows, resid, v = rng.standard_normal((4, 3)), rng.standard_normal(4), rng.standard_normal(3)
    rows[:, 1] = 0.0
    step = newton_step(rows, resid, np.array([0.3, 1e-15, 0.0]), v)
    assert step[1] == -v[1]
    others = newton_step(rows[:, [0, 2]], resid, np.array([0.3, 0.0]), v[[0, 2]])
    np.testing.assert_array_equal(step[[0, 2]], others)
    np.testing.assert_array_equal(
        newton_step(rows[:0], resid[:0], np.array([0.3, 1e-15, 0.0]), v)[:2], -v[:2]
    )


def test_nothing_is_claimed_of_copies_that_machines_would_share_their_ridge_with():
    X = np.random.default_rng(0).standard_normal((9, 3))[:, [0, 1, 2, 0]]
    y = np.repeat([0, 1, 2], 3)
    statuses = {s.status for s in quietly(SparseSVC(2, C=1e-3).fit, X, y).solutions_}
    assert Status.SWAP_OPTIMAL not in statuses
    statuses = {s.status for s in quietly(SparseSVC(2, C=np.inf).fit, X, y).solutions_}
    assert statuses == {Status.SWAP_OPTIMAL}


def test_single_precision_is_allowed_for_where_large_terms_cancel():
    """Columns that differ by 2e-7 of themselves: their coefficients are rounded, and so is the difference."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((30, 1)) + 2e-7 * rng.standard_normal((30, 2))).astype(np.float32)
    y = (X[:, 1].astype(float) - X[:, 0] + 1e-7 * rng.standard_normal(30) > 0).astype(int)
    model, exact = (SparseSVC(2, C=1e14).fit(A, y) for A in (X, X.astype(float)))
    ((task, w, b, _),) = each_machine(model, X.astype(float), y)
    rounded = task.objective(*(np.float32(a).astype(float) for a in (exact.coef_[0], exact.intercept_[0])))
    assert exact.objective_ < task.objective(w, b) < 0.9 * rounded
    assert model.objective_ == pytest.approx(float(task.objective(w, b)), rel=1e-6)
