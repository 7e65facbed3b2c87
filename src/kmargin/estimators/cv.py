"""Machines whose k and C are chosen by cross-validation."""

from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _num_samples, indexable

from kmargin import validate
from kmargin.blocks.kinds import is_dask
from kmargin.blocks.labelled import BlockSamples
from kmargin.blocks.space import to_host
from kmargin.device import at_hand
from kmargin.estimators.classifier import MarginClassifier
from kmargin.estimators.folds import Folds, FoldsAtHand, FoldsInBlocks, ModelAt
from kmargin.estimators.kernel import KernelMachines
from kmargin.estimators.linear import LinearMachines
from kmargin.fitting.convergence import warn_unless_converged
from kmargin.fitting.designs import Designs, linear_designs
from kmargin.fitting.pools import share_blocks, solve_tasks
from kmargin.fitting.tasks import Grid, Task, make_tasks
from kmargin.fitting.uncopied import UncopiedRows
from kmargin.multiclass import class_pairs
from kmargin.selection import SELECTIONS, choose, make_folds, tabulate
from kmargin.solvers import DEFAULT, Solver
from kmargin.types import Indices
from kmargin.validate import Samples


class CrossValidated(MarginClassifier):
    """Chooses k and C by cross-validation, then refits on all samples.

    Each fold and each machine walks its own path: over C from strong ridge to weak, over k from
    dense to sparse. Whatever is estimated (scale, kernel width, support) is estimated from the
    fold's training rows alone.
    """

    ks: Any
    Cs: Any
    cv: Any
    scoring: Any
    selection: str
    verbose: int

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "CrossValidated":
        """Choose k and C, then fit to all samples.

        `sample_weight` counts in fitting and, if the scorer takes weights, in scoring. `groups` is
        handed to the splitter.
        """
        self._check_parameters()
        validate.check_choice("selection", self.selection, SELECTIONS)
        Cs = validate.resolve_Cs(self.Cs)
        in_blocks = is_dask(X, y, sample_weight)
        if in_blocks and groups is not None:
            raise ValueError(
                "groups are not looked at where data are in blocks. Put each group into one block, and use "
                "cv=kmargin.BlockKFold(5) for folds of whole blocks."
            )
        X, y, groups = (X, y, None) if in_blocks else indexable(X, y, groups)
        samples = self._read(X, y, sample_weight)
        ks = validate.resolve_ks(
            self.ks, self._n_available(samples), self._largest_default(samples), self.things
        )
        folds: Folds
        if in_blocks:
            folds = FoldsInBlocks(self, samples, self._fold_seed(), weighted=sample_weight is not None)
        else:
            known = at_hand(samples)
            rows = make_folds(self.cv, known, _num_samples(X), X, to_host(y), to_host(groups))
            folds = FoldsAtHand(self, samples, known, rows, weighted=sample_weight is not None)
        scores = self._score_folds(folds, len(samples.classes), Cs, ks)
        row, column = choose(scores, ks, Cs, self.selection)
        self._refit(samples, Cs[: row + 1], ks, column)
        self.k_ = ks[column]
        self.C_ = Cs[row]
        self.best_score_ = float(scores[:, row, column].mean())
        self.cv_results_ = tabulate(scores, ks, Cs)
        self.n_splits_ = len(folds)
        return self

    def _fold_seed(self) -> int:
        """By which rows in blocks are dealt to folds: the same each time, unless `random_state` is given."""
        return 0 if self.random_state is None else validate.resolve_seed(self.random_state)

    def _score_folds(self, folds: Folds, n_classes: int, Cs: list[float], ks: list[int]) -> np.ndarray:
        """The validation score of every fold, C and k."""
        models = self._fit_folds(folds.parts(), len(folds), n_classes, Cs, ks, folds.n_jobs)
        scores = [folds.score(at, model_at, len(Cs), len(ks)) for at, model_at in enumerate(models)]
        return np.array(scores)

    def _part(self, samples: Any, rows: Indices) -> Any:
        """The samples that a fold is fitted to."""
        return self._restrict(samples, rows)

    def _fit_folds(
        self,
        parts: Iterable[Any],
        n_parts: int,
        n_classes: int,
        Cs: list[float],
        ks: list[int],
        n_jobs: int | None,
    ) -> Iterator[ModelAt]:
        """For each part of the samples, the machines fitted to it: a function of the positions of C and k.

        Its model is one object, filled anew by each call.
        """
        n_machines = len(class_pairs(n_classes, self.multi_class))
        under_way: deque[tuple[Samples, Designs]] = deque()  # parts handed out, not yet yielded

        def tasks() -> Iterator[Task]:
            for part in parts:
                under_way.append((part, self._designs(part, ks[0])))
                yield from make_tasks(under_way[-1][1], part, self.multi_class)

        solver = validate.resolve_solver(self.solver).in_folds()
        grids = self._grids(solver, tasks(), n_machines * n_parts, Cs, ks, n_jobs, "cross-validation")
        for _ in range(n_parts):
            by_machine = [next(grids) for _ in range(n_machines)]
            yield partial(self._model_at, clone(self), *under_way.popleft(), by_machine)
        next(grids, None)  # lets the progress bar finish

    def _model_at(
        self,
        model: "CrossValidated",
        part: Samples,
        designs: Designs,
        by_machine: list[Grid],
        row: int,
        column: int,
    ) -> "CrossValidated":
        model.n_features_in_ = part.X.shape[1]
        model._adopt(designs, part, [grid[row][column] for grid in by_machine])
        return model

    def _refit(self, samples: Samples, Cs: list[float], ks: list[int], column: int) -> None:
        """Walk the path to the chosen C on all samples, and take the chosen k from it."""
        n_machines = len(class_pairs(len(samples.classes), self.multi_class))
        samples, n_jobs = share_blocks(samples, self.n_jobs, n_machines)
        designs = self._designs(samples, ks[0])
        tasks = make_tasks(designs, samples, self.multi_class)
        solver = validate.resolve_solver(self.solver)
        grids = self._grids(solver, tasks, n_machines, Cs, ks, n_jobs, "refit")
        by_machine = [grid[-1] for grid in grids]
        chosen = [solutions[column] for solutions in by_machine]
        warn_unless_converged(chosen)
        self._adopt(designs, samples, chosen)
        self.path_ = self._path(designs, samples, by_machine, ks)

    def _grids(
        self,
        solver: Solver,
        tasks: Iterator[Task],
        n_tasks: int,
        Cs: list[float],
        ks: list[int],
        n_jobs: int | None,
        label: str,
    ) -> Iterator[Grid]:
        return solve_tasks(
            tasks,
            n_tasks,
            Cs,
            ks,
            solver=solver,
            n_jobs=n_jobs,
            seed=validate.resolve_seed(self.random_state),
            label=label,
            verbose=self.verbose,
        )

    def _largest_default(self, samples: Samples) -> int:
        """The largest k tried when `ks` is None."""
        raise NotImplementedError


class SparseSVCCV(CrossValidated, LinearMachines):
    """A linear support vector machine whose number of features is chosen by cross-validation.

    Parameters
    ----------
    ks : list of int, int or None, default=None
        The values of k to try; or how many, log-spaced from all features down to one. None is 20
        values from the number of features or of samples, whichever is smaller, down to one.
    Cs : list of float, default=(1.0,)
        The values of C to try; see :class:`~kmargin.SparseSVC`.
    cv : int, splitter, list of splits, or None, default=None
        As in scikit-learn; None is five stratified folds. With dask data an integer deals the rows of
        each class within each block, and ``BlockKFold(5)`` makes folds of whole blocks.
    scoring : str, callable or None, default=None
        Any scorer of scikit-learn; None is accuracy. With dask data, any that looks at predictions.
    selection : "best" or "1se", default="best"
        The highest mean score (among equals the smaller k, then the smaller C); or the smallest k
        whose mean score is within one standard error of the highest.
    standardize : bool, default=False
        Scale the features to mean 0 and variance 1, in each fold by its training rows alone. The
        coefficients are those for the features as given.
    verbose : int, default=0
        1 shows a progress bar: rich's if it is installed.
    solver, multi_class, fit_intercept, class_weight, n_jobs, random_state
        As in :class:`~kmargin.SparseSVC`. `n_jobs` spreads folds and machines. The values of C are walked
        in order within each: the supports found under a strong ridge are the start under a weaker one,
        which is faster and finds better ones than starting anew, and must not depend on `n_jobs`. To
        have each C fitted by itself, and spread, use GridSearchCV over ``SparseSVC``.

    Attributes
    ----------
    k_, C_ : int, float
        The chosen values.
    best_score_ : float
        Their mean score over the folds.
    cv_results_ : dict of arrays
        As GridSearchCV's: `param_k`, `param_C`, `params`, `split0_test_score`, ...,
        `mean_test_score`, `std_test_score`, `rank_test_score`.
    path_ : SparsityPath
        All values of k at `C_`, fitted to all samples.
    n_splits_ : int
    coef_, intercept_, classes_, support_, n_iter_, objective_, solutions_, n_features_in_, feature_names_in_
        As in :class:`~kmargin.SparseSVC`, for the refit with the chosen values.

    Examples
    --------
    >>> from kmargin import SparseSVCCV
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=200, n_features=20, random_state=0)
    >>> model = SparseSVCCV(ks=[20, 10, 5, 2, 1]).fit(X, y)
    >>> model.k_
    2
    >>> model.support_
    array([0, 1])
    """

    def __init__(
        self,
        ks: Any = None,
        *,
        Cs: Any = (1.0,),
        cv: Any = None,
        scoring: Any = None,
        selection: str = "best",
        standardize: bool = False,
        solver: Any = DEFAULT,
        multi_class: str = "ovo",
        fit_intercept: bool = True,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.ks = ks
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.standardize = standardize
        self.solver = solver
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _designs(self, samples: Samples | BlockSamples, k: int = 0) -> Designs:
        return linear_designs(samples, self.fit_intercept, self.standardize)

    def _part(self, samples: Any, rows: Indices) -> Any:
        """Machines take their rows of X when it is their turn; until then none is copied."""
        if isinstance(samples, Samples):
            samples = samples._replace(X=UncopiedRows(samples.X))
        return self._restrict(samples, rows)

    def _largest_default(self, samples: Samples) -> int:
        return samples.X.shape[0]


class KernelSparseSVCCV(CrossValidated, KernelMachines):
    """A kernel support vector machine whose number of training points is chosen by cross-validation.

    Parameters
    ----------
    ks : list of int, int or None, default=None
        The values of k to try; None is 20 values, log-spaced from 100 (or all points) down to one.
    Cs, cv, scoring, selection, verbose
        As in :class:`~kmargin.SparseSVCCV`.
    kernel, gamma, degree, coef0, cache_size, n_candidates
        As in :class:`~kmargin.KernelSparseSVC`. ``gamma="scale"`` is taken from each fold's own
        training rows.
    solver, multi_class, fit_intercept, class_weight, n_jobs, random_state
        As in :class:`~kmargin.KernelSparseSVC`.

    Attributes
    ----------
    k_, C_, best_score_, cv_results_, n_splits_
        As in :class:`~kmargin.SparseSVCCV`.
    support_, support_vectors_, dual_coef_, intercept_, classes_, n_iter_, objective_, solutions_
        As in :class:`~kmargin.KernelSparseSVC`, for the refit with the chosen values.
    path_ : SparsityPath
        All values of k at `C_`, fitted to all samples; a column of its `coefs` for each training
        point that is kept for some k.
    """

    def __init__(
        self,
        ks: Any = None,
        *,
        Cs: Any = (1.0,),
        cv: Any = None,
        scoring: Any = None,
        selection: str = "best",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        solver: Any = DEFAULT,
        multi_class: str = "ovo",
        fit_intercept: bool = True,
        cache_size: float = 200,
        n_candidates: int | str | None = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.ks = ks
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.solver = solver
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.cache_size = cache_size
        self.n_candidates = n_candidates
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _largest_default(self, samples: Samples) -> int:
        return 100
