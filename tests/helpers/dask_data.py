"""Small data in blocks: in memory, as dask collections, and on a cluster of two workers."""

import gc
import time

import dask
import dask.array as da
import numpy as np
from distributed import LocalCluster

from kmargin import Exchange
from kmargin.data.blocks import Block
from kmargin.data.blocks.problem import LocalBlocks
from kmargin.data.blocks.sums import View

N, P = 600, 12
SIZES = (250, 0, 100, 70, 180)

# a short search, because every request costs milliseconds of dask's time
SHORT = Exchange(effort="fast")


def make_data():
    """X, y with some labels that are wrong, and weights."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N, P)) + rng.uniform(-1, 1, P)
    noise = rng.standard_normal(N)
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + 0.7 * noise > 0.2, "yes", "no")
    return X, y, rng.uniform(0.5, 2.0, N)


def blocks(*arrays, sizes=SIZES):
    """Ragged blocks, one of them empty."""
    return tuple(da.from_array(a, chunks=(sizes, *a.shape[1:])) for a in arrays)


BALANCED = View(positive=1, negative=0, class_weight=np.ones(2))


def cut(X, codes, repeats=None, sizes=(12, 0, 7)):
    """Ragged blocks in memory, one of them empty; the last takes what is left."""
    repeats = np.ones(len(X)) if repeats is None else repeats
    parts = [np.split(array, np.cumsum(sizes)) for array in (X, codes, repeats)]
    return LocalBlocks([Block(number, *part) for number, part in enumerate(zip(*parts, strict=True))])


def forget_sizes(array):
    """The same blocks with unknown numbers of rows."""
    unknown = ((np.nan,) * array.numblocks[0], *array.chunks[1:])
    return da.Array(array.dask, array.name, unknown, meta=array)


def assert_same(found, expected, atol=1e-8):
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=atol)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=atol)
    np.testing.assert_allclose(found.objective_, expected.objective_, atol=atol)


# A cluster with dask's own settings takes a tenth of a core while it has nothing to do.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "5s",
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}


def two_workers(**options):
    """A cluster of two worker processes with one thread each."""
    with dask.config.set(QUIET):
        return LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", **options)


def wait_until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        gc.collect()
        time.sleep(0.05)
