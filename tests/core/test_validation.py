"""Bad input gets one clear sentence, before any work is done."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmargin import MM, SD, Exchange, KernelSparseSVC, SparseSVC, sparse_svm_path
from kmargin.core.validation import check_C, check_k, resolve_k, ridge, shortly
from kmargin.solvers import resolve_solver

X = np.random.default_rng(0).standard_normal((20, 3))
y = np.where(X[:, 0] > 0, 1, -1)

ESTIMATORS = [SparseSVC, KernelSparseSVC]
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


@pytest.fixture(autouse=True)
def no_work_is_done(monkeypatch, request):
    """Fail if a solver starts although the input is bad."""
    if "works" in request.keywords:
        return

    def refuse(*args, **kwargs):
        raise AssertionError("the solver was started on bad input")

    for solver in (MM, SD, Exchange):
        monkeypatch.setattr(solver, "solve_grid", refuse)


@each_estimator
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k": -3}, r"k=-3 asks for -3 nonzero coefficients\. Use an integer k >= 0, or k=\"all\""),
        ({"k": 3.0}, r"k=3\.0 is not a number of nonzero coefficients\. Use an integer k >= 0"),
        ({"C": 0}, r"C=0 is not a positive weight of the loss.*Use a number C > 0, or C=inf"),
        ({"C": np.nan}, r"C=nan is not a number\. Use a number C > 0"),
        ({"solver": "mmm"}, r"solver='mmm' is not known\. Did you mean 'mm'\? Use one of 'exchange', 'mm'"),
        ({"multi_class": "crammer"}, r"multi_class='crammer' is not known\. Use one of 'ovo', 'ovr'"),
        ({"solver": MM(rho_growth=1.0)}, r"rho_growth=1\.0 is not valid for MM\. Use a growth factor > 1"),
        ({"solver": SD(max_inner=0)}, r"max_inner=0 is not valid for SD\. Use a number of steps"),
        ({"solver": MM(gtol=-1)}, "gtol=-1 is not valid"),
        ({"solver": MM(delay=-1)}, "delay=-1 is not valid"),
        (
            {"solver": Exchange(effort="extreme")},
            "effort='extreme' is not valid for Exchange. Use one of 'fast', 'normal', 'thorough'",
        ),
        ({"solver": Exchange(tol=0.0)}, r"tol=0\.0 is not valid"),
        ({"solver": MM(start="zero")}, "start='zero' is not valid for MM. Use 'univariate' or 'normal'"),
    ],
)
def test_a_bad_parameter_is_named_with_its_value_and_a_remedy(estimator, parameters, message):
    with pytest.raises(ValueError, match=message):
        estimator(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rfb"}, r"kernel='rfb' is not known\. Did you mean 'rbf'\?"),
        ({"gamma": "scael"}, r"gamma='scael' is not known\. Did you mean 'scale'\?"),
        ({"gamma": -1.0}, r"gamma=-1\.0 is not valid"),
        ({"kernel": "poly", "degree": np.nan}, "degree=nan is not valid"),
        ({"kernel": "poly", "degree": "3"}, "degree='3' is not valid"),
        ({"kernel": "poly", "coef0": np.inf}, "coef0=inf is not valid"),
        ({"kernel": "poly", "coef0": None}, "coef0=None is not valid"),
        ({"kernel": "precomputed"}, r"X has shape \(20, 3\), but with kernel='precomputed'"),
        (
            {"kernel": lambda A, B: np.zeros(len(A))},
            r"The kernel function returned shape \(20,\) for 20 and 20 points",
        ),
    ],
)
def test_a_bad_kernel_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        KernelSparseSVC(**parameters).fit(X, y)


def changed(row, column, value):
    Z = X.copy()
    Z[row, column] = value
    return Z


@each_estimator
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (X, np.ones(20), r"y has only one class, 1.0, so there is nothing to classify"),
        (X, np.linspace(0, 1, 20), "Unknown label type"),
        (changed(3, 1, np.nan), y, "Input X contains NaN"),
        (changed(3, 1, np.inf), y, "Input X contains infinity"),
        (np.empty((0, 3)), np.empty(0), r"Found array with 0 sample\(s\)"),
        (np.empty((20, 0)), y, r"0 feature\(s\) \(shape=\(20, 0\)\) while a minimum of 1 is required"),
        (X, y[:-1], "inconsistent numbers of samples"),
        (X, None, "requires y to be passed"),
        (X[:, 0], y, "Expected 2D array, got 1D array instead"),
    ],
)
def test_bad_data_are_refused(estimator, X, y, message):
    with pytest.raises(ValueError, match=message):
        estimator().fit(X, y)


@each_estimator
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.r_[-1.0, np.ones(19)], r"sample_weight\[0\]=-1 is negative"),
        (np.zeros(20), "sample_weight is zero for every sample"),
        (np.r_[np.nan, np.ones(19)], "sample_weight contains NaN or infinity"),
        (np.ones(19), r"sample_weight has shape \(19,\) for 20 samples"),
        (
            np.where(np.arange(20) % 5, 1.0, 1e-31),
            r"from 1e-31 to 1, and may differ by at most a factor of 1e\+30",
        ),
        (np.where(y == 1, 0.0, 1.0), r"The weights of all samples of class .*1.* are zero"),
    ],
)
def test_bad_weights_are_refused(estimator, weights, message):
    with pytest.raises(ValueError, match=message):
        estimator().fit(X, y, sample_weight=weights)


@pytest.mark.works
@each_estimator
def test_another_number_of_features_is_refused_and_a_failed_fit_leaves_the_last_one_usable(estimator):
    model = estimator(k=2).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="one class"):
        model.fit(X, np.ones(20))
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        model.predict(X[:, :2])
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_path_of_one_class_is_refused_too():
    with pytest.raises(ValueError, match="only one class"):
        sparse_svm_path(X, np.ones(20))


def test_solver_knobs_are_set_on_a_copy_of_the_object_and_not_on_a_name():
    given_solver = MM(rho_growth=1.5)
    resolved = resolve_solver(given_solver)
    assert resolved is not given_solver
    assert resolved.rho_growth == 1.5
    words = r"solver__rho_growth cannot be set while solver='mm' is a string.*MM\(\)"
    with pytest.raises(ValueError, match=words):
        SparseSVC(solver="mm").set_params(solver__rho_growth=1.5)


@given(st.integers(), st.integers(min_value=1, max_value=50))
def test_an_integer_is_a_k_unless_it_is_negative(k, n_features):
    if k < 0:
        with pytest.raises(ValueError, match="k=-"):
            check_k(k)
        return
    check_k(k)
    check_k(np.int64(min(k, 2**60)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert resolve_k(k, n_features) == min(k, n_features)


@given(st.one_of(st.floats(), st.text(), st.none(), st.lists(st.integers()), st.booleans()))
def test_nothing_but_integers_and_all_is_a_k(k):
    if k == "all":
        check_k(k)
        return
    with pytest.raises(ValueError, match="is not a number of nonzero"):
        check_k(k)


@given(st.one_of(st.floats(), st.integers(), st.text(), st.booleans()))
def test_C_is_a_positive_number_or_refused(C):
    fine = isinstance(C, int | float) and not isinstance(C, bool) and C > 0
    if fine:
        check_C(C)
    else:
        with pytest.raises(ValueError, match="C="):
            check_C(C)


@given(st.floats(1e-6, 1e6), st.integers(1, 10**6))
def test_the_ridge_is_LinearSVCs(C, n):
    assert ridge(C, n) == pytest.approx(1 / (2 * C * n))
    assert ridge(np.inf, n) == 0


def test_a_value_in_a_message_has_at_most_60_characters():
    for length in (58, 59, 60):  # and two quotation marks
        text = repr("a" * length)
        assert shortly("a" * length) == (text if len(text) <= 60 else f"{text[:57]}...")
    assert len(shortly("a" * 59)) == 60
