"""Every example on the page about extensions runs, one after another, and its assertions hold."""

import re
from pathlib import Path

from benchmarks.solvers import COMPETITORS

from kmargin.core.problem import LOSSES
from kmargin.core.units import UNIT_KINDS
from kmargin.solvers import SOLVERS

PAGE = Path(__file__).parent.parent.parent / "docs" / "contributing" / "extending.md"
BLOCKS = re.findall(r"(?s)```python\n(.*?)```", PAGE.read_text(encoding="utf-8"))
HEADINGS = re.findall(r"(?m)^## (.*)$", PAGE.read_text(encoding="utf-8"))


def test_every_example_runs_and_its_claims_hold():
    assert HEADINGS == ["A solver", "A unit", "A loss", "A kind of data", "A competitor"]
    assert len(BLOCKS) == len(HEADINGS)
    assert all("assert " in block for block in BLOCKS)
    names = {}
    try:
        for block in BLOCKS:
            exec(compile(block, str(PAGE), "exec"), names)
    finally:
        SOLVERS.pop("screening", None)
        UNIT_KINDS.pop("all_lags", None)
        LOSSES.pop("least_squares", None)
        COMPETITORS.pop("largest_f", None)
