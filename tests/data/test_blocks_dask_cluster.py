"""Where blocks of dask collections are, and that they stay there."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask_data import SHORT, SIZES, P, assert_same, blocks, wait_until
from dask_questions import count_sent, get_sent, make_block, sum_of, sum_of_held, take_rows, worker_of
from sklearn.base import clone

from kmargin import SparseSVC
from kmargin.data.blocks import dask_blocks
from kmargin.data.blocks.dask_blocks import load_blocks


@pytest.fixture
def sent(client):
    """The bytes sent so far by workers (to each other or towards the client), and by client and scheduler."""
    client.run(count_sent)
    count_sent()
    return lambda: (sum(client.run(get_sent).values()), get_sent())


def lazy_data(n_blocks=4, n_rows=10_000):
    """Data that no client ever has."""
    kind = {"chunks": ((n_rows,) * n_blocks, (50,)), "new_axis": 1, "meta": np.empty((0, 0))}
    X = da.arange(n_blocks, chunks=1).map_blocks(make_block, n_rows=n_rows, **kind)
    return X, (X[:, 0] + X[:, 1] > 0.3).astype(int)


class TestMovement:
    """X never moves."""

    @pytest.mark.parametrize("persisted", [False, True])
    def test_what_travels_is_small_and_nothing_is_left_on_the_workers(self, client, sent, persisted):
        X, y = lazy_data()
        if persisted:
            X, y = dask.persist(X, y)
        SparseSVC(k=3, solver=SHORT).fit(X, y)
        assert max(sent()) < X.nbytes / 4
        del X, y
        wait_until(lambda: not any(client.has_what().values()))

    def test_a_persisted_block_is_asked_where_it_lies(self, client):
        X, y = dask.persist(*lazy_data())
        answers = load_blocks([X, y], X.dtype).ask(worker_of)
        where = {str(key): holders for key, holders in client.who_has(X).items()}
        keys = [str(key) for (key,) in X.__dask_keys__()]
        assert all(answer in where[key] for answer, key in zip(answers, keys, strict=True))

    def test_large_arguments_come_through(self, client, data):
        X, y, _ = data
        far = load_blocks(blocks(X, y), X.dtype)
        vector = np.arange(50_000.0)
        assert far.ask(sum_of, vector) == [vector.sum()] * 5
        assert far.hold(take_rows, vector).ask(sum_of_held) == [vector.sum() + n for n in SIZES]


@pytest.mark.parametrize(
    ("scheduler", "num_workers", "limit", "n_threads"),
    [("threads", 3, -1, 3), ("threads", 3, 0, None), ("threads", 1, -1, None), ("sync", 3, -1, None)],
)
def test_several_threads_work_on_large_data(data, monkeypatch, scheduler, num_workers, limit, n_threads):
    X, y, _ = data
    monkeypatch.setattr(dask_blocks, "SMALL_DATA", X.nbytes + limit)
    with dask.config.set(scheduler=scheduler, num_workers=num_workers):
        pool = load_blocks(blocks(X, y), X.dtype).pool
    assert (pool and pool._max_workers) == n_threads


class TestGraphs:
    """Blocks are computed from any task graph."""

    def test_blocks_may_depend_on_all_the_others(self, place, data):
        X, y, _ = data
        far_X, far_y = blocks(X, y, sizes=(250, 100, 70, 180))  # the mean of no rows is NaN to dask
        scaled = (far_X - far_X.mean(axis=0)) / far_X.std(axis=0)
        model = SparseSVC(k=3, solver=SHORT)
        assert_same(model.fit(scaled, far_y), clone(model).fit((X - X.mean(0)) / X.std(0), y))

    def test_rows_may_be_shuffled_between_workers(self, client, data):
        X, y, _ = data
        far = da.from_array(X, chunks=(600, 1)).rechunk((250, P), method="p2p")
        model = SparseSVC(k=3, solver=SHORT)
        assert_same(model.fit(far, da.from_array(y, chunks=250)), clone(model).fit(X, y))

    def test_blocks_of_a_dataframe_are_those_the_user_sees(self, here, tmp_path, data):
        X, y, _ = data
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(P)]).assign(y=y)
        for number in range(6):
            frame[100 * number : 100 * (number + 1)].to_parquet(tmp_path / f"{number}.parquet")
        far = dd.read_parquet(tmp_path)
        found = SparseSVC(k=3).fit(far[[f"x{j}" for j in range(P)]], far["y"])
        assert_same(found, SparseSVC(k=3).fit(X, y))
