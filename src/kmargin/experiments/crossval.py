"""Cross-validation along the path: Tables 2, 3 and 4, and Figure 3.

A unit is one fold at one sparsity (ours) or one C (LIBLINEAR and LIBSVM). In each fold a path starts
from the paper's heuristic, and each sparsity from the last one's solution. The test set is scored
with each fold's machines.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC, LinearSVC

from kmargin.experiments import protocol
from kmargin.experiments.machines import PENALISED, Machines
from kmargin.experiments.settings import PEERS, Settings, costs, sparsities
from kmargin.experiments.work import Chain, Finished, Unit
from kmargin.types import Vector

NAME = "crossval"


def chains(
    settings: Settings, protocols: Sequence[str], datasets: Sequence[str], solvers: Sequence[str]
) -> Iterator[Chain]:
    for name in protocols:
        for dataset in datasets:
            for solver in solvers:
                if solver in PEERS and (solver == "svc") != (dataset == "spiral"):
                    continue
                grid = costs(dataset) if solver in PEERS else sparsities(dataset)
                for number in range(settings.n_folds_run):
                    units = tuple(Unit(number, value) for value in grid)
                    yield Chain(NAME, name, dataset, solver, units, is_warm=solver in PENALISED)


def walk(
    chain: Chain, settings: Settings, done: Sequence[Unit], state: Sequence[Vector]
) -> Iterator[Finished]:
    """The units of a chain that are not done yet."""
    data = protocol.read(chain.dataset, chain.protocol, settings.seed)
    rows = protocol.fold(data, settings.n_folds, settings.seed, chain.units[0].replicate)
    if chain.solver in PEERS:
        yield from _compare(chain, settings, done, rows)
        return
    C = settings.exchange_C if chain.solver == "exchange" else np.inf
    started = time.thread_time()
    machines = Machines(chain.dataset, rows.X[rows.train], rows.y[rows.train], C, settings)
    if chain.solver == "exchange":
        # Sweeps go down and up the path, so time and Newton steps belong to the path as a whole; each
        # sparsity is recorded with an even share. Each solution counts the steps of the whole path.
        path = machines.exchange([unit.parameter for unit in chain.units])
        seconds = (time.thread_time() - started) / len(chain.units)
        n_newton = sum(max(s.n_iter for s in along) for along in zip(*path, strict=True))
        for unit, found in zip(chain.units, path, strict=True):
            if unit not in done:
                values = _values(machines, found, rows) | {"iterations": n_newton / len(chain.units)}
                yield Finished(unit, values, seconds)
        return
    for unit in chain.units[len(done) :]:
        found = machines.anneal(PENALISED[chain.solver], machines.sizes(unit.parameter), state)
        state = machines.parameters(found)
        seconds = time.thread_time() - started
        yield Finished(unit, _values(machines, found, rows), seconds, state)
        started = time.thread_time()


def _values(machines: Machines, solutions: Sequence[Any], rows: protocol.Fold) -> dict[str, Any]:
    values: dict[str, Any] = dict(machines.describe(solutions))
    parts = {"train": rows.train, "validation": rows.validation, "test": rows.test}
    return values | {part: machines.accuracy(rows.X[at], rows.y[at]) for part, at in parts.items()}


def _compare(
    chain: Chain, settings: Settings, done: Sequence[Unit], rows: protocol.Fold
) -> Iterator[Finished]:
    for unit in chain.units:
        if unit in done:
            continue
        model = peer(chain, unit.parameter, settings)
        started = time.thread_time()
        model.fit(rows.X[rows.train], rows.y[rows.train])
        seconds = time.thread_time() - started
        parts = {"train": rows.train, "validation": rows.validation, "test": rows.test}
        values: dict[str, Any] = {part: model.score(rows.X[at], rows.y[at]) for part, at in parts.items()}
        values["sparsity"] = observed_sparsity(model, len(rows.train))
        yield Finished(unit, values, seconds)


def peer(chain: Chain, C: float, settings: Settings) -> Any:
    """A competitor of Table 4.

    The paper's figures for LIBLINEAR are those of its own multi-class scheme, one versus rest, and of
    machines without an intercept. Its protocol keeps to that; the shuffled one gives LIBLINEAR what
    our machines have, an intercept and one versus one.
    """
    if chain.solver == "svc":
        return SVC(C=C, kernel="rbf", gamma=settings.gamma)
    is_paper = chain.protocol == "paper"
    machine = LinearSVC(
        C=C,
        penalty={"l1r": "l1", "l2r": "l2"}[chain.solver],
        dual=False,
        fit_intercept=not is_paper,
        max_iter=5000,
        random_state=settings.seed,
    )
    return machine if is_paper else OneVsOneClassifier(machine)


def observed_sparsity(model: Any, n_samples: int) -> float:
    """The share of coefficients that are zero, on average over the machines."""
    if isinstance(model, SVC):
        return 1 - len(model.support_) / n_samples
    machines = getattr(model, "estimators_", [model])
    return float(np.mean([np.mean(machine.coef_ == 0) for machine in machines]))
