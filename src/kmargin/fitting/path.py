"""`SparsityPath`, the models for a sequence of values of k, and the decision values of linear models."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_array

from kmargin.core.arrays import HOST, Indices, Matrix, Vector, space_of
from kmargin.core.labels import machine_names
from kmargin.core.summary import Facts, Summarized, some
from kmargin.core.validation import count, is_integer, shortly
from kmargin.data.blocks.dask_input import check_features
from kmargin.data.design import make_design
from kmargin.data.samples.read import BinaryDecisions, Checks, Inputs, read_inputs
from kmargin.fitting.decisions import KernelDecisions, KernelInputs
from kmargin.solvers import Solution

if TYPE_CHECKING:
    import pandas as pd


# Decision values are computed from a dense copy of the columns with nonzero coefficients if this copy has at
# most this many entries; otherwise X is multiplied as it is, to save memory.
MAX_DENSE_ENTRIES = 2**16


@dataclass
class LinearDecisions:
    """A function that maps X to the decision values of binary classifiers that are linear in the features."""

    coef: Matrix
    intercept: Vector

    @property
    def used(self) -> Any:
        """Indices of the features with a nonzero coefficient in at least one binary classifier."""
        xp = space_of(self.coef).xp
        return xp.nonzero(xp.any(self.coef != 0, axis=0))[0]

    def __call__(self, X: Any) -> Matrix:
        """Return the decision values, one column per binary classifier, in the dtype of X.

        For few samples (see `MAX_DENSE_ENTRIES`) only the columns of X with nonzero coefficients are used, as
        a dense array. A sparse X then gives exactly the same values and predictions as an array.
        """
        xp, coef = space_of(X).xp, self.coef
        if space_of(coef) is HOST:
            used = self.used
            if X.shape[0] * len(used) <= MAX_DENSE_ENTRIES:
                coef, dtype = coef[:, used], X.dtype
                X = make_design(X).block(np.arange(X.shape[0]), used).astype(dtype, copy=False)
        return X @ xp.astype(coef.T, X.dtype) + xp.astype(self.intercept, X.dtype)


Models = Sequence[tuple[Solution, ...]]  # for each k, the solution of each binary classifier


@dataclass
class LinearCoefs(Sequence[Matrix]):
    """For each k a dense coefficient matrix, with a row for each binary classifier; made when accessed."""

    solutions: Models
    dtype: Any

    def __len__(self) -> int:
        return len(self.solutions)

    def __getitem__(self, position: Any) -> Any:
        solutions = self.solutions[position]
        coefs = np.zeros((len(solutions), solutions[0].n_features), dtype=self.dtype)
        for row, solution in zip(coefs, solutions, strict=True):
            row[solution.support] = solution.coef
        return coefs


@dataclass(frozen=True, repr=False)
class SparsityPath(Summarized):
    """The models for a sequence of values of k, from dense to sparse.

    Attributes
    ----------
    ks : ndarray of int
        The values of k, descending.
    by_k : sequence of arrays of shape (n_machines, n_features)
        For each k the coefficients, zeros included, of the n_machines binary classifiers; made on access.
    coefs : array of shape (n_ks, n_machines, n_features)
        The same coefficients in one array.
    intercepts : array of shape (n_ks, n_machines)
        The intercept of each binary classifier, for each k.
    objectives : array of shape (n_ks, n_machines)
        Mean loss plus ridge penalty of each binary classifier.
    solutions : tuple of tuple of Solution
        For each k, the solution of each binary classifier.
    classes : ndarray
        The classes, sorted.
    multi_class : "ovo" or "ovr"
        Whether binary classifiers separate pairs of classes, or each class from the rest.
    n_features_in : int
        The number of features.
    inputs : KernelInputs or None
        For kernel models, the function that maps X to its kernel values with the training points of indices
        ``inputs.columns``; `coefs` has a column for each of these points. None for linear models.
    counted : str
        The plural noun for what k counts, such as "features" or "groups".
    unit_of : ndarray of int or None
        The index of the unit (group or single feature) of each feature; None if there are no groups.
    feature_names : tuple of str or None
        The column names of X; None if it has none.

    See Also
    --------
    sparse_svm_path : Fits a path.
    SparsityPathDisplay : Plots a path.

    Examples
    --------
    >>> from kmargin import sparse_svm_path
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=100, n_features=8, random_state=0)
    >>> sparse_svm_path(X, y, ks=[8, 2])
    <SparsityPath: k from 8 to 2 in 2 steps, k counts features>
      classifiers  -1 vs 1
      k  features used  objective  status
      8              8    0.04958  swap_optimal
      2              2   0.054271  swap_optimal
    """

    ks: Indices
    by_k: Sequence[Matrix]
    intercepts: Matrix
    objectives: Matrix
    solutions: tuple[tuple[Solution, ...], ...]
    classes: np.ndarray
    multi_class: str
    n_features_in: int
    inputs: KernelInputs | None = None
    counted: str = "features"
    unit_of: Indices | None = None
    feature_names: tuple[str, ...] | None = None

    @cached_property
    def coefs(self) -> Matrix:
        """All coefficients, zeros included: an array of shape (n_ks, n_machines, n_features)."""
        return space_of(self.intercepts).put(np.stack(list(self.by_k)))

    def decision_function(self, X: Any, k: int) -> Matrix:
        """Compute decision values with the model for one k.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples with the features of the training data.
        k : int
            One of `ks`.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            Decision values in the form in which `SparseSVC.decision_function` returns them.
        """
        position = self._position(k)
        return self._decide(self._read(X), position)

    def predict(self, X: Any, k: int) -> Any:
        """Predict the class of each sample with the model for one k.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples with the features of the training data.
        k : int
            One of `ks`.

        Returns
        -------
        array of shape (n_samples,)
            The predicted classes, of the type of `classes`.
        """
        position, inputs = self._position(k), self._read(X)
        return inputs.choose(self._decide(inputs, position), self.classes)

    def _decide(self, inputs: Inputs, position: int) -> Any:
        return inputs.decide(self.machines(position), self.classes.shape[0], self.multi_class)

    def machines(self, position: int) -> BinaryDecisions:
        """The function that maps X to decision values of each binary classifier of the model of one k.

        Parameters
        ----------
        position : int
            The index in `ks` of this value of k.

        Returns
        -------
        callable
            Maps X to decision values, a column for each binary classifier.
        """
        intercepts = self.intercepts[position, ...]
        coefs = space_of(intercepts).put(self.by_k[position])
        if self.inputs is None:
            return LinearDecisions(coefs, intercepts)
        used = self._used(position)
        return KernelDecisions(self.inputs.of(used), coefs[:, used], intercepts)

    def _read(self, X: Any) -> Inputs:
        check = partial(check_array, accept_sparse=["csr", "csc"])
        checks = Checks(check, self._check_dask)
        inputs = read_inputs(checks, X, "SparsityPath.decision_function", self.intercepts)
        if inputs.n_features != self.n_features_in:
            raise ValueError(
                f"X has {inputs.n_features} features, but the path was fitted to {self.n_features_in}. Give "
                "the same features."
            )
        return inputs

    def _check_dask(self, X: Any) -> np.dtype:
        if self.inputs is not None:
            raise TypeError("Paths of kernel models do not accept dask collections. Use X.compute().")
        return check_features(X)

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas data frame with one row per k and binary classifier.

        Returns
        -------
        pandas.DataFrame
            A row has `k`, `machine` (the name of the binary classifier) and, for this classifier, `n_nonzero`
            (the number of nonzero coefficients), `objective`, `n_iter` and `status`. Two more columns refer
            to all classifiers of this k together, so they are equal in the rows of all these classifiers:
            `n_units`, the number of units used (what k counts: features, groups or training points), and
            `n_features_used`, the number of features or, with a kernel, training points used.
        """
        import pandas as pd

        names = machine_names(self.classes, self.multi_class)
        used = [self._used(position) for position in range(len(self.ks))]
        units = used if self.unit_of is None else [np.unique(self.unit_of[columns]) for columns in used]
        return pd.DataFrame(
            [
                {
                    "k": k,
                    "n_units": len(units[at]),
                    "n_features_used": len(used[at]),
                    "machine": name,
                    "n_nonzero": len(solution.support),
                    "objective": solution.objective,
                    "n_iter": solution.n_iter,
                    "status": solution.status.name.lower(),
                }
                for at, (k, row) in enumerate(zip(self.ks, self.solutions, strict=True))
                for name, solution in zip(names, row, strict=True)
            ]
        )

    def _facts(self) -> Facts:
        machines = machine_names(self.classes, self.multi_class)
        sums = [sum(s.objective for s in row) / len(row) for row in self.solutions]
        rows = []
        for at, (k, row) in enumerate(zip(self.ks, self.solutions, strict=True)):
            statuses = dict.fromkeys(solution.status.name.lower() for solution in row)
            rows.append((f"{k}", f"{len(self._used(at))}", f"{sums[at]:.5g}", ", ".join(statuses)))
        title = (
            f"k from {self.ks[0]} to {self.ks[-1]} in {count(len(self.ks), 'step')}, k counts {self.counted}"
        )
        used = "points used" if self.inputs is not None else "features used"
        objective = "objective" if len(machines) == 1 else "mean objective"
        return Facts(title, [("classifiers", some(machines))], ("k", used, objective, "status"), rows)

    def __repr__(self) -> str:
        return str(self)

    def _used(self, position: int) -> Indices:
        """Columns of `coefs` that some binary classifier of the model for ``ks[position]`` uses."""
        if self.inputs is not None:  # in kernel models `support` indexes candidate points, not these columns
            return np.flatnonzero(self.by_k[position].any(axis=0))
        return np.unique(np.concatenate([s.support[s.coef != 0] for s in self.solutions[position]]))

    def _position(self, k: int) -> int:
        found = np.flatnonzero(self.ks == k) if is_integer(k) else np.empty(0)
        if len(found) == 0:
            raise ValueError(
                f"k={shortly(k)} is not on this path. Use one of {', '.join(map(str, self.ks))}."
            )
        return int(found[0])
