"""What is true of KernelSparseSVC."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_circles
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from kmargin import MM, SD, Exchange, KernelSparseSVC, SparseSVC
from kmargin.datasets import make_spiral

# where the paper's second stopping rule ends a run early, the fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each_solver = pytest.mark.parametrize("solver", ["exchange", "mm", "sd"])


@pytest.fixture(scope="module")
def circles():
    return make_circles(120, factor=0.4, noise=0.1, random_state=0)


@each_solver
@pytest.mark.parametrize("k", [0, 5, "all"])
def test_at_most_k_training_points_are_kept(solver, circles, k):
    X, y = circles
    model = KernelSparseSVC(k=k, solver=solver).fit(X, y)
    assert model.dual_coef_.shape == (1, len(model.support_))
    assert len(model.support_) <= (len(y) if k == "all" else k)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])


@pytest.mark.parametrize(
    ("kernel", "gamma"),
    [("rbf", "scale"), ("poly", "auto"), ("sigmoid", 0.7), ("linear", "scale"), (rbf_kernel, "scale")],
)
def test_decisions_are_kernel_values_times_coefficients(circles, kernel, gamma):
    X, y = circles
    model = KernelSparseSVC(k=6, kernel=kernel, gamma=gamma, degree=2, coef0=0.5).fit(X, y)
    g = SVC(gamma=gamma).fit(X, y)._gamma
    reference = {
        "rbf": lambda A, B: np.exp(-g * ((A[:, None] - B) ** 2).sum(axis=-1)),
        "poly": lambda A, B: (g * A @ B.T + 0.5) ** 2,
        "sigmoid": lambda A, B: np.tanh(g * A @ B.T + 0.5),
        "linear": lambda A, B: A @ B.T,
        rbf_kernel: rbf_kernel,
    }[kernel]
    K = reference(X, X[model.support_])
    decisions = K @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), decisions)
    loss = np.mean(np.maximum(0, 1 - np.where(y, 1, -1) * decisions) ** 2) / 2
    np.testing.assert_allclose(model.objective_[0], loss + np.sum(model.dual_coef_**2) / (4 * len(y)))


@each_solver
def test_circles_need_a_kernel_and_few_points(solver, circles):
    X, y = circles
    assert KernelSparseSVC(k=8, C=100.0, solver=solver).fit(X, y).score(X, y) > 0.9
    assert KernelSparseSVC(k=8, kernel="linear", C=100.0, solver=solver).fit(X, y).score(X, y) < 0.75


@each_solver
def test_a_precomputed_kernel_gives_the_same_machine(solver, circles):
    X, y = circles
    K = rbf_kernel(X, gamma=0.8)
    weights = np.arange(len(y)) % 3  # some rows are left out
    direct = KernelSparseSVC(k=7, gamma=0.8, solver=solver).fit(X, y, sample_weight=weights)
    given = KernelSparseSVC(k=7, kernel="precomputed", solver=solver).fit(K, y, sample_weight=weights)
    assert (weights[given.support_] > 0).all()
    assert (weights[direct.support_] > 0).all()
    np.testing.assert_array_equal(direct.support_vectors_, X[direct.support_])
    expected = K[:, given.support_] @ given.dual_coef_[0] + given.intercept_[0]
    np.testing.assert_allclose(given.decision_function(K), expected)
    if solver == "mm":  # the two kernel matrices differ in their last bits, which SD amplifies
        np.testing.assert_array_equal(given.support_, direct.support_)
        np.testing.assert_allclose(given.objective_, direct.objective_, rtol=1e-10)


@each_solver
def test_linear_kernel_with_all_points_predicts_as_the_linear_machine_does(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(80) > 0, 1, -1)
    tight = {"gtol": 1e-14, "max_inner": 10**5}
    exact = {"exchange": Exchange(tol=1e-15), "mm": MM(**tight), "sd": SD(**tight)}[solver]
    kernel = KernelSparseSVC(k="all", kernel="linear", C=np.inf, solver=exact).fit(X, y)
    linear = SparseSVC(k="all", C=np.inf, solver=exact).fit(X, y)
    new = rng.standard_normal((500, 3))
    np.testing.assert_allclose(kernel.decision_function(new), linear.decision_function(new), atol=1e-4)
    np.testing.assert_array_equal(kernel.predict(new), linear.predict(new))


def test_the_model_does_not_grow_with_the_data():
    sizes = []
    for n in (100, 400):
        X, y = make_circles(n, factor=0.4, noise=0.1, random_state=0)
        model = KernelSparseSVC(k=5).fit(X, y)
        model.solutions_ = ()  # the length of a trace depends on the number of steps
        sizes.append(len(pickle.dumps(model)))
    assert sizes[1] <= sizes[0] + 100


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_float32_in_float32_out(multi_class):
    X, y = make_spiral((40, 30, 20), random_state=0)
    model = KernelSparseSVC(k=5, multi_class=multi_class).fit(X.astype(np.float32), y)
    assert model.dual_coef_.dtype == model.support_vectors_.dtype == np.float32
    assert model.decision_function(X.astype(np.float32)).dtype == np.float32
