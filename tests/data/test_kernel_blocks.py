"""Kernel machines whose kernel matrix does not fit in the memory they are given."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from kmargin import MM, SD, KernelSparseSVC, KernelSparseSVCCV
from kmargin.core.labels import Pair, class_pairs
from kmargin.data.design import kernel as tiles
from kmargin.data.design.dense import DenseDesign
from kmargin.data.design.kernel import KernelDesign
from kmargin.data.samples.array import read_samples
from kmargin.datasets import make_spiral
from kmargin.fitting import spec
from kmargin.fitting.decisions import Kernel, KernelInputs
from kmargin.fitting.spec import KernelBlueprint

TINY = 0.01  # MB: ten columns of a hundred rows


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Tiles of a few rows and columns, so that small problems have many of them."""
    monkeypatch.setattr(tiles, "HEIGHT", 64)
    monkeypatch.setattr(tiles, "WIDTH", 40)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "sigmoid", laplacian_kernel])
def test_products_in_tiles_are_those_with_the_whole_matrix(kernel, form, rng):
    X, v, signs = rng.standard_normal((90, 4)), rng.standard_normal(90), rng.choice([-1.0, 1.0], 60)
    function = Kernel(kernel, 0.4, 2, 0.3)
    for A, tolerance in [(X, 1e-9), (X.astype(np.float32), 2e-5)]:
        points = A[rng.permutation(90)[:60]]
        design = KernelDesign(function.quickly, form(A), form(points), signs, cache_size=TINY)
        found, expected = design.slopes(v), v @ (function(A, points) * signs)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.fixture(scope="module")
def moons():
    return make_moons(150, noise=0.25, random_state=0)


def repeated_spiral():
    X, y = make_spiral((50, 30, 20), random_state=0)
    return np.vstack([X, X[::2]]), np.append(y, y[::2])


@pytest.mark.parametrize(
    ("data", "model"),
    [
        *(("moons", KernelSparseSVC(k, gamma=2.0, C=10.0)) for k in (0, 1, 12)),
        ("moons", KernelSparseSVC(12, gamma=2.0, C=10.0, solver=SD(max_outer=2, max_inner=5))),
        ("moons", KernelSparseSVCCV([6, 1], Cs=[0.1, 10.0], gamma=2.0, cv=2)),
        ("kernel matrix", KernelSparseSVC(5, kernel="precomputed")),
        ("spiral", KernelSparseSVC(5, gamma=1.0)),
        ("spiral", KernelSparseSVC(5, gamma=1.0, multi_class="ovr")),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_budget_does_not_change_the_machine(moons, data, model):
    X, y = repeated_spiral() if data == "spiral" else moons
    X = rbf_kernel(X, gamma=2.0) if data == "kernel matrix" else X
    weights = np.ones(len(y)) if data == "spiral" else np.random.default_rng(0).integers(0, 3, len(y))
    large = clone(model).fit(X, y, weights)
    assert data != "spiral" or (large.support_ < 100).all()  # of equal points the first
    for cache_size in (0.001, 0.03):
        small = clone(model).set_params(cache_size=cache_size).fit(X, y, weights)
        np.testing.assert_array_equal(small.support_, large.support_)
        np.testing.assert_allclose(small.dual_coef_, large.dual_coef_, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(small.intercept_, large.intercept_, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(small.objective_, large.objective_, rtol=1e-8)
        if isinstance(model, KernelSparseSVCCV):
            np.testing.assert_allclose(*(each.cv_results_["mean_test_score"] for each in (small, large)))
            np.testing.assert_allclose(small.path_.coefs, large.path_.coefs, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("k", [50, "all"])
def test_so_it_is_where_most_points_are_kept(moons, k):
    X, y = (part[:70] for part in moons)
    small, large = (KernelSparseSVC(k, gamma=2.0, cache_size=size).fit(X, y) for size in (0.02, 200))
    np.testing.assert_allclose(small.objective_, large.objective_, rtol=1e-7)


def test_the_kernel_is_never_asked_for_more_than_a_tile(moons):
    X, y = moons
    asked = []

    def kernel(A, B):
        asked.append((len(A), len(B)))
        return rbf_kernel(A, B, gamma=2.0)

    model = KernelSparseSVC(10, kernel=kernel, cache_size=0.05).fit(X, y)
    assert (np.max(asked, axis=0) <= [64, 40]).all()
    asked.clear()
    model.set_params(cache_size=0.001).predict(X)
    assert np.prod(asked, axis=1).max() <= 0.001 * 2**20 / 8


def test_memory_stays_within_the_budget(monkeypatch):
    monkeypatch.undo()  # tiles of their usual size
    X, y = make_circles(3000, factor=0.5, noise=0.2, random_state=0)
    design = KernelDesign(Kernel("rbf", 1.0, 3, 0.0), X, X, np.where(y, 1.0, -1.0), cache_size=10)
    tracemalloc.start()
    try:
        design.moments(np.ones(3000), np.ones(3000))
        design.slopes(np.ones(3000))
        assert design.n_kept * 3000 * 8 <= 10 * 2**20 < (design.n_kept + 1) * 3000 * 8
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < (10 + 5 * 4) * 2**20  # what is kept and a few tiles of 4 MB; the matrix takes 69


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_predictions_in_blocks_are_those_made_at_once(moons, kernel):
    X, y = moons
    K = rbf_kernel(X, gamma=2.0) if kernel == "precomputed" else X
    model = KernelSparseSVCCV([8, 3], kernel=kernel, gamma=2.0, cv=3).fit(K, y)
    at_once, path_at_once = model.decision_function(K), model.path_.decision_function(K, 3)
    model.set_params(cache_size=1e-4)
    np.testing.assert_allclose(model.decision_function(K), at_once, rtol=1e-12)
    model.path_.inputs.cache_size = 1e-4
    np.testing.assert_allclose(model.path_.decision_function(K, 3), path_at_once, rtol=1e-12)


def test_points_may_be_sparse_where_new_samples_are_not_and_the_other_way_round(moons):
    X, y = moons
    models = [KernelSparseSVC(5, gamma=2.0, cache_size=0.1).fit(A, y) for A in (X, csr_matrix(X))]
    expected = models[0].decision_function(X)
    for model in models:
        for new in (X, csr_matrix(X)):
            np.testing.assert_allclose(model.decision_function(new), expected, rtol=1e-7, atol=1e-9)


def test_a_machine_without_points_predicts_in_blocks_too():
    inputs = KernelInputs(Kernel("rbf", 1.0, 3, 0.0), np.empty((0, 2)), np.empty(0, int), TINY)
    np.testing.assert_array_equal(inputs.times(np.ones((40, 2)), np.empty((0, 3))), np.zeros((40, 3)))


def test_mm_says_what_it_would_take():
    X, y = make_moons(800, noise=0.25, random_state=0)
    message = r'solver="mm".*800 by 800 points, 5 MB for .* cache_size is 0\.1 MB: use solver="exchange"'
    with pytest.raises(ValueError, match=message):
        KernelSparseSVC(5, solver=MM(), cache_size=0.1).fit(X, y)


def designs_of(X, k=0, n_classes=2, **given):
    samples = read_samples(X, np.arange(len(X)) % n_classes, None, None)
    return KernelBlueprint(gamma=1.0, **({"random_state": 0} | given)).designs(samples, k)


def test_all_points_are_candidates_while_the_matrix_fits_and_a_sample_beyond(monkeypatch):
    monkeypatch.setattr(spec, "CANDIDATES", 30)
    X = np.random.default_rng(0).standard_normal((100, 2))
    matrix = 8 * 100 * 100 / 2**20
    for given, count, kind in [
        ({"cache_size": matrix}, 100, DenseDesign),
        ({"cache_size": 0.6 * matrix}, 60, DenseDesign),
        ({"cache_size": 0.1 * matrix}, 30, KernelDesign),
        ({"cache_size": 0.1 * matrix, "k": 12}, 48, KernelDesign),
        ({"cache_size": 0.1 * matrix, "k": 50}, 100, KernelDesign),
        ({"cache_size": 0.1 * matrix, "n_candidates": 10}, 10, DenseDesign),
        ({"cache_size": 0.1 * matrix, "n_candidates": 100}, 100, KernelDesign),
        ({"n_candidates": 20}, 20, DenseDesign),
    ]:
        design = designs_of(X, **given).design(Pair(0, 1), None)
        assert (design.n_samples, design.n_features, type(design)) == (100, count, kind)


def test_a_sample_of_candidates_is_drawn_with_the_seed_for_each_machine():
    X = np.random.default_rng(0).standard_normal((60, 2))
    one, other = Pair(None, 0), Pair(None, 1)
    drawn = designs_of(X, n_candidates=20, random_state=3)
    np.testing.assert_array_equal(drawn.candidates(one), np.unique(drawn.candidates(one)))
    again, different = (designs_of(X, n_candidates=20, random_state=seed).candidates(one) for seed in (3, 4))
    np.testing.assert_array_equal(drawn.candidates(one), again)
    assert not np.array_equal(drawn.candidates(one), drawn.candidates(other))
    assert not np.array_equal(drawn.candidates(one), different)


def test_machines_that_share_their_points_choose_them_among_the_same_candidates():
    X = np.random.default_rng(0).standard_normal((60, 2))
    pairs = class_pairs(3, "ovo")
    shared = designs_of(X, n_classes=3, n_candidates=20)
    for pair in pairs:
        np.testing.assert_array_equal(shared.candidates(pair), shared.candidates(pairs[0]))
    own = designs_of(X, n_classes=3, n_candidates=20, shared=False)
    assert not np.array_equal(own.candidates(pairs[0]), own.candidates(pairs[1]))


def test_the_objective_counts_every_sample_even_those_that_are_no_candidates(moons):
    X, y = moons
    model = KernelSparseSVC(5, gamma=2.0, C=3.0, n_candidates=20, random_state=0).fit(X, y)
    margins = np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)
    ridge = (model.dual_coef_**2).sum() / (2 * 2 * 3.0 * len(y))
    assert model.objective_[0] == pytest.approx((np.maximum(0, 1 - margins) ** 2).mean() / 2 + ridge)


def whole_numbers(offset):
    return np.random.default_rng(0).integers(-9, 10, (8, 3)) + offset


POINTS = {
    "near zero": whole_numbers(0.0),
    "far from zero": whole_numbers(2.0**40),
    "far apart": np.array([[0.0, 0.0], [1e8, 0.0], [1e8 + 1.0, 2.0], [0.0, 1e27], [1e17, 1e27]]),
    "close": 1e6 + 1e-6 * np.random.default_rng(0).standard_normal((40, 3)),
    "float32": (100 + np.random.default_rng(0).standard_normal((6, 3))).astype(np.float32),
}


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
@pytest.mark.parametrize("way", ["__call__", "quickly"])
@pytest.mark.parametrize("points", POINTS.values(), ids=POINTS.keys())
def test_rbf_values_are_exact_wherever_points_are(points, way, form):
    wide = points.astype(float)
    exact = np.exp(-0.1 * ((wide[:, None, :] - wide) ** 2).sum(axis=2))
    found = getattr(Kernel("rbf", gamma=0.1, degree=3, coef0=0.0), way)(form(points), form(points.copy()))
    np.testing.assert_allclose(found, exact, rtol=1e-8)
    assert found.max() <= 1.0
