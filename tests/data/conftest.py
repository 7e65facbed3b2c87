"""Small data in blocks and a cluster of two workers, for the tests of dask collections."""

import dask
import pytest
from dask_data import make_data, two_workers
from distributed import Client

from kmargin.data.blocks import dask_blocks


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="session")
def workers():
    """Two worker processes, which are started again if they die."""
    with two_workers() as workers:
        yield workers


@pytest.fixture
def client(workers):
    with Client(workers) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture
def here():
    """Without a cluster, in one thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(params=["threads", "cluster"])
def place(request, monkeypatch):
    """Where blocks are processed."""
    if request.param == "cluster":
        request.getfixturevalue("client")
    monkeypatch.setattr(dask_blocks, "SMALL_DATA", 0)
