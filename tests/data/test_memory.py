"""X is used where it lies."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from stub_solvers import Keeper, mapped_file

from kmargin import MM, SparseSVC, SparseSVCCV, sparse_svm_path
from kmargin.data.samples.read import read_samples
from kmargin.fitting.fit import Procedure, fit_parts
from kmargin.fitting.spec import LinearBlueprint


def data(n_samples=400, n_features=30, dtype=np.float64, n_classes=2):
    X = np.random.default_rng(0).standard_normal((n_samples, n_features)).astype(dtype)
    y = np.digitize(X[:, 0] + X[:, 1], np.linspace(-1, 1, n_classes + 1)[1:-1])
    return X, y


def seen_by_machines(model, X, y, **fit):
    return [solution.trace[0] for solution in model.fit(X, y, **fit).solutions_]


def peak_of(function, *arguments):
    tracemalloc.start()
    result = function(*arguments)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return result, peak


PLAIN = SparseSVC(k=2, solver=Keeper())
CHOSEN = SparseSVCCV(ks=[3, 2], solver=Keeper())
EACH_VERSUS_REST = SparseSVC(k=2, multi_class="ovr", solver=Keeper(), shared=False)


@pytest.mark.parametrize(
    ("model", "make", "n_classes"),
    [
        (PLAIN, np.asarray, 2),
        (PLAIN, np.asfortranarray, 2),
        (PLAIN, lambda X: np.asfortranarray(X, dtype=np.float32), 2),
        (PLAIN, pd.DataFrame, 2),
        (CHOSEN, np.asarray, 2),
        (EACH_VERSUS_REST, np.asarray, 4),
    ],
    ids=["rows", "columns", "float32", "frame", "the refit of a cross-validation", "one versus rest"],
)
def test_an_array_is_not_copied(model, make, n_classes):
    X, y = data(n_classes=n_classes)
    X = make(X)
    for sample_weight in (None, np.full(len(y), 2.0)):
        for used in seen_by_machines(model, X, y, sample_weight=sample_weight):
            assert np.shares_memory(used, np.asarray(X))
            assert used.shape == X.shape
        path = sparse_svm_path(X, y > 0, [3], solver=Keeper(), sample_weight=sample_weight)
        assert np.shares_memory(path.solutions[0][0].trace[0], np.asarray(X))


@pytest.mark.parametrize("standardize", [False, True])
def test_a_cross_validation_copies_the_rows_of_one_fold_at_a_time(standardize):
    X, y = data(8000, 200)
    model = SparseSVCCV(ks=[3, 2], cv=5, standardize=standardize, solver=Keeper(only_file=True))
    model.fit(X[:200], y[:200])  # compiles
    _, peak = peak_of(model.fit, X, y)
    # 0.8 of X to train and 0.2 to test; the training rows once more to scale them, and room to work
    assert peak < (2.5 if standardize else 1.3) * X.nbytes


def test_arrays_with_gaps_are_copied_once():
    X, y = data(n_features=60)
    (used,) = seen_by_machines(SparseSVC(k=2, solver=Keeper()), X[:, ::2], y)
    assert used.flags.c_contiguous
    np.testing.assert_array_equal(used, X[:, ::2])


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray])
def test_a_mapped_array_stays_mapped(tmp_path, make):
    X, y = data()
    np.save(tmp_path / "X.npy", make(X))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    (used,) = seen_by_machines(SparseSVC(k=2, solver=Keeper()), mapped, y)
    assert mapped_file(used) == str(tmp_path / "X.npy")
    np.testing.assert_array_equal(SparseSVC(k=2).fit(mapped, y).coef_, SparseSVC(k=2).fit(X, y).coef_)


def test_workers_map_the_same_file(tmp_path):
    X, y = data(n_classes=3)
    np.save(tmp_path / "X.npy", X)
    model = SparseSVC(k=2, multi_class="ovr", solver=Keeper(only_file=True), shared=False)
    with parallel_config(backend="loky", n_jobs=2):
        files = seen_by_machines(model, np.load(tmp_path / "X.npy", mmap_mode="r"), y)
        temporary = seen_by_machines(model, *data(6000, n_classes=3))  # joblib maps what exceeds 1 MB
    assert set(files) == {str(tmp_path / "X.npy")}
    assert None not in temporary
    assert len(set(temporary)) == 1


def test_what_is_kept_of_a_fold_has_no_record_of_iterations():
    samples = read_samples(*data(), None, None)
    (found,) = fit_parts(LinearBlueprint(), [samples], 1, 2, [1.0], [2], Procedure(solver=MM()), "folds")
    assert [s.trace for models in found.paths[0].solutions for s in models] == [()]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_file_is_fitted_in_less_memory_than_it_would_take(tmp_path, dtype):
    X, y = data(20_000, 200, dtype)
    np.save(tmp_path / "X.npy", X)
    by_rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    for mapped in (by_rows, np.memmap(tmp_path / "X.npy", dtype, "r", 128, by_rows.shape[::-1]).T):
        for given, labels in [(mapped[:500], y[:500]), (mapped, y)]:  # the first fit compiles
            model, peak = peak_of(SparseSVC(k=2).fit, given, labels)
            path, peak_of_path = peak_of(sparse_svm_path, given, labels, [2])
            predicted, last = peak_of(lambda X=given, p=path, m=model: (p.predict(X, 2), m.predict(X)))
        assert max(peak, peak_of_path, last) < 0.6 * X.size * 8
        np.testing.assert_array_equal(*predicted)
