"""What only calls others is interpreted until compiling pays; the results are the same to the bit."""

import threading
import warnings

import numpy as np
import pytest
from frozen import AT_HAND, REACH, VARIANTS, find
from fuzz import make_case

from kmargin import Exchange, SparseSVC, sparse_svm_path
from kmargin.core import jit
from kmargin.core.jit import (
    LEDGER,
    CompiledOrRemote,
    Meter,
    Remote,
    asked_of_rows,
    compiled,
    compiled_or_remote,
    meter,
)
from kmargin.solvers.refit import newton
from kmargin.solvers.search import swap_search

CELLS = [(regime, kind) for regime, reach in REACH.items() for kind in AT_HAND if kind in reach.kinds]


def both_ways(work):
    """What comes out of it compiled, and interpreted."""
    found = []
    for compiling in (True, False):
        with meter.forced(compiling), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(work())
    return found


def bits(solutions):
    """All that is found, with every digit."""
    if isinstance(solutions, list | tuple) and not hasattr(solutions, "objective"):
        return [bits(solution) for solution in solutions]
    numbers = (float(solutions.intercept).hex(), float(solutions.objective).hex())
    return (solutions.dense_coef().tobytes(), *numbers, solutions.status, solutions.regime)


@pytest.mark.parametrize(("regime", "kind"), CELLS)
def test_every_regime_finds_the_same_bits_compiled_and_interpreted(regime, kind):
    for variant in VARIANTS:
        one, other = both_ways(lambda variant=variant: find(regime, kind, variant))
        assert one == other


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_problems_of_all_families_have_the_same_bits_compiled_and_interpreted(first):
    """Separable, degenerate, huge, tiny: where numbers are infinite or none, too."""

    def outcome():
        try:
            model = case.fit()
        except ValueError as error:  # one class only, say
            return str(error)
        return bits(model.solutions if case.call == "sparse_svm_path" else model.solutions_)

    for number in range(first, first + 100):
        case = make_case(number)
        if case.must_fail or case.form in ("dask", "strict", "torch"):
            continue
        one, other = both_ways(outcome)
        assert one == other, f"make_case({number}) depends on what is compiled"


def test_every_effort_has_the_same_bits_compiled_and_interpreted():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 16))
    y = X[:, :4].sum(axis=1) + rng.standard_normal(50) > 0
    for solver in (Exchange(effort="thorough"), Exchange(effort="fast"), Exchange(tol=1e-3)):
        for C in (1e-3, 1.0, np.inf):
            one, other = both_ways(lambda solver=solver, C=C: SparseSVC(4, C=C, solver=solver).fit(X, y))
            assert bits(one.solutions_) == bits(other.solutions_)
            one, other = both_ways(
                lambda solver=solver, C=C: sparse_svm_path(X, y, [8, 5, 2], C=C, solver=solver)
            )
            assert bits(one.solutions) == bits(other.solutions)


def test_interpreted_code_is_as_silent_about_infinities_as_compiled_code():
    square = compiled_or_remote(lambda x: x[0] * x[0])
    with meter.forced(False), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert square(np.array([1e300])) == np.inf


# who is compiled, who is interpreted


class Looked(Remote):
    def look(self, x):
        return "elsewhere", x


def make_total():
    @compiled
    def total(x):
        s = 0.0
        for value in x:
            s += value
        return s

    return total


def test_what_loops_is_compiled_from_the_first_call_on():
    @asked_of_rows
    @compiled
    def look(x, y):
        s = 0.0
        for i in range(x.size):
            s += x[i] * y
        return s

    total = make_total()
    with meter.forced(False):
        assert total(np.ones(3)) == look(np.ones(3), 1.0) == 3.0
    assert len(total.for_python.overloads) == len(look.for_python.overloads) == 1
    assert look(Looked(), 2.0) == ("elsewhere", 2.0)


def test_a_question_without_a_loop_is_not_compiled_for_python():
    total = make_total()
    thin = asked_of_rows(lambda x: total(x))
    ask = compiled_or_remote(lambda x: thin(x) + 1.0)
    for compiling in (False, True):
        with meter.forced(compiling):
            assert thin(np.ones(3)) == 3.0
            assert ask(np.ones(3)) == 4.0
        assert len(thin.for_python.overloads) == 0
        assert len(ask.for_python.overloads) == compiling


def test_compiled_callers_take_the_variant_that_python_has():
    total = make_total()
    assert total(np.ones(3)) == 3.0
    assert compiled(lambda x: total(x))(np.ones(3)) == 3.0
    assert len(total.for_python.overloads) == 1
    assert len(total.for_compiled.overloads) == 0


def test_a_function_is_compiled_once_whatever_numbers_it_is_called_with():
    @compiled
    def add(x, y, flag):
        return x + y if flag else x

    @compiled
    def call(n):
        count = 0
        for _ in range(n):
            count = add(count, 2, True)
        return add(add(count, 1, False), 3, True)

    assert call(4) == 11
    assert len(add.for_compiled.overloads) == 1


def test_a_first_fit_compiles_none_of_what_only_calls_others():
    modules = (newton, newton, swap_search, swap_search, swap_search)
    callers = [
        value for module in modules for value in vars(module).values() if isinstance(value, CompiledOrRemote)
    ]

    def count():
        return [len(v.overloads) for f in callers for v in (f.for_python, f.for_compiled)]

    before = count()
    X = np.random.default_rng(0).standard_normal((40, 8))
    with meter.forced(False):
        SparseSVC(3).fit(X, X[:, 0] > 0)
        sparse_svm_path(X, X[:, 0] > 0, [3, 1])
    assert count() == before
    assert len(before) > 20


# when


def calls_until_compiling(meter, most=10_000):
    for number in range(most):
        if meter.compiling():
            return number
    return None


@pytest.fixture
def cheap(monkeypatch):
    monkeypatch.setattr(jit, "ENOUGH", 100)
    monkeypatch.setattr(jit, "SOME", 10)


@pytest.fixture
def start(cheap, tmp_path):
    """A process begins, and may keep machine code."""
    return lambda: Meter(lambda: tmp_path)


def test_compiling_pays_after_enough_calls(cheap):
    assert calls_until_compiling(Meter(lambda: None)) == 99


def test_questions_count(start):
    new = start()
    assert not new.compiling()
    for _ in range(100):
        new.count()
    assert new.compiling()


def test_what_earlier_processes_paid_counts(start, tmp_path):
    assert calls_until_compiling(start(), most=60) is None
    assert (tmp_path / LEDGER).stat().st_size == 6
    assert calls_until_compiling(start()) == 39
    assert calls_until_compiling(start()) == 0


def test_what_others_pay_meanwhile_counts(start, tmp_path):
    new = start()
    assert calls_until_compiling(new, most=15) is None
    (tmp_path / LEDGER).write_bytes(b"." * 10)
    assert calls_until_compiling(new) == 4


def test_short_runs_leave_no_trace(start, tmp_path):
    assert calls_until_compiling(start(), most=9) is None
    assert not (tmp_path / LEDGER).exists()


def test_a_folder_that_is_gone_is_no_error(cheap, tmp_path):
    assert calls_until_compiling(Meter(lambda: tmp_path / "gone")) == 99


def test_compiled_code_is_prepared_for_first(start):
    new, prepared = start(), []
    new.before_compiling.append(lambda: prepared.append(new._compiling))
    assert calls_until_compiling(new) == 99
    assert prepared == [False]


def test_what_was_compiled_by_force_is_used_ever_after(start):
    first = start()
    with first.forced(False):
        assert not first.compiling()
    with first.forced(True):
        assert first.compiling()
        with first.forced(False):
            assert not first.compiling()
    assert first.compiling()
    assert start().compiling()


def test_it_is_noted_beside_the_machine_code():
    with meter.forced(True):
        assert meter.compiling()
    assert meter._ledger.stat().st_size * jit.SOME >= jit.ENOUGH
    assert list(meter._ledger.parent.glob("*.nbi"))


def test_threads_that_change_over_at_different_times_find_the_same(monkeypatch):
    X = np.random.default_rng(1).standard_normal((60, 12))
    y = X[:, 0] + X[:, 1] > 0.3
    expected = bits(both_ways(lambda: SparseSVC(4).fit(X, y))[0].solutions_)
    found = []
    stop = threading.Event()

    def change_over():
        while not stop.is_set():
            for compiling in (True, False):
                meter._forced = compiling

    monkeypatch.setattr(meter, "_forced", True)
    changing = threading.Thread(target=change_over)
    changing.start()
    workers = [
        threading.Thread(target=lambda: found.append(bits(SparseSVC(4).fit(X, y).solutions_)))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    stop.set()
    changing.join()
    assert found == [expected] * 4
