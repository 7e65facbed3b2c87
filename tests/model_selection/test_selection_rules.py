"""Choosing k and C, and what is fitted afterwards: each rule against a few lines that say it again."""

import warnings

import numpy as np
import pytest
from scipy import sparse as sp
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmargin import MM, Exchange, KernelSparseSVC, SparseSVC, SparseSVCCV, honest_score, sparse_svm_path
from kmargin.core.scaling import unit_variance_scaling
from kmargin.core.validation import RepeatedFeaturesWarning, ridge
from kmargin.data.design.dense import DenseDesign
from kmargin.data.samples.array import read_samples
from kmargin.fitting.spec import KernelBlueprint, repeats_to_report
from kmargin.model_selection.scores import ScoreTable
from kmargin.solvers import Solution, Status
from kmargin.solvers.solver import Solver


def noisy(n_samples=60, n_features=6, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    score = X[:, 0] - 0.7 * X[:, 1] + 0.4 * X[:, 2] + 0.6 * rng.standard_normal(n_samples)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def scores_with(mean, best_error, n_folds=5):
    """Scores with given means [C][k]; those of the best pair have a given standard error, the others none."""
    mean = np.asarray(mean, dtype=float)
    scores = np.repeat(mean[None], n_folds, axis=0)
    row, column = np.unravel_index(mean.argmax(), mean.shape)
    spread = np.linspace(-1, 1, n_folds)
    spread *= best_error * np.sqrt(n_folds) / spread.std(ddof=1)
    scores[:, row, column] += spread
    return scores


MANY = 10**9  # rows, so that a share of them has no error of its own

KS, CS = [8, 4, 2, 1], [0.1, 1.0, 10.0]


@pytest.mark.parametrize(
    ("mean", "error", "chosen"),
    [
        # k = 2 is close enough at the smallest C alone, which is not the best one's
        ([[0.5, 0.5, 0.89, 0.5], [0.6, 0.9, 0.6, 0.5], [0.5, 0.5, 0.5, 0.5]], 0.02, (0, 2)),
        # k = 2 is close enough at two C; of these the better one, not the smaller one, nor that of the best k
        ([[0.5, 0.9, 0.885, 0.5], [0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.89, 0.5]], 0.02, (2, 2)),
        # the C of the chosen k are equal: the smaller one
        ([[0.5, 0.5, 0.89, 0.5], [0.5, 0.5, 0.89, 0.5], [0.5, 0.9, 0.5, 0.5]], 0.02, (0, 2)),
        # just too far
        ([[0.5, 0.5, 0.879, 0.5], [0.6, 0.9, 0.6, 0.5], [0.5, 0.5, 0.5, 0.5]], 0.02, (1, 1)),
        # close by a population's standard error no more: 5 folds make it smaller by a tenth
        ([[0.5, 0.5, 0.881, 0.5], [0.6, 0.9, 0.6, 0.5], [0.5, 0.5, 0.5, 0.5]], 0.02, (0, 2)),
    ],
)
def test_one_standard_error_looks_at_every_C_for_the_smallest_k_and_then_takes_its_best(mean, error, chosen):
    assert ScoreTable(scores_with(mean, error), CS, KS, MANY).choose("1se") == chosen


def test_the_standard_error_is_that_of_the_best_pair_and_among_equals_k_comes_before_C():
    scores = scores_with([[0.5, 0.5, 0.5, 0.5], [0.6, 0.9, 0.8, 0.5]], 0.001)
    scores[:, 0, 1] += np.linspace(-0.4, 0.4, 5)  # the same k at another C is all over the place
    assert ScoreTable(scores, CS[:2], KS, MANY).choose("1se") == (1, 1)
    scores = scores_with([[0.9, 0.5, 0.5, 0.5], [0.5, 0.5, 0.9, 0.5]], 0.0)
    assert ScoreTable(scores, CS[:2], KS, MANY).choose("best") == (1, 2)


class Diary(Solver):
    """Finds a coefficient that tells which ridge and k were asked for, and keeps a record."""

    asked: list = []  # noqa: RUF012 - shared with clones on purpose

    def __init__(self, in_fold=False):
        self.in_fold = in_fold

    def check(self):
        pass

    def in_folds(self):
        return Diary(in_fold=True)

    def solve_grid(self, problem, lams, ks, rng):
        Diary.asked.append((self.in_fold, [lam for (lam,) in lams], list(ks), rng.random()))
        p = problem.units.n_features
        for (lam,) in lams:
            for k in ks:
                coef = np.append(lam, np.ones(k - 1))
                yield (Solution(np.arange(k), coef, 0.0, p, 0.0, 0.0, Status.CONVERGED, 0),)


def told_scores(X, y, table, n_folds=4):
    """A scorer that knows the score of every fold, C and k beforehand."""
    numbers = {X[test[0], 0]: fold for fold, (_, test) in enumerate(StratifiedKFold(n_folds).split(X, y))}
    n_train = len(y) - len(y) // n_folds

    def scorer(model, X, y):
        C, k = 1 / (2 * model.coef_[0, 0] * n_train), np.count_nonzero(model.coef_)
        return table[numbers[X[0, 0]], DIARY_CS.index(round(C, 6)), DIARY_KS.index(k)]

    return scorer


DIARY_CS, DIARY_KS = [0.1, 1.0, 10.0, 100.0], [4, 2, 1]


def test_the_refit_walks_from_the_smallest_C_to_the_chosen_one_and_stops_there():
    X, y = noisy(40, 4)
    table = np.zeros((4, 4, 3))
    table[:, 1, 1] = 1.0
    Diary.asked.clear()
    scorer = told_scores(X, y, table)
    model = SparseSVCCV(DIARY_KS, Cs=DIARY_CS, cv=4, solver=Diary(), scoring=scorer).fit(X, y)
    assert (model.C_, model.k_) == (1.0, 2)
    in_folds, refit, final = Diary.asked[:-2], *Diary.asked[-2:]
    assert [record[0] for record in in_folds] == [True] * 4
    for _, lams, ks, _ in in_folds:
        np.testing.assert_allclose(lams, [ridge(C, 30) for C in DIARY_CS])
        assert ks == DIARY_KS
    assert refit[0] is False
    np.testing.assert_allclose(refit[1], [ridge(0.1, 40), ridge(1.0, 40)])
    np.testing.assert_allclose(final[1], [ridge(1.0, 40)])
    assert final[2] == [2]
    assert model.coef_[0, 0] == ridge(1.0, 40)
    assert np.count_nonzero(model.coef_) == 2
    assert [np.count_nonzero(coefs) for coefs in model.path_.coefs] == DIARY_KS
    assert model.best_score_ == 1.0


def test_under_one_standard_error_the_model_and_its_score_are_those_of_the_frugal_pair():
    X, y = noisy(40, 4)
    table = np.zeros((4, 4, 3))
    table[:, 3, 0] = 0.9, 0.8, 0.9, 0.8  # the best: a mean of .85, a standard error of .029
    table[:, 2, 2] = 0.83  # close enough, and frugal
    table[:, 0, 2] = 0.825
    table[:, 0, 1] = 0.84
    given = {"Cs": DIARY_CS, "cv": 4, "solver": Diary(), "scoring": told_scores(X, y, table)}
    best, frugal = (SparseSVCCV(DIARY_KS, selection=rule, **given).fit(X, y) for rule in ("best", "1se"))
    assert (best.C_, best.k_, round(best.best_score_, 9)) == (100.0, 4, 0.85)
    assert (frugal.C_, frugal.k_, round(frugal.best_score_, 9)) == (10.0, 1, 0.83)
    assert frugal.coef_[0, 0] == ridge(10.0, 40)
    assert np.count_nonzero(frugal.coef_) == 1
    means = frugal.cv_results_["mean_test_score"]
    np.testing.assert_allclose(means, table.mean(axis=0).ravel())  # each C and k has its own model


def test_every_machine_has_random_numbers_of_its_own_whoever_solves_it():
    X, y = noisy(40, 4, n_classes=3)
    drawn = []
    for n_jobs, seed in ((1, 0), (2, 0), (1, 1)):
        Diary.asked.clear()
        SparseSVC(2, solver=Diary(), n_jobs=n_jobs, random_state=seed, shared=False).fit(X, y)
        drawn.append([record[3] for record in Diary.asked])
    assert len(set(drawn[0])) == 3
    assert sorted(drawn[1]) == sorted(drawn[0])
    assert not set(drawn[2]) & set(drawn[0])


@pytest.mark.parametrize("value", [0.1, 1e6 + 0.1])
@pytest.mark.parametrize("to_data", [np.asarray, sp.csr_array])
def test_a_constant_column_stays_as_it_is_when_features_are_standardised(value, to_data):
    """The mean of so many tenths is not a tenth, and what is left must not be blown up."""
    X, y = noisy(50, 3)
    X = np.column_stack([X, np.full(50, value)])
    cv = [(np.arange(50), np.arange(50))]
    model = SparseSVCCV([4], cv=cv, standardize=True).fit(to_data(X), y)
    plain = SparseSVCCV([3], cv=cv, standardize=True).fit(to_data(X[:, :3]), y)
    np.testing.assert_allclose(model.coef_[0, :3], plain.coef_[0], rtol=1e-6)
    expected = plain.decision_function(X[:, :3])
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-6, atol=1e-9)


def test_columns_of_any_accepted_spread_are_scaled_alike(rng):
    Z, unit = rng.standard_normal((30, 4)) + 2.0, np.array([1.0, 1e-90, 1e90, 1e-40])
    ones = np.ones(30)
    scaling = unit_variance_scaling(DenseDesign(Z * unit), lambda design: design.moments(ones, ones), True)
    np.testing.assert_allclose(scaling.centers / unit, Z.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scaling.scales / unit, Z.std(axis=0), rtol=2.0**-31)
    digits, _ = np.frexp(scaling.scales)
    assert (digits * 2.0**32 == np.round(digits * 2.0**32)).all()  # so many that sums in any order agree


def test_without_an_intercept_features_are_scaled_but_not_centred():
    X, y = noisy(50, 3)
    X = X + 3.0
    cv = [(np.arange(50), np.arange(50))]
    model = SparseSVCCV([3], cv=cv, standardize=True, fit_intercept=False).fit(X, y)
    inner = SparseSVC(3, fit_intercept=False).fit(X / X.std(axis=0), y)
    np.testing.assert_allclose(model.coef_, inner.coef_ / X.std(axis=0), rtol=1e-6)


def test_support_is_what_any_of_the_machines_uses():
    X, y = noisy(90, 8, n_classes=3)
    X[np.arange(90), 3 + y] += 3.0  # each class has a feature of its own
    model = SparseSVC(2, shared=False).fit(X, y)
    supports = [set(solution.support) for solution in model.solutions_]
    assert len(set.union(*supports)) > max(map(len, supports))  # else this test would prove nothing
    assert set(model.support_) == set.union(*supports)
    np.testing.assert_array_equal(np.flatnonzero(model.get_support()), model.support_)
    np.testing.assert_array_equal(model.objective_, [solution.objective for solution in model.solutions_])
    assert len(set(model.objective_)) == 3


@pytest.mark.parametrize("C", [1e-3, 50.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_path_of_one_is_the_fit_with_the_same_arguments(C, fit_intercept):
    X, y = noisy(50, 4)
    path = sparse_svm_path(X, y, [4, 2], C=C, fit_intercept=fit_intercept)
    model = SparseSVC(4, C=C, fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(path.coefs[0], model.coef_, rtol=1e-6)
    np.testing.assert_allclose(path.intercepts[0], model.intercept_, rtol=1e-6, atol=1e-12)
    w, b = model.coef_[0], model.intercept_[0]
    slack = np.maximum(0, 1 - np.where(y > 0, 1, -1) * (X @ w + b))
    np.testing.assert_allclose(model.objective_[0], np.mean(slack**2) / 2 + w @ w / (4 * C * 50), rtol=1e-10)
    sparse = path.coefs[1, 0]
    np.testing.assert_array_equal(path.predict(X, 2), (X @ sparse + path.intercepts[1, 0] > 0).astype(int))
    assert (fit_intercept and b != 0) or (not fit_intercept and b == 0)


def test_a_repeated_column_is_reported_unless_it_is_constant_or_sparse_or_every_feature_stays():
    X, y = noisy(30, 3)
    for n, some in ((5, "3, 4, 5, 6, 7"), (6, "3, 4, 5, 6, 7, ..."), (1, "3")):
        repeated = np.column_stack([X, *X[:, [1] * n].T])
        what = f"{n} features repeat" if n > 1 else "1 feature repeats"
        with pytest.warns(UserWarning, match=rf"^{what} an earlier one \(column {some}\): only the first"):
            SparseSVC(2).fit(repeated, y)
    for model in (SparseSVC("all", solver=MM()), SparseSVC(1, groups=[[1, 3], [0], [2]], keep=[3])):
        coef = model.fit(repeated, y).coef_[0]  # MM and groups use both
        assert coef[1] == pytest.approx(coef[3], rel=1e-3) != 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseSVC("all").fit(repeated, y)
        SparseSVC(2).fit(np.column_stack([X, np.zeros((30, 2)), np.ones((30, 2))]), y)
        SparseSVC(2).fit(sp.csr_array(repeated), y)
    samples = read_samples(repeated, y, None, None)
    assert list(repeats_to_report(samples, Exchange())) == [3]
    assert list(repeats_to_report(samples, MM())) == []


@pytest.mark.parametrize("evaluate", [cross_val_score, cross_val_predict, cross_validate, honest_score])
def test_fits_to_folds_do_not_warn_of_repeated_columns_and_a_grid_search_once(evaluate):
    X, y = noisy(30, 3)
    X = np.column_stack([X, X[:, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(SparseSVC(2), X, y, cv=2)
    with pytest.warns(RepeatedFeaturesWarning) as caught:
        GridSearchCV(SparseSVC(2), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    assert len(caught) == 1  # of the refit, which has all rows


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (KernelSparseSVC(40), "k=40 is greater than the number of training points, 30"),
        (make_pipeline(StandardScaler(), SparseSVC(5)), "k=5 is greater than the number of features, 3"),
        (SparseSVCCV([2], Cs=[1e-6, 1e-5], cv=2), "edge of what was tried"),
        (SparseSVC(2, solver=MM(max_outer=1)), "raise `max_outer`"),
        (SparseSVC(1, signs=[-1, -1, -1]), "No feature lowers the objective"),
    ],
)
def test_a_warning_points_at_the_line_that_called_fit(model, words):
    X, y = noisy(30, 3)
    X = np.abs(X) * np.where(y > 0, 2, 1)[:, None] if "No feature" in words else X
    with pytest.warns(UserWarning, match=words) as caught:
        model.fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}


def test_the_kernel_width_of_equal_rows_is_one_and_of_an_overflow_none():
    X, y = np.ones((30, 3)), np.arange(30) % 2
    model = KernelSparseSVC(1).fit(X, y)
    assert model.kernel_.numbers == {"gamma": 1.0, "degree": 3, "coef0": 0.0}
    for size in (160, 200):  # the square of 1e200 is infinite, too
        with pytest.raises(
            ValueError, match=rf"gamma='scale' needs the variance of X, .* to 1e\+{size}\. Scale"
        ):
            model.fit(float(f"1e{size}") * np.eye(30), y)
    assert KernelSparseSVC(1, kernel="poly", degree=1).fit(np.eye(30), y).kernel_.numbers["degree"] == 1
    with pytest.raises(ValueError, match=r"degree=0\.99 is not valid"):
        KernelSparseSVC(1, degree=0.99).fit(X, y)
    assert KernelBlueprint().largest_default(None) == 100, "the largest k that is tried by default"


@pytest.mark.parametrize("to_data", [np.asarray, sp.csr_array])
def test_the_kernel_width_counts_each_row_by_its_weight(to_data):
    X, y = noisy(30, 3)
    X = X * np.linspace(1, 4, 30)[:, None] + 2.0
    repeats = np.random.default_rng(0).integers(1, 5, 30)
    model = KernelSparseSVC(2).fit(to_data(X), y, repeats.astype(float))
    assert model.kernel_.numbers["gamma"] == pytest.approx(1 / (3 * np.repeat(X, repeats, axis=0).var()))
