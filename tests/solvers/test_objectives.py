"""The search against itself as it was: see `objectives.py`, which also remakes what is stored."""

import pytest
from objectives import SEARCHES, read_store, search


@pytest.mark.parametrize("name", SEARCHES)
def test_the_search_tries_and_finds_what_it_did(name):
    """A change of the search that is meant to be one needs new numbers: see `objectives.py`."""
    reached, stored = search(**SEARCHES[name]), read_store()[name]
    for found, expected in zip(reached, stored, strict=True):
        # other processors and versions of NumPy round differently, which may cost a step more or less
        assert found[0] == pytest.approx(expected[0], rel=0.02)
        assert [*found[1:-1]] == expected[1:-1]
        assert found[-1] == pytest.approx(expected[-1], rel=1e-8)


@pytest.mark.parametrize("name", [name for name, case in SEARCHES.items() if case.get("make") == "blocks"])
def test_rows_in_blocks_have_the_models_of_rows_in_memory(name):
    remote, local = search(**SEARCHES[name]), search(**SEARCHES[name] | {"make": ""})
    assert [found[3] for found in remote] == [found[3] for found in local]
    assert [found[-1] for found in remote] == pytest.approx([found[-1] for found in local], rel=1e-11)
