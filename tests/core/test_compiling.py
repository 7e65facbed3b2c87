"""Compiled functions, and the message that they are compiled: once, and where progress is shown."""

import pytest

from kmargin.core import jit
from kmargin.fitting import progress
from kmargin.fitting.progress import COMPILING, progress_bar


@pytest.fixture
def first_call(monkeypatch):
    """No machine code is on disk, and nothing was announced."""
    monkeypatch.setattr(progress, "_said", [])
    monkeypatch.setattr(jit, "has_cached_code", lambda function: False)


@pytest.mark.usefixtures("first_call")
def test_a_bar_says_once_that_functions_are_compiled_before_it_moves(capsys):
    for _ in range(2):
        with progress_bar("fits", 1, verbose=1) as bar:
            bar.advance()
    first, *others = capsys.readouterr().err.splitlines()
    assert first == f"fits: {COMPILING}"
    assert [line.startswith("fits: 1/1") for line in others] == [True, True]


@pytest.mark.usefixtures("first_call")
def test_nothing_is_said_where_no_progress_is_shown(capsys):
    with progress_bar("fits", 1, verbose=0):
        pass
    assert capsys.readouterr().err == ""


def test_nothing_is_said_where_machine_code_is_on_disk(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_said", [])
    monkeypatch.setattr(jit, "has_cached_code", lambda function: True)
    with progress_bar("fits", 1, verbose=1):
        pass
    assert COMPILING not in capsys.readouterr().err


def test_the_message_promises_no_duration():
    assert not any(word in COMPILING for word in ("second", "minute"))


def test_a_function_marked_as_inlined_runs_as_written_and_within_compiled_ones():
    @jit.inlined
    def double(x):
        return x + x

    @jit.compiled
    def quadruple(x):
        return double(double(x))

    assert double("a") == "aa"
    assert quadruple(1.5) == 6.0
