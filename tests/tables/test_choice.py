"""The choice of k and C for a table, the honest score of such choices, and that all numbers told agree."""

import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from tables_data import make_table

from kmargin import SparseSVC, SparseSVCCV, stability_C
from kmargin.core.validation import InputError
from kmargin.model_selection import scores
from kmargin.report import frames
from kmargin.report.page import feature_boxes
from kmargin.report.text import all_features_text, evidence_text, groups_text, headline, neighbour_text
from kmargin.tables.analysis import OUTER, analyse, assess, measure_stability
from kmargin.tables.dataset import Roles, prepare
from kmargin.tables.read import Table
from kmargin.tables.search import Settings, TableSearch, choose

KS, CS = [5, 3, 2, 1], [0.1, 1.0]


def noisy_table(n=90, seed=4):
    frame = make_table(n, 2, seed=seed)
    frame["age"] += 0.9 * np.random.default_rng(8).standard_normal(n)
    return frame


def dataset_of(frame):
    return prepare(Table(frame), Roles("outcome"))


DATASET = dataset_of(noisy_table())


def gene_table(n=50, p=1000, seed=1):
    """Few rows, many correlated features: paths and single fits end on different supports."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 12)) @ rng.standard_normal((12, p)) + 2 * rng.standard_normal((n, p))
    outcome = np.where(X[:, :6].sum(axis=1) + 3 * rng.standard_normal(n) > 0, "yes", "no")
    return pd.DataFrame(X, columns=[f"g{j}" for j in range(p)]).assign(outcome=outcome)


def test_the_model_is_the_same_whether_k_and_C_were_chosen_or_given():
    dataset = dataset_of(gene_table())
    settings = Settings(ks=[20, 10, 5], Cs=[0.1, 1.0], cv=3, repeats=1, pairs=0, nested=False)
    chosen = analyse(dataset, replace(settings, select="best"))
    given = analyse(dataset, replace(settings, k=chosen.choice.k, ks=None, Cs=[chosen.choice.C]))
    np.testing.assert_allclose(chosen.model.machine.coef_, given.model.machine.coef_, atol=1e-9)
    np.testing.assert_allclose(chosen.model.machine.intercept_, given.model.machine.intercept_, atol=1e-9)


def test_exchanges_that_stand_ins_show_to_be_better_are_made():
    dataset = dataset_of(gene_table(seed=3))
    found = analyse(dataset, Settings(k=5, Cs=[1.0], cv=3, pairs=0))
    X = found.model.scaling(dataset.X)

    def objective(columns):
        return SparseSVC(k="all", C=1.0).fit(X[:, columns], dataset.y).objective_[0]

    used = found.model.machine.support_
    own = objective(used)
    assert own <= SparseSVC(k=5, C=1.0).fit(X, dataset.y).objective_[0] * (1 + 1e-9)
    for worth in found.worths.values():
        assert worth.stand_ins[0].cost > -1e-6
        exchanged = np.append(np.setdiff1d(used, worth.columns), worth.stand_ins[0].columns)
        assert worth.stand_ins[0].cost == pytest.approx(objective(exchanged) / own - 1, abs=1e-6)


def test_a_round_is_a_shuffled_cross_validation_of_the_estimator():
    trial = TableSearch(DATASET, Settings(ks=KS, Cs=CS, cv=3, seed=2))
    for number in range(2):
        cv = StratifiedKFold(3, shuffle=True, random_state=2 + number)
        model = SparseSVCCV(KS, Cs=CS, cv=cv, standardize=True).fit(DATASET.X, DATASET.y)
        splits = [model.cv_results_[f"split{i}_test_score"].reshape(2, 4) for i in range(3)]
        np.testing.assert_allclose(trial.cross_validate(CS, KS, number).scores, splits)
    last = TableSearch(DATASET, Settings(cv=3, seed=2**32 - 1)).folds(
        1
    )  # after the last seed comes the first
    for one, other in zip(last, TableSearch(DATASET, Settings(cv=3)).folds(0), strict=True):
        np.testing.assert_array_equal(one.test, other.test)


class Scripted(TableSearch):
    """Rounds whose best k is told beforehand."""

    def __init__(self, dataset, settings, best):
        super().__init__(dataset, settings)
        self.best, self.asked = best, []

    def cross_validate(self, Cs, ks, repeat=0):
        self.asked.append((tuple(Cs), tuple(ks)))
        found = np.zeros((self.n_folds, len(Cs), len(ks)))
        C, k = self.best[repeat](Cs, ks) if callable(self.best[repeat]) else (Cs[1], self.best[repeat])
        found[:, Cs.index(C), ks.index(k)] = 1.0
        table = scores.ScoreTable(found, Cs, ks, len(self.dataset.y), 1 / 2)
        return SimpleNamespace(scores=found, Cs=Cs, ks=ks, table=table)


def scripted(best, **settings):
    settings = {"ks": KS, "Cs": [0.1, 1.0, 10.0], "select": "best", "cv": 3, "repeats": 6} | settings
    return Scripted(DATASET, Settings(**settings), best)


@pytest.mark.parametrize(
    ("best", "n_repeats", "expected"),
    [
        ([3, 3, 3, 1, 1, 1], None, (3, 3, True)),
        ([3, 2, 2, 2, 1, 1], None, (2, 4, True)),  # 3 and 2 tie after two repeats: 2
        ([5, 3, 2, 1, 5, 3], None, (3, 6, False)),  # the budget is spent; 5 and 3 tie
        ([3] * 6, 5, (3, 5, True)),  # as many as asked for
        ([5, 3, 5, 3, 5, 3], ..., (5, 5, False)),  # five, if nothing is asked for
    ],
)
def test_rounds_end_when_three_in_a_row_lead_to_the_same_choice_or_the_budget_is_spent(
    best, n_repeats, expected
):
    trial, n_repeats = (
        (scripted(best, repeats=None), None) if n_repeats is ... else (scripted(best), n_repeats)
    )
    found = choose(trial, n_repeats)
    assert (found.k, found.n_repeats, found.has_settled) == expected
    assert found.table.scores.shape[0] == 3 * found.n_repeats


def test_rounds_that_are_asked_for_are_made_with_many_classes_too():
    frame = noisy_table().assign(outcome=np.arange(90) % 5)
    settings = {"ks": KS, "Cs": CS, "select": "best", "cv": 3}
    assert choose(Scripted(dataset_of(frame), Settings(**settings), [3, 2, 1])).n_repeats == 1
    four = Scripted(dataset_of(frame[frame["outcome"] < 4]), Settings(**settings), [3, 3, 3])
    assert choose(four).n_repeats == 3
    asked = Scripted(dataset_of(frame), Settings(**settings, repeats=3), [3, 2, 1])
    assert choose(asked).n_repeats == 3
    given = scripted([2], ks=None, k=2, Cs=[1.0], repeats=4)
    given.best = [lambda Cs, ks: (1.0, 2)]
    assert choose(given).n_repeats == 1


def test_beside_a_fixed_k_one_more_and_one_fewer_are_fitted():
    for k, ks in ((3, (4, 3, 2)), (1, (2, 1)), (5, (5, 4)), (0, (1, 0))):
        trial = scripted([k], ks=None, k=k, repeats=1)
        assert choose(trial).has_settled
        assert {asked for _, asked in trial.asked} == {ks}


def test_a_fixed_k_leaves_C_to_choose_and_both_fixed_leave_nothing():
    found = choose(scripted([3] * 6, k=2))
    assert found.k == 2
    assert found.had_alternatives
    fixed = choose(TableSearch(DATASET, Settings(k=2, ks=KS, Cs=[1.0])))
    assert (fixed.n_repeats, fixed.had_alternatives, fixed.has_settled) == (1, False, True)


@pytest.mark.parametrize(
    ("edge", "Cs", "largest_or_smallest"),
    [(0, None, [1e-2, 1e-3, 1e-4, 1e-5]), (-1, None, [10, 100, 1e3, 1e4]), (0, [0.1, 1.0, 10.0], [0.1])],
)
def test_a_grid_grows_at_its_edge_if_nobody_asked_for_it(edge, Cs, largest_or_smallest):
    trial = scripted([lambda Cs, ks: (Cs[edge], 3)] * 6, Cs=Cs, repeats=1)
    assert pytest.approx(largest_or_smallest[-1]) == choose(trial).C
    assert [Cs[edge] for Cs, _ in trial.asked] == pytest.approx(largest_or_smallest)


@pytest.mark.parametrize(("n", "largest"), [(40, [12, 24, 40]), (150, [12, 24, 48, 96])])
def test_more_features_are_tried_up_to_three_times_where_the_largest_number_was_best(n, largest):
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((12, n)).round(3)).add_prefix("f")
    dataset = dataset_of(frame.assign(outcome=["a", "b"] * 6))
    trial = Scripted(dataset, Settings(cv=3, select="best", repeats=1), [lambda Cs, ks: (Cs[1], ks[0])])
    found = choose(trial)
    assert [ks[0] for _, ks in trial.asked] == largest
    assert found.k == largest[-1]


def nested_by_hand(X, y, seed, n_repeats, cv, rule):
    decisions, chosen = np.empty(len(y)), []
    for train, test in StratifiedKFold(cv, shuffle=True, random_state=seed + OUTER).split(X, y):
        rounds = []
        for number in range(n_repeats):
            folds = StratifiedKFold(cv, shuffle=True, random_state=seed + number)
            model = SparseSVCCV(KS, Cs=CS, cv=folds, standardize=True).fit(X[train], y[train])
            rounds += [model.cv_results_[f"split{i}_test_score"].reshape(2, 4) for i in range(cv)]
        table = scores.ScoreTable(np.array(rounds), CS, KS, len(train), 1 / (cv - 1))
        row, column = table.choose(rule)
        mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
        path = SparseSVC(k=KS[column], C=CS[row]).fit((X[train] - mean) / spread, y[train])
        decisions[test] = path.decision_function((X[test] - mean) / spread)
        chosen.append((KS[column], CS[row]))
    return decisions, tuple(chosen)


@pytest.mark.parametrize("rule", ["best", "1se"])
def test_in_outer_folds_everything_is_chosen_anew_by_the_other_rows(rule):
    found = analyse(DATASET, Settings(ks=KS, Cs=CS, cv=3, seed=1, select=rule, pairs=0))
    decisions, chosen = nested_by_hand(DATASET.X, DATASET.y, 1, found.choice.n_repeats, 3, rule)
    assert found.assessment.is_nested
    assert tuple((of["k"], of["C"]) for of in found.assessment.chosen) == chosen
    np.testing.assert_allclose(found.assessment.decisions, decisions, rtol=1e-6)
    right = (decisions > 0) == (DATASET.y == "yes")
    assert found.assessment.score == pytest.approx(right.mean())
    np.testing.assert_allclose(found.assessment.interval, scores.rate_interval(right.mean(), 90))


def test_the_area_has_delongs_interval_and_any_other_score_students():
    found = analyse(
        DATASET, Settings(ks=KS, Cs=[1.0], cv=3, scoring="roc_auc", repeats=1, pairs=0)
    ).assessment
    by_fold = [roc_auc_score(DATASET.y[found.fold == f], found.decisions[found.fold == f]) for f in range(3)]
    assert found.score == pytest.approx(np.mean(by_fold))
    folds = [scores.RankedRows(f.test, found.decisions[f.test]) for f in found.folds]
    area = scores.area_under_roc(folds, DATASET.y == "yes", np.ones(90))
    np.testing.assert_allclose(found.interval, area.interval)
    assert found.guessing == 0.5
    other = analyse(DATASET, Settings(k=2, Cs=[1.0], cv=3, scoring="f1_macro", pairs=0)).assessment
    np.testing.assert_allclose(other.interval, scores.mean_interval(other.scores, 0.5, 90))
    assert other.all_features is not None
    every = analyse(DATASET, Settings(k=5, ks=[5], Cs=[1.0], cv=3, pairs=0)).assessment
    assert (every.all_features, every.cost_of_sparsity) == (None, None), "these are the features of the model"


def test_shuffled_labels_are_not_clearly_better_than_guessing_and_the_p_value_says_so():
    frame = noisy_table()
    frame["outcome"] = np.random.default_rng(0).permutation(frame["outcome"])
    settings = Settings(ks=[3, 1], Cs=[1.0], cv=3, repeats=1, permutations=9, pairs=0)
    found = analyse(dataset_of(frame), settings)
    assert not found.assessment.is_better_than_guessing
    assert found.assessment.p_value >= 0.2
    true = analyse(DATASET, settings)
    assert true.assessment.p_value == pytest.approx(0.1)
    assert true.assessment.is_better_than_guessing


def test_a_class_too_small_for_outer_and_inner_folds_is_scored_as_it_was_chosen_and_that_is_said():
    frame = noisy_table()
    frame["outcome"] = ["rare"] * 2 + ["common"] * 88
    found = analyse(dataset_of(frame), Settings(ks=[2, 1], Cs=[1.0], repeats=1, pairs=0))
    assert not found.assessment.is_nested
    assert any("Class 'rare' has 2 rows, too few to choose k and C without" in note for note in found.notes)
    assert "optimistic" in headline(found)


def grouped(*counts):
    """A table with so many sick and well rows in each group."""
    cells = np.array(counts)
    frame = make_table(cells.sum()).assign(g=np.repeat(np.indices(cells.shape)[0], cells.ravel()))
    frame["outcome"] = np.repeat([["sick", "well"]] * len(cells), cells.ravel())
    return prepare(Table(frame), Roles("outcome", grouped_by="g"))


def test_what_the_groups_do_not_allow_is_left_out_of_a_fit_with_a_note():
    few = grouped((3, 1), (0, 1), (1, 0), (9, 10))
    notes = analyse(few, Settings(ks=[2, 1], Cs=[1.0], repeats=1, pairs=0)).notes
    assert any("Class 'sick' has 3 groups, too few to choose k and C without" in note for note in notes)
    found = analyse(grouped((1, 0), (8, 5), (10, 12)), Settings(k=2, ks=[2], Cs=[1.0], pairs=2))
    assert found.notes[-1].startswith("Random halves are left out. The groups cannot be split into halves")


def test_a_score_that_a_fold_has_not_gets_a_sentence_and_a_library_s_warning_is_a_note():
    lone = grouped((0, 4), (11, 3), (4, 3), (16, 1), (0, 2), (0, 12), (1, 0))
    settings = Settings(ks=[2, 1], Cs=[1.0], scoring="roc_auc")
    with pytest.raises(InputError, match=r"--scoring roc_auc has no value in fold \d with only 'well'"):
        analyse(lone, settings)
    rare = dataset_of(noisy_table().assign(outcome=["a"] * 84 + ["b"] * 6))
    settings = replace(settings, scoring="precision_macro", repeats=1, nested=False, pairs=0)
    assert sum("Precision is ill-defined" in note for note in analyse(rare, settings).notes) == 1


@pytest.mark.parametrize(("n_columns", "keep", "k"), [(24, [], 10), (24, ["f3", "f4"], 12), (9, ["f3"], 5)])
def test_halves_have_ten_features_or_half_of_them_besides_those_that_are_kept(n_columns, keep, k):
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((40, n_columns))).add_prefix("f")
    dataset = prepare(Table(frame.assign(outcome=["a", "b"] * 20)), Roles("outcome", keep=keep))
    found = measure_stability(dataset, Settings(), n_pairs=1, threshold=1.0)
    assert (found.k, found.C) == (k, stability_C(40, n_columns))
    assert not {*found.stable} & {*keep}


def unequal_table(n=177, seed=1):
    """A third of the rows are sick; three features say something about it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 12))
    score = X[:, :3] @ [0.45, 0.4, 0.3] + rng.standard_normal(n)
    outcome = np.where(score > np.quantile(score, 0.66), "sick", "healthy")
    frame = pd.DataFrame(X, columns=[f"m{j}" for j in range(12)])
    return frame.assign(outcome=outcome, centre=rng.choice(["Basel", "Bern", "Chur", "Zug"], n))


def test_unequal_classes_are_compared_with_guessing_by_the_area_or_the_permutation_test():
    dataset = prepare(Table(unequal_table()), Roles("outcome", drop=["centre"]))
    found = analyse(dataset, Settings(k=2, Cs=[0.1], pairs=0, permutations=19))
    assert found.assessment.judged_by == "permutations"
    assert found.assessment.is_better_than_guessing == (found.assessment.p_value <= 0.05)
    doubtful = replace(found, assessment=replace(found.assessment, p_value=0.3))
    assert headline(doubtful).startswith("Not clearly better than guessing by the permutation test (p = 0.3)")
    few = replace(found.assessment, p_value=0.5, permuted=np.zeros(1))
    assert few.judged_by == "roc_auc", "one permutation cannot show a p-value of .05"
    found = replace(found, assessment=replace(found.assessment, p_value=None, permuted=None))
    assessed, area = found.assessment, frames.area_under_curve(found, 1)
    assert assessed.guessing in assessed.interval, "the accuracy does not show it"
    assert assessed.is_better_than_guessing
    assert assessed.judged_by == "roc_auc"
    assert assessed.evidence.estimate == area
    assert not headline(found).startswith("Not clearly")
    assert f"the area under the ROC curve: {area.value:.3f}" in evidence_text(found)


def test_what_all_features_reach_is_scored_on_the_same_outer_folds():
    trial = TableSearch(DATASET, Settings(ks=[5, 2, 1], Cs=CS, cv=3, repeats=1))
    found = assess(trial, choose(trial))
    expected = []
    for train, test in found.folds:
        inner = [StratifiedKFold(3, shuffle=True, random_state=0)]
        whole = SparseSVCCV([5], Cs=CS, cv=inner[0], standardize=True).fit(DATASET.X[train], DATASET.y[train])
        expected.append(whole.score(DATASET.X[test], DATASET.y[test]))
    np.testing.assert_allclose(found.all_features.scores, expected)
    cost = found.cost_of_sparsity
    assert cost.value == pytest.approx(np.mean(expected) - found.score)
    assert cost.error == pytest.approx(scores.difference_error(np.array(expected) - found.scores, 1 / 2, 90))


def test_costs_are_told_with_their_errors():
    found = analyse(DATASET, Settings(ks=[5, 2, 1], Cs=CS, cv=3, repeats=1, pairs=0))
    assert re.search(r"All 5 features reach [\d.]+ % .* \(standard error [\d.]+\)", all_features_text(found))
    for near in found.neighbours:
        columns = [found.choice.table.ks.index(k) for k in (near.k, found.choice.k)]
        differences = -np.diff(found.choice.table.scores[:, found.choice.row, columns])[:, 0]
        error = scores.difference_error(differences, 1 / 2, 90)
        assert near.change == (pytest.approx(differences.mean()), error)
        assert f"(standard error {100 * near.change.error:.1f})" in neighbour_text(found, near)


def test_groups_of_rows_have_their_own_results():
    dataset = prepare(Table(unequal_table()), Roles("outcome", grouped_by="centre"))
    found = analyse(dataset, Settings(k=2, Cs=[0.1], cv=2, pairs=0))
    results = frames.results_by_group(found)
    centre = unequal_table()["centre"].to_numpy()
    assert [r.name for r in results] == ["Basel", "Bern", "Chur", "Zug"]
    for result in results:
        right = (found.assessment.predicted == dataset.y)[rows := centre == result.name]
        assert result.n_rows == rows.sum()
        assert result.correct == (pytest.approx(right.mean()), scores.rate_interval(right.mean(), rows.sum()))
    assert f"Basel {100 * results[0].correct.value:.1f} % of {results[0].n_rows} rows" in groups_text(found)
    assert groups_text(found).endswith(". Intervals count groups, not rows.")


@pytest.mark.parametrize(("ks", "is_noted"), [([1], False), ([1, 2], True), (None, False)])
def test_the_largest_k_listed_is_noted_where_it_scores_best(ks, is_noted):
    settings = Settings(ks=ks, Cs=[0.1], cv=3, pairs=0, repeats=1)
    notes = " ".join(analyse(prepare(Table(make_table()), Roles("outcome")), settings).notes)
    assert ("The largest k of --ks, 2 of 5 features, scores best." in notes) == is_noted
    notes = analyse(prepare(Table(make_table()), Roles("outcome")), replace(settings, Cs=[1e-4, 1e-5])).notes
    assert re.search(r"C = 1e-0[45] is at the edge of what was tried. Values beyond may", " ".join(notes))


@cache
def analysis_of(n_classes, weights=False):
    frame = make_table(90, n_classes, seed=4)
    rng = np.random.default_rng(0)
    frame["age"] += 0.9 * rng.standard_normal(90)
    frame["w"] = rng.choice([1.0, 3.0], 90)
    roles = Roles("outcome", weights="w") if weights else Roles("outcome", drop=["w"])
    return analyse(prepare(Table(frame), roles), Settings(k=2, ks=[2], Cs=[1.0], cv=3, pairs=0))


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_shares_of_a_class_are_counted_by_weight_and_have_wilsons_interval(n_classes, weights):
    found = analysis_of(n_classes, weights)
    y, told = found.dataset.y, found.assessment.predicted
    w = found.dataset.weights if weights else np.ones(90)
    for code, name in enumerate(np.unique(y)):
        of_class, of_told = w[y == name], w[told == name]
        share = (of_class * (told[y == name] == name)).sum() / of_class.sum()
        assert frames.recall(found, code).value == pytest.approx(share)
        n = of_class.sum() ** 2 / (of_class**2).sum()
        np.testing.assert_allclose(frames.recall(found, code).interval, scores.rate_interval(share, n))
        right = (of_told * (y[told == name] == name)).sum() / of_told.sum()
        assert frames.precision(found, code).value == pytest.approx(right)


def test_a_class_that_is_never_told_has_no_precision():
    assert frames.share_of(np.empty(0, bool), np.empty(0)) is None


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_area_is_the_mean_of_the_folds(n_classes):
    found = analysis_of(n_classes)
    y, assessed = found.dataset.y, found.assessment
    for code, name in enumerate(np.unique(y)):
        ranks = assessed.decisions if n_classes == 2 else assessed.decisions[:, code]
        sign = -1 if n_classes == 2 and code == 0 else 1
        areas = [roc_auc_score(y[f.test] == name, sign * ranks[f.test]) for f in assessed.folds]
        area = frames.area_under_curve(found, code)
        assert area.value == pytest.approx(np.mean(areas))
        folds = [scores.RankedRows(f.test, sign * ranks[f.test]) for f in assessed.folds]
        np.testing.assert_allclose(
            area.interval, scores.area_under_roc(folds, y == name, np.ones(90)).interval
        )


def test_the_curve_goes_from_nothing_to_everything_and_has_that_area():
    found = analysis_of(2)
    false, true = frames.roc_points(found)
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    assert (np.diff(false) >= 0).all()
    assert (np.diff(true) >= 0).all()
    assert np.trapezoid(true, false) == pytest.approx(frames.area_under_curve(found, 1).value, rel=1e-12)
    only = found.assessment.folds[0]._replace(test=np.flatnonzero(found.dataset.y == found.model.classes_[0]))
    more = replace(found, assessment=replace(found.assessment, folds=(*found.assessment.folds, only)))
    np.testing.assert_array_equal(frames.roc_points(more), (false, true))  # a fold of one class has no curve


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_held_against_what_came_true(n_classes):
    found = analysis_of(n_classes)
    y, P = found.dataset.y, found.assessment.probabilities
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert frames.log_loss_of(found) == pytest.approx(log_loss(y, P))
    bins = frames.reliability(found)
    assert sum(b.n_rows for b in bins) == 90
    told, true = P[:, 1], y == np.unique(y)[1]
    if n_classes == 3:
        told, true = P.max(axis=1), y == np.unique(y)[P.argmax(axis=1)]
    assert sum(b.n_rows * b.predicted for b in bins) == pytest.approx(told.sum())
    assert sum(b.n_rows * b.observed.value for b in bins) == pytest.approx(true.sum())
    expected = sum(b.n_rows * abs(b.predicted - b.observed.value) for b in bins) / 90
    assert frames.calibration_error(found) == pytest.approx(expected)


def test_boxes_show_quarters_and_nine_tenths_of_each_class():
    found = analysis_of(2)
    names = found.dataset.encoding.feature_names
    boxes = {box["name"]: box for box in feature_boxes(found)}
    assert boxes.keys() == {names[j] for j in found.model.machine.support_}
    for feature in found.model.machine.support_:
        values, box = found.dataset.X[:, feature], boxes[names[feature]]
        quantiles = [
            np.quantile(values[found.dataset.y == name], (0.05, 0.25, 0.5, 0.75, 0.95))
            for name in found.model.machine.classes_
        ]
        assert (box["low"], box["high"]) == (np.min(quantiles), np.max(quantiles))
        for line, q in zip(box["lines"], quantiles, strict=True):
            np.testing.assert_allclose(line["at"], 100 * (q - box["low"]) / (box["high"] - box["low"]))
            assert (line["low"], line["median"], line["high"]) == tuple(q[1:4])
