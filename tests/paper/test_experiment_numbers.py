"""The numbers of the experiments, each recomputed, and the conclusions drawn from them."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC, LinearSVC
from small_runs import TINY

from kmargin import MM, SD, Exchange, KernelSparseSVC, SparseSVC
from kmargin.datasets import load_iris, make_spiral
from kmargin.paper import experiments, protocol, report, tables
from kmargin.paper.experiments import Classifiers
from kmargin.paper.protocol import DATASETS, QUICK, Fit, Job, Settings
from kmargin.paper.report import Verdict
from kmargin.paper.run import PARTS
from kmargin.paper.store import KEYS


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_simulated_data_sets_differ_and_are_scored_on_new_rows():
    draw = experiments.draw_data.__wrapped__
    first, *others, again = (draw(20, 60, *seeds)[0] for seeds in ((0, 0), (1, 0), (0, 1), (0, 0)))
    assert [(first == other).mean() for other in (*others, again)] == [0, 0, 1]
    X, y, coef = draw(20, 60, 1, TINY.seed)
    assert (X.shape, (coef != 0).sum()) == ((1020, 60), 50)
    for name, solver, C in (("exchange", Exchange(), 10.0), ("sd", SD(ending="projection"), np.inf)):
        job = Job("recovery", "paper", "20x60", name, (Fit(1, 0.8), Fit(1, 0.9)))
        for fit, k, found in zip(job.fits, (12, 6), experiments.run_recovery(job, TINY), strict=True):
            model = SparseSVC(k, C=C, solver=solver).fit(X[:20], y[:20])
            kept = model.support_
            shares = {"fdr": np.mean(coef[kept] == 0), "for": np.mean(np.delete(coef, kept) != 0)}
            shares |= {"train": model.score(X[:20], y[:20]), "test": model.score(X[20:], y[20:])}
            shares |= {"kept": len(kept), "sparsity": 1 - len(kept) / 60, "iterations": model.n_iter_.sum()}
            assert found == fit._asdict() | shares | {"seconds": found["seconds"]}


def test_summaries_of_classifiers_are_means_and_sums():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    classifiers = Classifiers("iris", X, y, np.inf, TINY)
    (solutions,) = classifiers.solve(SD(), [[2], [1], [1]])
    described, ends = classifiers.describe(solutions), [s.trace[-1] for s in solutions]
    sizes = np.array([len(s.support) for s in solutions])
    means = {"kept": sizes, "sparsity": 1 - sizes / 4, "objective": [end.objective for end in ends]}
    means["gradient_sq"] = [end.gradient_sq for end in ends]
    means["distance_sq"] = [end.distance_sq for end in ends] / (4 - sizes + 1)
    for name, values in means.items():
        assert described[name] == pytest.approx(np.mean(values)), name
    assert described["iterations"] == sum(s.n_iter for s in solutions)
    ((exhausted, *_),) = classifiers.solve(SD(max_outer=2), [[2], [1], [1]])
    swapped = classifiers.improve([1] * 3, [np.random.default_rng(0)] * 3)
    mixed = [exhausted, solutions[1], swapped[2]]
    assert [s.status.name for s in mixed] == ["EXHAUSTED", "STALLED", "SWAP_OPTIMAL"]
    assert classifiers.describe(mixed)["stalled"] == pytest.approx(2 / 3)
    short, losses = np.zeros(len(y), dtype=bool), []
    for (first, second), s in zip(combinations(np.unique(y), 2), solutions, strict=True):
        rows = np.flatnonzero((y == first) | (y == second))
        margins = np.where(y == second, 1, -1) * (X @ s.dense_coef() + s.intercept)
        short[rows[margins[rows] < 1]] = True
        losses.append(np.mean(np.maximum(0, 1 - margins[rows]) ** 2) / 2)
    assert (described["support_vectors"], described["loss"]) == (short.sum(), pytest.approx(np.mean(losses)))


@pytest.mark.parametrize("name", ["paper", "shuffled"])
@pytest.mark.parametrize("solver", ["l1r", "l2r", "svc"])
def test_the_competitors_are_those_of_the_protocols_and_their_sparsities_are_means(name, solver):
    how = {"penalty": solver[:2], "dual": False, "max_iter": 5000, "random_state": TINY.seed}
    how["fit_intercept"] = name == "shuffled"
    rows = protocol.fold(protocol.read("iris", name, TINY.seed), TINY, 1)
    job = Job("crossval", name, "iris", solver, (Fit(1, 1.0), Fit(1, 0.01)))
    ran = list(experiments.run_crossval(job, TINY))
    for C, found in zip((1.0, 0.01), ran, strict=True):
        model = SVC(C=C, gamma=TINY.gamma) if solver == "svc" else LinearSVC(C=C, **how)
        model = OneVsOneClassifier(model) if name == "shuffled" and solver != "svc" else model
        model.fit(rows.X[rows.train], rows.y[rows.train])
        expected = {"replicate": 1, "parameter": C, "seconds": found["seconds"]}
        for part in ("train", "validation", "test"):
            expected[part] = model.score(rows.X[getattr(rows, part)], rows.y[getattr(rows, part)])
        linear = [one.coef_ == 0 for one in getattr(model, "estimators_", [model]) if solver != "svc"]
        expected["sparsity"] = np.mean(linear) if linear else 1 - len(model.support_) / len(rows.train)
        assert found == pytest.approx(expected)
    assert any(found["sparsity"] > 0 for found in ran) == (solver != "l2r")


def test_points_of_each_pair_of_spirals_are_chosen_as_by_the_public_classifier():
    X, y = make_spiral((20, 16, 12), random_state=0)
    classifiers = Classifiers("spiral", X, y, 10.0, replace(TINY, gamma=2.0))
    (solutions,) = classifiers.solve(Exchange(), [[4]] * 3)
    sparsity = classifiers.describe(solutions)["sparsity"]
    assert sparsity == pytest.approx(1 - np.mean([4 / 36, 4 / 32, 4 / 28]))
    public = KernelSparseSVC(4, C=10.0, gamma=2.0, shared=False, solver=Exchange()).fit(X, y)
    X, y = make_spiral((50, 50, 50), random_state=1)
    assert classifiers.accuracy(X, y) == public.score(X, y) < 1


def test_the_accuracy_noise_is_two_standard_errors_of_a_difference_plus_half_a_point():
    group = pd.DataFrame({"replicate": [0, 1, 2, 3], "test": [90.0, 92.0, 94.0, 92.0], "dataset": "iris"})
    error = np.std(group["test"], ddof=1) / 2
    assert tables.accuracy_noise(group, "test") == pytest.approx(0.5 + 2 * np.sqrt(2) * error)
    assert tables.accuracy_noise(group[:1], "test") == 0.5
    drawn = np.sqrt(error**2 + 92 * 8 / 200)  # 200 test rows are drawn anew
    simulated = group.assign(dataset="synthetic")
    assert tables.accuracy_noise(simulated, "test") == pytest.approx(0.5 + 2 * np.sqrt(2) * drawn)
    perfect = tables.accuracy_noise(simulated.assign(test=100.0), "test")
    assert perfect == pytest.approx(0.5 + 2 * np.sqrt(2 * 99.5 * 0.5 / 200)), "one row in error"


def fake_rows(validation, **columns):
    """Results of two folds of one solver on iris, with a small difference between the folds."""
    same = {"seconds": 1.0, "iterations": 10, "objective": 0.1, "loss": 0.1}
    return pd.DataFrame(
        dict(zip(KEYS, ("crossval", "paper", "iris", "mm", fold, s), strict=True))
        | {"validation": v + 0.5 * fold, **same}
        | {name: values[place] for name, values in columns.items()}
        for place, (s, v) in enumerate(validation.items())
        for fold in (0, 1)
    )


def test_table_3_sums_along_the_path_averages_over_folds_and_has_the_sparser_of_ties():
    (line,) = tables.table3(fake_rows({0.0: 90, 0.25: 96, 0.5: 80}, test=[70, 81, 60]), "paper")
    assert (line.parameter.value, line.entries["iterations"].value) == (25, 30)
    assert (line.entries["test"].value, line.entries["validation"].value) == (81, 96.25)
    assert line.entries["test"].printed == 81.66
    cells = (line.entries["test"], line.entries["validation"], line.parameter, tables.Entry(1, printed=2))
    assert [cell.differs for cell in cells] == [True, False, False, True]  # by 0.66 points
    rows = fake_rows({0.0: 90, 0.25: 95, 0.5: 95, 0.75: 80})
    assert [tables.selected(rows.assign(solver=name)) for name in ("mm", "l1r")] == [0.5, 0.25]


def test_exchange_is_compared_by_the_loss_because_its_objective_has_a_ridge():
    rows = fake_rows({0.0: 90, 0.25: 96}, test=[70, 81], loss=[0.2, 0.3])
    for solver in ("mm", "exchange"):
        (line,) = tables.table3(rows.assign(solver=solver), "paper")
        assert (line.entries["loss"].value, "objective" in line.entries) == (0.3, solver == "mm")


def line(solver, test=80.0, seconds=2.0, printed=None, validation=None, dataset="iris"):
    entries = {"test": tables.Entry(test, 0.5, printed), "seconds": tables.Entry(seconds)}
    entries["validation"] = tables.Entry(test if validation is None else validation)
    return tables.Line(dataset, solver, tables.Entry(25.0), entries)


def test_differences_are_grouped_by_their_reasons(monkeypatch):
    known = {"datasets": ["iris"], "solvers": ["mm", "sd"], "text": "The split."}
    monkeypatch.setattr(tables, "REASONS", [known])
    lines = [line("mm", 84, 2, 81), line("sd", 81, 2, 81.3), line("l1r", 90, 2, 80), line("exchange", 85)]
    found = tables.reasons({"table4": lines, "table3": [line("sd", 79, 2, 81.3)]})
    texts = ["Table 4, iris, MM: test 84 against 81", "Table 3, iris, SD: test 79 against 81.3"]
    other = ["Table 4, iris, L1R: test 90 against 80"]
    assert found == [(texts, "The split."), (other, tables.UNKNOWN)]


def test_the_verdict_counts_agreements_and_compares_times():
    lines = [line("mm", 80, 8, 80.2), line("sd", 79, 4, 85), line("exchange", 82, 2)]
    lines += [line("mm", 90, 12, 90.1, dataset="spiral"), line("exchange", 80, 3, dataset="spiral")]
    text = " ".join((verdict := Verdict(Settings(), lines)).sentences())
    assert text.startswith("Of the paper's 3 printed test accuracies of MM and SD on these data, 2 agree")
    assert "computes the whole path 4 times as fast" in text
    assert "at least as well on 1 of 2" in text
    assert verdict.duels[0].gain == 2.0  # over mm, the better of the two
    slow = Verdict(Settings(), [line("mm", 95, 1), line("exchange", 96, 4)])
    assert "computes the whole path 4 times more slowly" in slow.sentences()[-1]


def test_parts_of_the_report_are_shown_if_there_are_rows_for_them_and_numbers_are_short():
    values = (0, 1e-3, 9.994e-4, 0.12345, 1.23456, -0.5, 9999, 12345, -0.00012345)
    assert " ".join(map(report.short, values)) == "0 0.001 9.99e-4 0.123 1.235 -0.5 9999 1.23e4 -1.23e-4"
    table = "table3 table4 figure3 "
    for ran, shown in (
        ("", ""), ("sensitivity iris", "figure1"), ("recovery 60x80", "figure2"),
        ("crossval iris", table), ("crossval synthetic", table + "table2"),
    ):  # fmt: skip
        rows = pd.DataFrame([ran.split()] if ran else [], columns=["experiment", "dataset"])
        found = {part for part in PARTS if report._has_rows(part, rows)}
        assert found == {"descent", "figureS1", "figureS2", *shown.split()}


def test_the_figure_of_a_run_of_mm_shows_each_step(monkeypatch):
    iris = protocol.read("iris", "paper", 0)._replace(train=np.arange(100))
    monkeypatch.setattr(protocol, "read", lambda *names: {("synthetic", "paper", TINY.seed): iris}[names])
    axes = report.figures.figure_descent(None, TINY).axes
    problem = Classifiers("iris", protocol.whole(iris).X[:100], iris.y[:100], np.inf, TINY)
    (((solution,),),) = [[*problem.solve(MM(trace="steps", ending="projection"), [[2]])]]
    assert axes[0].get_title() == f"stalled after {len(solution.trace)} values of rho"
    steps = [step for record in solution.trace for step in record.steps]
    for ax, name in zip(axes, ("objective", "gradient_sq", "distance_sq"), strict=True):
        assert [getattr(step, name) for step in steps] in [[*one.get_ydata()] for one in ax.lines]
        assert ax.get_yscale() == "log"


def test_a_tie_between_mm_and_sd_goes_to_the_faster():
    for of_mm, rival, speed in ((95.0, "sd", 2.0), (95.000004, "mm", 4.0)):
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
