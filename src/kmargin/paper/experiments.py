"""The experiments: random starts (Figure 1), simulated data (Figure 2), and cross-validation (the rest).

Each experiment has two functions: one lists its jobs, one runs a job and yields the results of each fit.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC, LinearSVC

from kmargin import MM, SD, Exchange, Solution, Solver, SparseSVC, Status
from kmargin.core import squared_hinge
from kmargin.core.arrays import Matrix, Vector
from kmargin.core.labels import choose_classes, class_pairs, combine_decisions, label_rows
from kmargin.core.problem import Problem
from kmargin.core.sparsity import count_kept, normalizer
from kmargin.data.samples.array import read_samples
from kmargin.datasets import make_sparse_hyperplane
from kmargin.fitting.spec import KernelBlueprint, LinearBlueprint
from kmargin.paper import protocol
from kmargin.paper.protocol import (
    PEERS,
    SOLVERS,
    TRUE_SIZE,
    Fit,
    Fold,
    Job,
    Settings,
    costs,
    recovery_sparsities,
    sparsities,
)

# As in the paper, MM and SD end with a projection onto S_k, without a refit. RANDOM has random starts.
PENALISED = {"mm": MM(ending="projection"), "sd": SD(ending="projection")}
RANDOM = {name: type(solver)(start="normal", ending="projection") for name, solver in PENALISED.items()}
HALF = 0.5  # the sparsity 1 - k/p of all fits of Figure 1; for odd p it is rounded up, because k = p // 2
STARTS_PER_JOB = 25  # maximum number of random starts in one job, which sets up its binary problems only once
N_TEST = 1000  # number of test rows of the simulated data
BASE = 500  # on the right side of Figure 2: the number of samples while the features vary, and vice versa

Row = dict[str, Any]  # results of one fit: the value of each column of `rows.csv` and `seconds.csv`


class Experiment(NamedTuple):
    """A function that lists the jobs of an experiment, and a function that runs one job."""

    jobs: Callable[[Settings, Sequence[str], Sequence[str], Sequence[str]], Iterator[Job]]
    run: Callable[[Job, Settings], Iterator[Row]]


class Classifiers:
    """The binary problems of all pairs of classes, with methods to solve them and to assess solutions."""

    def __init__(self, dataset: str, X: Matrix, y: np.ndarray, C: float, settings: Settings) -> None:
        self.blueprint: Any = LinearBlueprint(shared=False)
        if dataset == "spiral":
            self.blueprint = KernelBlueprint(gamma=settings.gamma, shared=False)
        self.samples = read_samples(X, y, None, None)
        self.designs = self.blueprint.designs(self.samples)
        self.problems = []
        self.rows, self.labels = [], []
        for pair in class_pairs(len(self.samples.classes), self.blueprint.multi_class):
            rows, labels = label_rows(self.samples.codes, pair)
            self.problems.append(self.designs.problem(pair, [C])[0])
            self.rows.append(np.arange(len(X)) if rows is None else rows)
            self.labels.append(labels)
        self.n_features = [problem.design.n_features for problem in self.problems]

    def solve(
        self, solver: Solver, sizes: Sequence[Sequence[int]], rngs: Sequence[np.random.Generator] = ()
    ) -> Iterator[list[Solution]]:
        """Solve problem m for each k in sizes[m]; yield for each position a list of one solution per problem.

        Random starts are drawn from rngs[m]. MM and SD start from the solution for the previous k, and solve
        when the caller asks for the next item. Exchange searches for all k before it yields the first item.
        """
        rngs = rngs or [np.random.default_rng(0) for _ in self.problems]
        paths = [
            solver.solve_grid(Problem.of(problem), [[problem.lam]], ks, rng)
            for problem, ks, rng in zip(self.problems, sizes, rngs, strict=True)
        ]
        for solutions in zip(*paths, strict=True):
            yield [solution for (solution,) in solutions]

    def improve(self, ks: Sequence[int], rngs: Sequence[np.random.Generator]) -> list[Solution]:
        """Solve binary problem m by Exchange, from a random support of ks[m] features drawn from rngs[m]."""
        solutions: list[Solution] = []
        for problem, p, k, rng in zip(self.problems, self.n_features, ks, rngs, strict=True):
            support, beta = np.sort(rng.choice(p, k, replace=False)), np.zeros(problem.design.n_parameters)
            beta[support] = rng.standard_normal(k)
            start = Solution.from_beta(
                beta, p, objective=np.inf, projection_cost=0.0, status=Status.EXHAUSTED, n_iter=0
            )
            solutions += Exchange().improve(Problem.of(problem), [start])
        return solutions

    def describe(self, solutions: Sequence[Solution]) -> dict[str, float]:
        """Return columns of `rows.csv` on convergence and training, for one solution per binary problem.

        Iterations are summed. Rows that are support vectors of any problem are counted. The rest are means;
        `stalled` is the share of solutions of MM or SD that ended before their distance to S_k was small.
        """
        path = self.blueprint.path([self.designs], self.samples, [tuple(solutions)], [0])
        self.decide = path.machines(0)
        decisions = self.decide(self.samples.X)
        losses = []
        is_support_vector = np.zeros(len(decisions), dtype=bool)
        for y, rows, decision in zip(self.labels, self.rows, decisions.T, strict=True):
            residual = squared_hinge.residual_of(decision[rows], y)
            losses.append(float(np.mean(squared_hinge.values(residual))))
            is_support_vector[rows[squared_hinge.is_active(residual)]] = True
        # the record of the last outer iteration of MM or SD; the solver Exchange records none
        ends = [s.trace[-1] if s.trace else None for s in solutions]
        both = list(zip(ends, solutions, strict=True))
        means: dict[str, Sequence[float]] = {
            "stalled": [s.status in (Status.STALLED, Status.EXHAUSTED) for s in solutions],
            "objective": [end.objective if end else s.objective for end, s in both],
            "gradient_sq": [end.gradient_sq if end else 0.0 for end in ends],
            # squared distance of the last iterate to S_k, divided by p - k + 1 as in the paper
            "distance_sq": [
                end.distance_sq / normalizer(s.n_features, len(s.support)) if end else 0.0 for end, s in both
            ],
            "loss": losses,
            "kept": [len(s.support) for s in solutions],
            "sparsity": [1 - len(s.support) / s.n_features for s in solutions],
        }
        return {
            "iterations": sum(s.n_iter for s in solutions),
            "support_vectors": int(is_support_vector.sum()),
            **{name: float(np.mean(values)) for name, values in means.items()},
        }

    def accuracy(self, X: Matrix, y: np.ndarray) -> float:
        """The multi-class accuracy, on rows X with classes y, of the solutions last passed to `describe`."""
        classes = self.samples.classes
        decisions = combine_decisions(self.decide(X), len(classes), self.blueprint.multi_class)
        return float(np.mean(choose_classes(decisions, classes) == y))


def accuracies(score: Callable[[Matrix, np.ndarray], float], rows: Fold) -> dict[str, float]:
    """The accuracies, computed by `score(X, y)`, on the training, validation and test rows of a fold."""
    parts = {"train": rows.train, "validation": rows.validation, "test": rows.test}
    return {part: score(rows.X[at], rows.y[at]) for part, at in parts.items()}


def make_classifiers(job: Job, rows: Fold, settings: Settings) -> Classifiers:
    """Set up the binary problems of a fold's training rows: with a ridge for Exchange, else without."""
    C = settings.exchange_C if job.solver == "exchange" else np.inf
    return Classifiers(job.dataset, rows.X[rows.train], rows.y[rows.train], C, settings)


def sensitivity_jobs(
    settings: Settings, protocols: Sequence[str], datasets: Sequence[str], solvers: Sequence[str]
) -> Iterator[Job]:
    """List the jobs of Figure 1: fits from random starts to the training set, with half of the features."""
    for dataset in datasets:
        for solver in [name for name in solvers if name in SOLVERS]:
            for first in range(0, settings.n_starts, STARTS_PER_JOB):
                starts = range(first, min(first + STARTS_PER_JOB, settings.n_starts))
                fits = tuple(Fit(number, HALF) for number in starts)
                yield Job("sensitivity", protocols[0], dataset, solver, fits)


def run_sensitivity(job: Job, settings: Settings) -> Iterator[Row]:
    """Run a job of Figure 1: fit MM or SD from random coefficients, or Exchange from random supports."""
    rows = protocol.whole(protocol.read(job.dataset, job.protocol, settings.seed))
    classifiers = make_classifiers(job, rows, settings)
    ks = [p // 2 for p in classifiers.n_features]
    for fit in job.fits:
        seeds = [[settings.seed, fit.replicate, number] for number in range(len(ks))]
        rngs = [np.random.default_rng(seed) for seed in seeds]
        started = time.thread_time()
        if job.solver == "exchange":
            solutions = classifiers.improve(ks, rngs)
        else:
            (solutions,) = classifiers.solve(RANDOM[job.solver], [[k] for k in ks], rngs)
        seconds = time.thread_time() - started
        values = classifiers.describe(solutions)
        test = classifiers.accuracy(rows.X[rows.test], rows.y[rows.test])
        yield fit._asdict() | values | {"test": test, "seconds": seconds}


def shape_name(n_samples: int, n_features: int) -> str:
    """The name in `rows.csv` of simulated data of this shape, such as "500x1000"."""
    return f"{n_samples}x{n_features}"


def shape_of(name: str) -> tuple[int, int]:
    n_samples, n_features = name.split("x")
    return int(n_samples), int(n_features)


def recovery_jobs(
    settings: Settings, protocols: Sequence[str], datasets: Sequence[str], solvers: Sequence[str]
) -> Iterator[Job]:
    """List the jobs of Figure 2: fits to data simulated by `make_sparse_hyperplane`, instead of `datasets`.

    The left side of the figure shows results for many sparsities and a few shapes (samples, features) of the
    data. The right side shows results for many shapes, at the sparsity of the true coefficients.
    """
    shapes = list(settings.shapes)
    shapes += [(n, BASE) for n in settings.sample_sizes] + [(BASE, p) for p in settings.feature_sizes]
    for shape in dict.fromkeys(shapes):
        true_sparsity = 1 - TRUE_SIZE / shape[1]
        grid = recovery_sparsities(shape[1]) if shape in settings.shapes else (true_sparsity,)
        for solver in [name for name in solvers if name in SOLVERS]:
            for draw in range(settings.n_draws):
                fits = tuple(Fit(draw, s) for s in grid)
                yield Job("recovery", protocols[0], shape_name(*shape), solver, fits)


def run_recovery(job: Job, settings: Settings) -> Iterator[Row]:
    """Run a job of Figure 2: fit a model for each sparsity of the job, each from a cold start."""
    n, p = shape_of(job.dataset)
    X, y, coef = draw_data(n, p, job.fits[0].replicate, settings.seed)
    for fit in job.fits:
        k = count_kept(fit.parameter, p)
        model = SparseSVC(k, C=np.inf, solver=PENALISED.get(job.solver, "exchange"))
        if job.solver == "exchange":
            model.set_params(C=settings.exchange_C)
        started = time.thread_time()
        model.fit(X[:n], y[:n])
        seconds = time.thread_time() - started
        fdr, false_omission = discovery_rates(model.get_support(), coef != 0)
        yield fit._asdict() | {
            "iterations": int(model.n_iter_.sum()),
            "kept": float(len(model.support_)),
            "sparsity": 1 - len(model.support_) / p,
            "fdr": fdr,
            "for": false_omission,
            "train": model.score(X[:n], y[:n]),
            "test": model.score(X[n:], y[n:]),
            "seconds": seconds,
        }


@lru_cache(maxsize=4)
def draw_data(n: int, p: int, draw: int, seed: int) -> tuple[Matrix, Vector, Vector]:
    """Simulate data set `draw`: n training rows, then N_TEST test rows. Return X, y, true coefficients."""
    random_state = int(np.random.default_rng([seed, n, p, draw]).integers(2**31))
    X, y, coef = make_sparse_hyperplane(n + N_TEST, p, TRUE_SIZE, random_state=random_state, return_coef=True)
    return X, y, coef


def discovery_rates(selected: np.ndarray, causal: np.ndarray) -> tuple[float, float]:
    """Return the false discovery rate and the false omission rate of a selection of features.

    The former is the proportion of selected features that are not causal (0 if none is selected), the latter
    the proportion of the other features that are causal (0 if all are selected).
    """
    fdr = (selected & ~causal).sum() / max(selected.sum(), 1)
    false_omission = (~selected & causal).sum() / max((~selected).sum(), 1)
    return float(fdr), float(false_omission)


def crossval_jobs(
    settings: Settings, protocols: Sequence[str], datasets: Sequence[str], solvers: Sequence[str]
) -> Iterator[Job]:
    """List the jobs of Tables 2 to 4 and Figure 3: in each fold, fits for a grid of sparsities, or of C."""
    for name in protocols:
        for dataset in datasets:
            for solver in solvers:
                if solver in PEERS and (solver == "svc") != (dataset == "spiral"):
                    continue
                grid = costs(dataset) if solver in PEERS else sparsities(dataset)
                for number in range(settings.n_folds_run):
                    fits = tuple(Fit(number, value) for value in grid)
                    yield Job("crossval", name, dataset, solver, fits)


def run_crossval(job: Job, settings: Settings) -> Iterator[Row]:
    """Run a cross-validation job: fit all sparsities (or all C) to the training rows of one fold."""
    data = protocol.read(job.dataset, job.protocol, settings.seed)
    rows = protocol.fold(data, settings, job.fits[0].replicate)
    if job.solver in PEERS:
        yield from run_peer(job, rows, settings)
        return
    started = time.thread_time()
    classifiers = make_classifiers(job, rows, settings)
    sizes = [[count_kept(fit.parameter, p) for fit in job.fits] for p in classifiers.n_features]
    if job.solver == "exchange":
        # Exchange searches all sparsities together, so no sparsity has a time and Newton steps of its own.
        # Each is assigned an equal share of both. `n_iter` counts the Newton steps for all sparsities.
        path = list(classifiers.solve(Exchange().in_folds(), sizes))
        seconds = (time.thread_time() - started) / len(path)
        n_newton = sum(max(s.n_iter for s in along) for along in zip(*path, strict=True)) / len(path)
        for fit, solutions in zip(job.fits, path, strict=True):
            values = classifiers.describe(solutions) | accuracies(classifiers.accuracy, rows)
            yield fit._asdict() | values | {"iterations": n_newton, "seconds": seconds}
        return
    for fit, solutions in zip(job.fits, classifiers.solve(PENALISED[job.solver], sizes), strict=True):
        seconds = time.thread_time() - started
        values = classifiers.describe(solutions) | accuracies(classifiers.accuracy, rows)
        yield fit._asdict() | values | {"seconds": seconds}
        started = time.thread_time()


def run_peer(job: Job, rows: Fold, settings: Settings) -> Iterator[Row]:
    """Fit LIBLINEAR or LIBSVM to the training rows for each C; yield accuracies, sparsities and times."""
    for fit in job.fits:
        model = make_peer(job, fit.parameter, settings)
        started = time.thread_time()
        model.fit(rows.X[rows.train], rows.y[rows.train])
        seconds = time.thread_time() - started
        sparsity = observed_sparsity(model, len(rows.train))
        yield fit._asdict() | accuracies(model.score, rows) | {"sparsity": sparsity, "seconds": seconds}


def make_peer(job: Job, C: float, settings: Settings) -> Any:
    """Make a classifier of LIBLINEAR or LIBSVM, the competitors in Table 4.

    In the protocol "paper", LIBLINEAR fits one versus rest without intercept, as the paper's numbers imply.
    In the protocol "shuffled" it fits one versus one with an intercept, as MM, SD and Exchange do.
    """
    if job.solver == "svc":
        return SVC(C=C, kernel="rbf", gamma=settings.gamma)
    is_paper = job.protocol == "paper"
    model = LinearSVC(
        C=C,
        penalty={"l1r": "l1", "l2r": "l2"}[job.solver],
        dual=False,
        fit_intercept=not is_paper,
        max_iter=5000,
        random_state=settings.seed,
    )
    return model if is_paper else OneVsOneClassifier(model)


def observed_sparsity(model: Any, n_samples: int) -> float:
    """The mean proportion of zero coefficients, or for SVC of training rows that are no support vectors."""
    if isinstance(model, SVC):
        return 1 - len(model.support_) / n_samples
    classifiers = getattr(model, "estimators_", [model])
    return float(np.mean([np.mean(classifier.coef_ == 0) for classifier in classifiers]))


EXPERIMENTS = {
    "sensitivity": Experiment(sensitivity_jobs, run_sensitivity),
    "recovery": Experiment(recovery_jobs, run_recovery),
    "crossval": Experiment(crossval_jobs, run_crossval),
}
