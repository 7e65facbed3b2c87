"""The numbers of the experiments, each computed again in a line or two."""

import numpy as np
import pandas as pd
import pytest
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import LinearSVC
from small_runs import TINY

from kmargin import SparseSVC
from kmargin.datasets import load_iris
from kmargin.paper import crossval, protocol, recovery, run, sensitivity, tables
from kmargin.paper.crossval import Machines
from kmargin.paper.protocol import Chain, Finished, Settings, Unit
from kmargin.paper.sections import verdict
from kmargin.paper.store import Store
from kmargin.solvers import SD


def test_a_range_becomes_zero_to_one():
    X = np.array([[2.0, -1.0], [4.0, 3.0], [3.0, 1.0]])
    scaled = protocol.scale(X, X, "minmax")
    np.testing.assert_allclose(scaled, [[0, 0], [1, 1], [0.5, 0.5]])


def test_draws_of_the_simulation_differ_and_are_scored_on_rows_that_were_not_fitted():
    draws = [recovery.draw_data(20, 60, draw, 0)[0] for draw in (0, 1)]
    assert (draws[0] != draws[1]).all()
    chain = Chain("recovery", "paper", "20x60", "exchange", (Unit(0, 0.9),))
    (found,) = recovery.walk(chain, TINY, [], [])
    X, y, _ = recovery.draw_data(20, 60, 0, TINY.seed)
    model = SparseSVC(6, C=TINY.exchange_C).fit(X[:20], y[:20])
    assert found.values["train"] == model.score(X[:20], y[:20])
    assert found.values["test"] == model.score(X[20:], y[20:])
    assert found.values["sparsity"] == pytest.approx(1 - len(model.support_) / 60)


def test_every_random_start_is_its_own():
    chain = Chain("sensitivity", "paper", "iris", "sd", (Unit(0, 0.5), Unit(1, 0.5)))
    one, other = sensitivity.walk(chain, TINY, [], [])
    assert one.values["iterations"] != other.values["iterations"]


@pytest.fixture(scope="module")
def annealed():
    X, y = load_iris(return_X_y=True)
    machines = Machines("iris", (X - X.mean(axis=0)) / X.std(axis=0), y, np.inf, TINY)
    solutions = machines.anneal(SD(), [2, 1, 1])
    return solutions, machines.describe(solutions)


def test_machines_are_described_by_means_and_sums(annealed):
    solutions, described = annealed
    assert described["sparsity"] == pytest.approx(1 - np.mean([len(s.support) for s in solutions]) / 4)
    distances = [s.trace[-1].distance_sq / (4 - len(s.support) + 1) for s in solutions]
    assert described["distance_sq"] == pytest.approx(np.mean(distances))
    assert described["iterations"] == sum(s.n_iter for s in solutions)
    assert described["objective"] == pytest.approx(np.mean([s.trace[-1].objective for s in solutions]))


def test_exchange_states_its_ridge():
    chain = next(crossval.chains(TINY, ["paper"], ["iris"], ["exchange"]))
    first = next(iter(crossval.walk(chain, TINY, [], [])))
    rows = protocol.fold(protocol.read("iris", "paper", TINY.seed), 10, TINY.seed, 0)
    model = SparseSVC("all", C=TINY.exchange_C).fit(rows.X[rows.train], rows.y[rows.train])
    assert first.values["objective"] == pytest.approx(model.objective_.mean(), rel=1e-6)


def test_liblinear_has_an_intercept_and_one_machine_per_pair_where_ours_have():
    paper = crossval.peer(Chain("crossval", "paper", "iris", "l1r", ()), 0.5, TINY)
    shuffled = crossval.peer(Chain("crossval", "shuffled", "iris", "l2r", ()), 0.5, TINY)
    assert isinstance(paper, LinearSVC)
    assert (paper.fit_intercept, paper.penalty, paper.C) == (False, "l1", 0.5)
    assert isinstance(shuffled, OneVsOneClassifier)
    assert (shuffled.estimator.fit_intercept, shuffled.estimator.penalty) == (True, "l2")


def test_the_observed_sparsity_is_a_mean_over_machines():
    X, y = load_iris(return_X_y=True)
    chain = Chain("crossval", "shuffled", "iris", "l1r", ())
    model = crossval.peer(chain, 0.01, TINY).fit(X, y)
    shares = [np.mean(machine.coef_ == 0) for machine in model.estimators_]
    assert len(set(shares)) > 1
    assert crossval.observed_sparsity(model, 150) == pytest.approx(np.mean(shares))


def test_noise_is_two_standard_errors_of_a_difference_and_half_a_point():
    group = pd.DataFrame({"replicate": [0, 1, 2, 3], "test": [90.0, 92.0, 94.0, 92.0]})
    error = np.std(group["test"], ddof=1) / 2
    assert tables._accuracy_noise(group, "test", "iris") == pytest.approx(0.5 + 2 * np.sqrt(2) * error)


def compared(dataset, solver, test, seconds, printed=None):
    entries = {"test": tables.Entry(test, 0.5, printed), "validation": tables.Entry(test)}
    return tables.Line(dataset, solver, tables.Entry(25.0), entries | {"seconds": tables.Entry(seconds)})


def test_the_verdict_counts_what_is_met_and_divides_their_time_by_ours():
    page = " ".join(
        verdict(
            [
                compared("iris", "mm", 80, 8, 80.2),
                compared("iris", "sd", 79, 4, 85),
                compared("iris", "exchange", 82, 2),
                compared("spiral", "mm", 90, 12, 90.1),
                compared("spiral", "exchange", 80, 3),
            ],
            Settings(),
        )
    )
    assert "Of the paper&#x27;s 3 printed test accuracies of MM and SD on these data, 2 agree with" in page
    assert "4 ×" in page
    assert "computes the whole path 4 times as fast" in page
    assert "at least as well on 1 of 2" in page


def finished(chain, number, seconds=1.0):
    return Finished(chain.units[number], {"test": 0.5}, seconds, [np.arange(3.0) + number])


def test_states_are_kept_while_a_chain_lasts_and_forgotten_at_its_end(tmp_path):
    chain = Chain("crossval", "paper", "iris", "mm", (Unit(0, 0.0), Unit(0, 0.5)), is_warm=True)
    with Store(tmp_path, Settings().to_dict(), "command") as store:
        store.append(chain, [finished(chain, 0)])
        np.testing.assert_array_equal(store.state(chain, store.done(chain))[0], [0, 1, 2])
        store.append(chain, [finished(chain, 1)])
        assert not list((tmp_path / "state").iterdir())


def test_rows_end_in_order_and_seconds_without_a_row_are_dropped(tmp_path):
    first, second = (Chain("crossval", "paper", "iris", solver, (Unit(0, 0.0),)) for solver in ("mm", "sd"))
    with Store(tmp_path, Settings().to_dict(), "command") as store:
        for chain in (second, first):
            store.append(chain, [finished(chain, 0)])
        store.finish(run.order)
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert list(rows["solver"]) == ["mm", "sd"]
    text = (tmp_path / "rows.csv").read_text().splitlines(keepends=True)
    (tmp_path / "rows.csv").write_text("".join(text[:-1]))  # killed before the last row was written
    with Store(tmp_path, Settings().to_dict(), "command"):
        assert list(pd.read_csv(tmp_path / "seconds.csv")["solver"]) == ["mm"]
