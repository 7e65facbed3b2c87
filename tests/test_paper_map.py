"""Everything numbered in the paper has a function that is there and a section on the page."""

import importlib

import kmargin
from kmargin.experiments.paper_map import PAPER_MAP


def find(dotted):
    """The object of a name below `kmargin`: modules as far as they go, attributes from there."""
    found, parts = kmargin, dotted.split(".")
    for at, part in enumerate(parts):
        if not hasattr(found, part):
            importlib.import_module(".".join(["kmargin", *parts[: at + 1]]))
        found = getattr(found, part)
    return found


def test_every_function_of_the_map_is_there():
    for item in PAPER_MAP:
        assert item.functions
        assert all(callable(find(name)) for name in item.functions), item


def test_every_number_of_the_paper_is_on_the_map():
    numbered = {item.name for item in PAPER_MAP if not item.name.startswith("Section")}
    expected = {f"Equation {n}" for n in range(1, 8)} | {f"Algorithm {n}" for n in (1, 2, 3)}
    expected |= {f"Table {n}" for n in (1, 2, 3, 4)} | {f"Figure {n}" for n in (1, 2, 3, "S1", "S2")}
    assert numbered == expected
