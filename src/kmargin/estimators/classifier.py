"""What the linear and the kernel machines have in common."""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from kmargin import validate
from kmargin.blocks.kinds import is_dask
from kmargin.device import device_space, follow
from kmargin.door import read, read_inputs
from kmargin.fitting.convergence import warn_unless_converged
from kmargin.fitting.designs import Designs
from kmargin.fitting.pools import share_blocks, solve_tasks
from kmargin.fitting.tasks import make_tasks
from kmargin.multiclass import SCHEMES, choose_classes, class_pairs, combine_decisions
from kmargin.path import SparsityPath
from kmargin.solvers import Solution
from kmargin.types import Indices, Matrix
from kmargin.validate import Samples


class MarginClassifier(ClassifierMixin, BaseEstimator):
    """Decides by the decision values of several machines.

    A subclass says what the machines are made of: how samples are read (`_read`) and cut to some
    rows (`_restrict`, `_inputs`), the machines' designs (`_designs`), how their solutions become
    fitted attributes (`_adopt`), and these in turn decision values (`_machine_decisions`).
    """

    k: Any
    C: Any
    solver: Any
    multi_class: str
    class_weight: Any
    n_jobs: int | None
    random_state: Any
    things: str  # what k counts

    def decision_function(self, X: Any) -> Matrix:
        """How far each sample lies on which side.

        Shape (n_samples,) for two classes, positive for ``classes_[1]``. For more classes (n_samples,
        n_classes), the largest entry of a row being the predicted class: with one versus one, the
        votes for each class plus a tie-break below 1/2 from the summed decision values.
        """
        return self._decide(X, "decision_function")

    def predict(self, X: Any) -> Any:
        """The class of each sample."""
        scores = self._decide(X, "predict")
        if is_dask(scores):
            from kmargin.blocks import lazy

            return lazy.choose(scores, self.classes_)
        return choose_classes(scores, self.classes_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of `predict`."""
        if is_dask(X, y, sample_weight):
            from kmargin.blocks import lazy

            return lazy.accuracy(X, y, sample_weight, self.predict)
        if device_space(X) is not None:
            y, sample_weight = follow(X, y, sample_weight)
        return super().score(X, y, sample_weight)

    def _decide(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        if is_dask(X):
            return self._decide_lazily(X)
        check = partial(validate_data, self, reset=False, accept_sparse=self._sparse_formats("csc"))
        X = read_inputs(check, X, f"{type(self).__name__}.{method}", self.intercept_)
        return combine_decisions(self._machine_decisions(X), self.classes_.shape[0], self.multi_class)

    def _decide_lazily(self, X: Any) -> Any:
        """Decision values of a dask collection, as a dask array."""
        from kmargin.blocks import lazy

        dtype = lazy.check_names(self, X, reset=False)
        return lazy.decide(X, dtype, self._decider(), len(self.classes_), self.multi_class)

    def _decider(self) -> Callable[[Matrix], Matrix]:
        """`_machine_decisions`, with no more than it needs: each block of a dask collection gets a copy."""
        slim = copy(self)
        for name in {"solutions_", "path_", "cv_results_"} & set(vars(self)):
            delattr(slim, name)
        return slim._machine_decisions

    def set_params(self, **params: Any) -> "MarginClassifier":
        """Set parameters, those of a solver object as ``solver__name``."""
        nested = [name for name in params if name.startswith("solver__")]
        solver = params.get("solver", self.solver)
        if nested and isinstance(solver, str):
            raise ValueError(
                f"{nested[0]} cannot be set while solver={solver!r} is a name. "
                f"Give the solver as an object, such as solver=MM(), and then set it."
            )
        super().set_params(**params)
        return self

    def _check_parameters(self) -> None:
        validate.check_choice("multi_class", self.multi_class, SCHEMES)
        validate.resolve_solver(self.solver)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit machines for one k and one C."""
        validate.check_k(self.k)
        validate.check_C(self.C)
        self._check_parameters()
        samples = self._read(X, y, sample_weight)
        k = validate.resolve_k(self.k, self._n_available(samples), self.things)
        n_machines = len(class_pairs(len(samples.classes), self.multi_class))
        samples, n_jobs = share_blocks(samples, self.n_jobs, n_machines)
        designs = self._designs(samples, k)
        grids = solve_tasks(
            make_tasks(designs, samples, self.multi_class),
            n_machines,
            [self.C],
            [k],
            solver=validate.resolve_solver(self.solver),
            n_jobs=n_jobs,
            seed=validate.resolve_seed(self.random_state),
        )
        solutions = tuple(grid[0][0] for grid in grids)
        warn_unless_converged(solutions)
        self._adopt(designs, samples, solutions)

    def _adopt(self, designs: Designs, samples: Any, solutions: Sequence[Solution]) -> None:
        """Set the fitted attributes, of the kind that X was; a subclass adds its own."""
        put = samples.space.put
        self.classes_ = samples.labels
        self.solutions_ = tuple(solutions)
        self.intercept_ = put(np.array([s.intercept for s in solutions], dtype=samples.X.dtype))
        self.objective_ = put(np.array([s.objective for s in solutions]))
        self.n_iter_ = put(np.array([s.n_iter for s in solutions]))

    def _path(
        self, designs: Designs, samples: Samples, by_machine: Sequence[Sequence[Solution]], ks: Sequence[int]
    ) -> SparsityPath:
        """The machines' solutions for several k as a path."""
        raise NotImplementedError

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Check the data; drop rows without weight."""
        if is_dask(X, y, sample_weight):
            return self._read_dask(X, y, sample_weight)
        check = partial(validate_data, self, accept_sparse=self._sparse_formats())
        return read(check, X, y, sample_weight, self.class_weight)

    def _read_dask(self, X: Any, y: Any, sample_weight: Any) -> Any:
        raise TypeError(
            f"{type(self).__name__} takes no dask collections: a kernel compares every point with every "
            "other. Use SparseSVC, or as many rows as fit in memory (X.compute())."
        )

    def _sparse_formats(self, *others: str) -> list[str] | bool:
        """The formats X may come in as it is; from any other sparse format it is converted to CSR."""
        return ["csr", *others]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._sparse_formats())
        return tags

    def _restrict(self, samples: Samples, rows: Indices) -> Samples:
        """Some of the samples."""
        return samples._replace(
            X=samples.X[rows],
            codes=samples.codes[rows],
            repeats=samples.repeats[rows],
            weights=samples.weights[rows],
            kept=samples.kept[rows],
        )

    def _inputs(self, samples: Samples, rows: Indices, train: Indices) -> Matrix:
        """What `predict` is to be given for some rows after a fit to others."""
        return samples.X[rows]

    def _n_available(self, samples: Samples) -> int:
        """How many things there are for k to count."""
        raise NotImplementedError

    def _designs(self, samples: Samples, k: int = 0) -> Designs:
        """What machines are made of that keep at most k things."""
        raise NotImplementedError

    def _machine_decisions(self, X: Matrix) -> Matrix:
        """One column per machine, of the dtype of X."""
        raise NotImplementedError
