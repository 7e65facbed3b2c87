"""What one process keeps of blocks: in memory, on disk, or not at all."""

import pickle
import sys

import dask
import numpy as np
import pytest
from dask_data import blocks, forget_sizes, make_data

import kmargin.data.blocks.dask_threads
from kmargin import SparseSVC
from kmargin.data.blocks import dask_rows, sums
from kmargin.data.blocks.dask_rows import Kept, Shelf, derive
from kmargin.data.blocks.dask_threads import available_memory, read_blocks
from kmargin.data.blocks.sums import View


@pytest.fixture
def here():
    """Without a cluster."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def data():
    return make_data()


class TestKept:
    """What one process keeps."""

    def test_only_the_recipe_travels(self):
        thing = Kept(Recipe())
        thing.get({})
        assert sys.getsizeof(thing) > 8_000
        assert len(pickle.dumps(thing)) < 200
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(thing)).get({}), np.ones(1_000))

    def test_is_made_once(self):
        thing = Kept(Recipe())
        assert thing.get({}) is thing.get({})

    def test_what_is_derived_does_not_keep_alive_what_it_came_from(self):
        origin = Kept(Recipe())
        derived = derive(origin, {}, np.sum, ())
        assert derived.get({}) == 1_000
        assert derived.recipe.origin is not origin
        assert pickle.loads(pickle.dumps(derived)).get({}) == 1_000

    def test_goes_to_disk_where_the_shelf_is_full_and_back_when_there_is_room(self, monkeypatch):
        shelf = Shelf()
        shelf.room = 10_000
        monkeypatch.setattr(dask_rows, "SHELF", shelf)
        first, second = Kept(Recipe()), Kept(Recipe())
        first.get({})
        np.testing.assert_array_equal(second.get({}), np.ones(1_000))
        path = second._file.path
        assert path.exists()
        del first
        np.testing.assert_array_equal(second.get({}), np.ones(1_000))
        assert second._file is None
        assert not path.exists()
        assert shelf.used == 8_000

    def test_a_slow_source_is_read_once(self, monkeypatch):
        monkeypatch.setattr(dask_rows, "SLOW", 1e15)
        recipe = Recipe()
        thing = Kept(recipe, keep=False)
        for _ in range(3):
            np.testing.assert_array_equal(thing.get({}), np.ones(1_000))
        assert recipe.n_calls == 1
        assert thing._made is dask_rows.NOTHING

    def test_without_a_disk_things_are_made_again(self, monkeypatch):
        monkeypatch.setattr(dask_rows, "SLOW", 1e15)
        monkeypatch.setattr(dask_rows.FOLDER, "_new_path", lambda n_bytes: None)
        recipe = Recipe()
        thing = Kept(recipe, keep=False)
        assert len(thing.get({})) == len(thing.get({}))
        assert recipe.n_calls == 2


class Recipe:
    """Makes an array, and counts how often."""

    def __init__(self):
        self.n_calls = 0

    def __call__(self, leaves):
        self.n_calls += 1
        return np.ones(1_000)


class TestRoom:
    """Nothing is held that does not fit."""

    def test_there_is_some_memory(self):
        assert 2**20 < available_memory() < 2**50

    def test_x_is_read_again_where_it_does_not_fit(self, here, data, monkeypatch):
        X, y, _ = data
        monkeypatch.setattr(kmargin.data.blocks.dask_threads, "available_memory", lambda: 2.2 * X.nbytes)
        far, _ = read_blocks(*blocks(X, y))
        assert not any(rows.X.keep for rows in far.held.things)
        assert far.fits(X.size)
        assert not far.fits(2 * X.size)
        assert not far.shared_by(4).fits(X.size)
        # another way through the supports, which ends within the solver's tolerance
        found, expected = SparseSVC(k=3).fit(*blocks(X, y)), SparseSVC(k=3).fit(X, y)
        np.testing.assert_array_equal(found.support_, expected.support_)
        np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-9)

    def test_x_is_kept_where_it_fits(self, here, data):
        for arrays in (blocks(*data[:2]), tuple(map(forget_sizes, blocks(*data[:2])))):
            far, _ = read_blocks(*arrays)
            assert all(rows.X.keep for rows in far.held.things)

    def test_labels_are_counted_without_reading_x(self, here, data):
        X, y, _ = data
        far, _ = read_blocks(*blocks(X, y))
        for rows in far.held.things:
            rows.X = Kept(None)  # cannot be read
        counts = far.ask(sums.count, View(1, 0, np.ones(2)))
        assert [n for n, _ in counts] == [250, 0, 100, 70, 180]
