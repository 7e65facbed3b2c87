"""Bad input gets one clear sentence, before any work is done."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from kmargin import MM, SD, Exchange, KernelSparseSVC, SparseSVC
from kmargin.core import validation
from kmargin.core.validation import resolve_k, shortly
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
            {"solver": Exchange(effort="very")},
            "effort='very' is not valid for Exchange. Use one of 'fast', 'nor",
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
        ({"kernel": lambda A, B: A[:, 0]}, r"kernel function returned shape \(20,\) for 20 and 20 points"),
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
        (X, None, "requires y to be passed"),
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
        (10.0 ** -np.r_[31, [0] * 19], r"from 1e-31 to 1, and may differ by at most a factor of 1e\+30"),
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


def test_solver_knobs_are_set_on_a_copy_of_the_object_and_not_on_a_name():
    given_solver = MM(rho_growth=1.5)
    resolved = resolve_solver(given_solver)
    assert resolved is not given_solver
    assert resolved.rho_growth == 1.5
    words = r"solver__rho_growth cannot be set while solver='mm' is a string.*MM\(\)"
    with pytest.raises(ValueError, match=words):
        SparseSVC(solver="mm").set_params(solver__rho_growth=1.5)


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (validation.check_k, [0, 3, 2**70, np.int64(3), "all"], [-1, 3.0, np.nan, None, "al", True, [1]]),
        (validation.check_C, [1, 5e-324, 2**70, np.inf], [0, -1, -np.inf, np.nan, True, "1", None]),
        (validation.check_n_jobs, [None, -1, 1, 2], [0, 1.0, True, "1"]),
        (validation.check_verbose, [0, 1, True, np.False_], [-1, 0.5, None]),
        (validation.check_tolerance, [0, 1e-9, 2], [-1e-9, np.inf, np.nan, True]),
        (lambda n: validation.check_count("n", n, "rows"), [1, np.int8(2)], [0, 1.0, True]),
        (validation.check_scoring, [None, "accuracy", len], ["acuracy", int, 3]),
        (validation.check_cv, [None, 2, KFold(2), [([0], [1])], iter([])], [1, True, [], [3], KFold, {}, X]),
        (lambda n: validation.resolve_n_candidates(n, 9), [None, "all", 1], [0, 1.5, True, "every"]),
        (validation.random_source, [None, 0, 2**32 - 1], [-1, 2**32, "0"]),
        (validation.resolve_Cs, [1, [0.5], np.array([2.0])], [[], "1", [0.0], None, True]),
        (lambda c: validation.class_factors(c, np.array(["a", "b"]), np.ones(2)),
         ["balanced", None, {"a": 2}, {}, {"a": 1, "b": 2, "c": 3}, {"a": 0}],
         ["equal", 2.0, {"c": 1}, {"a": 1, "c": 1}, {"a": -1}, {"b": np.inf}]),
        (lambda w: validation.check_sample_weight(w, 2), [None, 2, [0, 1]], [[1], [0, 0], [-1, 1], "ab"]),
    ],
)  # fmt: skip
def test_what_is_right_passes_and_what_is_wrong_does_not(check, right, wrong):
    for value in right:
        check(value)
    for value in wrong:
        with pytest.raises(ValueError, match=r"\w+"):
            check(value)


def test_what_is_right_is_read_as_it_was_meant():
    assert [resolve_k(k, 5) for k in (0, 4, 5, "all")] == [0, 4, 5, 5]
    assert [validation.resolve_n_candidates(n, 9) for n in (None, "all", 10)] == [None, 9, 10]
    assert (validation.resolve_Cs([1, 0.1, 1]), validation.resolve_Cs(2)) == ([0.1, 1.0], [2.0])
    assert validation.resolve_seed(0) == np.random.RandomState(0).randint(2**31 - 1)
    balanced = validation.class_factors("balanced", np.arange(2), np.array([1, 3]))
    np.testing.assert_allclose(balanced, [2, 2 / 3])
    np.testing.assert_array_equal(validation.check_sample_weight(2, 3), [2, 2, 2])
    resolve_ks = validation.resolve_ks
    spaced = {int(k) for k in np.round(np.geomspace(1000, 1, 20))}
    assert set(resolve_ks(None, 1000)) == set(resolve_ks(None, 2000, 1000)) == spaced
    assert [resolve_ks(None, 3, 5), resolve_ks([1, "all", 3, 1], 5)] == [[3, 2, 1], [5, 3, 1]]
    assert [resolve_ks(n, p, n_fixed=4) for n, p in [(3, 9), (3, 16), (2, 3)]] == [[9], [16, 4], [4]]
    assert resolve_ks([4, 5], 9, n_fixed=4) == [5, 4]
    with pytest.raises(ValueError, match=r"k=3 is less than the 4 features in `keep`"):
        resolve_ks([3, 5], 9, n_fixed=4)
    for resolve in (resolve_k, lambda k, n: resolve_ks([k, 1], n)):
        resolve(9, 9)
        with pytest.warns(UserWarning, match="k=10 is greater than the number of features, 9: all") as caught:
            resolve(10, 9)
        assert caught[0].filename == __file__


def test_messages_list_count_and_suggest():
    assert [validation.listing("ab", 2), validation.listing("abc", 2)] == ["'a', 'b'", "'a', 'b' and 1 more"]
    assert validation.listing([*range(1006)]) == "'0', '1', '2', '3', '4' and 1,001 more"
    assert validation.nearest("AGE", ["weight", "Age", "age"]) == "Did you mean 'Age'?"
    assert validation.nearest("x1", ["x10"]) == "Did you mean 'x10'?"
    assert validation.nearest("x1", ["x10", "x11", "x12", "x13"]).count(" or ") == 2
    assert validation.nearest("zz", "abcdefghi") == f"It has {', '.join(map(repr, 'abcdefgh'))} and 1 more."
    assert [validation.nearest("", "a"), validation.nearest("a", "")] == ["It has 'a'.", "It has none."]
    assert [validation.count(n, "row") for n in (0, 1, 1000)] == ["0 rows", "1 row", "1,000 rows"]
    for length in (58, 59, 60):  # and two quotation marks
        text = repr("a" * length)
        assert shortly("a" * length) == (text if length < 59 else f"{text[:57]}...")
    assert [validation.count(2, "class"), shortly(int), shortly("a\n b")] == ["2 classes", "int", r"'a\n b'"]
    assert validation.suggest("MM", ["sd", "mm"]) == " Did you mean 'mm'? Use one of 'sd', 'mm'."
