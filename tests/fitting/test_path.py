import warnings
from dataclasses import replace
from itertools import permutations, repeat

import numpy as np
import pytest
from sklearn.datasets import load_iris
from stub_solvers import Witness

from kmargin import sparse_svm_path
from kmargin.core.validation import resolve_ks
from kmargin.fitting.fit import SMALL_COST
from kmargin.solvers import Status


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_counts_every_solution(jobs, capsys):
    X, y = load_iris(return_X_y=True)
    sparse_svm_path(X, y, [4, 2], n_jobs=jobs, verbose=1, shared=False)
    assert "6/6" in capsys.readouterr().err
    sparse_svm_path(X, y, [4, 2], n_jobs=jobs, verbose=1)
    assert "2/2" in capsys.readouterr().err


@pytest.mark.parametrize("solver", ["exchange", "mm", "sd"])
def test_shapes_are_as_documented_and_a_frame_has_a_row_for_each_k_and_machine(solver):
    X, y = load_iris(return_X_y=True)
    path = sparse_svm_path(X, y, [1, 4, 2], solver=solver)
    assert list(path.ks) == [4, 2, 1]
    assert path.coefs.shape == (3, 3, 4)
    assert path.intercepts.shape == path.objectives.shape == (3, 3)
    assert [len(row) for row in path.solutions] == [3, 3, 3]
    frame = path.to_frame()
    np.testing.assert_array_equal(frame["n_nonzero"], np.count_nonzero(path.coefs, axis=2).ravel())
    assert (frame["n_nonzero"] <= frame["k"]).all()
    assert frame["k"].tolist() == [4] * 3 + [2] * 3 + [1] * 3
    assert frame["machine"].tolist() == ["0 vs 1", "0 vs 2", "1 vs 2"] * 3
    whole = ["k", "n_units", "n_features_used"]
    assert list(frame.columns) == [*whole, "machine", "n_nonzero", "objective", "n_iter", "status"]


def test_a_k_that_was_not_fitted_is_refused(hyperplane):
    path = sparse_svm_path(*hyperplane, [30, 5])
    with pytest.raises(ValueError, match=r"k=7 is not on this path. Use one of 30, 5\."):
        path.predict(hyperplane[0], 7)
    with pytest.raises(ValueError, match="X has 3 features, but the path was fitted to 30"):
        path.predict(np.zeros((2, 3)), 5)


def test_default_ks_run_from_all_features_to_one():
    for p in (1, 2, 7, 500, 20000):
        ks = resolve_ks(None, p)
        assert (ks[0], ks[-1]) == (p, 1)
        assert ks == sorted(set(ks), reverse=True)
    assert {1, 2, 3} < set(resolve_ks(None, 500))
    assert resolve_ks(3, 100) == [100, 10, 1]
    assert resolve_ks(["all", 2, 2], 9) == [9, 2]
    assert resolve_ks(np.array([3, 5]), 9) == [5, 3]


@pytest.mark.parametrize(
    ("ks", "message"),
    [
        ([], "leaves nothing to fit"),
        (0, "asks for a path of 0 values"),
        ("all", "is not a list of values of k"),
        (2.5, "is not a list of values of k"),
        ([3, -1], "k=-1 asks for -1 nonzero"),
        ([3, 2.5], "k=2.5 is not a number of nonzero"),
    ],
)
def test_bad_ks_are_refused(hyperplane, ks, message):
    with pytest.raises(ValueError, match=message):
        sparse_svm_path(*hyperplane, ks)


class Told(Witness):
    """Finds models of the objectives, statuses and costs of projection that it is told."""

    is_monotone = True

    def __init__(self, objectives, statuses=repeat(Status.CONVERGED), costs=repeat(0.0)):  # noqa: B008
        self.objectives, self.statuses, self.costs = objectives, statuses, costs

    def solve_grid(self, *given):
        told = zip(super().solve_grid(*given), self.objectives, self.statuses, self.costs, strict=False)
        for (found,), value, status, cost in told:
            yield (replace(found, objective=value, status=status, projection_cost=cost),)


@pytest.mark.parametrize("objectives", [*permutations((1.0, 2.0, 3.0)), (2.0, 1.0), (1.0 + 1e-12, 1.0)])
def test_a_model_worse_than_that_of_a_smaller_k_is_replaced_by_it(objectives, hyperplane):
    path = sparse_svm_path(*hyperplane, range(len(objectives)), solver=Told(objectives))
    expected = np.minimum.accumulate(objectives[::-1])[::-1]
    is_rounding = np.ptp(objectives) < 1e-11
    assert path.objectives[:, 0].tolist() == [*(objectives if is_rounding else expected)]


STALLED, EXHAUSTED, SETTLED = Status.STALLED, Status.EXHAUSTED, Status.SETTLED
ALMOST = f" (the final projection onto S_k raised the objective by at most {SMALL_COST:g})"


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(
    ("statuses", "cost", "expected"),
    [
        ([SETTLED, STALLED, STALLED], 0.0, [f"2 of 3 solutions: {STALLED.value}{ALMOST}"]),
        ([STALLED, SETTLED, STALLED], 1.0, [f"2 of 3 solutions: {STALLED.value}"]),
        ([EXHAUSTED, EXHAUSTED], 0.0, [f"2 of 2 solutions: {EXHAUSTED.value}"]),
        ([EXHAUSTED], 0.0, [EXHAUSTED.value]),
    ],
)
def test_solutions_that_ended_early_are_counted_in_a_warning(statuses, cost, expected, hyperplane):
    n, costs = len(statuses), [0.0] * (len(statuses) - 1) + [cost]
    with warnings.catch_warnings(record=True) as caught:  # k = 0 needs no sign
        sparse_svm_path(*hyperplane, range(n), signs={0: n == 1}, solver=Told([1.0] * n, statuses, costs))
    assert [str(warning.message) for warning in caught] == expected
