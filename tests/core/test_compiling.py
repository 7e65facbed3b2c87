"""Functions that are compiled: once, for whoever calls them, and with a word where it takes long."""

import numpy as np
import pytest
from numba.core.errors import TypingError

from kmargin.core.jit import Far, compiled, meter, on_compiling
from kmargin.fitting import progress
from kmargin.fitting.progress import COMPILING, progress_bar
from kmargin.solvers.search.swap_search import find_far


def double(x):
    return x + x


def fresh():
    """A function that nobody has compiled yet."""
    namespace = {"double": compiled(lambda x: x + x)}
    exec("def quadruple(x):\n    return double(double(x))", namespace)
    return compiled(namespace["quadruple"])


def test_compiled_code_calls_a_variant_that_python_cannot_and_python_another():
    inner = compiled(double)
    outer = compiled(lambda x: inner(x) + 1.0)
    assert outer(1.5) == 4.0
    assert [len(variant.overloads) for variant in (inner.for_compiled, inner.for_python)] == [1, 0]
    assert inner(2) == 4
    assert [len(variant.overloads) for variant in (inner.for_compiled, inner.for_python)] == [1, 1]


def test_a_function_behind_its_address_is_the_function():
    @compiled
    def norm(x, power):
        total = 0.0
        for value in x:
            total += abs(value) ** power
        return total, x.size

    far_norm = Far(norm, lambda: (np.empty(0), 0))

    @compiled
    def twice(address, x):
        return far_norm(address, x, 2), far_norm(address, x, 1)

    x = np.array([1.0, -2.0])
    assert twice(far_norm.address, x) == ((5.0, 2), (3.0, 2))
    assert far_norm(None, x, 2) == (5.0, 2)  # interpreted
    assert len(norm.for_compiled.overloads) == 0  # it is not compiled anew with its callers

    @compiled
    def wrong(address, x):
        return far_norm(address, x, 2.0)

    with pytest.raises(TypingError, match="norm takes"):
        wrong(far_norm.address, x)


def test_an_error_comes_back_from_behind_an_address():
    @compiled
    def refuse(x):
        if x < 0:
            raise ValueError("negative")
        return x

    far_refuse = Far(refuse, lambda: (0.0,))
    call = compiled(lambda address, x: far_refuse(address, x))
    assert call(far_refuse.address, 1.0) == 1.0
    with pytest.raises(ValueError, match="negative"):
        call(far_refuse.address, -1.0)


def test_addresses_are_found_once_and_before_anything_compiled_runs():
    with meter.forced(True):
        found = find_far().copy()
        assert (found != 0).all()
    with meter.forced(True):
        np.testing.assert_array_equal(find_far(), found)


def test_long_compiling_is_told_once_and_short_compiling_is_not():
    told = []
    with on_compiling(0.0, lambda: told.append("now")):
        fresh()(1.0)
        fresh()(1.0)
    assert told == ["now"]
    known = fresh()
    known(1.0)
    with on_compiling(0.0, lambda: told.append("again")):
        known(2.0)
    with on_compiling(1000.0, lambda: told.append("again")):
        fresh()(1.0)
    fresh()(1.0)  # nobody listens any more
    assert told == ["now"]


def test_it_is_told_only_while_there_is_more_to_compile():
    told = []
    with on_compiling(1e-9, lambda: told.append("now")):
        compiled(eval("lambda x: x - 1"))(1.0)
        assert told == []  # this was all, so far, and it is over
        compiled(eval("lambda x: x - 2"))(1.0)
    assert told == ["now"]


def test_the_sentence_promises_no_duration():
    assert not any(word in COMPILING for word in ("second", "minute", "once", "start at once"))


def test_a_bar_says_what_takes_so_long_before_it_moves(monkeypatch, capsys):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_said", [])
    for _ in range(2):
        with progress_bar("fits", 1, verbose=1) as bar:
            fresh()(1.0)
            bar.advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"fits: {COMPILING}"
    assert [line.startswith("fits: 1/1") for line in lines[1:]] == [True, True]


def test_silence_stays_silent(monkeypatch, capsys):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_said", [])
    with progress_bar("fits", 1, verbose=0):
        fresh()(1.0)
    assert capsys.readouterr().err == ""


def test_every_command_says_it(monkeypatch, capsys):
    from kmargin.cli.terminal import plainly

    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_said", [])
    plainly(lambda quiet: fresh()(1.0))(quiet=True)
    assert capsys.readouterr().err == ""
    plainly(lambda: fresh()(1.0))()
    assert capsys.readouterr().err == f"{COMPILING}\n"
