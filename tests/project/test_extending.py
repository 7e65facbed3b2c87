"""The page on how to add things is true: its examples run, one after another, as they stand."""

import re
from pathlib import Path

import pytest
from benchmarks.solvers import COMPETITORS
from stub_solvers import Witness

from kmargin import SparseSVC
from kmargin.solvers import SOLVERS

PAGE = Path(__file__).parent.parent.parent / "docs" / "contributing" / "extending.md"
BLOCKS = re.findall(r"(?s)```python\n(.*?)```", PAGE.read_text(encoding="utf-8"))
HEADINGS = re.findall(r"(?m)^## (.*)$", PAGE.read_text(encoding="utf-8"))


def test_every_example_runs_and_its_claims_hold():
    assert HEADINGS == ["A solver", "A unit", "A kind of data", "A loss", "A competitor"]
    assert len(BLOCKS) == len(HEADINGS)
    assert all("assert " in block for block in BLOCKS)
    names = {}
    try:
        for block in BLOCKS:
            exec(compile(block, str(PAGE), "exec"), names)
    finally:
        SOLVERS.pop("screening", None)
        COMPETITORS.pop("largest_f", None)


def test_a_solver_without_a_joint_search_says_what_to_write(rng):
    X, y = rng.standard_normal((30, 4)), rng.integers(0, 3, 30)
    with pytest.raises(ValueError, match="Witness selects features for one binary classifier at a time"):
        SparseSVC(2, solver=Witness()).fit(X, y)
    SparseSVC(2, solver=Witness(), shared=False).fit(X, y)
