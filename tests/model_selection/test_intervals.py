"""Standard errors and intervals of scores, and the choices that rest on them."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedGroupKFold, StratifiedKFold

from kmargin import SparseSVCCV
from kmargin.core.validation import GridEdgeWarning, resolve_seed
from kmargin.datasets import make_sparse_hyperplane
from kmargin.model_selection import scores as ours
from kmargin.model_selection.scores import (
    RankedRows,
    ScoreTable,
    area_under_roc,
    make_splitters,
    rate_interval,
)


@pytest.mark.parametrize(("right", "n"), [(0, 5), (5, 5), (62, 62), (50, 100), (1, 1000), (7, 9)])
def test_an_interval_of_a_rate_is_that_of_scipy_and_its_error_the_farther_end_at_one_sigma(right, n):
    for confidence in (0.95, stats.chi2.cdf(1, 1)):
        expected = stats.binomtest(right, n).proportion_ci(confidence, method="wilson")
        np.testing.assert_allclose(rate_interval(right / n, n, confidence), expected, atol=1e-12)
    assert ours.rate_error(right / n, n) == pytest.approx(np.abs(np.subtract(expected, right / n)).max())
    assert rate_interval(1 + 1e-15, n) == rate_interval(1.0, n), "the sum of shares may be more than 1"


def test_repeating_the_same_folds_does_not_make_a_mean_much_surer():
    once = np.random.default_rng(0).random(5)
    by_hand = once.std(ddof=1) * np.sqrt(1 / 5 + 1 / 4)
    assert ours.mean_errors(once[:, None], 1 / 4, 10**9)[0] == pytest.approx(by_hand)
    assert ours.mean_errors(np.tile(once, 100)[:, None], 1 / 4, 10**9)[0] > once.std() * np.sqrt(1 / 4)


def test_the_interval_of_a_mean_is_students_and_has_a_width_where_folds_agree():
    scores = np.array([0.1, 0.4, 0.35, 0.2])
    for each in (scores, scores - 1):  # shares, and others
        expected = stats.t.interval(0.9, 3, each.mean(), stats.sem(each))
        np.testing.assert_allclose(ours.mean_interval(each, 0.0, 10**9, 0.9), expected)
    assert tuple(ours.mean_interval(scores[:1], 0.25, 10)) == (0, 1)
    assert tuple(ours.mean_interval(-scores[:1], 0.25, 10)) == (-np.inf, np.inf)
    low, high = ours.mean_interval(np.ones(5), 0.25, 24)
    assert low < 0.95
    assert high == ours.mean_interval(np.array([0.9, 0.95, 1.0]), 0.5, 20).high == 1


def test_rows_of_one_weight_count_each():
    assert ours.effective_number(None, 7) == 7
    assert ours.effective_number(np.full(7, 3.0), 7) == pytest.approx(7)
    assert ours.effective_number(np.array([1.0, 0.0, 0.0]), 3) == pytest.approx(1)
    assert ours.effective_number(np.full(5, 1e300), 5) == pytest.approx(5)
    assert ours.effective_number(None, 7, np.array(list("aabbbbc"))) == pytest.approx(49 / (4 + 16 + 1))


def table(mean, n_rows, n_folds=5):
    scores = np.repeat(np.asarray(mean, dtype=float)[None, None], n_folds, axis=0)
    return ScoreTable(scores, [1.0], [8, 4, 2], n_rows, 0.25)


@pytest.mark.parametrize(
    ("mean", "rule", "chosen"),
    [
        ([1.0, 1 - 1 / 62, 1 - 2 / 62], ("1se",), 0),  # a row of 62 is more than 1 of 63
        ([1.0, 1 - 1 / 64, 0.9], ("1se",), 1),
        ([1.0, 1 - 1 / 64, 0.9], ("best",), 0),
        ([-1.0, -1.001, -2.0], ("1se",), 0),  # no shares, which have the error of their folds alone: none
        ([0.9, 0.885, 0.87], ("tolerance", 0.0), 0),
        ([0.9, 0.885, 0.87], ("tolerance", 0.014), 0),
        ([0.9, 0.885, 0.87], ("tolerance", 0.016), 1),
        ([0.9, 0.885, 0.87], ("tolerance", 0.031), 2),
        ([0.9 + 1e-13, 0.9, 0.8], ("best",), 1),  # equal but for rounding
        ([-1e6 + 4e-7, -1e6, -2e6], ("best",), 1),
    ],
)
def test_one_standard_error_does_not_vanish_where_folds_agree_and_a_tolerance_is_a_loss(mean, rule, chosen):
    scores = table(mean, 62)
    assert scores.choose(*rule) == (0, chosen)
    assert scores.error.all() == (mean[0] > 0)
    assert scores.at(1.0, 4) == (pytest.approx(mean[1]), scores.error[0, 1])
    assert scores.rises_to_the_largest_k == (mean[0] != pytest.approx(mean[1], abs=1e-12))
    assert not scores.at_k(0).rises_to_the_largest_k


def hyperplane():
    return make_sparse_hyperplane(60, 6, 2, random_state=0)


def test_repeats_are_the_folds_of_shuffled_splitters_one_after_the_other():
    X, y = hyperplane()
    model = SparseSVCCV([4, 1], cv=3, repeats=2, random_state=5).fit(X, y)
    dealt = (StratifiedKFold(3, shuffle=True, random_state=resolve_seed(5) + r) for r in range(2))
    each = [SparseSVCCV([4, 1], cv=cv).fit(X, y) for cv in dealt]
    assert model.n_splits_ == 6
    for number in range(6):
        alone = each[number // 3].cv_results_[f"split{number % 3}_test_score"]
        np.testing.assert_array_equal(model.cv_results_[f"split{number}_test_score"], alone)


@pytest.mark.parametrize("cv", [KFold(3), [(np.arange(30), np.arange(30, 60))]])
def test_folds_that_cannot_differ_are_not_repeated(cv):
    X, y = hyperplane()
    with pytest.raises(ValueError, match="would repeat the same folds"):
        SparseSVCCV([1], cv=cv, repeats=2).fit(X, y)


def prefer(chosen, bold=0.0):
    """A scorer that likes one k best, and with it large coefficients if it is bold."""
    return lambda model, X, y: (np.count_nonzero(model.coef_) == chosen) + bold * abs(model.coef_).max()


TOLERANT = {"selection": "tolerance", "tolerance": 1.0}  # chooses the smallest k


@pytest.mark.parametrize(
    ("ks", "best", "options", "words"),
    [
        ([4, 2, 1], 4, {}, "k_=4 is the largest of ks, and there are 6: try more"),
        ([4, 2, 1], 4, TOLERANT, "k=4, the largest of ks, scores best, and there are 6: try more"),
        ([6, 4, 2], 2, {}, "k_=2 is the smallest of ks: try fewer"),
        ([6, 4, 1], 4, {"Cs": [0.1, 1.0]}, "C_=0.1 is the smallest of Cs: try 0.01, too"),
        ([6, 4, 1], 4, {"Cs": [0.1, 1], "scoring": prefer(4, 0.1)}, "C_=1 is the largest of Cs: try 10, too"),
        ([6, 2, 1], 6, {}, None),
        ([6, 2, 1], 1, {}, None),
        ([6, 2, 1], 6, TOLERANT, None),
        ([3], 3, {}, None),
        ([6, 3], 3, {"keep": [0, 1, 2]}, None),
    ],
)
def test_a_choice_at_the_edge_of_its_grid_is_warned_of_unless_nothing_is_beyond(ks, best, options, words):
    model = SparseSVCCV(ks, **{"scoring": prefer(best), **options})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GridEdgeWarning)
        model.fit(*hyperplane())
    assert model.k_ == (1 if options is TOLERANT else best)
    said = [str(warning.message) for warning in caught if warning.category is GridEdgeWarning]
    start = "The choice lies at the edge of what was tried. "
    assert said == ([] if words is None else [f"{start}{words}."])


def test_folds_whose_score_is_no_number_or_that_have_no_row_to_score_are_said_in_a_sentence():
    (X, y), values = hyperplane(), iter([1.0, 1.0, np.nan, 1.0, np.nan])
    with pytest.raises(ValueError, match="The score of fold 2 is not a number"):
        SparseSVCCV([1], scoring=lambda model, X, y: next(values)).fit(X, y)
    first, rest = np.split(np.arange(60), 2)
    with pytest.raises(ValueError, match="Fold 1 has no sample to score"):
        SparseSVCCV([1], cv=[(first, first), (first, rest)]).fit(X, y, sample_weight=np.arange(60) < 30)


def test_a_splitter_that_knows_its_seed_keeps_it_and_groups_stay_together_in_every_repeat():
    X, y = hyperplane()
    groups = np.arange(60) // 2
    for seed in (1, 2**32 - 1):
        cv = StratifiedGroupKFold(3, shuffle=True, random_state=seed)
        splitters = make_splitters(cv, 2, 0, y)
        assert [each.random_state for each in splitters] == [seed, (seed + 1) % 2**32]
        assert cv.random_state == seed
        for train, test in (fold for splitter in splitters for fold in splitter.split(X, y, groups)):
            assert not set(groups[train]) & set(groups[test])
    assert [each.random_state for each in make_splitters(ShuffleSplit(2), 2, 7, y)] == [7, 8]
    (single,) = make_splitters(2, 1, 7, [0, 0, 1, 1])  # two rows of a class are enough
    assert (type(single), single.n_splits, single.shuffle) == (StratifiedKFold, 2, False)


def ranked_rows(n=200, n_folds=5, seed=0):
    """Rows of two classes in folds, whose decision values are of different scales."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.34
    decisions = 0.8 * y + rng.standard_normal(n)
    folds = np.array_split(rng.permutation(n), n_folds)
    return [RankedRows(rows, (1 + at) * decisions[rows] + at) for at, rows in enumerate(folds)], y


@pytest.mark.parametrize("confidence", [0.95, 0.5])
def test_the_area_of_one_fold_has_delongs_interval_however_often_it_is_repeated(confidence):
    (fold,), y = ranked_rows(60, n_folds=1)
    found = area_under_roc([fold] * 3, y, np.ones(60), None, confidence)
    above, below = (fold.decisions[y[fold.rows] == is_positive] for is_positive in (True, False))
    pairs = (above[:, None] > below).astype(float)
    assert found.value == pytest.approx(pairs.mean())
    variance = sum(pairs.mean(axis=axis).var() / pairs.shape[1 - axis] for axis in (0, 1)) * 60 / 59
    half = stats.t.ppf((1 + confidence) / 2, 59) * np.sqrt(variance) / (found.value * (1 - found.value))
    np.testing.assert_allclose(found.interval, expit(logit(found.value) + np.array([-half, half])))


def test_the_interval_of_an_area_is_as_wide_as_a_bootstrap_within_folds():
    folds, y = ranked_rows()
    found = area_under_roc(folds, y, np.ones(200))
    rng, areas = np.random.default_rng(0), []
    for _ in range(400):
        drawn = [rng.integers(0, len(rows), len(rows)) for rows, _ in folds]
        sampled = [(y[rows[own]], values[own]) for (rows, values), own in zip(folds, drawn, strict=True)]
        areas.append(np.mean([(v[is_one][:, None] > v[~is_one]).mean() for is_one, v in sampled]))
    assert found.value == pytest.approx(np.mean([roc_auc_score(y[r], v) for r, v in folds]))
    width = np.diff(np.quantile(areas, [0.025, 0.975]))[0]
    assert np.diff(found.interval)[0] == pytest.approx(width, rel=0.2)


def test_the_interval_of_an_area_is_that_of_exchanged_classes_and_each_row_counts_once():
    (fold,), y = ranked_rows(50, n_folds=1)
    folds = [RankedRows(*parts) for parts in zip(*(np.split(each, [6, 18]) for each in fold), strict=True)]
    mirrored = [RankedRows(rows, -decisions) for rows, decisions in folds]
    found, same = area_under_roc(folds, y, np.ones(50)), area_under_roc(mirrored, ~y, np.ones(50))
    np.testing.assert_allclose([same.value, *same.interval], [found.value, *found.interval], rtol=1e-12)
    (fold,), y = ranked_rows(60, n_folds=1)
    copy = RankedRows(fold.rows + 60, fold.decisions)
    each = ([fold, copy], [fold, copy, copy])  # tested once, and some twice
    np.testing.assert_allclose(*(area_under_roc(f, np.tile(y, 2), np.ones(120)).interval for f in each))


def test_rows_of_weight_two_count_as_rows_twice_in_an_area():
    (fold,), y = ranked_rows(50, n_folds=1)
    weights = np.where(fold.rows % 3 == 0, 2.0, 1.0)[np.argsort(fold.rows)]
    twice = np.repeat(np.arange(50), weights[fold.rows].astype(int))
    repeated = RankedRows(np.arange(len(twice)), fold.decisions[twice])
    expected = area_under_roc([repeated], y[fold.rows][twice], np.ones(len(twice)))
    assert area_under_roc([fold], y, weights).value == pytest.approx(expected.value)


def test_rows_that_repeat_within_groups_do_not_narrow_the_interval_of_an_area():
    (fold,), y = ranked_rows(60, n_folds=1)
    alone = area_under_roc([fold], y, np.ones(60))
    rows = np.arange(300)
    fivefold = RankedRows(rows, np.repeat(fold.decisions, 5))
    found = area_under_roc([fivefold], np.repeat(y[fold.rows], 5), np.ones(300), rows // 5)
    np.testing.assert_allclose(found.interval, alone.interval)
    apart = area_under_roc([fivefold], np.repeat(y[fold.rows], 5), np.ones(300))
    assert np.diff(apart.interval) < 0.6 * np.diff(alone.interval)


def test_an_area_of_one_is_not_a_certainty_and_folds_of_one_class_are_left_out():
    y = np.arange(20) < 8
    whole = RankedRows(np.arange(20), -np.arange(20.0))
    for each, groups, area, n in ((y, None, 1.0, 8), (~y, None, 0.0, 8), (y, np.arange(20) // 2, 1.0, 4)):
        found = area_under_roc([whole], each, np.ones(20), groups)
        np.testing.assert_allclose([found.value, *found.interval], [area, *rate_interval(area, n)])
    folds = [RankedRows(np.arange(2, 20), -np.arange(18.0)), RankedRows(np.arange(2), np.zeros(2))]
    assert area_under_roc(folds, y, np.ones(20)).value == 1.0
    assert np.isnan(area_under_roc(folds[1:], y, np.ones(20)).value)


def test_the_mean_of_rates_has_the_wilson_interval_of_one_and_is_narrower_for_more():
    one = ours.mean_of_rates(np.array([0.8]), np.array([50]))
    np.testing.assert_allclose(one.interval, rate_interval(0.8, 50))
    two = ours.mean_of_rates(np.array([0.8, 0.8]), np.array([50, 50]))
    from_one, from_two = (np.subtract(found.interval, 0.8) for found in (one, two))
    np.testing.assert_allclose(from_two, from_one / np.sqrt(2))
    assert ours.mean_of_rates(np.array([0.8]), np.array([50]), 0.5).interval == rate_interval(0.8, 50, 0.5)


def test_the_error_of_a_difference_is_corrected_for_shared_training_rows_and_never_below_one_row():
    differences = np.array([0.1, 0.0, -0.1, 0.2])
    by_hand = differences.std(ddof=1) * np.sqrt(1 / 4 + 1 / 3)
    assert ours.difference_error(differences, 1 / 3, 1000) == pytest.approx(by_hand)
    for same in (np.zeros(4), np.ones(1)):
        assert ours.difference_error(same, 1 / 3, 50) == 1 / 50
    assert ours.difference_error(np.full(4, -1.01), 1 / 3, 50) < 1e-12, "such scores are no shares of rows"
