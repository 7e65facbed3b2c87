"""What the linear and the kernel machines have in common."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from kmargin import arguments, validate
from kmargin.addresses import Documented
from kmargin.blocks.lazy import check_names
from kmargin.fitting.blueprint import Blueprint, Decisions
from kmargin.fitting.grid_fit import GridFit, MachinesAlone, Procedure, fit_grid
from kmargin.samples.inputs import Inputs
from kmargin.samples.protocol import Samples
from kmargin.samples.read import Checks, accuracy, read, read_inputs
from kmargin.types import Matrix


class WithoutProbabilities:
    """A classifier that has no rows left to learn probabilities from."""

    @property
    def predict_proba(self) -> Any:
        """Raise AttributeError with advice; probabilities need held-out rows."""
        raise AttributeError(self._where("predict_proba"))

    @property
    def predict_log_proba(self) -> Any:
        """Raise AttributeError with advice; probabilities need held-out rows."""
        raise AttributeError(self._where("predict_log_proba"))

    def _where(self, method: str) -> str:
        name = type(self).__name__
        return (
            f"{name} has no {method}: probabilities have to be calibrated on held-out rows. "
            f"Use {name}CV, or scikit-learn's CalibratedClassifierCV({name}(...))."
        )


class MarginClassifier(Documented, ClassifierMixin, BaseEstimator):
    """Decides by the decision values of several machines.

    A subclass says what the machines are made of (`_blueprint`), how samples are read (`_read`), and how
    what decides becomes fitted attributes (`_take_over`) and these become what decides (`_decisions`).
    """

    k: Any
    C: Any
    solver: Any
    multi_class: str
    shared: bool
    class_weight: Any
    n_jobs: int | None
    random_state: Any

    def decision_function(self, X: Any) -> Matrix:
        """Decision values of the samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With the features of the training data.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive for ``classes_[1]``. For more classes, the largest entry of a row is the
            predicted class: with one versus one, the votes for each class plus a tie-break below 1/2 from the
            summed decision values.
        """
        return self._decide(self._inputs(X, "decision_function"))

    def machine_decisions(self, X: Any) -> Matrix:
        """Decision values of each binary classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With the features of the training data.

        Returns
        -------
        array of shape (n_samples, n_machines)
            A column for each binary classifier, in the order of the rows of `coef_`.
        """
        inputs = self._inputs(X, "machine_decisions")
        return inputs.tell(self._decisions(), _as_it_is, self.intercept_.shape[0])

    def predict(self, X: Any) -> Any:
        """The class of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With the features of the training data.

        Returns
        -------
        array of shape (n_samples,)
            Of the type of `classes_`.
        """
        return self._choose(self._inputs(X, "predict"))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of `predict`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With the features of the training data.
        y : array-like of shape (n_samples,)
            The classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Sample weights.

        Returns
        -------
        float
            The (weighted) proportion of samples predicted correctly.
        """
        return accuracy(self.predict, X, y, sample_weight)

    def _inputs(self, X: Any, method: str) -> Inputs:
        """X to decide about, checked."""
        check_is_fitted(self)
        checks = self._checks("csc", reset=False)
        return read_inputs(checks, X, f"{type(self).__name__}.{method}", self.intercept_)

    def _decide(self, inputs: Inputs) -> Any:
        return inputs.decide(self._decisions(), self.classes_.shape[0], self.multi_class)

    def _choose(self, inputs: Inputs) -> Any:
        return inputs.choose(self._decide(inputs), self.classes_)

    def set_params(self, **params: Any) -> "MarginClassifier":
        """Set parameters; those of a solver object are called ``solver__name``.

        Parameters
        ----------
        **params : dict
            Parameter values by name.

        Returns
        -------
        estimator
            Itself.
        """
        nested = [name for name in params if name.startswith("solver__")]
        solver = params.get("solver", self.solver)
        if nested and isinstance(solver, str):
            raise ValueError(
                f"{nested[0]} cannot be set while solver={solver!r} is a string. "
                f"Use a solver object, such as solver=MM(), and set it there."
            )
        super().set_params(**params)
        return self

    def _check_parameters(self) -> None:
        self._blueprint().check()
        validate.resolve_solver(self.solver)
        arguments.check_class_weight(self.class_weight)
        arguments.check_n_jobs(self.n_jobs)
        arguments.random_source(self.random_state)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit machines for one k and one C."""
        samples, blueprint, k = self._prepare(X, y, sample_weight)
        procedure = Procedure(self.solver, self.n_jobs, self.random_state)
        self._adopt(fit_grid(blueprint, samples, [self.C], [k], procedure), 0, 0)

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> tuple[Samples, Any, int]:
        """All that machines for one k and one C are fitted with, checked: samples, blueprint, k."""
        validate.check_k(self.k)
        validate.check_C(self.C)
        self._check_parameters()
        samples = self._read(X, y, sample_weight)
        blueprint = self._blueprint()
        return samples, blueprint, blueprint.resolve_k(self.k, samples)

    def _adopt(self, fit: GridFit | MachinesAlone, row: int, column: int) -> None:
        """Set the fitted attributes, of the kind that X was."""
        put, solutions = fit.samples.space.put, fit.solutions(row, column)
        self.classes_ = fit.samples.labels
        self.solutions_ = solutions
        self.objective_ = put(np.array([s.objective for s in solutions]))
        self.n_iter_ = put(np.array([s.n_iter for s in solutions]))
        self._take_over(fit.decisions(row, column))

    def _blueprint(self) -> Blueprint:
        """What the machines are made of, by the parameters."""
        raise NotImplementedError

    def _take_over(self, decisions: Any) -> None:
        """Set the fitted attributes that decide."""
        raise NotImplementedError

    def _decisions(self) -> Decisions:
        """What these attributes decide. It holds no more: each block of a dask collection gets a copy."""
        raise NotImplementedError

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Check the data; drop rows without weight."""
        solver = validate.resolve_solver(self.solver)
        return read(self._checks(), X, y, sample_weight, self.class_weight, solver)

    def _checks(self, *formats: str, reset: bool = True) -> Checks:
        """How X is checked; its columns by those of the last fit, or for the next one (`reset`)."""
        return Checks(
            partial(validate_data, self, reset=reset, accept_sparse=self._sparse_formats(*formats)),
            partial(check_names, self, reset=reset),
        )

    def _sparse_formats(self, *others: str) -> list[str] | bool:
        """The formats X may come in as it is; from any other sparse format it is converted to CSR."""
        return ["csr", *others]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._sparse_formats())
        return tags


def _as_it_is(decisions: Matrix) -> Matrix:
    return decisions
