"""Arrays of other libraries, on devices: the same machines as for NumPy, where the arrays are."""

import sys

import array_api_strict
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GroupKFold

from kmargin import SD, Exchange, KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV, sparse_svm_path
from kmargin.core.arrays import Space, to_host
from kmargin.data.blocks import Block, sums
from kmargin.data.blocks.sums import View, show_columns, weigh
from kmargin.datasets import make_synthetic
from kmargin.displays import CoefficientDisplay, SparsityPathDisplay


class Kind:
    """A library and a device: NumPy arrays are made into theirs, and recognised."""

    def __init__(self, name, torch=None):
        self.name = name
        if name == "torch":
            self.xp, self.device = torch, torch.device("cpu")
        else:
            self.xp, self.device = array_api_strict, array_api_strict.Device(name)

    def __call__(self, *arrays):
        made = [self.xp.asarray(np.ascontiguousarray(array), device=self.device) for array in arrays]
        return made[0] if len(made) == 1 else made

    def owns(self, array):
        return type(array) is type(self(np.ones(1))) and array.device == self.device


@pytest.fixture(params=["device1", "torch"])
def kind(request):
    return Kind(request.param, request.getfixturevalue("torch") if request.param == "torch" else None)


@pytest.fixture
def tensors(torch):
    return Kind("torch", torch)


@pytest.fixture
def elsewhere():
    """A device that NumPy cannot look into."""
    return Kind("device1")


@pytest.fixture(autouse=True)
def dispatching():
    with config_context(array_api_dispatch=True):
        yield


def noisy(n_samples=150, n_features=12, seed=1):
    X, y = make_synthetic(n_samples=n_samples, n_features=n_features, random_state=seed)
    flipped = np.random.default_rng(seed).random(n_samples) < 0.1
    return X, np.where(flipped, -y, y).astype(int)


def three_classes():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((150, 8)) * rng.uniform(0.8, 1.2, 8) + 0.3, rng.integers(0, 3, 150)
    X[:, 0] += 2 * (y == 1)
    X[:, 3] -= 2 * (y == 2)
    return X, y + 5


def wide():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 300))
    return X, (X[:, :4].sum(axis=1) + 0.5 * rng.standard_normal(80) > 0).astype(int)


def assert_same(found, expected, atol=1e-6):
    """Fitted attributes, within a tolerance relative to the largest coefficient."""
    scale = max(1.0, float(np.abs(expected.coef_).max()))
    np.testing.assert_array_equal(to_host(found.support_), expected.support_)
    np.testing.assert_allclose(to_host(found.coef_), expected.coef_, atol=atol * scale)
    np.testing.assert_allclose(to_host(found.intercept_), expected.intercept_, atol=atol * scale)
    np.testing.assert_allclose(to_host(found.objective_), expected.objective_, rtol=atol, atol=atol)
    np.testing.assert_array_equal(to_host(found.classes_), expected.classes_)


# Two cases run to the end, the others for a while: every step takes milliseconds on a device.
FAST, FEW_STEPS = Exchange(effort="fast"), SD(max_outer=15, max_inner=40)

CASES = {
    "two classes": (noisy, {"k": 4}),
    "all swaps": (noisy, {"k": 3, "solver": Exchange(effort="thorough")}),
    "a weak ridge": (noisy, {"k": 4, "C": 100.0, "solver": FAST}),
    "a strong ridge": (noisy, {"k": 4, "C": 1e-3, "solver": FAST}),
    "no intercept": (noisy, {"k": 4, "fit_intercept": False, "solver": FAST}),
    "all features": (noisy, {"k": "all", "solver": FAST}), "no feature": (noisy, {"k": 0, "solver": FAST}),
    "balanced": (noisy, {"k": 4, "class_weight": "balanced", "solver": FAST}),
    "one versus one": (three_classes, {"k": 3, "class_weight": {5: 2.0}, "solver": FAST}),
    "one versus rest": (three_classes, {"k": 3, "multi_class": "ovr", "solver": FAST}),
    "two jobs": (three_classes, {"k": 3, "n_jobs": 2, "shared": False, "solver": FAST}),
    "whole numbers": (lambda: (three_classes()[0].astype(int), three_classes()[1]), {"k": 3, "solver": FAST}),
    "wide": (wide, {"k": 6, "C": 0.1, "solver": FAST}), "sd": (noisy, {"k": 4, "solver": "sd"}),
    "sd, polished": (noisy, {"k": 3, "solver": SD(max_outer=15, max_inner=40, polish=True)}),
    "sd, no intercept": (noisy, {"k": 4, "fit_intercept": False, "solver": FEW_STEPS}),
    "sd, one versus one": (three_classes, {"k": 3, "class_weight": {5: 2.0}, "solver": FEW_STEPS}),
    "sd, wide": (wide, {"k": 6, "C": 0.1, "solver": FEW_STEPS}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", CASES)
def test_every_solver_finds_what_it_finds_for_numpy(kind, case):
    make, params = CASES[case]
    X, y = make()
    weights = np.random.default_rng(3).uniform(0.0, 2.0, len(y))
    weights[:7] = 0.0
    model = SparseSVC(**params)
    expected = clone(model).fit(X, y, weights)
    found = clone(model).fit(*kind(X, y, weights))
    assert_same(found, expected)
    assert [s.status for s in found.solutions_] == [s.status for s in expected.solutions_]
    decisions = found.decision_function(kind(X))
    scale = max(1.0, float(np.abs(expected.decision_function(X)).max()))
    np.testing.assert_allclose(to_host(decisions), expected.decision_function(X), atol=1e-6 * scale)
    np.testing.assert_array_equal(to_host(found.predict(kind(X))), expected.predict(X))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_is_fitted_is_of_the_kind_device_and_dtype_of_X(kind, dtype):
    X, y = three_classes()
    X = X.astype(dtype)
    model = SparseSVC(k=3).fit(*kind(X, y))
    expected = SparseSVC(k=3).fit(X, y)
    for name in ("coef_", "intercept_", "support_", "classes_", "n_iter_", "objective_"):
        value = getattr(model, name)
        assert kind.owns(value), name
        assert to_host(value).dtype == getattr(expected, name).dtype, name
    for value in (model.decision_function(kind(X)), model.predict(kind(X)), model.get_support()):
        assert kind.owns(value)
    assert to_host(model.decision_function(kind(X))).dtype == dtype
    np.testing.assert_array_equal(to_host(model.get_support()), expected.get_support())
    np.testing.assert_array_equal(to_host(model.get_support(indices=True)), expected.support_)
    assert_same(model, expected, atol=1e-5 if dtype == "float32" else 1e-6)
    assert model.score(*kind(X, y)) == pytest.approx(expected.score(X, y))
    chosen = model.transform(kind(X))
    numpys = expected.transform(X)
    back = model.inverse_transform(chosen), expected.inverse_transform(numpys)
    for found, wanted in [(chosen, numpys), back]:
        assert kind.owns(found)
        assert to_host(found).dtype == dtype
        np.testing.assert_array_equal(to_host(found), wanted)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_where_there_is_no_float64_float32_does():
    X, y = three_classes()
    device = array_api_strict.Device("no_float64")
    single = array_api_strict.asarray(X.astype("float32"), device=device)
    codes = array_api_strict.asarray(y, device=device)
    for solver in (FAST, FEW_STEPS):
        model = SparseSVC(k=3, C=0.01, solver=solver).fit(single, codes)
        assert_same(model, SparseSVC(k=3, C=0.01, solver=solver).fit(X, y), atol=1e-4)
        assert model.coef_.device == device


@pytest.mark.parametrize("make", [list, np.asarray, Kind("CPU_DEVICE")], ids=["list", "numpy", "strict"])
def test_labels_of_another_kind_follow_X_and_keep_their_own_classes(kind, make):
    X, y = three_classes()
    weights = np.linspace(0.5, 2.0, len(y))
    model = SparseSVC(k=3).fit(kind(X), make(y), make(weights))
    assert_same(model, SparseSVC(k=3).fit(X, y, weights))
    assert type(model.classes_) is type(make(y) if make is not list else y)
    assert kind.owns(model.coef_)
    assert kind.owns(model.predict(kind(X)))
    assert model.score(kind(X), make(y)) > 0.8


def test_words_stay_words_and_booleans_booleans(kind):
    X, y = three_classes()
    names = np.array(["", "", "", "", "", "ape", "bee", "cow"])[y]
    model = SparseSVC(k=3).fit(kind(X), names)
    assert isinstance(model.classes_, np.ndarray)
    np.testing.assert_array_equal(model.predict(kind(X)), SparseSVC(k=3).fit(X, names).predict(X))
    assert model.score(kind(X), names) > 0.8
    predicted = SparseSVC(k=3).fit(*kind(X, y > 5)).predict(kind(X))
    assert kind.owns(predicted)
    assert to_host(predicted).dtype == bool


def test_labels_on_a_device_follow_X_to_main_memory(kind):
    X, y = noisy()
    model = SparseSVC(k=3).fit(X, *kind(y, np.ones(len(y))))
    assert_same(model, SparseSVC(k=3).fit(X, y))
    assert isinstance(model.coef_, np.ndarray)


def test_without_dispatch_arrays_become_numpys(tensors):
    X, y = noisy()
    with config_context(array_api_dispatch=False):
        model = SparseSVC(k=3).fit(*tensors(X, y))
        assert isinstance(model.coef_, np.ndarray)
        assert isinstance(model.predict(tensors(X)), np.ndarray)
        np.testing.assert_array_equal(model.coef_, SparseSVC(k=3).fit(X, y).coef_)


def test_gradients_are_not_recorded(tensors):
    X, y = tensors(*noisy())
    model = SparseSVC(k=3, solver="sd").fit(X.requires_grad_(), y)
    assert not model.coef_.requires_grad
    assert not model.decision_function(X).requires_grad


@pytest.fixture
def longest(monkeypatch):
    """The sizes of all arrays that were brought to main memory."""
    sizes = []
    bring = Space.bring

    def watched(self, array):
        sizes.append(int(np.prod(array.shape)))
        return bring(self, array)

    monkeypatch.setattr(Space, "bring", watched)
    return sizes


def test_a_path_is_numpys_and_stays_on_the_device(kind, longest):
    X, y = three_classes()
    found, expected = sparse_svm_path(*kind(X, y), ks=[5, 3, 1]), sparse_svm_path(X, y, ks=[5, 3, 1])
    predicted = found.predict(kind(X), 3)
    assert max(longest) <= (8 + 2) ** 2 < len(X)
    for name in ("coefs", "intercepts", "objectives"):
        assert kind.owns(getattr(found, name)), name
        np.testing.assert_allclose(to_host(getattr(found, name)), getattr(expected, name), atol=1e-6)
    np.testing.assert_array_equal(to_host(predicted), expected.predict(X, 3))
    assert kind.owns(found.decision_function(kind(X), 3))
    pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", make_scorer(roc_auc_score)])
def test_cross_validation_chooses_the_same(kind, scoring):
    X, y = noisy()
    weights = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    weights[::9] = 0.0
    model = SparseSVCCV(ks=[6, 3, 1], Cs=[0.1, 1.0], cv=3, scoring=scoring, standardize=True, solver=FAST)
    found, expected = clone(model).fit(*kind(X, y, weights)), clone(model).fit(X, y, weights)
    assert (found.k_, found.C_, found.n_splits_) == (expected.k_, expected.C_, 3)
    assert_same(found, expected)
    for key, scores in expected.cv_results_.items():
        if key != "params":
            np.testing.assert_allclose(found.cv_results_[key], scores, atol=1e-9)
    assert kind.owns(found.path_.coefs)
    assert kind.owns(found.predict(kind(X)))


def test_folds_of_words_and_groups(kind):
    X, y = three_classes()
    names, groups = np.array(list("-----abc"))[y], np.arange(len(y)) % 10
    model = SparseSVCCV(ks=[4, 2], cv=GroupKFold(3), scoring=lambda m, X, y: (m.predict(X) == y).mean())
    found = clone(model).fit(kind(X), names, groups=groups)
    expected = clone(model).fit(X, names, groups=groups)
    assert_same(found, expected)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("solver", "multi_class"), [(FAST, "ovo"), (FEW_STEPS, "ovr")])
def test_nothing_as_long_as_X_is_tall_leaves_the_device(elsewhere, longest, solver, multi_class):
    n, p, k = 400, 10, 4
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, p)), rng.integers(0, 3, n)
    X[:, 0] += 2 * y
    X[:, 9] = X[:, 8]
    given = elsewhere(X, y, rng.uniform(0, 1, n))
    model = SparseSVC(k=k, solver=solver, multi_class=multi_class, class_weight="balanced")
    if solver is FAST:
        with pytest.warns(UserWarning, match=r"1 feature repeats an earlier one \(column 9\)"):
            model.fit(*given)
    else:
        model.fit(*given)
    model.predict(given[0])
    assert longest
    assert max(longest) <= (p + 2) ** 2


def test_cross_validation_brings_labels_predictions_and_the_chosen_decisions_only(elsewhere, longest):
    X = np.random.default_rng(0).standard_normal((300, 6))
    SparseSVCCV(ks=[3, 1], cv=3).fit(*elsewhere(X, (X[:, 0] > 0).astype(int)))
    long = [size for size in longest if size > 8**2]
    assert set(long) <= {300, 100}
    assert long.count(300) <= 3  # codes, weights, labels
    assert long.count(100) == 3 * (2 + 1)  # predictions for each k, decisions for the chosen one


def test_float64_is_not_copied(kind):
    X, y = noisy()
    X = kind(X)
    block = Block(0, X, *kind((y > 0).astype(int), np.ones(150)))
    seen = View(positive=1, negative=None, class_weight=np.ones(2))
    assert show_columns(weigh(block, seen), seen, None) is X


@pytest.mark.parametrize("wide_view", [False, True], ids=["float64", "scaled float32"])
def test_tiles_add_up_to_the_block(kind, monkeypatch, wide_view):
    X, y = noisy()
    codes, repeats = (y > 0).astype(int), np.linspace(0.0, 1.0, len(y))
    seen = View(positive=1, negative=0, class_weight=np.ones(2))
    if wide_view:
        X = X.astype("float32")
        seen = seen._replace(center=X.mean(axis=0).astype(float), scale=np.full(12, 2.0))
    block = Block(0, *kind(X, codes, repeats))
    beta = np.linspace(-1, 1, 13)
    questions = [
        (sums.count,),
        (sums.first_moments, 2.0),
        (sums.loss_and_gradient, 2.0, beta),
        (sums.curvature_along, 2.0, beta),
        (sums.slopes, 2.0, np.array([3, 1]), beta[:3]),
        (sums.largest,),
        (sums.fingerprints, 0),
    ]
    whole = [question(block, seen, *args) for question, *args in questions]
    panel = sums.make_panel(block, seen, 2.0, True, np.array([5, -1, 2, -1]), 4)
    monkeypatch.setattr(sums, "TILE", 100)
    monkeypatch.setattr(sums, "GPU_TILE", 100)
    for expected, (question, *args) in zip(whole, questions, strict=True):
        found = question(block, seen, *args)
        pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    tiled = sums.make_panel(block, seen, 2.0, True, np.array([5, -1, 2, -1]), 4)
    np.testing.assert_array_equal(to_host(tiled.values), to_host(panel.values))
    np.testing.assert_array_equal(to_host(panel.values)[[1, 3]], 0.0)


def test_a_machine_decides_only_where_it_was_fitted(elsewhere):
    X, y = noisy()
    there, here = SparseSVC(k=3).fit(*elsewhere(X, y)), SparseSVC(k=3).fit(X, y)
    with pytest.raises(ValueError, match=r"SparseSVC.predict\(\) must use the same .* NumPy, .*device1"):
        there.predict(X)
    with pytest.raises(ValueError, match=r"decision_function\(\) must .*device1.* attributes are in NumPy"):
        here.decision_function(elsewhere(X))
    with pytest.raises(ValueError, match=r"X is in array_api_strict on .*CPU_DEVICE"):
        there.predict(Kind("CPU_DEVICE")(X))
    with config_context(array_api_dispatch=False), pytest.raises(ValueError, match="array_api_dispatch=True"):
        there.predict(X)
    with pytest.raises(ValueError, match=r"SparsityPath\.decision_function"):
        sparse_svm_path(*elsewhere(X, y), ks=[2]).predict(X, 2)


@pytest.mark.parametrize("model", [KernelSparseSVC(k=3), KernelSparseSVCCV(ks=[3])])
def test_kernel_machines_say_that_they_work_in_main_memory(kind, model):
    with pytest.raises(TypeError, match=r"works in main memory.*Give X as a NumPy array"):
        model.fit(*kind(*noisy()))
    X, y = noisy()
    with pytest.raises(ValueError, match="must use the same namespace"):
        model.fit(X, y).predict(kind(X))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_numbers_are_found_on_the_device(kind, bad):
    X, y = noisy()
    X[3, 2] = bad
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        SparseSVC(k=3).fit(*kind(X, y))
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        SparseSVC(k=3).fit(*kind(np.ones_like(X) * np.arange(12), y)).predict(kind(X))


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        (np.ones(150, int), None, "only one class, np.int64\\(1\\)|only one class, 1"),
        (np.linspace(0, 1, 150), None, "Unknown label type: continuous"),
        (None, np.full(150, -1.0), "is negative"),
        (None, np.full(150, np.nan), "sample_weight contains NaN"),
        (None, np.zeros(150), "zero for every sample"),
        (None, np.ones(3), r"sample_weight has shape \(3,\) for 150 samples"),
        (np.ones(3, int), None, "inconsistent numbers of samples"),
        (None, (noisy()[1] > 0).astype(float), "weights of all samples of class"),
    ],
)
def test_bad_labels_and_weights_are_refused_as_numpys_are(kind, y, weights, message):
    X, labels = noisy()
    labels = labels if y is None else y
    with pytest.raises(ValueError, match=message):
        SparseSVC(k=3).fit(*kind(X, labels), None if weights is None else kind(weights))


def test_the_extra_is_named_where_it_is_missing(elsewhere, monkeypatch):
    given = elsewhere(*noisy())
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    with pytest.raises(ImportError, match=r"pip install 'kmargin\[array-api\]'"):
        SparseSVC(k=3).fit(*given)


def test_displays_draw_what_is_on_a_device(elsewhere):
    X, y = three_classes()
    model = SparseSVC(k=3).fit(*elsewhere(X, y))
    expected = SparseSVC(k=3).fit(X, y)
    drawn, numpys = (CoefficientDisplay.from_estimator(m) for m in (model, expected))
    np.testing.assert_allclose(drawn.coefs, numpys.coefs, atol=1e-6)
    assert drawn.machines == numpys.machines
    assert SparsityPathDisplay.from_path(sparse_svm_path(*elsewhere(X, y), ks=[3, 1])).coefs.shape == (2, 8)
