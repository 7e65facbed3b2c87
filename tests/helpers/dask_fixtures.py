"""Small data in blocks and a cluster of two workers, for the tests of dask collections."""

import pytest


@pytest.fixture(scope="module")
def data():
    from dask_data import make_data

    return make_data()


@pytest.fixture(scope="session")
def workers():
    """Two worker processes, which are started again if they die."""
    from dask_data import two_workers

    with two_workers() as workers:
        yield workers


@pytest.fixture
def client(workers):
    from distributed import Client

    with Client(workers) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture
def here():
    """Without a cluster, in one thread."""
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(params=["threads", "cluster"])
def place(request, monkeypatch):
    """Where blocks are processed."""
    if request.param == "cluster":
        request.getfixturevalue("client")
    monkeypatch.setattr("kmargin.data.blocks.dask_blocks.SMALL_DATA", 0)
