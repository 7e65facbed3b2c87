"""Cross-validation over sparsity levels (Tables 2 to 4, Figure 3), and the models of all experiments."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC, LinearSVC

from kmargin import MM, SD, Exchange, Solution, Status
from kmargin.core import squared_hinge
from kmargin.core.arrays import Matrix, Vector
from kmargin.core.labels import choose_classes, combine_decisions
from kmargin.core.problem import BinaryProblem, Problem
from kmargin.core.sparsity import count_kept, normalizer
from kmargin.data.samples.array import read_samples
from kmargin.fitting.spec import KernelBlueprint, LinearBlueprint
from kmargin.paper import protocol
from kmargin.paper.protocol import PEERS, Chain, Finished, Settings, Unit, costs, sparsities

PENALISED = {"mm": MM(ending="projection"), "sd": SD(ending="projection")}  # as the paper ends


class Classifiers:
    """A binary problem for each pair of classes, and the multi-class decisions of their solutions."""

    def __init__(self, dataset: str, X: Matrix, y: np.ndarray, C: float, settings: Settings) -> None:
        is_kernel = dataset == "spiral"
        self.blueprint: Any = (
            KernelBlueprint(gamma=settings.gamma, shared=False)
            if is_kernel
            else LinearBlueprint(shared=False)
        )
        self.samples = read_samples(X, y, None, None)
        self.designs = self.blueprint.designs(self.samples)
        self.problems = []
        self.rows, self.labels = [], []
        for machine in self.samples.machines(self.blueprint.multi_class):
            self.problems.append(self.designs.problem(machine, [C])[0])
            self.rows.append(np.arange(len(X)) if machine.rows is None else machine.rows)
            self.labels.append(machine.y)

    def sizes(self, sparsity: float) -> list[int]:
        """k of each binary problem."""
        return [count_kept(sparsity, problem.design.n_features) for problem in self.problems]

    def anneal(
        self,
        solver: MM | SD,
        ks: Sequence[int],
        after: Sequence[Vector] = (),
        rngs: Sequence[np.random.Generator] | None = None,
    ) -> list[Solution]:
        """Solve each binary problem for its k, starting from its previous parameters if there are any."""
        rngs = rngs or [np.random.default_rng(0)] * len(self.problems)
        solutions: list[Solution] = []
        for number, (problem, k) in enumerate(zip(self.problems, ks, strict=True)):
            last = [_solution(problem, after[number])] if len(after) else None
            ((solution,),) = solver.iter_path(Problem.of(problem), [k], rngs[number], after=last)
            solutions.append(solution)
        return solutions

    def exchange(self, sparsities: Sequence[float]) -> list[list[Solution]]:
        """Solve for all sparsities at once; the solutions are indexed [sparsity][binary problem]."""
        by_problem = []
        for number, problem in enumerate(self.problems):
            ks = [self.sizes(s)[number] for s in sparsities]
            distinct = sorted(set(ks), reverse=True)
            solver = Exchange().in_folds()
            rng = np.random.default_rng(0)
            found = solver.solve_grid(Problem.of(problem), [[problem.lam]], distinct, rng)
            by_k = {k: solution for k, (solution,) in zip(distinct, found, strict=True)}
            by_problem.append([by_k[k] for k in ks])
        return [list(row) for row in zip(*by_problem, strict=True)]

    def improve(self, ks: Sequence[int], rngs: Sequence[np.random.Generator]) -> list[Solution]:
        """Run the exchange from random supports."""
        solutions: list[Solution] = []
        for problem, k, rng in zip(self.problems, ks, rngs, strict=True):
            p = problem.design.n_features
            support = np.sort(rng.choice(p, k, replace=False))
            beta = np.zeros(problem.design.n_parameters)
            beta[support] = rng.standard_normal(k)
            solutions += Exchange().improve(Problem.of(problem), [_solution(problem, beta)])
        return solutions

    def parameters(self, solutions: Sequence[Solution]) -> list[Vector]:
        """The parameters from which `anneal` continues."""
        return [np.append(s.dense_coef(), s.intercept) for s in solutions]

    def describe(self, solutions: Sequence[Solution]) -> dict[str, float]:
        """What the solver did, and the classifiers it found: sums or means over the binary problems."""
        path = self.blueprint.path([self.designs], self.samples, [tuple(solutions)], [0])
        self.decide = path.machines(0)
        decisions = self.decide(self.samples.X)
        ends = [s.trace[-1] if s.trace else None for s in solutions]
        losses = []
        is_support_vector = np.zeros(len(decisions), dtype=bool)
        for y, rows, decision in zip(self.labels, self.rows, decisions.T, strict=True):
            residual = squared_hinge.residual_of(decision[rows], y)
            losses.append(np.mean(squared_hinge.values(residual)))
            is_support_vector[rows[squared_hinge.is_active(residual)]] = True
        shares = [len(s.support) / s.n_features for s in solutions]
        return {
            "iterations": sum(s.n_iter for s in solutions),
            "stalled": float(np.mean([s.status is Status.STALLED for s in solutions])),
            "objective": float(
                np.mean([e.objective if e else s.objective for e, s in zip(ends, solutions, strict=True)])
            ),
            "gradient_sq": float(np.mean([e.gradient_sq if e else 0.0 for e in ends])),
            "distance_sq": float(np.mean([_normalized_distance(s) for s in solutions])),
            "loss": float(np.mean(losses)),
            "support_vectors": int(is_support_vector.sum()),
            "kept": float(np.mean([len(s.support) for s in solutions])),
            "sparsity": 1 - float(np.mean(shares)),
        }

    def accuracy(self, X: Matrix, y: np.ndarray) -> float:
        """The accuracy of the classifiers that were described last."""
        classes = self.samples.classes
        decisions = combine_decisions(self.decide(X), len(classes), self.blueprint.multi_class)
        return float(np.mean(choose_classes(decisions, classes) == y))


def _normalized_distance(solution: Solution) -> float:
    """dist(beta, S_k)^2 / (p - k + 1) before the final projection, the d of the paper's stopping rules."""
    if not solution.trace:
        return 0.0
    return solution.trace[-1].distance_sq / normalizer(solution.n_features, len(solution.support))


def _solution(problem: BinaryProblem, beta: Vector) -> Solution:
    """Parameters as a solution, to start from."""
    return Solution.from_beta(
        beta,
        problem.design.n_features,
        objective=np.inf,
        projection_cost=0.0,
        status=Status.EXHAUSTED,
        n_iter=0,
    )


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
    """Run the units of a chain that are not done yet."""
    data = protocol.read(chain.dataset, chain.protocol, settings.seed)
    rows = protocol.fold(data, settings.n_folds, settings.seed, chain.units[0].replicate)
    if chain.solver in PEERS:
        yield from _compare(chain, settings, done, rows)
        return
    C = settings.exchange_C if chain.solver == "exchange" else np.inf
    started = time.thread_time()
    classifiers = Classifiers(chain.dataset, rows.X[rows.train], rows.y[rows.train], C, settings)
    if chain.solver == "exchange":
        # Sweeps go down and up the path, so time and Newton steps belong to the path as a whole: each
        # sparsity is recorded with an even share. Each solution counts the steps of the whole path.
        path = classifiers.exchange([unit.parameter for unit in chain.units])
        seconds = (time.thread_time() - started) / len(chain.units)
        n_newton = sum(max(s.n_iter for s in along) for along in zip(*path, strict=True))
        for unit, found in zip(chain.units, path, strict=True):
            if unit not in done:
                values = _values(classifiers, found, rows) | {"iterations": n_newton / len(chain.units)}
                yield Finished(unit, values, seconds)
        return
    for unit in chain.units[len(done) :]:
        found = classifiers.anneal(PENALISED[chain.solver], classifiers.sizes(unit.parameter), state)
        state = classifiers.parameters(found)
        seconds = time.thread_time() - started
        yield Finished(unit, _values(classifiers, found, rows), seconds, state)
        started = time.thread_time()


def _values(classifiers: Classifiers, solutions: Sequence[Any], rows: protocol.Fold) -> dict[str, Any]:
    values: dict[str, Any] = dict(classifiers.describe(solutions))
    parts = {"train": rows.train, "validation": rows.validation, "test": rows.test}
    return values | {part: classifiers.accuracy(rows.X[at], rows.y[at]) for part, at in parts.items()}


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

    The paper's numbers for LIBLINEAR are those of one versus rest without an intercept. The paper's protocol
    does the same; the shuffled one gives LIBLINEAR what our models have, an intercept and one versus one.
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
    """The proportion of coefficients that are zero, on average over the binary classifiers."""
    if isinstance(model, SVC):
        return 1 - len(model.support_) / n_samples
    classifiers = getattr(model, "estimators_", [model])
    return float(np.mean([np.mean(machine.coef_ == 0) for machine in classifiers]))
