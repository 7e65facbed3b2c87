"""`honest_score`: nested cross-validation, permutation tests, and the comparison with guessing."""

import re
import warnings

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import ShuffleSplit, StratifiedGroupKFold, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmargin import Exchange, SparseSVC, SparseSVCCV, honest_score
from kmargin.datasets import make_sparse_hyperplane
from kmargin.model_selection import scores
from kmargin.model_selection.nested import Estimate, Evidence, Fold, HonestScore, Interval, ScoredRows
from kmargin.model_selection.scores import effective_number, rate_interval


def hyperplane(n=80):
    X, y = make_sparse_hyperplane(n, 8, 2, random_state=0)
    flipped = np.random.default_rng(1).random(n) < 0.15
    return X, np.where(flipped, -y, y)


def test_an_honest_score_is_that_of_choices_made_without_the_rows_scored():
    X, y = hyperplane()
    model, cv = SparseSVCCV([4, 2, 1], Cs=[0.1, 1.0], cv=3), StratifiedKFold(4, shuffle=True, random_state=3)
    with warnings.catch_warnings(action="error"):  # not even of choices at the edge of the grid
        found = honest_score(model, X, y, cv=cv)
    predicted = np.empty_like(y)
    for fold, (train, test) in enumerate(cv.split(X, y)):
        alone = SparseSVCCV([4, 2, 1], Cs=[0.1, 1.0], cv=3).fit(X[train], y[train])
        predicted[test] = alone.predict(X[test])
        assert found.chosen[fold] == {"k": alone.k_, "C": alone.C_}
        np.testing.assert_array_equal(found.supports[fold], alone.support_)
        assert found.scores[fold] == pytest.approx((predicted[test] == y[test]).mean())
    np.testing.assert_array_equal(found.predicted, predicted)
    assert found.tested.all()
    assert found.score == pytest.approx((predicted == y).mean())
    np.testing.assert_allclose(found.interval, rate_interval(found.score, 80))
    assert found.is_better_than_guessing
    assert not hasattr(model, "coef_")
    assert str(found).startswith(f"{found.score:.3f} (")


def test_any_number_of_jobs_finds_the_same_and_any_seed_its_own():
    X, y = hyperplane()
    model = SparseSVC(k=2)
    each = ({"n_jobs": jobs, "random_state": seed} for jobs, seed in ((1, 0), (2, 0), (1, 1)))
    one, two, other = (honest_score(model, X, y, repeats=2, **how) for how in each)
    np.testing.assert_array_equal(one.scores, two.scores)
    assert len(one.scores) == 10
    assert not np.array_equal(one.scores, other.scores)


@pytest.mark.parametrize("scoring", [None, "roc_auc", "balanced_accuracy"])
def test_an_interval_has_its_confidence_and_predictions_are_those_of_the_first_repeat(scoring):
    X, y = hyperplane()
    cv = StratifiedKFold(4, shuffle=True, random_state=3)
    found = honest_score(SparseSVC(k=2), X, y, cv=cv, repeats=2, scoring=scoring, confidence=0.8)
    np.testing.assert_array_equal(found.predicted, cross_val_predict(SparseSVC(k=2), X, y, cv=cv))
    shuffled = (StratifiedKFold(4, shuffle=True, random_state=seed) for seed in (3, 4))
    folds = [fold for each in shuffled for fold in each.split(X, y)]
    fits = [(SparseSVC(k=2).fit(X[train], y[train]), test) for train, test in folds]
    ranked = [scores.RankedRows(test, fit.decision_function(X[test])) for fit, test in fits]
    expected = {
        None: rate_interval(found.scores.mean(), 80, 0.8),
        "roc_auc": scores.area_under_roc(ranked, y == 1, np.ones(80), None, 0.8).interval,
        "balanced_accuracy": scores.mean_interval(found.scores, 1 / 3, 80, 0.8),
    }
    np.testing.assert_allclose(found.interval, expected[scoring])


def test_rows_that_are_not_tested_do_not_count_and_are_predicted_as_the_largest_class():
    X, _ = hyperplane()
    y = np.arange(80) % 4 == 0
    cv = ShuffleSplit(1, test_size=20, random_state=0)
    found = honest_score(SparseSVC(k=2), X, y, cv=cv)
    ((_, test),) = cv.split(X)
    np.testing.assert_array_equal(np.flatnonzero(found.tested), np.sort(test))
    assert not found.predicted[~found.tested].any()
    assert found.interval == rate_interval(found.score, 20)
    assert found.judged_by == "accuracy", "areas need all rows"


def test_permuted_labels_have_a_p_value():
    X, y = hyperplane()
    found = honest_score(SparseSVC(k=2), X, y, cv=3, permutations=9)
    assert found.p_value == pytest.approx(1 / 10)
    assert len(found.permuted) == 9
    assert found.permuted.max() < found.score
    nothing = honest_score(SparseSVC(k=2), X, np.random.default_rng(3).permutation(y), cv=3, permutations=9)
    assert nothing.p_value > 0.1
    assert "not clearly better than guessing" in str(nothing)


def test_permuted_labels_are_dealt_into_stratified_folds_of_their_own():
    """With the folds of the original labels, p-values would be too small."""
    seen = []

    class Watching(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(np.bincount(y).tolist())
            return super().fit(X, y)

    honest_score(Watching(), np.ones((30, 1)), np.arange(30) % 2, cv=3, permutations=7)
    assert seen == [[10, 10]] * 24


def test_weights_and_groups_reach_the_end_of_a_pipeline():
    X, y = hyperplane()
    groups, weights = np.arange(80) // 2, np.linspace(0.5, 2, 80)
    model = make_pipeline(StandardScaler(), SparseSVCCV([2, 1], cv=StratifiedGroupKFold(2)))
    found = honest_score(model, X, y, cv=4, groups=groups, sample_weight=weights)
    splits = StratifiedGroupKFold(4).split(X, y, groups)
    for fold, (train, test) in enumerate(splits):
        scaler = StandardScaler().fit(X[train], sample_weight=weights[train])
        alone = SparseSVCCV([2, 1], cv=StratifiedGroupKFold(2))
        alone.fit(scaler.transform(X[train]), y[train], weights[train], groups[train])
        right = alone.predict(scaler.transform(X[test])) == y[test]
        assert found.scores[fold] == pytest.approx(np.average(right, weights=weights[test]))


def test_a_pipelines_score_is_that_of_its_last_step():
    X, y = hyperplane()
    model = SparseSVCCV([2], cv=2, scoring="roc_auc")
    alone, in_pipeline = (honest_score(m, X, y, cv=3) for m in (model, make_pipeline(model)))
    np.testing.assert_array_equal(alone.scores, in_pipeline.scores)


def test_a_scorer_that_no_guess_can_answer_leaves_guessing_open():
    X, y = hyperplane()
    found = honest_score(SparseSVC(k=2), X, y, scoring=lambda m, X, y: m.decision_function(X).mean())
    assert np.isnan(found.guessing)
    assert "guessing" not in str(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cv": 1}, "cv=1 does not define folds. Use a number of folds >= 2"),
        ({"cv": 41}, "has 40 rows, fewer than the 41 outer folds. Use fewer folds"),
        ({"groups": np.arange(80) // 27}, "The rows are in 3 groups, which cannot be split into 5 folds"),
        ({"permutations": -1}, "permutations=-1 is not a number"),
        ({"repeats": 0}, "repeats=0 is not a number"),
        ({"confidence": 95}, "confidence=95 is not a probability"),
        ({"confidence": "a"}, "confidence='a' is not a probability"),
        ({"cv": [(np.arange(40), np.arange(40, 80))]}, "Outer fold 0 has no training sample of class"),
        ({"cv": [(np.arange(80), np.arange(0))]}, "Outer fold 0 has no sample to score"),
        ({"groups": [1, 2]}, r"has shape \(2,\), but there are 80 rows"),
        ({"y": np.minimum(np.arange(80) // 4, 1)}, r"Class 0 has 4 rows, fewer than the 5 outer folds\. Use"),
        ({"model": KNeighborsClassifier(), "sample_weight": np.ones(80)}, "rsClassifier does not accept"),
    ],
)
def test_what_cannot_be_scored_is_said_in_a_sentence(arguments, message):
    X, _ = hyperplane()
    with pytest.raises(ValueError, match=message):
        honest_score(**{"model": SparseSVC(k=2), "X": X, "y": np.repeat([0, 1], 40), **arguments})


def test_a_guess_names_the_class_of_most_weight():
    y = np.array([0, 0, 0, 1] * 5)
    fold = Fold(np.arange(12), np.arange(12, 20))
    rows = ScoredRows(None, y, None, None, get_scorer("accuracy"))
    assert rows.guess(fold) == 0.75
    assert rows._replace(weights=np.where(y, 6.0, 1.0)).guess(fold) == pytest.approx(12 / 18)


def test_honest_score_compares_unequal_classes_with_guessing_by_the_area():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((177, 12))
    score = X[:, :3] @ [0.45, 0.4, 0.3] + rng.standard_normal(177)
    y = np.where(score > np.quantile(score, 0.66), "sick", "healthy")
    found = honest_score(SparseSVC(1, C=0.1), X, y)
    assert found.guessing in found.interval
    assert found.is_better_than_guessing
    assert found.judged_by == found.evidence.measure == "roc_auc"
    assert "area under the ROC curve" in str(found)
    area = honest_score(SparseSVC(1, C=0.1), X, y, scoring="roc_auc")
    assert area.score == pytest.approx(found.evidence.estimate.value)
    np.testing.assert_allclose(area.interval, found.evidence.estimate.interval)
    balanced = honest_score(SparseSVC(1, C=0.1), X, y, scoring="balanced_accuracy")
    assert balanced.judged_by == "balanced_accuracy"
    given = {"groups": np.arange(177) // 3, "confidence": 0.9}  # GaussianNB has no decision values
    area, (_, found, _) = (
        honest_score(GaussianNB(), X, y, scoring="roc_auc", **given),
        honest_score(GaussianNB(), X, y, **given).evidence,
    )
    np.testing.assert_allclose([area.score, *area.interval], [found.value, *found.interval])


def test_three_unequal_classes_are_compared_by_balanced_accuracy():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [100, 20, 20])
    X = rng.standard_normal((140, 3)) + np.eye(3)[y]
    weights, groups = rng.uniform(1, 3, 140), np.arange(140) // 2
    model = SparseSVC(3, C=1.0, class_weight="balanced")
    found = honest_score(model, X, y, sample_weight=weights, groups=groups, confidence=0.9)
    recalls = [np.average(found.predicted[y == c] == c, weights=weights[y == c]) for c in range(3)]
    numbers = [effective_number(weights[y == c], 0, groups[y == c]) for c in range(3)]
    assert found.judged_by == "balanced_accuracy"
    expected = scores.mean_of_rates(recalls, numbers, 0.9)
    assert found.evidence == ("balanced_accuracy", expected, pytest.approx(1 / 3))
    assert found.interval == rate_interval(found.score, effective_number(weights, 0, groups), 0.9)


def test_equal_classes_are_compared_by_the_score_itself():
    found = honest_score(SparseSVC(2), hyperplane()[0], np.arange(80) % 2)
    assert found.judged_by == "accuracy"
    assert found.evidence.estimate == (found.score, found.interval)
    assert not found.evidence._replace(guessing=found.interval.low).is_better


AREA = "area under the ROC curve"
DOUBT = ": not clearly better than guessing"
UNDECIDED = f"{DOUBT} by the {AREA}"


@pytest.mark.parametrize(
    ("guessing", "measure", "low", "p_value", "n_permuted", "words"),
    [
        (0.7, "accuracy", 0.7, None, None, f", guessing 0.700{DOUBT}"),
        (0.75, "roc_auc", 0.7, None, None, f", guessing 0.750, {AREA} 0.850 (0.700 to 0.900)"),
        (0.75, "roc_auc", 0.4, None, None, f", guessing 0.750, {AREA} 0.850 (0.400 to 0.900){UNDECIDED}"),
        (0.6, "balanced_accuracy", 0.7, None, None, ", guessing 0.600"),
        (0.6, "accuracy", 0.7, 0.05, 19, ", guessing 0.600, p = 0.05"),
        (0.6, "accuracy", 0.7, 0.1, 19, f", guessing 0.600, p = 0.1{DOUBT} by the permutation test"),
        (0.6, "accuracy", 0.7, 0.1234, 18, ", guessing 0.600, p = 0.123"),
        (np.nan, "score", 0.7, None, None, ""),
    ],
)
def test_a_score_says_how_it_compares_with_guessing(guessing, measure, low, p_value, n_permuted, words):
    """Fewer than 19 permutations cannot show a p-value of .05."""
    compared = guessing if measure == "accuracy" else 0.5
    evidence = Evidence(measure, Estimate(0.85, Interval(low, 0.9)), compared)
    permuted = None if n_permuted is None else np.zeros(n_permuted)
    parts = np.array([0.75, 0.85]), [{"k": 3, "C": 0.1}, {}], [], None, None, evidence, p_value, permuted
    found = HonestScore(0.8, Interval(0.7, 0.9), guessing, *parts)
    assert repr(found) == f"<HonestScore 0.800 (0.700 to 0.900){words}>"
    assert found.is_better_than_guessing == (DOUBT not in words)
    assert found.n_permutations == (n_permuted or 0)
    cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", found._repr_html_())
    assert cells == ["outer fold", "score", "k", "C", "0", "0.750", "3", "0.1", "1", "0.850", "nan", "nan"]


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_honest_score_and_the_cross_validated_estimator_have_the_same_folds(repeats, grouped):
    X, y = make_sparse_hyperplane(120, 10, 3, random_state=0)
    groups = np.arange(120) // 4 if grouped else None
    model = SparseSVCCV([3], repeats=repeats).fit(X, y, groups=groups)
    found = honest_score(SparseSVC(3, solver=Exchange().in_folds()), X, y, repeats=repeats, groups=groups)
    splits = [model.cv_results_[f"split{at}_test_score"][0] for at in range(5 * repeats)]
    np.testing.assert_allclose(found.scores, splits)
