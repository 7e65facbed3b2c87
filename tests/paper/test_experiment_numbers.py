"""The numbers of the experiments, each recomputed, and the conclusions drawn from them."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import LinearSVC
from small_runs import TINY

from kmargin import SD, SparseSVC
from kmargin.datasets import load_iris
from kmargin.paper import experiments, tables
from kmargin.paper.experiments import Classifiers
from kmargin.paper.protocol import DATASETS, QUICK, Fit, Job, Settings
from kmargin.paper.report import Verdict
from kmargin.paper.store import KEYS


def test_simulated_data_sets_differ_and_are_scored_on_new_rows():
    draws = [experiments.draw_data(20, 60, draw, 0)[0] for draw in (0, 1)]
    assert (draws[0] != draws[1]).all()
    job = Job("recovery", "paper", "20x60", "exchange", (Fit(0, 0.9),))
    (found,) = experiments.run_recovery(job, TINY)
    X, y, _ = experiments.draw_data(20, 60, 0, TINY.seed)
    model = SparseSVC(6, C=TINY.exchange_C).fit(X[:20], y[:20])
    assert found["train"] == model.score(X[:20], y[:20])
    assert found["test"] == model.score(X[20:], y[20:])
    assert found["sparsity"] == pytest.approx(1 - len(model.support_) / 60)


def test_summaries_of_classifiers_are_means_and_sums():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    classifiers = Classifiers("iris", X, y, np.inf, TINY)
    (solutions,) = classifiers.solve(SD(), [[2], [1], [1]])
    described = classifiers.describe(solutions)
    assert described["sparsity"] == pytest.approx(1 - np.mean([len(s.support) for s in solutions]) / 4)
    distances = [s.trace[-1].distance_sq / (4 - len(s.support) + 1) for s in solutions]
    assert described["distance_sq"] == pytest.approx(np.mean(distances))
    assert described["iterations"] == sum(s.n_iter for s in solutions)
    assert described["objective"] == pytest.approx(np.mean([s.trace[-1].objective for s in solutions]))
    short, losses = np.zeros(len(y), dtype=bool), []
    for (first, second), s in zip(combinations(np.unique(y), 2), solutions, strict=True):
        rows = np.flatnonzero((y == first) | (y == second))
        margins = np.where(y == second, 1, -1) * (X @ s.dense_coef() + s.intercept)
        short[rows[margins[rows] < 1]] = True
        losses.append(np.mean(np.maximum(0, 1 - margins[rows]) ** 2) / 2)
    assert described["support_vectors"] == short.sum()
    assert described["loss"] == pytest.approx(np.mean(losses))


def test_liblinear_has_an_intercept_and_one_classifier_per_pair_in_the_shuffled_protocol():
    paper = experiments.make_peer(Job("crossval", "paper", "iris", "l1r", ()), 0.5, TINY)
    shuffled = experiments.make_peer(Job("crossval", "shuffled", "iris", "l2r", ()), 0.5, TINY)
    assert isinstance(paper, LinearSVC)
    assert (paper.fit_intercept, paper.penalty, paper.C) == (False, "l1", 0.5)
    assert isinstance(shuffled, OneVsOneClassifier)
    assert (shuffled.estimator.fit_intercept, shuffled.estimator.penalty) == (True, "l2")


def test_the_observed_sparsity_is_a_mean_over_classifiers():
    X, y = load_iris(return_X_y=True)
    model = experiments.make_peer(Job("crossval", "shuffled", "iris", "l1r", ()), 0.01, TINY).fit(X, y)
    shares = [np.mean(classifier.coef_ == 0) for classifier in model.estimators_]
    assert len(set(shares)) > 1
    assert experiments.observed_sparsity(model, 150) == pytest.approx(np.mean(shares))


def test_the_accuracy_noise_is_two_standard_errors_of_a_difference_plus_half_a_point():
    group = pd.DataFrame({"replicate": [0, 1, 2, 3], "test": [90.0, 92.0, 94.0, 92.0], "dataset": "iris"})
    error = np.std(group["test"], ddof=1) / 2
    assert tables.accuracy_noise(group, "test") == pytest.approx(0.5 + 2 * np.sqrt(2) * error)


def fake_rows(validation, **columns):
    """Results of two folds of one solver on iris, with a small difference between the folds."""
    records = [
        dict(zip(KEYS, ("crossval", "paper", "iris", "mm", fold, s), strict=True))
        | {"validation": v + 0.5 * fold, "seconds": 1.0, "iterations": 10, "objective": 0.1, "loss": 0.1}
        | {name: values[place] for name, values in columns.items()}
        for place, (s, v) in enumerate(validation.items())
        for fold in (0, 1)
    ]
    return pd.DataFrame(records)


def test_ties_go_to_the_sparser_classifier():
    rows = fake_rows({0.0: 90, 0.25: 95, 0.5: 95, 0.75: 80})
    assert tables.selected(rows) == 0.5
    rows["solver"] = "l1r"
    assert tables.selected(rows) == 0.25  # the smaller C


def test_table_3_sums_along_the_path_and_averages_over_folds():
    (line,) = tables.table3(fake_rows({0.0: 90, 0.25: 96, 0.5: 80}, test=[70, 81, 60]), "paper")
    assert line.parameter.value == 25
    assert line.entries["iterations"].value == 30
    assert line.entries["test"].value == 81
    assert line.entries["validation"].value == 96.25
    assert line.entries["test"].printed == 81.66
    assert line.entries["test"].differs  # by 0.66 points, where folds agree
    assert not line.entries["validation"].differs
    assert not line.parameter.differs


def test_exchange_is_compared_by_the_loss_because_its_objective_has_a_ridge():
    rows = fake_rows({0.0: 90, 0.25: 96}, test=[70, 81], loss=[0.2, 0.3])
    for solver in ("mm", "exchange"):
        (line,) = tables.table3(rows.assign(solver=solver), "paper")
        assert line.entries["loss"].value == 0.3
        assert ("objective" in line.entries) == (solver == "mm")


def line(solver, test=80.0, seconds=2.0, printed=None, validation=None, dataset="iris"):
    entries = {
        "test": tables.Entry(test, 0.5, printed),
        "validation": tables.Entry(test if validation is None else validation),
        "seconds": tables.Entry(seconds),
    }
    return tables.Line(dataset, solver, tables.Entry(25.0), entries)


def test_differences_are_grouped_by_their_reasons(monkeypatch):
    known = {"datasets": ["iris"], "solvers": ["mm", "sd"], "text": "The split."}
    monkeypatch.setattr(tables, "REASONS", [known])
    lines = [line("mm", 84, 2, 81), line("sd", 81, 2, 81.3), line("l1r", 90, 2, 80), line("exchange", 85)]
    found = tables.reasons({"table4": lines, "table3": [line("sd", 79, 2, 81.3)]})
    assert found == [
        (["Table 4, iris, MM: test 84 against 81", "Table 3, iris, SD: test 79 against 81.3"], "The split."),
        (["Table 4, iris, L1R: test 90 against 80"], tables.UNKNOWN),
    ]


def test_the_verdict_counts_agreements_and_compares_times():
    lines = [
        line("mm", 80, 8, 80.2),
        line("sd", 79, 4, 85),
        line("exchange", 82, 2),
        line("mm", 90, 12, 90.1, dataset="spiral"),
        line("exchange", 80, 3, dataset="spiral"),
    ]
    verdict = Verdict(Settings(), lines)
    text = " ".join(verdict.sentences())
    assert text.startswith("Of the paper's 3 printed test accuracies of MM and SD on these data, 2 agree")
    assert "computes the whole path 4 times as fast" in text
    assert "at least as well on 1 of 2" in text
    assert verdict.duels[0].gain == 2.0  # over mm, the better of the two
    slow = Verdict(Settings(), [line("mm", 95, 1), line("exchange", 96, 4)])
    assert "computes the whole path 4 times more slowly" in slow.sentences()[-1]


def test_a_tie_between_mm_and_sd_goes_to_the_faster():
    for of_mm, rival, speed in ((95.0, "sd", 2.0), (95.1, "mm", 4.0)):
        lines = [line("mm", 80, 8.0, validation=of_mm), line("sd", 80, 4.0, validation=95.0 - 1e-12)]
        verdict = Verdict(Settings(), [*lines, line("exchange", 80, 2.0, validation=96.0)])
        assert (verdict.duels[0].rival.solver, verdict.speed) == (rival, speed)


def test_only_a_complete_run_says_whether_the_results_hold_up():
    def conclusions(datasets, settings):
        """Conclusions of runs in which MM agrees with every printed accuracy and SD with none."""
        met = [line("mm", printed=80.2, dataset=name) for name in datasets]
        missed = [line("sd", printed=85, dataset=name) for name in datasets]
        return " ".join(Verdict(settings, met + missed).sentences())

    all_but_one = [name for name in DATASETS if name != "TCGA-PANCAN-HiSeq"]
    whole = conclusions(all_but_one, Settings())
    assert whole.startswith("Do the paper's results hold up? In part: of its 14 printed")
    assert "TCGA-PANCAN-HiSeq, the eighth data set of the paper, is absent: its archive (72 MB" in whole
    assert "absent" not in conclusions(DATASETS, Settings(seed=5))
    few, quick = conclusions(["iris"], Settings()), conclusions(all_but_one, QUICK)
    assert few.startswith("Of the paper's 2 printed test accuracies")
    assert "Not run: TCGA-PANCAN-HiSeq, breast-cancer-wisconsin, letter-recognition" in few
    assert quick.startswith("A quick run: 7 of the paper's 8 data sets, 3 of 10 folds")
    assert "results hold up?" not in few + quick
