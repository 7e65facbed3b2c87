"""X is used where it lies."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from stub_solvers import Keeper, mapped_file

from kmargin import MM, SparseSVC, SparseSVCCV, sparse_svm_path
from kmargin.data.design.dense import DenseDesign
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


def test_a_search_takes_less_memory_than_a_copy_in_double_precision():
    X, y = data(20_000, 300, np.float32)
    model = SparseSVC(k=2)
    model.fit(X[:200], y[:200])  # compiles
    _, peak = peak_of(model.fit, X, y)
    assert peak < 0.75 * X.size * 8


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


def test_standardising_takes_one_copy():
    X, _ = data(4000, 200)
    mean, spread = X.mean(axis=0), X.std(axis=0)
    scaled, peak = peak_of(DenseDesign(X).standardized, mean, spread)
    np.testing.assert_allclose(scaled.X, (X - mean) / spread)
    assert peak < 1.1 * X.nbytes


WITHIN_LIMIT = """
import resource, sys
import numpy as np
from kmargin import SparseSVC, sparse_svm_path

def private():
    fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(fields["VmData"].split()[0]) * 1024

rows = np.load(sys.argv[1], mmap_mode="r")
y = np.load(sys.argv[2])
for X in (rows[:500], np.asfortranarray(rows[:500])):
    SparseSVC(k=3).fit(X, y[:500]).predict(X)
    X.flags.writeable = False
    SparseSVC(k=3).fit(X, y[:500]).predict(X)
room = int(float(sys.argv[3]) * rows.nbytes)
limit = private() + room
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    np.ones(rows.shape)
    print("no limit")
except MemoryError:
    pass
for X in (rows, np.memmap(sys.argv[1], rows.dtype, "r", 128, rows.shape[::-1]).T):
    model = SparseSVC(k=3).fit(X, y)
    path = sparse_svm_path(X, y, [3])
    print(model.support_, np.mean(model.predict(X) == y) > 0.9, path.predict(X, 3).shape)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="limits on private memory are Linux's")
def test_a_file_is_fitted_in_less_memory_than_it_would_take(tmp_path):
    X = np.random.default_rng(0).standard_normal((20_000, 200))  # 32 MB
    y = X[:, 0] + X[:, 1] + X[:, 2] > 0
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    command = [sys.executable, "-c", WITHIN_LIMIT, tmp_path / "X.npy", tmp_path / "y.npy", "0.6"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "[0 1 2] True (20000,)"
