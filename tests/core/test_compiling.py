"""Compiled functions, and the message that they are compiled: once, and where progress is shown."""

import pytest

from kmargin.core import jit
from kmargin.fitting import progress
from kmargin.fitting.progress import COMPILING, progress_bar


@pytest.mark.parametrize(("is_cached", "verbose"), [(False, 1), (True, 1), (False, 0)])
def test_a_bar_says_once_before_it_moves_that_functions_are_compiled(monkeypatch, capsys, is_cached, verbose):
    monkeypatch.setattr(progress, "_said", [])
    monkeypatch.setattr(jit, "has_cached_code", lambda function: is_cached)
    for _ in range(2):
        with progress_bar("fits", 1, verbose) as bar:
            bar.advance()
    expected = [] if is_cached else [f"fits: {COMPILING}"]
    expected = [*expected, "fits: 1/1", "fits: 1/1"] if verbose else []
    for line, start in zip(capsys.readouterr().err.splitlines(), expected, strict=True):
        assert line.startswith(start)


def test_a_function_marked_as_inlined_runs_as_written_and_within_compiled_ones():
    @jit.inlined
    def double(x):
        return x + x

    @jit.compiled
    def quadruple(x):
        return double(double(x))

    assert double("a") == "aa"
    assert quadruple(1.5) == 6.0
