"""The objectives that fits reach, problem by problem and regime by regime.

    python tests/helpers/objectives.py  # stores what is reached now

Run it after a change that makes the search better; the messages of `tests/solvers/test_objectives.py` name
the problems that changed. An objective is that of the coefficients as they are returned, added up here and
not by the package.
"""

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, product
from pathlib import Path
from unittest import mock

import numpy as np
import scipy.sparse as sp
import search_problems

from kmargin import Exchange, KernelSparseSVC, Regime, SparseSVC, sparse_svm_path
from kmargin.core.problem import ArrayProblem, BinaryProblem, Problem
from kmargin.data.design.dense import DenseDesign
from kmargin.data.design.sparse import SparseDesign
from kmargin.solvers.exchange import EFFORTS

STORE = Path(__file__).parent.parent / "stored" / "objectives.json"
LAMS = (1e-1, 1e-2, 1e-3, 1e-4)
KINDS = ("normal", "neighbours", "binary", "counts", "scales")

Objectives = Iterator[tuple[str, float]]  # the name of a problem, and what is reached


def make_data(kind: str, n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of a kind, and labels by a few of them, some wrong."""
    rng = np.random.default_rng([seed, n, p])
    X = rng.standard_normal((n, p))
    truth = rng.uniform(0.5, 1.5, p) * (np.arange(p) % max(2, p // 8) == 0)
    noise = rng.standard_normal(n)
    if kind == "neighbours":
        for j in range(1, p):
            X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
    elif kind == "binary":
        X = (X > 0.6).astype(float)
    elif kind == "counts":
        X = np.floor(np.exp(X))
    signal = X @ truth
    signal = signal - np.median(signal) + 0.5 * signal.std() * noise
    if kind == "scales":
        X = X * 10.0 ** rng.uniform(-2, 2, p)
    return X, np.where(signal > 0, 1, -1)


def C_of(lam: float, total: float) -> float:
    return 1 / (2 * lam * total) if lam > 0 else np.inf


def objective(X, y, coef, intercept, lam, weights=None) -> float:
    """Mean squared hinge and ridge of these coefficients."""
    w = np.asarray(coef, dtype=float).ravel()
    weights = np.ones(len(y)) if weights is None else weights
    decisions = np.asarray(X @ w) + float(np.ravel(np.asarray(intercept))[0])
    losses = np.maximum(0.0, 1.0 - y * decisions) ** 2
    return 0.5 * float(weights @ losses / weights.sum()) + 0.5 * lam * float(w @ w)


def single(
    shapes, kinds=KINDS, lams=LAMS[1::2], seeds=1, change=lambda X: X, weighted=False, **options
) -> Objectives:
    """Fits of one k."""
    for n, p, k in shapes:
        for kind in kinds:
            for seed in range(seeds):
                X, y = make_data(kind, n, p, seed)
                weights = np.random.default_rng(seed).uniform(0.2, 3.0, n) if weighted else None
                for lam in lams:
                    C = C_of(lam, n if weights is None else weights.sum())
                    model = SparseSVC(k, C=C, **options).fit(change(X), y, sample_weight=weights)
                    name = f"{kind} {n} x {p}, k {k}, lam {lam:g}, seed {seed}"
                    yield name, objective(X, y, model.coef_, model.intercept_, lam, weights)


def paths(shapes, ks, kinds=KINDS, lams=LAMS[1::2], change=lambda X: X) -> Objectives:
    """All sizes of a path."""
    for n, p in shapes:
        for kind in kinds:
            X, y = make_data(kind, n, p, 0)
            for lam in lams:
                path = sparse_svm_path(change(X), y, ks, C=C_of(lam, n))
                for k, coef, intercept in zip(path.ks, path.coefs, path.intercepts, strict=True):
                    yield f"{kind} {n} x {p}, k {k}, lam {lam:g}", objective(X, y, coef, intercept, lam)


def whole(X, y) -> BinaryProblem:
    return ArrayProblem(DenseDesign(X, True), y.astype(float), np.ones(len(y)), LAMS[0])


def in_blocks(X, y) -> BinaryProblem:
    """The same problem with its rows in two blocks."""
    return search_problems.in_blocks(whole(X, y), (0, 2 * len(y) // 3, len(y)))


def grid(n, p, ks, kind, seed=0, make=whole, lams=LAMS, **options) -> Objectives:
    """Several ridges, each from the supports of the one before."""
    X, y = make_data(kind, n, p, seed)
    problem, ridges = Problem.of(make(X, y)), [[lam] for lam in lams]
    found = Exchange(**options).solve_grid(problem, ridges, ks, np.random.default_rng(0))
    for (lam, k), (solution,) in zip(product(lams, ks), found, strict=True):
        coef = np.zeros(p)
        coef[solution.support] = solution.coef
        name = f"{kind}, k {k}, lam {lam:g}" + (f", seed {seed}" if seed else "")
        yield name, objective(X, y, coef, solution.intercept, lam)


def grids(n, p, ks, **options) -> Objectives:
    return chain.from_iterable(grid(n, p, ks, kind, **options) for kind in KINDS)


def hard(make=in_blocks, **options) -> Objectives:
    """A panel of all columns in blocks. Here less effort, or no exchange of two for two, is worse."""
    for kind, seed in (("neighbours", 6), ("counts", 6)):
        yield from grid(40, 40, [5], kind, seed, make, LAMS[1:2], **options)


def hard_paths(make=in_blocks, **options) -> Objectives:
    """The same of several sizes."""
    for kind, seed in (("normal", 8), ("scales", 1)):
        yield from grid(30, 24, [8, 6, 4, 2], kind, seed, make, LAMS[1:2], **options)


def wide(make=in_blocks, **options) -> Objectives:
    """More columns than a panel takes, small as the data are."""
    for kind, ks in product(("neighbours", "counts"), ([6], [12, 3])):
        yield from grid(40, 520, ks, kind, make=make, lams=LAMS, **options)


def by_products() -> Objectives:
    """Sparse data for which no panel has room."""
    with mock.patch.object(SparseDesign, "fits", return_value=False):
        kinds = ("binary", "counts")
        yield from paths([(120, 50)], [40, 20, 8, 3], kinds, LAMS[1::2], sp.csr_array)
        yield from single([(120, 50, 6), (80, 300, 12)], kinds, LAMS[1::2], change=sp.csr_array)


def kernels() -> Objectives:
    """At most k points. Here the ridge is on the coefficients of the points."""
    for kind in ("normal", "neighbours", "counts"):
        X, y = make_data(kind, 90, 4, 0)
        for k in (3, 10, 25):
            for lam in LAMS[:3]:
                model = KernelSparseSVC(k, C=C_of(lam, 90), kernel="rbf", gamma=0.3).fit(X, y)
                losses = np.maximum(0.0, 1.0 - y * model.decision_function(X)) ** 2
                alpha = np.asarray(model.dual_coef_, dtype=float).ravel()
                yield f"{kind}, k {k}, lam {lam:g}", 0.5 * losses.mean() + 0.5 * lam * float(alpha @ alpha)


REGIMES: dict[str, Callable[..., Objectives]] = {
    "panel": lambda: single([(60, 15, 4), (100, 40, 8), (40, 60, 5)]),
    "panel, no intercept": lambda: single([(40, 60, 6)], fit_intercept=False),
    "panel, weights": lambda: single([(40, 60, 6)], weighted=True),
    "panel, float32": lambda: single([(40, 60, 6)], change=lambda X: X.astype(np.float32)),
    "panel, no ridge": lambda: single([(150, 12, 3), (150, 20, 6)], lams=(0.0,), seeds=2),
    "panel, all swaps": lambda: single([(40, 60, 6)], solver=Exchange(effort="thorough")),
    "panel, sparse": lambda: single([(40, 60, 6)], ("binary", "counts"), change=sp.csr_array),
    "panel, path": lambda: paths([(60, 24)], [24, 16, 12, 8, 6, 4, 3, 2, 1]),
    "panel, several ridges": lambda: grids(50, 40, [12, 6, 3]),
    "working set": lambda: single([(80, 400, 6), (120, 320, 25)]),
    "working set, path": lambda: paths([(80, 300)], [20, 10, 5, 2], lams=LAMS[1:3]),
    "working set, several ridges": lambda: grids(80, 300, [10, 4]),
    "dual": lambda: single([(60, 400, 150), (80, 400, 200)], lams=LAMS[:3]),
    "dual, path": lambda: paths([(60, 400)], [300, 200, 140, 40, 10], lams=LAMS[:2]),
    "products": by_products,
    # a try in blocks takes fifty times as long: there are few problems, those where effort pays
    "blocks": hard,
    "blocks, path": hard_paths,
    "blocks, working set": wide,
    "kernel": kernels,
    "mm": lambda: single([(60, 12, 3)], ("normal", "neighbours", "counts"), (1e-1, 1e-2), solver="mm"),
    "sd": lambda: single([(60, 12, 3)], ("normal", "neighbours", "counts"), (1e-1, 1e-2), solver="sd"),
}


PANEL, WORKING_SET = {Regime.PANEL}, {Regime.WORKING_SET}
MIXED = PANEL | WORKING_SET  # sizes of one path

# which way the algebra went
WAYS = {
    **{regime: PANEL for regime in REGIMES if regime.startswith(("panel", "kernel", "blocks"))},
    "working set": WORKING_SET,
    "working set, path": MIXED,
    "working set, several ridges": MIXED,
    "dual": {Regime.DUAL},
    "dual, path": {Regime.DUAL} | MIXED,
    "products": {Regime.PRODUCTS},
    "blocks, working set": WORKING_SET,
    "mm": set(),  # no search
    "sd": set(),
}


@contextmanager
def taken_ways() -> Iterator[set[Regime]]:
    """Where searches go meanwhile."""
    taken, solve_grid = set(), Exchange.solve_grid

    def noted(*args):
        for solutions in solve_grid(*args):
            taken.update(solution.regime for solution in solutions)
            yield solutions

    with mock.patch.object(Exchange, "solve_grid", noted):
        yield taken


def reach(regime: str, **options) -> tuple[dict[str, float], set[Regime]]:
    """What fits of this regime reach now, and where their searches went."""
    with taken_ways() as taken, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of mm and sd, that stop at a limit
        found = list(REGIMES[regime](**options))
    assert len(dict(found)) == len(found)
    return dict(found), taken


def read_store() -> dict[str, dict[str, float]]:
    return json.loads(STORE.read_text())


def ratios(reached: dict[str, float], stored: dict[str, float]) -> dict[str, float]:
    """Above 1 where a fit is worse than what is stored; sums of squares of nothing but rounding are equal."""
    assert set(reached) == set(stored)
    return {name: max(value, 1e-12) / max(stored[name], 1e-12) for name, value in reached.items()}


def geometric_mean(values) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


if __name__ == "__main__":
    EFFORTS["normal"] = EFFORTS["normal"]._replace(restart_flops=0.0)  # as in the tests
    reached = {
        regime: {name: float(f"{value:.8g}") for name, value in reach(regime)[0].items()}
        for regime in REGIMES
    }
    STORE.parent.mkdir(exist_ok=True)
    STORE.write_text(json.dumps(reached, indent=0) + "\n")
