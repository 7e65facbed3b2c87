"""Machines side by side: the same results whoever solves them, and no more threads than cores."""

import os
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from dask_data import two_workers
from distributed import Client
from joblib import Parallel, delayed, parallel_config
from sklearn.datasets import load_iris, make_classification
from stub_solvers import Witness, count_blas_threads, set_blas_threads, witness_blas_threads

import kmargin.core.linalg
from kmargin import MM, SparseSVC, SparseSVCCV, sparse_svm_path
from kmargin.core.linalg import OneThread
from kmargin.fitting.fit import BATCH_SHARE, Task, make_batches

TESTS = os.path.dirname(os.path.dirname(__file__))


@contextmanager
def dask_cluster(processes):
    """Two workers: processes, or threads of this one."""
    with two_workers(processes=processes) as cluster, Client(cluster) as client:
        client.run(lambda: __import__("sys").path.append(TESTS))
        yield


@contextmanager
def ray_workers():
    ray = pytest.importorskip("ray", reason="ray is not installed")
    from ray.util.joblib import register_ray

    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": TESTS}})
    yield
    ray.shutdown()


@pytest.fixture(
    scope="module", params=["threading", "loky", "multiprocessing", "dask threads", "dask", "ray"]
)
def backend(request):
    """Where work is done, its workers running."""
    name = request.param
    if name.startswith("dask"):
        with dask_cluster(processes=name == "dask"):
            yield name
    elif name == "ray":
        with ray_workers():
            yield name
    else:
        yield name


def spread_by(backend):
    """joblib with two of these workers."""
    return parallel_config(backend=backend.split()[0], n_jobs=2)


def letters_like():
    return make_classification(400, 10, n_informative=6, n_classes=5, n_clusters_per_class=1, random_state=0)


pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def fit_in_three_ways():
    """The numbers of a path, of a cross-validation and of random starts."""
    path = sparse_svm_path(*letters_like(), [10, 4, 2])
    X, y = load_iris(return_X_y=True)
    chosen = SparseSVCCV(ks=[4, 2], Cs=[0.1, 1.0], standardize=True).fit(X, y)
    annealed = SparseSVC(k=2, solver=MM(start="normal", max_outer=200), random_state=3).fit(X, y)
    scores = [values for name, values in chosen.cv_results_.items() if name != "params"]
    return [path.coefs, path.intercepts, path.objectives, chosen.coef_, *scores, annealed.coef_]


@pytest.fixture(scope="module")
def alone():
    return fit_in_three_ways()


def test_models_are_the_same_to_the_bit_under_any_backend(backend, alone):
    """Random starts, too: they belong to the binary problem, and not to the worker that solves it."""
    with spread_by(backend):
        together = fit_in_three_ways()
    for found, expected in zip(together, alone, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.fixture
def three_threads():
    """BLAS takes three threads in this process."""
    before = count_blas_threads()
    set_blas_threads(3)
    yield
    set_blas_threads(before)


def test_blas_keeps_to_one_thread_in_every_worker_and_gets_its_threads_back(backend, three_threads):
    X, y = letters_like()
    with spread_by(backend):
        told = Parallel()(delayed(set_blas_threads)(3, pause=0.1) for _ in range(4))
        seen = [s.trace[0] for s in SparseSVC(k=2, solver=Witness(), shared=False).fit(X, y).solutions_]
        after = Parallel()(delayed(witness_blas_threads)(pause=0.1) for _ in range(4))
    processes, counts = zip(*seen, strict=True)
    assert set(counts) == {1}
    # workers of multiprocessing and ray are new each time; the former have the three threads of this process
    counted = {count for process, count in after if process in told or backend == "multiprocessing"}
    assert backend == "ray" or counted == {3}
    assert (os.getpid() in processes) == (backend in ("threading", "dask threads"))


def test_alone_blas_keeps_to_one_thread_too_and_gets_its_threads_back(three_threads):
    X, y = letters_like()
    model = SparseSVC(k=2, solver=Witness(), shared=False).fit(X, y)
    assert {s.trace[0] for s in model.solutions_} == {(os.getpid(), 1)}
    assert count_blas_threads() == 3


def while_another_leaves(one_thread, do):
    """`do` inside, after a thread that had entered before has left."""
    entered, may_leave = threading.Event(), threading.Event()

    def first():
        with one_thread:
            entered.set()
            may_leave.wait()

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait()
    with one_thread:
        may_leave.set()
        thread.join()
        return do()


def test_blas_gets_its_threads_back_from_the_last_who_leaves(three_threads):
    one_thread = OneThread()
    assert while_another_leaves(one_thread, count_blas_threads) == 1
    assert count_blas_threads() == 3
    with one_thread, one_thread:
        assert count_blas_threads() == 1
    assert count_blas_threads() == 3


class CountsByThread:
    """A library with a number of threads for each thread that calls it."""

    internal_api = "mkl"
    counts = threading.local()

    @property
    def num_threads(self):
        return getattr(self.counts, "n", 4)

    def set_num_threads(self, n):
        self.counts.n = n


def test_where_threads_are_counted_by_thread_each_gets_its_own_back(monkeypatch):
    library = CountsByThread()
    monkeypatch.setattr(kmargin.core.linalg, "blas_libraries", lambda: [library])
    library.set_num_threads(3)
    assert while_another_leaves(OneThread(), lambda: library.num_threads) == 1
    assert library.num_threads == 3


@pytest.mark.parametrize(("n_tasks", "n_workers"), [(1, 2), (3, 2), (10, 16), (325, 2), (1625, 8)])
def test_batches_hold_every_task_in_order_and_get_shorter(n_tasks, n_workers):
    designs = [object(), object()]
    tasks = [Task(designs[2 * index // n_tasks], (index,)) for index in range(n_tasks)]
    batches = list(make_batches(iter(tasks), n_tasks, n_workers))
    numbers = [[index for (index,), _ in parts] for _, parts, _ in batches]
    assert [index for batch in numbers for index in batch] == list(range(n_tasks))
    for (designs, _, first), held in zip(batches, numbers, strict=True):
        assert first == held[0]
        assert all(tasks[index].designs is designs for index in held)
        assert len(held) <= max(1, BATCH_SHARE * (n_tasks - first) / n_workers)
