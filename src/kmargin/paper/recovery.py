"""Prediction and model selection on simulated data: Figure 2.

A unit is one fit to one draw of `make_sparse_hyperplane` at one sparsity, without a warm start. The left
panels vary the sparsity for a few shapes, the right ones the shape at the true sparsity.
"""

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from kmargin import SparseSVC
from kmargin.core.arrays import Matrix, Vector
from kmargin.core.sparsity import count_kept
from kmargin.datasets import make_sparse_hyperplane
from kmargin.paper.crossval import PENALISED
from kmargin.paper.protocol import SOLVERS, TRUE_SIZE, Chain, Finished, Settings, Unit, recovery_sparsities

NAME = "recovery"
N_TEST = 1000
BASE = 500  # the number of samples or features that is fixed while the other varies


def shape_name(n_samples: int, n_features: int) -> str:
    return f"{n_samples}x{n_features}"


def shape_of(name: str) -> tuple[int, int]:
    n_samples, n_features = name.split("x")
    return int(n_samples), int(n_features)


def chains(settings: Settings, protocols: Sequence[str], solvers: Sequence[str]) -> Iterator[Chain]:
    shapes = list(settings.shapes)
    shapes += [(n, BASE) for n in settings.sample_sizes] + [(BASE, p) for p in settings.feature_sizes]
    for shape in dict.fromkeys(shapes):
        true_sparsity = 1 - TRUE_SIZE / shape[1]
        grid = recovery_sparsities(shape[1]) if shape in settings.shapes else (true_sparsity,)
        for solver in solvers:
            if solver not in SOLVERS:
                continue
            for draw in range(settings.n_draws):
                units = tuple(Unit(draw, s) for s in grid)
                yield Chain(NAME, protocols[0], shape_name(*shape), solver, units)


def walk(
    chain: Chain, settings: Settings, done: Sequence[Unit], state: Sequence[Vector]
) -> Iterator[Finished]:
    """Run the units of a chain that are not done yet."""
    n, p = shape_of(chain.dataset)
    X, y, coef = draw_data(n, p, chain.units[0].replicate, settings.seed)
    for unit in chain.units:
        if unit in done:
            continue
        k = count_kept(unit.parameter, p)
        if chain.solver == "exchange":
            model = SparseSVC(k, C=settings.exchange_C)
        else:
            model = SparseSVC(k, C=np.inf, solver=PENALISED[chain.solver])
        started = time.thread_time()
        model.fit(X[:n], y[:n])
        seconds = time.thread_time() - started
        fdr, false_omission = discovery_rates(model.get_support(), coef != 0)
        values = {
            "iterations": int(model.n_iter_.sum()),
            "kept": float(len(model.support_)),
            "sparsity": 1 - len(model.support_) / p,
            "fdr": fdr,
            "for": false_omission,
            "train": model.score(X[:n], y[:n]),
            "test": model.score(X[n:], y[n:]),
        }
        yield Finished(unit, values, seconds)


@lru_cache(maxsize=4)
def draw_data(n: int, p: int, draw: int, seed: int) -> tuple[Matrix, Vector, Vector]:
    """A training set of n rows followed by a test set, and the true coefficients."""
    random_state = int(np.random.default_rng([seed, n, p, draw]).integers(2**31))
    X, y, coef = make_sparse_hyperplane(n + N_TEST, p, TRUE_SIZE, random_state=random_state, return_coef=True)
    return X, y, coef


def discovery_rates(selected: np.ndarray, causal: np.ndarray) -> tuple[float, float]:
    """The false discovery rate and the false omission rate, by the paper's formulas.

    Without selected features the false discovery rate is 0; without omitted ones, the false omission rate.
    """
    q = causal.mean()
    sensitivity = selected[causal].mean()
    specificity = 1 - selected[~causal].mean()
    discovered = (1 - specificity) * (1 - q) + sensitivity * q
    omitted = (1 - sensitivity) * q + specificity * (1 - q)
    fdr = (1 - specificity) * (1 - q) / discovered if discovered > 0 else 0.0
    false_omission = (1 - sensitivity) * q / omitted if omitted > 0 else 0.0
    return float(fdr), float(false_omission)
