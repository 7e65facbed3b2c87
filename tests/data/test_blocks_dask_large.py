"""More rows than the workers have memory for."""

import os

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask_data import SHORT, assert_same, two_workers
from distributed import Client

from kmargin import SparseSVC

N_FILES, N_ROWS, P = 110, 10_000, 100
NAMES = [f"x{j}" for j in range(P)]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """1,100,000 x 100 in Parquet files, 880 MB, and the same as arrays."""
    folder = tmp_path_factory.mktemp("large")
    X, y = np.empty((N_FILES * N_ROWS, P)), np.empty(N_FILES * N_ROWS, dtype=np.int64)
    rng = np.random.default_rng(0)
    for number in range(N_FILES):
        rows = slice(number * N_ROWS, (number + 1) * N_ROWS)
        X[rows] = rng.standard_normal((N_ROWS, P))
        y[rows] = X[rows, :8] @ np.linspace(1.0, 0.3, 8) + rng.standard_normal(N_ROWS) > 0.2
        table = pa.table({name: X[rows, j] for j, name in enumerate(NAMES)} | {"y": y[rows]})
        path = folder / f"{number:03d}.parquet"
        pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)
    yield folder, X, y
    for path in folder.iterdir():
        path.unlink()


@pytest.fixture
def client(tmp_path):
    options = {"memory_limit": "430MB", "local_directory": str(tmp_path)}
    with two_workers(**options) as workers, Client(workers) as client:
        yield client


@pytest.mark.heavy
def test_two_workers_of_430_MB_fit_880_MB(client, large):
    folder, X, y = large
    pids = client.run(os.getpid)
    far = dd.read_parquet(folder)
    found = SparseSVC(k=3, solver=SHORT).fit(far[NAMES], far["y"])
    assert client.run(os.getpid) == pids, "a worker ran out of memory and was started again"
    assert_same(found, SparseSVC(k=3, solver=SHORT).fit(X, y))
    np.testing.assert_array_equal(found.support_, np.arange(3))
