import numpy as np
import pytest
from sklearn.datasets import load_iris

from kmargin import sparse_svm_path
from kmargin.core.validation import resolve_ks

SOLVERS = ["exchange", "mm", "sd"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_shapes_are_as_documented(solver):
    X, y = load_iris(return_X_y=True)
    path = sparse_svm_path(X, y, [1, 4, 2], solver=solver)
    assert list(path.ks) == [4, 2, 1]
    assert path.coefs.shape == (3, 3, 4)
    assert path.intercepts.shape == path.objectives.shape == (3, 3)
    assert [len(row) for row in path.solutions] == [3, 3, 3]
    assert (np.count_nonzero(path.coefs, axis=2) <= path.ks[:, None]).all()


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_counts_every_solution(jobs, capsys):
    X, y = load_iris(return_X_y=True)
    sparse_svm_path(X, y, [4, 2], n_jobs=jobs, verbose=1, shared=False)
    assert "6/6" in capsys.readouterr().err
    sparse_svm_path(X, y, [4, 2], n_jobs=jobs, verbose=1)
    assert "2/2" in capsys.readouterr().err


def test_a_frame_has_a_row_for_each_k_and_machine():
    X, y = load_iris(return_X_y=True)
    frame = sparse_svm_path(X, y, [4, 2]).to_frame()
    assert len(frame) == 6
    whole, own = (
        ["k", "n_units", "n_features_used"],
        ["machine", "n_nonzero", "objective", "n_iter", "status"],
    )
    assert list(frame.columns) == whole + own
    assert set(frame["machine"]) == {"0 vs 1", "0 vs 2", "1 vs 2"}
    assert (frame["n_nonzero"] <= frame["k"]).all()


def test_weights_reach_the_path(hyperplane):
    X, y = hyperplane
    weights = np.arange(len(y)) % 2
    half = sparse_svm_path(X[1::2], y[1::2], [30, 5])
    weighted = sparse_svm_path(X, y, [30, 5], sample_weight=weights)
    np.testing.assert_allclose(weighted.coefs, half.coefs, atol=1e-10)


def test_a_k_that_was_not_fitted_is_refused(hyperplane):
    path = sparse_svm_path(*hyperplane, [30, 5])
    with pytest.raises(ValueError, match=r"k=7 is not on this path. Use one of 30, 5\."):
        path.predict(hyperplane[0], 7)
    with pytest.raises(ValueError, match="X has 3 features, but the path was fitted to 30"):
        path.predict(np.zeros((2, 3)), 5)


def test_default_ks_run_from_all_features_to_one():
    for p in (1, 2, 7, 500, 20000):
        ks = resolve_ks(None, p)
        assert ks[0] == p
        assert ks[-1] == 1
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
