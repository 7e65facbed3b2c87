"""Kernels, and the decision functions of models with a coefficient for each training point."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack, issparse
from sklearn.metrics.pairwise import pairwise_kernels

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.scaling import Scaling
from kmargin.data.design.kernel import HEIGHT, MEGABYTE, WIDTH, pieces

KERNELS = ("rbf", "poly", "linear", "sigmoid", "precomputed")

# Largest rounding error allowed in an exponent -gamma |x - z|^2 of "rbf" kernel values. Exponents come from a
# matrix product, which is fast. Those whose error may be larger are recomputed from the vector x - z.
EXPONENT_TOL = 1e-9


class Kernel:
    """A kernel function with its parameters; if there is a `scaling`, it standardises the features first."""

    def __init__(
        self, name: Any, gamma: float, degree: float, coef0: float, scaling: Scaling | None = None
    ) -> None:
        self.name = name
        self.numbers = {"gamma": gamma, "degree": degree, "coef0": coef0}
        self.scaling = scaling

    def __call__(self, X: Matrix, points: Matrix) -> Matrix:
        """Return the matrix of K(x, z) for every row x of X and row z of `points`, in double precision."""
        shape = X.shape[0], points.shape[0]
        if shape[1] == 0:
            return np.empty(shape, dtype=X.dtype)
        X, points = self._centered(*self._scaled(_in_doubles(X), _in_doubles(points)))
        if not callable(self.name):
            with np.errstate(over="ignore", invalid="ignore"):
                K = pairwise_kernels(X, points, metric=self.name, filter_params=True, **self.numbers)
            return self._with_exact_distances(self._checked(K, X), X, points)
        K = np.array(self.name(X, points))
        if K.shape != shape:
            raise ValueError(
                f"The kernel function returned shape {K.shape} for {shape[0]} and {shape[1]} points. "
                f"It must return a row for each of the first and a column for each of the second."
            )
        return self._checked(K, X)

    def _scaled(self, X: Any, points: Any) -> tuple[Any, Any]:
        """Standardise the rows of X and `points`; sparse rows get the same kernel values without centring.

        The "rbf" kernel does not depend on the centre c. Other kernels are functions of (x - c)'(z - c), the
        inner product of (x, c'c - c'x, 1) and (z, 1, -c'z). For them, sparse matrices get two more columns.
        """
        if self.scaling is None:
            return X, points
        centers, scales, _ = self.scaling
        if not issparse(X):
            return (X - centers) / scales, (points - centers) / scales
        if callable(self.name):
            raise ValueError(
                "standardize=True would make a sparse X dense for a kernel function. Give X as an array, or "
                "scale it beforehand, for example with StandardScaler(with_mean=False)."
            )
        X, points = (csr_array(A @ diags_array(1 / scales)) for A in (X, points))
        if self.name == "rbf":
            return X, points
        c = centers / scales
        ones = [np.ones((A.shape[0], 1)) for A in (X, points)]
        left = hstack([X, (c @ c - X @ c)[:, None], ones[0]], format="csr")
        return left, hstack([points, ones[1], -(points @ c)[:, None]], format="csr")

    def _centered(self, X: Any, points: Any) -> tuple[Any, Any]:
        """For the "rbf" kernel of arrays, subtract the column medians of `points` from X and from `points`.

        The distances between rows stay the same, but those computed by matrix products get smaller rounding
        errors. Medians of integers are exact, so distances between integer vectors have no error.
        """
        arrays = all(isinstance(A, np.ndarray) for A in (X, points))
        if callable(self.name) or self.name != "rbf" or not arrays or len(points) == 0:
            return X, points
        with np.errstate(over="ignore", invalid="ignore"):
            middle = np.median(points, axis=0)
            middle[~np.isfinite(middle)] = 0.0
            return X - middle, points - middle

    def _checked(self, K: Matrix, X: Any) -> Matrix:
        """Return the kernel values K. If some are not finite, raise ValueError that names the range of X."""
        with np.errstate(over="ignore", invalid="ignore"):
            bad = not np.isfinite(K.sum()) and not np.isfinite(K).all()
        if bad:
            numbers = ", ".join(f"{name}={value:g}" for name, value in self.numbers.items())
            raise ValueError(
                f"The kernel ({numbers}) has values that are not finite, for X with entries up to "
                f"{abs(X).max():g}. Scale X, or use a smaller gamma, degree or coef0."
            )
        return K

    def quickly(self, X: Matrix, points: Matrix) -> Matrix:
        """Return K(x, z) for all rows x of X and z of `points`, as `__call__` does, but faster for "rbf".

        -gamma |x - z|^2 is the inner product of (x, |x|^2, 1) and (2 gamma z, -gamma, -gamma |z|^2), so one
        matrix product gives the exponents of all pairs of rows.
        """
        arrays = all(isinstance(A, np.ndarray) for A in (X, points))
        if callable(self.name) or self.name != "rbf" or not arrays:
            return self(X, points)
        X, points = self._centered(*self._scaled(_in_doubles(X), _in_doubles(points)))
        gamma, (n_rows, n_features) = self.numbers["gamma"], X.shape
        left, right = np.ones((n_rows, n_features + 2)), np.empty((len(points), n_features + 2))
        with np.errstate(over="ignore", invalid="ignore"):
            left[:, :-2], left[:, -2] = X, np.einsum("ij,ij->i", X, X)
            np.multiply(points, 2 * gamma, out=right[:, :-2])
            right[:, -2], right[:, -1] = -gamma, -gamma * np.einsum("ij,ij->i", points, points)
            self._checked(left[:, -2], X)
            self._checked(right[:, -1], points)
            K = left @ right.T
        np.minimum(K, 0.0, out=K)  # K holds -gamma |x - z|^2 here, which rounding errors can make positive
        return self._with_exact_distances(self._checked(np.exp(K, out=K), X), X, points)

    def _with_exact_distances(self, K: Matrix, X: Any, points: Any) -> Matrix:
        """Recompute, in place, those values of an "rbf" kernel matrix that have a large rounding error.

        K was computed from inner products. The rounding error of an exponent -gamma |x - z|^2 is then a small
        multiple of machine epsilon times gamma (|x|^2 + |z|^2), which matters if some rows are far from the
        others. Where it exceeds `EXPONENT_TOL`, the kernel value is recomputed from the vector x - z. Values
        of 0 with an error of at most 1 stay, because the exact value is then close to 0, too.
        """
        if callable(self.name) or self.name != "rbf":
            return K
        gamma, n_features = self.numbers["gamma"], X.shape[1]
        squares = [_squared_lengths(A) for A in (X, points)]
        relative_error = (n_features + 4) * np.finfo(np.float64).eps * gamma
        if not relative_error * sum(s.max(initial=0.0) for s in squares) > EXPONENT_TOL:
            return K
        error = relative_error * np.add.outer(*squares)
        rows, columns = np.nonzero((error > EXPONENT_TOL) & ((K > 0) | (error > 1)))
        for some in pieces(len(rows), max(1, HEIGHT * WIDTH // n_features)):
            differences = X[rows[some]] - points[columns[some]]
            with np.errstate(over="ignore"):
                K[rows[some], columns[some]] = np.exp(-gamma * _squared_lengths(differences))
        return K


def _squared_lengths(X: Any) -> Vector:
    """The squared Euclidean norm of each row of X."""
    if issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def _in_doubles(X: Any) -> Any:
    return X.astype(np.float64) if X.dtype == np.float32 else X


class KernelInputs:
    """A function that maps X to the kernel values K(x, z) of its rows x and some training points z."""

    def __init__(self, kernel: Kernel | None, points: Matrix, columns: Indices, cache_size: float) -> None:
        self.kernel = kernel
        self.points = points
        self.columns = columns  # the row index of each point in the training data
        self.cache_size = cache_size  # the most memory that a block of kernel values may take, in MB

    def __call__(self, X: Matrix) -> Matrix:
        if self.kernel is None:  # X has precomputed kernel values with all training points
            return X[:, self.columns]
        return self.kernel.quickly(X, self.points).astype(X.dtype, copy=False)

    def of(self, places: Indices) -> "KernelInputs":
        """Return a function like this one for some of its training points: those at the indices `places`."""
        points = self.points if self.kernel is None else self.points[places]
        return KernelInputs(self.kernel, points, self.columns[places], self.cache_size)

    def times(self, X: Matrix, coefs: Matrix) -> Matrix:
        """Return the matrix product of the kernel values of X and `coefs`, computed in blocks of rows."""
        n_numbers = min(HEIGHT * WIDTH, self.cache_size * MEGABYTE / 8)
        height = max(1, int(n_numbers / max(1, len(self.columns))))
        return np.concatenate([self(X[rows]) @ coefs for rows in pieces(X.shape[0], height)])


class KernelDecisions:
    """A function that maps X to the decision values of binary classifiers, computed from kernel values."""

    def __init__(self, inputs: KernelInputs, coef: Matrix, intercept: Vector) -> None:
        self.inputs = inputs
        self.coef = coef
        self.intercept = intercept

    def __call__(self, X: Matrix) -> Matrix:
        """Return the decision values, one column per binary classifier, in the dtype of X."""
        products = self.inputs.times(X, self.coef.T.astype(X.dtype, copy=False))
        return products + self.intercept.astype(X.dtype, copy=False)
