"""What small fits try and reach, problem by problem.

    python tests/helpers/objectives.py  # stores what is reached now, and says how objectives have changed

Newton steps and inner iterations change with nearly every change of the search. Objectives may then rise in
single problems, but should not on average.
"""

import json
from pathlib import Path
from unittest import mock

import numpy as np
import scipy.sparse as sp
import search_problems
from penalised_problems import make_units

from kmargin import MM, SD, Exchange
from kmargin.core.problem import ArrayProblem, Problem
from kmargin.data.design.dense import DenseDesign
from kmargin.data.design.sparse import SparseDesign
from kmargin.solvers.exchange import EFFORTS

STORE = Path(__file__).parent.parent / "stored" / "searches.json"


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


GROUPS, SIGNS = [2, 1, 3, 1], [1, -1, 0, 1]  # repeated

SEARCHES: dict[str, dict] = {
    "all supports": {"shape": (40, 12), "ks": [4]},
    "one size": {"shape": (40, 30), "ks": [6]},
    "one size, fast": {"shape": (40, 30), "ks": [6], "effort": "fast"},
    "one size, two ridges": {"shape": (40, 30), "ks": [5], "lams": [1e-1, 1e-3], "effort": "fast"},
    "one size, weights": {"shape": (40, 30), "ks": [5], "weighted": True, "effort": "fast"},
    "one size, no ridge": {"shape": (60, 30), "ks": [3], "lams": [0.0], "effort": "fast"},
    "path": {"shape": (40, 24), "ks": [22, 16, 8, 4, 2]},
    "path, thorough": {"shape": (40, 24), "ks": [9, 4], "effort": "thorough"},
    "path, two ridges": {"shape": (40, 24), "ks": [8, 4, 0], "lams": [1e-1, 1e-3]},
    "path, no intercept": {"shape": (40, 16), "ks": [16, 8, 4, 2], "fit_intercept": False},
    "path, fixed": {"shape": (40, 18), "ks": [6, 3], "fixed": [1, 7]},
    "path, signs": {"shape": (40, 24), "ks": [5, 3], "signs": SIGNS},
    "three problems": {"shape": (30, 20), "ks": [5], "n_problems": 3},
    "three problems, path": {"shape": (30, 20), "ks": [8, 5, 2], "n_problems": 3},
    "groups": {"shape": (40, 28), "ks": [5], "sizes": GROUPS},
    "groups, path": {"shape": (40, 28), "ks": [4, 2], "sizes": GROUPS, "n_problems": 3},
    "working set": {"shape": (60, 420), "ks": [6]},
    "working set, path": {"shape": (60, 420), "ks": [12, 6, 2]},
    "working set, groups": {"shape": (60, 420), "ks": [4], "sizes": GROUPS},
    "working set, three problems": {"shape": (60, 420), "ks": [4], "n_problems": 3},
    "restarts": {"shape": (40, 520), "ks": [5], "restart_seconds": 0.1},
    "restarts, three problems": {"shape": (40, 520), "ks": [4], "restart_seconds": 0.1, "n_problems": 3},
    "groups, binary columns": {"shape": (60, 24), "ks": [3], "sizes": [3], "kind": "binary"},
    "one size, counts": {"shape": (50, 30), "ks": [5], "kind": "counts"},
    "path, scales": {"shape": (50, 24), "ks": [8, 4, 2], "kind": "scales"},
    "path, counts": {"shape": (50, 24), "ks": [8, 4, 2], "kind": "counts"},
    "path, float32": {"shape": (40, 24), "ks": [8, 3], "dtype": np.float32},
    "working set, scales": {"shape": (80, 400), "ks": [10, 4], "lams": [1e-2, 1e-3], "kind": "scales"},
    "working set, signs": {"shape": (60, 420), "ks": [5], "signs": SIGNS, "kind": "normal"},
    "dual": {"shape": (40, 300), "ks": [150]},
    "dual, wide path": {"shape": (30, 260), "ks": [200, 150, 20, 4], "effort": "fast"},
    "dual, three problems": {"shape": (30, 260), "ks": [140], "effort": "fast", "n_problems": 3},
    "dual, path": {"shape": (40, 200), "ks": [160, 140, 20, 4], "effort": "fast"},
    "products": {"shape": (60, 40), "ks": [5], "make": "sparse"},
    "products, path": {"shape": (60, 40), "ks": [20, 5], "make": "sparse"},
    "blocks": {"shape": (30, 12), "ks": [4], "make": "blocks", "effort": "fast"},
    "blocks, path": {"shape": (30, 12), "ks": [6, 3], "make": "blocks", "weighted": True},
    "blocks, groups": {"shape": (30, 14), "ks": [2], "make": "blocks", "sizes": GROUPS},
    "blocks, three problems": {"shape": (30, 12), "ks": [3], "make": "blocks", "n_problems": 3},
    "blocks, signs": {"shape": (30, 12), "ks": [3], "make": "blocks", "signs": SIGNS},
    "blocks, working set": {"shape": (30, 600), "ks": [4], "make": "blocks"},
    "MM": {"shape": (40, 12), "ks": [3], "solver": MM()},
    "MM, groups": {"shape": (40, 14), "ks": [3, 2], "solver": MM(), "sizes": GROUPS, "fixed": [1]},
    "MM, more columns": {"shape": (20, 36), "ks": [4], "solver": MM(), "weighted": True},
    "MM, three problems": {"shape": (30, 12), "ks": [3], "solver": MM(), "n_problems": 3},
    "SD": {"shape": (40, 12), "ks": [3], "solver": SD()},
    "SD, signs": {"shape": (40, 12), "ks": [3, 2], "solver": SD(), "signs": SIGNS},
    "SD, sparse": {"shape": (40, 12), "ks": [3], "solver": SD(), "make": "sparse", "fit_intercept": False},
    "SD, three problems": {"shape": (30, 12), "ks": [3], "solver": SD(), "n_problems": 3},
    "SD, blocks": {"shape": (30, 12), "ks": [3], "solver": SD(), "make": "blocks", "weighted": True},
}


def search(
    shape, ks, lams=(1e-2,), *, effort="normal", solver=None, make="", n_problems=1, sizes=(1,), fixed=(),
    signs=(0,), weighted=False, fit_intercept=True, restart_seconds=0.0, kind="neighbours", dtype=np.float64,
) -> list[tuple[int, str, str | None, list[int], float]]:  # fmt: skip
    """Iterations, status, regime, the first problem's support, and the objective; of each ridge and k."""
    (n, p), binary = shape, []
    for seed in range(n_problems):
        X, y = make_data(kind, n, p, seed)
        weights = np.random.default_rng(seed).uniform(0.2, 3.0, n) if weighted else np.ones(n)
        weights /= weights.mean()
        design = SparseDesign(sp.csr_array(X), fit_intercept) if make == "sparse" else None
        one = ArrayProblem(
            design or DenseDesign(X.astype(dtype), fit_intercept), y.astype(float), weights, lams[0]
        )
        binary.append(search_problems.in_blocks(one, (0, 2 * n // 3, n)) if make == "blocks" else one)
    units = make_units(sizes * (p // sum(sizes)), fixed=fixed, signs=np.tile(signs, p // len(signs)))
    ridges = [[lam * (1 + number) for number in range(n_problems)] for lam in lams]
    with (
        mock.patch.dict(EFFORTS, {effort: EFFORTS[effort]._replace(restart_seconds=restart_seconds)}),
        mock.patch.object(SparseDesign, "fits", return_value=False),
    ):
        solver, rng = solver or Exchange(effort=effort), np.random.default_rng(0)
        found = list(solver.solve_grid(Problem(tuple(binary), units), ridges, ks, rng))
    return [
        (
            first.n_iter,
            first.status.name,
            first.regime and first.regime.name,
            first.support.tolist(),
            sum(solution.objective for solution in solutions),
        )
        for solutions in found
        for first in solutions[:1]
    ]


def read_store() -> dict[str, list]:
    return json.loads(STORE.read_text())


if __name__ == "__main__":
    reached, before = {name: search(**case) for name, case in SEARCHES.items()}, read_store()
    ratios = {
        f"{name}, {number}": max(now[-1], 1e-12) / max(then[-1], 1e-12)
        for name in reached.keys() & before.keys()
        for number, (now, then) in enumerate(zip(reached[name], before[name], strict=False))
    }
    worst = max(ratios, key=ratios.__getitem__)
    print(f"Objectives are {np.exp(np.mean(np.log([*ratios.values()]))):.6f} times what they were,")
    print(f"at worst {ratios[worst]:.6f} times ({worst}).")
    STORE.write_text(json.dumps(reached, indent=0) + "\n")
