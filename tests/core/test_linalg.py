"""Small dense linear algebra, as compiled loops include it, against numpy; what is said of compiling."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmargin.core import jit
from kmargin.core.jit import compiled, has_cached_code, list_uses
from kmargin.core.linalg import cholesky, order_smallest, solve
from kmargin.fitting import progress
from kmargin.fitting.progress import COMPILING, progress_bar


@compiled
def factor_and_solve(H, k, x):
    cholesky(H, k)
    solve(H, k, x)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 8, 11])
def test_cholesky_and_solve_are_those_of_numpy(k, rng):
    A = rng.standard_normal((20, k))
    H, x = A.T @ A, rng.standard_normal(k)
    U, found = np.pad(H, (0, 2)), x.copy()
    factor_and_solve(U, k, found)
    np.testing.assert_allclose(np.triu(U[:k, :k]), np.linalg.cholesky(H).T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found, np.linalg.solve(H, x), rtol=1e-9)


@pytest.mark.parametrize("place", [1, 4, 6])
def test_a_column_that_depends_on_earlier_ones_gets_the_coefficient_0(place, rng):
    A = rng.standard_normal((20, 7))
    A[:, place] = A[:, :place] @ rng.standard_normal(place)
    b = rng.standard_normal(20)
    x = A.T @ b
    factor_and_solve(A.T @ A, 7, x)
    assert x[place] == 0.0
    others = np.delete(np.arange(7), place)
    np.testing.assert_allclose(x[others], np.linalg.lstsq(A[:, others], b, rcond=None)[0], rtol=1e-8)


few_values = st.one_of(st.integers(-2, 2).map(float), st.sampled_from([np.inf, -np.inf, np.nan]))


@given(st.lists(few_values, max_size=30), st.integers(0, 35))
def test_the_smallest_values_come_in_order_ties_by_position_without_infinity_and_nan(values, count):
    values = np.array(values, np.float64)
    order = [i for i in np.argsort(values, kind="stable") if values[i] < np.inf]
    assert order_smallest(values, count).tolist() == order[: max(count, 0)]


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


def test_a_bar_has_a_line_for_each_tenth_with_the_time_that_is_left(monkeypatch, capsys):
    clock = iter(range(100))
    monkeypatch.setattr(progress, "_said", [True])
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    with progress_bar("fits", 20, 1) as bar:
        for _ in range(4):
            bar.advance()
        bar.advance(16)
    lines = ["2/20, 1.0 s, 9.0 s left", "4/20, 2.0 s, 8.0 s left", "20/20, 3.0 s, 0.0 s left"]
    assert capsys.readouterr().err.splitlines() == [f"fits: {line}" for line in lines]


def test_compiled_code_is_on_disk_in_a_file_named_after_all_that_it_uses(tmp_path):
    uses = [*list_uses(cholesky)]
    assert {"eliminate", "SINGULAR = 1e-13"} < {use.partition(":")[0] for use in uses}
    assert any("4, 1, 2, 3" in use for use in uses if use.startswith("eliminate"))
    function = SimpleNamespace(__qualname__="f-1", stats=SimpleNamespace(cache_path=tmp_path))
    (tmp_path / "m.f-12-3.py311.nbi").touch()
    assert not has_cached_code(function)
    (tmp_path / "m.f-1-3.py311.nbi").touch()
    assert has_cached_code(function)
    function.stats.cache_path = None
    assert not has_cached_code(function)
    assert has_cached_code(SimpleNamespace())
