"""Features that come back when half of the rows are drawn anew."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from kmargin import KernelSparseSVC, SparseSVC, SparseSVCCV, StabilitySelection, stability_C
from kmargin.core.validation import resolve_seed
from kmargin.datasets import make_sparse_hyperplane
from kmargin.fitting.subsampling import Halves, draw_halves

WEIGHTED = "weights count rows, and halves are drawn by rows: a row twice is no row of weight two"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:All .* features were selected:UserWarning")
@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
@parametrize_with_checks(
    [StabilitySelection(k=1, n_pairs=2)],
    expected_failed_checks=lambda _: {
        f"check_sample_weight_equivalence_on_{kind}_data": WEIGHTED for kind in ("dense", "sparse")
    },
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    """120 rows of 20 features of unequal scale, of which 3, 7 and 11 tell two classes apart."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 20))
    y = np.where(X[:, [3, 7, 11]] @ [2.0, -2.0, 1.5] + 0.5 * rng.standard_normal(120) > 0, "b", "a")
    return X * rng.uniform(0.1, 10, 20), y


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_features_that_matter_are_stable_and_several_classes_share_them(data, n_classes):
    X, y = data
    if n_classes == 3:
        X, y = X.copy(), np.repeat([0, 1, 2], 40)
        X[:, [3, 7, 11]] += 3 * X.std(axis=0)[[3, 7, 11]] * np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])[y]
    selection = StabilitySelection(k=3, n_pairs=10, random_state=0).fit(X, y)
    np.testing.assert_array_equal(selection.support_, [3, 7, 11])
    assert (selection.q_, selection.n_candidates_) == (3, 20)


@pytest.mark.parametrize("sizes", [(6, 4), (7, 5), (7, 4), (2, 3, 3, 9)])
def test_halves_are_disjoint_equal_in_size_and_have_half_of_each_class(sizes):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    for seed in range(20):
        first, second = draw_halves(codes, np.random.default_rng(seed))
        assert len(first) == len(second) == len(codes) // 2
        assert not set(first) & set(second)
        for half in (first, second):
            counts = np.bincount(codes[half], minlength=len(sizes))
            assert (np.abs(counts - np.array(sizes) / 2) <= 0.5).all()


def test_every_row_is_left_out_as_often_as_any_other_of_a_class_of_odd_size():
    codes = np.repeat([0, 1], [3, 4])
    left_out = np.zeros(7)
    for half, _ in Halves(codes, 600, 0):
        left_out[half] += 1
    np.testing.assert_allclose(left_out[:3], 400, atol=40)
    np.testing.assert_array_equal(left_out[3:], 600)


@pytest.mark.parametrize(
    ("estimator", "standardize"),
    [
        (SparseSVC(k=4, C=0.5), False),
        (SparseSVC(k=4, C=0.5), True),
        (SparseSVC(k=4, C=0.5, standardize=True), False),
        (make_pipeline(StandardScaler(), SparseSVC(k=4, C=0.5)), False),
    ],
    ids=["as they are", "scaled", "scaled by the model", "scaled in a pipeline"],
)
def test_frequencies_are_those_of_a_plain_loop_over_the_halves(data, request, estimator, standardize):
    X, y = data
    weights = np.random.default_rng(2).uniform(0.1, 5.0, 120)
    selection = StabilitySelection(estimator, n_pairs=4, standardize=standardize, random_state=5)
    selection.fit(X, y, weights)
    seed = np.random.RandomState(5).randint(np.iinfo(np.int32).max)
    times = np.zeros(20)
    for half, _ in Halves(np.unique(y, return_inverse=True)[1], 4, seed):
        is_scaled = request.node.callspec.id != "as they are"
        Z = StandardScaler().fit_transform(X[half], sample_weight=weights[half]) if is_scaled else X[half]
        times += SparseSVC(k=4, C=0.5).fit(Z, y[half], weights[half]).get_support()
    np.testing.assert_array_equal(selection.frequencies_, times / 8)
    np.testing.assert_array_equal(selection.get_support(), times / 8 >= selection.threshold_)


class Seeded(BaseEstimator):
    """Selects the feature whose index is its `random_state` modulo 20, if variances are 1."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sample_weight):
        np.testing.assert_allclose(np.cov(X.T, aweights=sample_weight, ddof=0).diagonal(), 1)
        self.coef_ = np.arange(20) == self.random_state % 20
        return self


@pytest.mark.parametrize("estimator", [Seeded(), make_pipeline(StandardScaler(), Seeded())])
def test_every_half_has_a_random_state_of_its_own(data, estimator):
    X, y = data
    selection = StabilitySelection(estimator, n_pairs=8, threshold=0.9, random_state=5)
    selection.fit(X, y, np.random.default_rng(2).uniform(0.1, 5.0, 120))
    halves = Halves(np.unique(y, return_inverse=True)[1], 8, resolve_seed(5))
    seeds = [seed for _, seed in halves]
    assert len(set(seeds)) == len(halves) == 16
    np.testing.assert_array_equal(selection.frequencies_, np.bincount(np.mod(seeds, 20), minlength=20) / 16)


@pytest.mark.parametrize(
    "estimator",
    [SparseSVC(k=5), make_pipeline(StandardScaler(), LinearSVC(penalty="l1", dual=False, C=0.1))],
    ids=["machines", "any estimator"],
)
def test_any_number_of_jobs_gives_the_same_bits(data, estimator):
    each = (StabilitySelection(estimator, n_pairs=5, random_state=1, n_jobs=n) for n in (1, 2))
    alone, together = (selection.fit(*data) for selection in each)
    np.testing.assert_array_equal(alone.frequencies_, together.frequencies_)
    assert alone.bounds_ == together.bounds_


def test_sparse_rows_give_what_the_array_gives(data):
    X, y = data
    X = np.where(np.abs(X) > 0.3, X, 0)
    dense = StabilitySelection(k=3, n_pairs=4, random_state=0).fit(X, y)
    sparse = StabilitySelection(k=3, n_pairs=4, random_state=0).fit(scipy.sparse.csc_array(X), y)
    np.testing.assert_array_equal(dense.frequencies_, sparse.frequencies_)
    assert sparse.transform(scipy.sparse.csr_matrix(X)).shape == (120, len(sparse.support_))


def test_frames_keep_their_names_and_groups_may_go_by_them(data):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(20)])
    groups = {"pathway": ["gene 3", "gene 7"]}
    model = SparseSVC(k=2, groups=groups, keep=["gene 0"], avoid=["gene 11"])
    selection = StabilitySelection(model, n_pairs=5, random_state=0).set_output(transform="pandas")
    selection.fit(frame, y)
    assert list(selection.get_feature_names_out()) == ["gene 0", "gene 3", "gene 7"]
    assert list(selection.transform(frame).columns) == ["gene 0", "gene 3", "gene 7"]
    assert (selection.q_, selection.n_candidates_) == (1, 17)  # the pathway and 16 genes
    assert selection.frequencies_[[0, 11]].tolist() == [1, 0]
    summary = selection.summary().set_index("feature")
    assert (summary.loc["gene 3", "group"], summary["always_in"].sum()) == ("pathway", 1)
    assert list(summary.index[:3]) == ["gene 0", "gene 3", "gene 7"]
    assert summary["stable"].sum() == 3


def test_the_ridge_follows_rows_and_features_unless_it_is_given(data):
    assert stability_C(100, 1000) == 0.00125
    assert stability_C(101, 1000) == 0.00125
    assert stability_C(400, 1000) == 16 * stability_C(100, 1000) == 10 * stability_C(400, 10_000)
    assert stability_C(10_000, 10) == 1
    X, y = data
    selection = StabilitySelection(k=3, n_pairs=2, random_state=0).fit(X, y)
    assert selection.estimator_.C == stability_C(*X.shape) == 60**2 / (2000 * 20)
    given = StabilitySelection(SparseSVC(k=3, C=stability_C(*X.shape)), n_pairs=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(given.frequencies_, selection.frequencies_)
    assert StabilitySelection(k=3, C=0.2, n_pairs=2, random_state=0).fit(X, y).estimator_.C == 0.2


def test_a_group_is_selected_where_any_of_its_features_is(data):
    X, y = data
    groups = np.arange(20) // 2  # 3 and 7 and 11 in 1, 3, 5
    selection = StabilitySelection(SparseSVC(k=3, groups=groups), n_pairs=5, random_state=0).fit(X, y)
    assert [int(label) for label in selection.groups_] == list(range(10))
    np.testing.assert_array_equal(np.flatnonzero(selection.group_frequencies_ >= 0.9), [1, 3, 5])
    np.testing.assert_array_equal(selection.support_, [2, 3, 6, 7, 10, 11])
    assert selection.n_candidates_ == 10
    alone = StabilitySelection(k=3, n_pairs=2, random_state=0).fit(X, y).summary()
    assert list(alone) == ["feature", "frequency", "always_in", "stable"]
    assert set(selection.summary()) - set(alone) == {"group", "group_frequency"}
    avoiding = StabilitySelection(SparseSVC(k=3, groups=groups, avoid=[3]), n_pairs=2, random_state=0)
    summary = avoiding.fit(X, y).summary().set_index("feature")
    assert summary.loc["3"].tolist() == ["3", 0, 0, False, False]  # avoided, and so in no group
    assert summary.loc["2"].tolist() == ["1", *[avoiding.group_frequencies_[1]] * 2, False, False]


@pytest.mark.parametrize(
    "estimator", [SelectKBest(k=3), SparseSVCCV(ks=[3, 2], cv=2), GridSearchCV(SparseSVC(), {"k": [3]}, cv=2)]
)
def test_whatever_selects_can_be_asked(data, estimator):
    selection = StabilitySelection(estimator, n_pairs=2, random_state=0).fit(*data)
    assert {3, 7} <= set(selection.support_)
    assert selection.q_ <= 3


def test_missing_numbers_reach_a_pipeline_that_fills_them_in(data):
    X, y = data
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.02, np.nan, X)
    pipeline = make_pipeline(SimpleImputer(strategy="median"), SparseSVC(k=3))
    selection = StabilitySelection(pipeline, n_pairs=5, random_state=0).fit(X, y)
    assert {3, 7} <= set(selection.support_)
    assert selection.transform(X).shape == (120, len(selection.support_))
    with pytest.raises(ValueError, match="NaN"):
        StabilitySelection(k=3, n_pairs=5).fit(X, y)


def test_rows_without_weight_are_as_if_they_were_not_there(data):
    X, y = data
    more, wrong = np.vstack([X, -X]), np.concatenate([y, y])
    weights, groups = np.repeat([1.0, 0.0], 120), np.arange(240) // 2
    for estimator in (SparseSVC(k=3), make_pipeline(StandardScaler(), SparseSVC(k=3))):
        plain = StabilitySelection(estimator, n_pairs=3, random_state=0).fit(X, y, None, groups[:120])
        weighted = StabilitySelection(estimator, n_pairs=3, random_state=0).fit(more, wrong, weights, groups)
        np.testing.assert_array_equal(plain.frequencies_, weighted.frequencies_)


def test_auto_is_the_lowest_threshold_that_keeps_the_bound(data):
    default = StabilitySelection()
    assert (default.threshold, default.max_false, default.bound) == ("auto", 1.0, "unimodal")
    for bound in ("worst_case", "unimodal", "r_concave"):
        selection = StabilitySelection(
            k=4, n_pairs=10, threshold="auto", max_false=0.9, bound=bound, random_state=0
        ).fit(*data)
        assert selection.threshold_ == selection.threshold_for(0.9, bound)
        assert getattr(selection.bounds_, bound) <= 0.9
        below = selection.threshold_ - 1 / 20
        assert below <= 0.5 or getattr(selection.bounds_at(below), bound) > 0.9
        stable = np.flatnonzero(selection.frequencies_ >= selection.threshold_ - 1e-12)
        np.testing.assert_array_equal(selection.support_, stable)


def test_half_of_eight_causal_features_among_a_thousand_are_found_and_hardly_a_false_one():
    n_true, n_false = [], []
    for seed in range(2):
        X, y, coef = make_sparse_hyperplane(200, 1000, 8, random_state=seed, return_coef=True)
        found = StabilitySelection(k=20, n_pairs=20, random_state=seed).fit(X, y).support_
        n_true.append(np.count_nonzero(coef[found]))
        n_false.append(len(found) - n_true[-1])
    assert np.mean(n_true) >= 4  # 3.6 with a threshold of 0.9
    assert np.mean(n_false) < 1


@pytest.mark.parametrize(
    ("n_features", "k", "words"),
    [
        (2, 2, "All 2 features were selected on every half"),
        (20, 15, "no threshold keeps the number expected by chance at max_false=0.1"),
    ],
)
def test_selecting_everything_and_a_bound_that_no_threshold_keeps_are_told(data, n_features, k, words):
    X, y = data
    selection = StabilitySelection(k=k, n_pairs=3, max_false=0.1, bound="worst_case", random_state=0)
    with pytest.warns(UserWarning, match=words):
        selection.fit(X[:, :n_features], y)
    assert selection.threshold_ == 1


def test_a_warning_of_many_fits_is_told_once_and_one_about_all_rows_as_it_is_to_whoever_called_fit(data):
    (X, y), lasso = data, LinearSVC(penalty="l1", dual=False, max_iter=1, C=0.1)
    with pytest.warns(UserWarning, match=r"\(2 such warnings from 2 halves\)") as caught:
        StabilitySelection(lasso, n_pairs=1, threshold=0.9, random_state=0).fit(X, y)
    assert len(caught) == 1
    with pytest.warns(UserWarning, match=r"1 feature repeats an earlier one .* is used\.$") as caught:
        StabilitySelection(k=3, n_pairs=2, random_state=0).fit(np.hstack([X, X[:, :1]]), y)
    assert [warning.filename for warning in caught] == [__file__]


def test_progress_is_shown_if_asked_for(data, capsys):
    StabilitySelection(k=2, n_pairs=5, verbose=1).fit(*data)
    assert "stability selection: 10/10" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_pairs": 0}, "n_pairs=0 is not a number of pairs of halves. Use an integer >= 1."),
        ({"threshold": 0.5}, "threshold=0.5 is not a proportion above one half"),
        ({"threshold": 1.01}, "above 0.5, at most 1, or leave it out"),
        ({"k": "all"}, 'k="all" keeps every feature on every half, so nothing is selected'),
        ({"k": 0}, "k=0 is not a number of features to select on each half"),
        ({"C": -1}, "C=-1 is not a positive weight of the loss"),
        ({"max_false": 0}, "max_false=0 is not an expected number"),
        ({"bound": "best"}, "bound='best' is not known. Use one of 'worst_case', 'unimodal', 'r_concave'."),
        ({"estimator": SparseSVC(k="all")}, 'estimator with k="all" keeps every feature'),
        ({"estimator": SparseSVC(k=2), "k": 3}, "k=3 cannot be combined with estimator=SparseSVC, which has"),
        ({"estimator": 10}, r"estimator=10 is not an estimator. .* StabilitySelection\(k=10\)"),
        ({"estimator": DecisionTreeClassifier()}, "DecisionTreeClassifier does not select features"),
        ({"estimator": KernelSparseSVC(k=2)}, "KernelSparseSVC does not select features"),
        ({"estimator": make_pipeline(PolynomialFeatures(), SparseSVC(k=2))}, "231 features, but X has 20"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(data, options, words):
    with pytest.raises(ValueError, match=words):
        StabilitySelection(**({"n_pairs": 1} | options)).fit(*data)


def test_each_class_needs_a_row_in_each_half_and_weights_an_estimator_that_takes_them(data):
    X, y = data
    with pytest.raises(ValueError, match="Class 'c' has only one row, but each half needs one"):
        StabilitySelection(k=1).fit(X, np.append(y[:-1], "c"))
    selection = StabilitySelection(k=1, n_pairs=1, threshold=0.9).fit(X, np.append(y[:-2], ["c", "c"]))
    assert (selection.q_, selection.threshold_) == (1, 1)
    with pytest.raises(ValueError, match="only one class"):
        StabilitySelection(k=1).fit(X, np.full(120, "a"))
    with pytest.raises(ValueError, match="SelectKBest does not accept sample_weight"):
        StabilitySelection(SelectKBest(k=1), n_pairs=1).fit(X, y, sample_weight=np.ones(120))
