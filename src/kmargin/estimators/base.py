"""Base classes of the classifiers: fit, decision values, predictions, and the selection of features."""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import (
    _check_feature_names_in,
    _get_feature_names,
    check_is_fitted,
    validate_data,
)

from kmargin.core import validation
from kmargin.core.arrays import Flags, Indices, Matrix, space_of, to_host
from kmargin.core.summary import Documented
from kmargin.core.units import UnitRequest
from kmargin.data.blocks.dask_input import check_names
from kmargin.data.samples import Samples
from kmargin.data.samples.read import Checks, Inputs, accuracy, add_columns, read_inputs, select_columns
from kmargin.fitting.fit import GridFit, Procedure, fit_grid
from kmargin.fitting.spec import Blueprint, Decisions
from kmargin.solvers import Solver, resolve_solver


class MarginClassifier(Documented, ClassifierMixin, BaseEstimator):
    """Base class of all classifiers, which combine the decision values of one or more binary classifiers.

    Estimators are dataclasses, whose fields are their parameters. A subclass defines four methods:
    `_blueprint` returns the parameters that define the problem, except k and C; `_read` checks and reads the
    samples; `_adopt` stores the result of a fit in fitted attributes; `_decisions` makes the decision
    function from the fitted attributes.
    """

    solver: Any
    multi_class: str
    shared: bool
    standardize: bool
    fit_intercept: bool
    class_weight: Any
    n_jobs: int | None
    random_state: Any

    def decision_function(self, X: Any) -> Matrix:
        """Decision values of the samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples with the features of the training data.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive for ``classes_[1]``. For more classes, the predicted class has the
            largest entry of a row. With one versus one, an entry is the number of votes for the class plus a
            number in (-1/2, 1/2), a function of the summed decision values of the class, to break ties.
        """
        return self._decide(self._inputs(X, "decision_function"))

    def machine_decisions(self, X: Any) -> Matrix:
        """Decision values of each binary classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples with the features of the training data.

        Returns
        -------
        array of shape (n_samples, n_machines)
            A column for each binary classifier, in the order of the rows of `coef_`.
        """
        inputs = self._inputs(X, "machine_decisions")
        return inputs.tell(self._decisions(), np.asarray, self.intercept_.shape[0])

    def predict(self, X: Any) -> Any:
        """The class of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples with the features of the training data.

        Returns
        -------
        array of shape (n_samples,)
            The predicted classes, in an array of the type of `classes_`.
        """
        inputs = self._inputs(X, "predict")
        return inputs.choose(self._decide(inputs), self.classes_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of `predict`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples with the features of the training data.
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
        """Check the X given to `method`, such as predict, and return it in the form that predictions use."""
        check_is_fitted(self)
        checks = self._checks("csc", reset=False)
        return read_inputs(checks, X, f"{type(self).__name__}.{method}", self.intercept_)

    def _decide(self, inputs: Inputs) -> Any:
        return inputs.decide(self._decisions(), self.classes_.shape[0], self.multi_class)

    def set_params(self, **params: Any) -> "MarginClassifier":
        """Set parameters of the estimator; those named ``solver__...`` are options of its solver object.

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

    def _prepare_fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Procedure]:
        """Check parameters and data; return the problem's parameters, the samples, and how to solve it."""
        blueprint = self._blueprint(_get_feature_names(getattr(X, "_meta", X)))  # dask keeps names in _meta
        blueprint.check()
        solver = resolve_solver(self.solver)
        validation.check_n_jobs(self.n_jobs)
        samples = self._read(blueprint, X, y, sample_weight, solver)
        return blueprint, samples, Procedure(solver, self.n_jobs, self.random_state)

    def _adopt(self, fit: GridFit, row: int, column: int) -> Any:
        """Set the fitted attributes to those of the model for the C at index `row` and the k at index
        `column`, in arrays of the same library as X; return the decision function of this model.
        """
        path = fit.paths[row]
        self.classes_ = path.classes
        self.solutions_ = path.solutions[column]
        self.objective_ = path.objectives[column, ...]
        n_iter = np.array([solution.n_iter for solution in self.solutions_])
        self.n_iter_ = space_of(path.intercepts).put(n_iter)
        return path.machines(column)

    def _blueprint(self, names: Any = None) -> Blueprint:
        """The parameters that define the problem, except k and C, and `names`, the names of the features."""
        raise NotImplementedError

    def _read(self, blueprint: Any, X: Any, y: Any, sample_weight: Any, solver: Solver) -> Samples:
        """Check the data, drop rows of weight 0, and return the samples."""
        raise NotImplementedError

    def _decisions(self) -> Decisions:
        """The decision function; its only arrays are fitted attributes, as every dask block gets a copy."""
        raise NotImplementedError

    def _checks(self, *formats: str, reset: bool = True) -> Checks:
        """Return the functions that check X and the names of its columns.

        In a fit (`reset`), they record the number and names of the columns. Otherwise they require those of
        the last fit. A sparse X is converted to CSR, unless it is in one of the other accepted `formats`.
        """
        return Checks(
            partial(validate_data, self, reset=reset, accept_sparse=["csr", *formats]),
            partial(check_names, self, reset=reset),
        )


@dataclass(eq=False, repr=False)
class SingleModel(MarginClassifier):
    """A classifier with given k and C. It has no probabilities, whose calibration needs held-out rows."""

    k: int | str = 10
    _: KW_ONLY
    C: float = 1.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SingleModel":
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Column names of data frames are kept. Linear models process dask collections block by block and,
            if scikit-learn's `array_api_dispatch` is on, arrays of torch, CuPy and similar libraries on their
            device; the fitted attributes are then arrays of the same library. With
            ``kernel="precomputed"``, X is the kernel matrix of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,)
            The classes, two or more.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            A sample of weight 2 counts as two samples, a sample of weight 0 is ignored.

        Returns
        -------
        estimator
            Itself.
        """
        validation.check_k(self.k)
        validation.check_C(self.C)
        blueprint, samples, procedure = self._prepare_fit(X, y, sample_weight)
        units = blueprint.units(samples)
        k = validation.resolve_k(self.k, units.n_units, blueprint.unit_label, units.fixed.sum())
        self._adopt(fit_grid(blueprint, samples, [self.C], [k], procedure), 0, 0)
        return self

    @property
    def predict_proba(self) -> Any:
        """Raise AttributeError with advice; probabilities need held-out rows."""
        raise self._without("predict_proba")

    @property
    def predict_log_proba(self) -> Any:
        """Raise AttributeError with advice; probabilities need held-out rows."""
        raise self._without("predict_log_proba")

    def _without(self, method: str) -> AttributeError:
        name = type(self).__name__
        return AttributeError(
            f"{name} has no {method}: probabilities have to be calibrated on held-out rows. "
            f"Use {name}CV, or scikit-learn's CalibratedClassifierCV({name}(...))."
        )


class FeatureSelector(SelectorMixin, MarginClassifier):
    """A classifier that is also a feature selector of scikit-learn.

    It selects the features that at least one binary classifier uses, all other features of their groups, and
    the features that are always in the model (`keep`), even if their coefficients are zero.
    """

    # With this attribute, the default threshold of scikit-learn's SelectFromModel is 1e-5. Otherwise it is
    # the mean of the absolute coefficients, and about half of the chosen features would be dropped.
    penalty = "l1"

    def get_support(self, indices: bool = False) -> Any:
        """Return which features were chosen.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return the indices of the chosen features instead of a mask.

        Returns
        -------
        array of bool of shape (n_features,), or array of int
            The mask or the indices, in an array of the same library as `coef_`.
        """
        mask = self._get_support_mask()
        return space_of(self.coef_).put(np.flatnonzero(mask) if indices else mask)

    def transform(self, X: Any) -> Any:
        """Return the chosen features of X.

        Parameters
        ----------
        X : array, sparse matrix, data frame or dask collection of shape (n_samples, n_features)
            Samples with the features of the training data.

        Returns
        -------
        array, sparse matrix or dask collection of shape (n_samples, n_chosen)
            The chosen columns, in the type and dtype of X. As with every scikit-learn transformer, a data
            frame becomes an array, unless `set_output` requests data frames.
        """
        check_is_fitted(self)
        method = f"{type(self).__name__}.transform"
        checks, in_memory = self._checks(reset=False), super().transform
        return select_columns(checks, X, self._columns(), in_memory, method, self.intercept_)

    def inverse_transform(self, X: Any) -> Any:
        """Return X with a column for every feature, zero for those that were not chosen.

        Parameters
        ----------
        X : array, sparse matrix or dask array of shape (n_samples, n_chosen)
            The chosen features, as `transform` returns them.

        Returns
        -------
        array, sparse matrix or dask array of shape (n_samples, n_features)
            Zero in the columns that `transform` removed.
        """
        check_is_fitted(self)
        method = f"{type(self).__name__}.inverse_transform"
        sparse = super().inverse_transform
        return add_columns(X, self._columns(), self.n_features_in_, sparse, method, self.intercept_)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the chosen features.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            The names of all features; None uses those of the training data, or x0, x1, ... if it had none.

        Returns
        -------
        ndarray of str
            A name for each column that `transform` returns.
        """
        check_is_fitted(self)
        return _check_feature_names_in(self, input_features)[self._get_support_mask()]

    def _get_support_mask(self) -> Flags:
        check_is_fitted(self)
        used = (to_host(self.coef_) != 0).any(axis=0)
        names = getattr(self, "feature_names_in_", None)
        request: UnitRequest = self._blueprint().request
        return request.resolve(len(used), names).chosen(used)

    def _columns(self) -> Indices:
        return np.flatnonzero(self._get_support_mask())

    def _transform(self, X: Any) -> Any:
        return _safe_indexing(X, self._columns(), axis=1)
