"""The page on how to add things is true: its examples run, one after another, as they stand."""

import re
from pathlib import Path

from benchmarks.solvers import COMPETITORS

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
