"""What the search finds, regime by regime and for every kind of data: supports, objectives, coefficients.

    python tests/frozen.py          # every regime on every kind of data against what is stored
    python tests/frozen.py --write  # stores what is found now in arrays of C order

A regime is a way through the solver. Data as small as these reach most of them only because thresholds are
changed; `taken_ways` tells which functions ran, so that none is reached by name alone. Other kinds of data
hold the same numbers, and have to give what is stored for arrays.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # else scikit-learn dispatches to no other arrays; see conftest.py

import argparse
import json
import warnings
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from functools import cache, wraps
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import array_api_strict
import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from objectives import C_of, objective
from sklearn import config_context

from kmargin import Exchange, sparse_svm_path
from kmargin.core.labels import normalize
from kmargin.core.problem import ArrayProblem, Problem
from kmargin.data.blocks import Block, dask_threads
from kmargin.data.blocks.problem import LocalBlocks, block_problem
from kmargin.data.blocks.sums import View
from kmargin.data.design.kernel import KernelDesign
from kmargin.fitting.fit import _read
from kmargin.fitting.tasks import make_tasks, solve_tasks
from kmargin.solvers import Solution
from kmargin.solvers import solution as regimes
from kmargin.solvers.refit import support as refit
from kmargin.solvers.refit.folded import SignedDesign
from kmargin.solvers.search import large_supports, working_set
from kmargin.solvers.search import path as supports
from kmargin.solvers.search.path import SupportGrid

STORE = Path(__file__).parent.parent / "stored" / "frozen.json"
SOLVER = Exchange()


class Data(NamedTuple):
    """Arrays, and how they are fitted."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    fit_intercept: bool
    lams: tuple[float, ...]

    @property
    def Cs(self) -> list[float]:
        total = len(self.y) if self.weights is None else self.weights.sum()
        return [C_of(lam, total) for lam in self.lams]


class Variant(NamedTuple):
    weighted: bool = False
    fit_intercept: bool = True
    several: bool = False  # ridges


VARIANTS = {
    "plain": Variant(),
    "weights": Variant(weighted=True),
    "no intercept": Variant(fit_intercept=False),
    "several ridges": Variant(several=True),
}


class Regime(NamedTuple):
    """Problems of one shape, solved for these sizes under changed thresholds."""

    way: str  # that it is about
    besides: tuple[str, ...]  # other ways it takes
    shape: tuple[int, int]
    ks: tuple[int, ...]  # descending
    lams: tuple[float, ...]
    changes: tuple[tuple[Any, str, Any], ...] = ()


# What tells the ways apart: the functions that only they call, where these are looked up.
WAYS: dict[str, tuple[Any, str]] = {
    "one size": (SupportGrid, "_walk_ridge_path"),
    "all supports": (working_set, "try_every_support"),
    "whole panel": (supports, "search_from"),
    "sweep": (supports, "sweep"),
    "working set": (supports, "exchange"),
    "renewal": (working_set.WorkingSet, "gains_alone"),
    "dual": (supports, "exchange_dual"),
    "products": (supports, "exchange_products"),
    "refit primal": (refit, "_refit_primal"),
    "refit dual": (refit, "_refit_dual"),
    "refit products": (refit, "_refit_products"),
}

BEYOND = 2**40  # numbers for which there is no room, if there is for others


def no_room(*_: Any) -> bool:
    return False


def some_room(_: Any, n_numbers: int) -> bool:
    return n_numbers < BEYOND


def beyond_room(*_: Any) -> int:
    return BEYOND


NOT_ALL = ((supports, "ROOM_FOR_ALL", 0.0), (supports, "ROOM_FOR_ALL_OF_PATH", 0.0))
NOT_SMALL = ((supports, "SMALL_GRAM", 0.0),)
MANY = (*NOT_SMALL, (regimes, "FULL_PANEL", 0), (working_set, "FEW", 3), (working_set, "EXTRA", 6))
LARGE = ((regimes, "LARGE", 6), (large_supports, "SHORT", 4))

# An array says that everything fits, whatever its size; here it is told otherwise, as sparse matrices are.
NO_ROOM = ((SignedDesign, "fits", no_room),)
NO_ROOM_FOR_DUAL = (
    (supports, "n_dual_numbers", beyond_room),
    (refit, "n_dual_numbers", beyond_room),
    (SignedDesign, "fits", some_room),
)

NARROW, WIDE = (32, 8), (24, 40)
WEAK, STRONG = (0.01, 0.003), (0.3, 0.1)

IN_SETS = ("working set", "renewal")

REGIMES = {
    "all supports": Regime("all supports", ("one size", "whole panel"), NARROW, (3,), WEAK),
    "one size": Regime("whole panel", ("one size",), NARROW, (3,), WEAK, NOT_ALL),
    "small panel": Regime("sweep", ("whole panel",), NARROW, (3, 1), WEAK, NOT_ALL),
    "panel": Regime("sweep", (), NARROW, (6, 4, 2, 1), WEAK, NOT_SMALL),
    "working set": Regime("renewal", ("working set", "one size"), WIDE, (4,), WEAK, MANY),
    "working sets": Regime("renewal", ("working set",), WIDE, (8, 5, 3, 2), WEAK, MANY),
    "dual": Regime("dual", IN_SETS, WIDE, (30, 26, 3), STRONG, MANY + LARGE),
    "dual, one size": Regime("dual", IN_SETS, WIDE, (28,), STRONG, MANY + LARGE),
    "products": Regime("products", (), WIDE, (26, 8, 3), STRONG, MANY + NO_ROOM),
    "products, one size": Regime("products", (), WIDE, (10,), STRONG, MANY + NO_ROOM),
    "products for dual": Regime("products", IN_SETS, WIDE, (30, 3), STRONG, MANY + LARGE + NO_ROOM_FOR_DUAL),
    "all features": Regime("refit primal", (), NARROW, (8,), WEAK),
    "all features, dual": Regime("refit dual", (), WIDE, (40,), STRONG, LARGE),
    "all features, products": Regime("refit products", (), WIDE, (40,), STRONG, NO_ROOM),
    "all features, products for dual": Regime(
        "refit products", (), WIDE, (40,), STRONG, LARGE + NO_ROOM_FOR_DUAL
    ),
}


@cache
def make_data(regime: str, variant: str) -> Data:
    """Half of X is 0, and all numbers have few binary digits, so that float32 holds the same."""
    (n, p), lams = REGIMES[regime].shape, REGIMES[regime].lams
    rng = np.random.default_rng([n, p, list(VARIANTS).index(variant)])
    X = np.round(rng.standard_normal((n, p)) * 64) / 64 * (rng.random((n, p)) < 0.5)
    signal = X[:, :4] @ [1.5, -1.2, 1.0, 0.8]
    y = np.where(signal + 0.6 * rng.standard_normal(n) > np.median(signal), 1, -1)
    weighted, fit_intercept, several = VARIANTS[variant]
    weights = np.round(rng.uniform(0.5, 2.0, n) * 64) / 64 if weighted else None
    return Data(X, y, weights, fit_intercept, lams if several else lams[-1:])


@contextmanager
def changed(regime: str) -> Iterator[None]:
    """Thresholds such that small data reach a regime."""
    with ExitStack() as stack:
        for owner, name, value in REGIMES[regime].changes:
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


@contextmanager
def taken_ways() -> Iterator[set[str]]:
    """Fills in the ways that are taken."""
    taken: set[str] = set()

    def noted(way: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any) -> Any:
            taken.add(way)
            return function(*args)

        return call

    with ExitStack() as stack:
        for way, (owner, name) in WAYS.items():
            stack.enter_context(mock.patch.object(owner, name, noted(way, getattr(owner, name))))
        yield taken


# --- kinds of data


Solve = Callable[[Data, Sequence[int]], list[Solution]]


def by_path(X: Any, y: Any, weights: Any, data: Data, ks: Sequence[int]) -> list[Solution]:
    """By what people call; several ridges by what it calls in turn."""
    if len(data.Cs) > 1:
        samples = _read(X, y, weights, None, SOLVER)
        tasks = make_tasks(samples.designs(data.fit_intercept), samples, "ovo")
        (found,) = solve_tasks(tasks, 1, data.Cs, ks, solver=SOLVER, n_jobs=1, seed=0)
        return [solution for row in found for solution in row]
    path = sparse_svm_path(
        X, y, ks, C=data.Cs[0], solver=SOLVER, fit_intercept=data.fit_intercept, sample_weight=weights
    )
    return [solution for (solution,) in path.solutions]


def by_solver(problem: Problem, data: Data, ks: Sequence[int]) -> list[Solution]:
    return list(SOLVER.iter_grid(problem, data.lams, ks, np.random.default_rng(0)))


def at_hand(change: Callable[[np.ndarray], Any]) -> Solve:
    return lambda data, ks: by_path(change(data.X), data.y, data.weights, data, ks)


def kernel_values(data: Data, ks: Sequence[int]) -> list[Solution]:
    """X as the products of its rows with unit vectors."""
    n, p = data.X.shape
    design = KernelDesign(lambda A, B: A @ B.T, data.X, np.eye(p), np.ones(p), data.fit_intercept)
    weights = normalize(np.ones(n) if data.weights is None else data.weights)[0]
    return by_solver(ArrayProblem(design, data.y.astype(float), weights, data.lams[0], ks[0]), data, ks)


def in_blocks(dtype: str) -> Solve:
    """Three blocks and an empty one."""

    def solve(data: Data, ks: Sequence[int]) -> list[Solution]:
        n, codes = len(data.y), (data.y > 0).astype(int)
        repeats = np.ones(n) if data.weights is None else data.weights
        blocks = [
            Block(number, data.X[a:b].astype(dtype), codes[a:b], repeats[a:b])
            for number, (a, b) in enumerate(pairwise((0, 7, 7, 16, n)))
        ]
        view = View(positive=1, negative=0, class_weight=np.ones(2))
        problem = block_problem(LocalBlocks(blocks), view, data.lams[0], ks[0], data.fit_intercept)
        return by_solver(problem, data, ks)

    return solve


def with_dask(small: int) -> Solve:
    """Blocks up to so many bytes are asked in turn, others by threads."""

    def solve(data: Data, ks: Sequence[int]) -> list[Solution]:
        far = [
            None if a is None else da.from_array(a, chunks=((7, 0, 9, len(a) - 16), *a.shape[1:]))
            for a in (data.X, data.y, data.weights)
        ]
        with dask.config.set(scheduler="threads"), mock.patch.object(dask_threads, "SMALL", small):
            return by_path(*far, data, ks)

    return solve


def on_device(put: Callable[[np.ndarray], Any]) -> Solve:
    def solve(data: Data, ks: Sequence[int]) -> list[Solution]:
        there = [None if a is None else put(a) for a in (data.X, data.y, data.weights)]
        with config_context(array_api_dispatch=True):
            return by_path(*there, data, ks)

    return solve


def strictly(device: str, dtype: str) -> Solve:
    """By the letter of the standard, on a device that NumPy cannot look into."""
    there = array_api_strict.Device(device)
    return on_device(
        lambda a: array_api_strict.asarray(a.astype(dtype) if a.dtype.kind == "f" else a, device=there)
    )


def with_torch(data: Data, ks: Sequence[int]) -> list[Solution]:
    """By one thread: with several, sums as short as these take a hundred times as long."""
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return on_device(torch.asarray)(data, ks)
    finally:
        torch.set_num_threads(n_threads)


def repeat_first(X: np.ndarray) -> Any:
    return sp.csr_array(np.column_stack([X, X[:, 0]]))


AT_HAND: dict[str, Solve] = {
    "C order": at_hand(np.ascontiguousarray),
    "Fortran order": at_hand(np.asfortranarray),
    "float32": at_hand(lambda X: X.astype(np.float32)),
    "float32, Fortran order": at_hand(lambda X: np.asfortranarray(X, np.float32)),
    "CSR": at_hand(sp.csr_array),
    "CSR, float32": at_hand(lambda X: sp.csr_array(X.astype(np.float32))),
    "CSR, a column twice": at_hand(repeat_first),
    "CSC": at_hand(sp.csc_array),
    "kernel values": kernel_values,
}
ELSEWHERE: dict[str, Solve] = {
    "blocks": in_blocks("float64"),
    "blocks, float32": in_blocks("float32"),
    "dask": with_dask(dask_threads.SMALL),
    "dask, by threads": with_dask(0),
    "array API": strictly("device1", "float64"),
    "array API, no float64": strictly("no_float64", "float32"),
    "torch": with_torch,
}
KINDS = AT_HAND | ELSEWHERE
SINGLE = {"float32", "float32, Fortran order", "CSR, float32", "blocks, float32", "array API, no float64"}

# These take their time over each question: a regime is tried for one variant, the next regime for the next.
DEAR = {"dask, by threads", "array API, no float64", "blocks, float32"}


class Reach(NamedTuple):
    """The kinds of data that reach a regime; and why the others do not."""

    kinds: Set[str]
    others: dict[str, str]


BY_ALL = Reach(KINDS.keys(), {})
AS_LARGE_AS_K = dict.fromkeys(ELSEWHERE, "systems are as large as k where rows are elsewhere")
BY_ALL_AT_HAND = Reach(AT_HAND.keys(), AS_LARGE_AS_K)
COPY = {"CSR, a column twice": "all columns but the copy are a support to be searched for"}

REACH = {
    "all supports": BY_ALL,
    "one size": BY_ALL,
    "small panel": BY_ALL,
    "panel": BY_ALL,
    "working set": BY_ALL,
    "working sets": BY_ALL,
    "dual": BY_ALL_AT_HAND,
    "dual, one size": BY_ALL_AT_HAND,
    "products": BY_ALL_AT_HAND,
    "products, one size": BY_ALL_AT_HAND,
    "products for dual": BY_ALL_AT_HAND,
    "all features": Reach(KINDS.keys() - COPY, COPY),
    "all features, dual": Reach(AT_HAND.keys() - COPY, AS_LARGE_AS_K | COPY),
    "all features, products": Reach(AT_HAND.keys() - COPY, AS_LARGE_AS_K | COPY),
    "all features, products for dual": Reach(AT_HAND.keys() - COPY, AS_LARGE_AS_K | COPY),
}


def cells() -> Iterator[tuple[str, str, str]]:
    """Every regime with every kind of data that reaches it and every variant."""
    for number, (regime, reach) in enumerate(REACH.items()):
        in_turn = list(VARIANTS)[number % len(VARIANTS)]
        for kind, variant in product((kind for kind in KINDS if kind in reach.kinds), VARIANTS):
            if kind not in DEAR or variant == in_turn:
                yield regime, kind, variant


# --- what is found


class Model(NamedTuple):
    """For one ridge and size."""

    support: list[int]
    coef: list[float]
    intercept: float
    objective: float


Models = dict[str, Model]


def find(regime: str, kind: str, variant: str) -> tuple[Models, set[str]]:
    """What is found for each ridge and size, and the ways that were taken."""
    data, ks = make_data(regime, variant), REGIMES[regime].ks
    with changed(regime), taken_ways() as taken, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="1 feature repeats an earlier one")
        found = KINDS[kind](data, ks)
    return {
        f"{regime}, {variant}, lam {lam:g}, k {k}": as_model(data, lam, solution)
        for (lam, k), solution in zip(product(data.lams, ks), found, strict=True)
    }, taken


def as_model(data: Data, lam: float, solution: Solution) -> Model:
    """With the objective of these coefficients, added up here."""
    coef = np.zeros(data.X.shape[1])
    coef[solution.support] = solution.coef
    value = objective(data.X, data.y, coef, solution.intercept, lam, data.weights)
    np.testing.assert_allclose(solution.objective, value, rtol=1e-5)  # also where sums are of float32
    return Model(solution.support.tolist(), solution.coef.tolist(), solution.intercept, value)


@cache
def read_store() -> Models:
    return {name: Model(*model) for name, model in json.loads(STORE.read_text()).items()}


def differences(found: Models, stored: Models, kind: str) -> list[str]:
    """In words; none where all is as it was."""
    return [f"{name}: {word}" for name in found for word in _differ(found[name], stored[name], kind)]


def _differ(found: Model, stored: Model, kind: str) -> Iterator[str]:
    of_objective, of_coef = (1e-6, 1e-5) if kind in SINGLE else (1e-8, 1e-6)
    change = found.objective / stored.objective - 1
    if abs(change) > of_objective:
        yield f"the objective {found.objective:.10g} is {change:+.1e} of what is stored"
    if found.support != stored.support:
        yield f"the support is {found.support} instead of {stored.support}"
        return
    gap = np.abs(np.subtract([*found.coef, found.intercept], [*stored.coef, stored.intercept])).max()
    if gap > of_coef:
        yield f"a coefficient or the intercept is off by {gap:.1e}"


def write_store() -> None:
    """A line for each model, with twelve digits."""
    found = [find(regime, "C order", variant)[0] for regime, variant in product(REGIMES, VARIANTS)]
    lines = [
        f"{json.dumps(name)}: {json.dumps(_rounded(model))}"
        for models in found
        for name, model in models.items()
    ]
    STORE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _rounded(model: Model) -> Model:
    def short(number: float) -> float:
        return float(f"{number:.12g}")

    support, coef, intercept, value = model
    return Model(support, list(map(short, coef)), short(intercept), short(value))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store what is found now")
    if parser.parse_args().write:
        write_store()
    stored = read_store()
    for regime, kind, variant in cells():
        words = differences(find(regime, kind, variant)[0], stored, kind)
        print(f"{regime:<32} {kind:<24} {variant:<16}", "as it was" if not words else "", sep="")
        for word in words:
            print(f"    {word}")


if __name__ == "__main__":
    main()
