"""The two-class machines of one training set, solved together, one sparsity after another."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kmargin import MM, SD, Exchange, Solution, Status
from kmargin.experiments.settings import Settings
from kmargin.fitting.kernel_blueprint import KernelBlueprint
from kmargin.fitting.linear_blueprint import LinearBlueprint
from kmargin.fitting.tasks import make_problems, make_tasks
from kmargin.losses import squared_hinge
from kmargin.multiclass import choose_classes, combine_decisions
from kmargin.problem import Problem
from kmargin.samples.array import read_samples
from kmargin.sparsity import count_kept, normalizer
from kmargin.types import Matrix, Vector

PENALISED = {"mm": MM(ending="projection"), "sd": SD(ending="projection")}  # as the paper ends


class Machines:
    """One problem per pair of classes, and the classifier that their solutions make together."""

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
        for task in make_tasks(self.designs, self.samples, self.blueprint.multi_class):
            (problem,), _ = make_problems(task, [C])
            (machine,) = task.machines
            self.problems.append(problem)
            self.rows.append(np.arange(len(X)) if machine.rows is None else machine.rows)
            self.labels.append(machine.y)

    def sizes(self, sparsity: float) -> list[int]:
        """k of each machine."""
        return [count_kept(sparsity, problem.design.n_features) for problem in self.problems]

    def anneal(
        self,
        solver: MM | SD,
        ks: Sequence[int],
        after: Sequence[Vector] = (),
        rngs: Sequence[np.random.Generator] | None = None,
    ) -> list[Solution]:
        """Solve for one k of each machine, from its last parameters if there are any."""
        rngs = rngs or [np.random.default_rng(0)] * len(self.problems)
        solutions: list[Solution] = []
        for number, (problem, k) in enumerate(zip(self.problems, ks, strict=True)):
            last = _solution(problem, after[number]) if len(after) else None
            solutions += solver.iter_path(problem, [k], rngs[number], after=last)
        return solutions

    def exchange(self, sparsities: Sequence[float]) -> list[list[Solution]]:
        """Solve for all sparsities at once; [sparsity][machine]."""
        by_machine = []
        for number, problem in enumerate(self.problems):
            ks = [self.sizes(s)[number] for s in sparsities]
            distinct = sorted(set(ks), reverse=True)
            solver = Exchange().in_folds()
            found = solver.iter_grid(problem, [problem.lam], distinct, np.random.default_rng(0))
            by_k = dict(zip(distinct, found, strict=True))
            by_machine.append([by_k[k] for k in ks])
        return [list(row) for row in zip(*by_machine, strict=True)]

    def improve(self, ks: Sequence[int], rngs: Sequence[np.random.Generator]) -> list[Solution]:
        """Exchange from random supports."""
        solutions = []
        for problem, k, rng in zip(self.problems, ks, rngs, strict=True):
            p = problem.design.n_features
            support = np.sort(rng.choice(p, k, replace=False))
            beta = np.zeros(problem.design.n_parameters)
            beta[support] = rng.standard_normal(k)
            solutions.append(Exchange().improve(problem, _solution(problem, beta)))
        return solutions

    def parameters(self, solutions: Sequence[Solution]) -> list[Vector]:
        """What `anneal` goes on from."""
        return [np.append(s.dense_coef(), s.intercept) for s in solutions]

    def describe(self, solutions: Sequence[Solution]) -> dict[str, float]:
        """What the solver did, and the machines it made: sums or means over the machines."""
        self.decide = self.blueprint.decisions(self.designs, self.samples, solutions)
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
        """Of the machines last described."""
        classes = self.samples.classes
        decisions = combine_decisions(self.decide(X), len(classes), self.blueprint.multi_class)
        return float(np.mean(choose_classes(decisions, classes) == y))


def _normalized_distance(solution: Solution) -> float:
    """dist(beta, S_k)^2 / (p - k + 1) before the final projection, the d of the paper's stopping rules."""
    if not solution.trace:
        return 0.0
    return solution.trace[-1].distance_sq / normalizer(solution.n_features, len(solution.support))


def _solution(problem: Problem, beta: Vector) -> Solution:
    """A point to start from; only its parameters matter."""
    return Solution.from_beta(
        beta,
        problem.design.n_features,
        objective=np.inf,
        projection_cost=0.0,
        status=Status.EXHAUSTED,
        n_iter=0,
    )
