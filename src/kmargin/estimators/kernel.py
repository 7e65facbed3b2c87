"""Machines that use at most k training points."""

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import Tags

from kmargin import validate
from kmargin.device import device_space
from kmargin.estimators.classifier import MarginClassifier
from kmargin.fitting.designs import Designs
from kmargin.kernels import KERNELS, Kernel, KernelDesigns, KernelInputs
from kmargin.multiclass import make_machines
from kmargin.path import SparsityPath, make_path
from kmargin.solvers import DEFAULT, Solution
from kmargin.types import Indices, Matrix, Vector
from kmargin.validate import Samples
from kmargin.weights import normalize


def _variance(X: Any, repeats: Vector) -> float:
    """The variance of the entries of X, each row counted as often as its weight says."""
    if issparse(X):
        sums, squares = (
            np.asarray(powers.sum(axis=1, dtype=np.float64)).ravel() for powers in (X, X.multiply(X))
        )
        mean = float(np.average(sums, weights=repeats)) / X.shape[1]
        return float(np.average(squares, weights=repeats)) / X.shape[1] - mean**2
    mean = float(np.average(X.mean(axis=1, dtype=np.float64), weights=repeats))
    return float(np.average(np.square(X - mean, dtype=np.float64).mean(axis=1), weights=repeats))


class KernelMachines(MarginClassifier):
    """Machines with a coefficient per training point."""

    kernel: Any
    gamma: Any
    degree: float
    coef0: float
    cache_size: float
    n_candidates: int | str | None
    fit_intercept: bool
    things = "training points"  # what k counts

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not callable(self.kernel):
            validate.check_choice("kernel", self.kernel, KERNELS)
        if isinstance(self.gamma, str):
            validate.check_choice("gamma", self.gamma, ("scale", "auto"))
        elif not (isinstance(self.gamma, numbers.Real) and 0 < float(self.gamma) < np.inf):
            raise ValueError(f"gamma={self.gamma!r} gives no kernel. Use a number > 0, 'scale' or 'auto'.")
        for name, least in (("degree", 1.0), ("coef0", -np.inf)):
            validate.check_number(name, getattr(self, name), least)
        validate.check_cache_size(self.cache_size)
        validate.resolve_n_candidates(self.n_candidates, 1)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        space = device_space(X)
        if space is not None:
            raise TypeError(
                f"{type(self).__name__} works in main memory, but X is in {space} to stay there. "
                "Give X as a NumPy array, or turn off array_api_dispatch; SparseSVC takes arrays on a device."
            )
        samples = super()._read(X, y, sample_weight)
        if not self._is_precomputed():
            return samples
        if self.n_features_in_ != np.shape(X)[0]:
            raise ValueError(
                f"X has shape {np.shape(X)}, but with kernel='precomputed' it is a square kernel matrix. "
                "Give one row and one column per point, or choose a kernel to compute it."
            )
        return samples._replace(X=samples.X[:, samples.kept])

    def _restrict(self, samples: Samples, rows: Indices) -> Samples:
        restricted = super()._restrict(samples, rows)
        if not self._is_precomputed():
            return restricted
        # of the kernel matrix the rows' own columns are left, and counted anew
        return restricted._replace(X=restricted.X[:, rows], kept=np.arange(len(rows)))

    def _inputs(self, samples: Samples, rows: Indices, train: Indices) -> Matrix:
        inputs = super()._inputs(samples, rows, train)
        return inputs[:, train] if self._is_precomputed() else inputs

    def _sparse_formats(self, *others: str) -> list[str] | bool:
        return False if self._is_precomputed() else super()._sparse_formats(*others)

    def _n_available(self, samples: Samples) -> int:
        return samples.X.shape[0]

    def _designs(self, samples: Samples, k: int = 0) -> Designs:
        kernel = None
        if not self._is_precomputed():
            kernel = Kernel(self.kernel, self._gamma(samples), self.degree, self.coef0)
        return KernelDesigns(
            samples.X,
            kernel,
            self.fit_intercept,
            cache_size=self.cache_size,
            n_candidates=validate.resolve_n_candidates(self.n_candidates, samples.X.shape[0]),
            k=k,
            seed=validate.resolve_seed(self.random_state),
        )

    def _adopt(self, designs: Any, samples: Samples, solutions: Sequence[Solution]) -> None:
        super()._adopt(designs, samples, solutions)
        dual_coef, used = self._dual_coef(designs, samples, [solutions])
        self.dual_coef_ = dual_coef[0]
        self.support_ = samples.kept[used]
        self.support_vectors_ = self._points(samples, used)
        self._kernel = designs.kernel

    def _path(
        self, designs: Any, samples: Samples, by_machine: Sequence[Sequence[Solution]], ks: Sequence[int]
    ) -> SparsityPath:
        solutions = tuple(zip(*by_machine, strict=True))
        coefs, used = self._dual_coef(designs, samples, solutions)
        points = self._points(samples, used)
        inputs = KernelInputs(designs.kernel, points, samples.kept[used], self.cache_size)
        return make_path(solutions, list(coefs), ks, samples, self.multi_class, inputs)

    def _dual_coef(
        self, designs: KernelDesigns, samples: Samples, solutions: Sequence[Sequence[Solution]]
    ) -> tuple[Matrix, Indices]:
        """y_j alpha_j of each row of machines, and the training points j that any of them keeps."""
        machines = list(make_machines(samples.codes, len(samples.classes), self.multi_class))
        candidates = [designs.candidates(machine) for machine in machines]
        kept = [[of[s.support] for of, s in zip(candidates, row, strict=True)] for row in solutions]
        used = np.unique(np.concatenate([points for row in kept for points in row]))
        dual_coef = np.zeros((len(solutions), len(machines), len(used)), dtype=samples.X.dtype)
        for at, row in enumerate(solutions):
            for m, solution in enumerate(row):
                sign = np.where(samples.codes[kept[at][m]] == machines[m].positive, 1.0, -1.0)
                dual_coef[at, m, np.searchsorted(used, kept[at][m])] = sign * solution.coef
        return dual_coef, used

    def _gamma(self, samples: Samples) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        variance = 1.0
        if self.gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore"):
                variance = _variance(samples.X, normalize(samples.repeats)[0])
        if not np.isfinite(variance):
            raise ValueError(
                "gamma='scale' asks for the variance of X, whose entries up to "
                f"{abs(samples.X).max():g} cannot be squared. Scale X, or use a number for gamma."
            )
        return 1.0 / (samples.X.shape[1] * variance) if variance > 0 else 1.0

    def _points(self, samples: Samples, rows: Indices) -> Matrix:
        """What a machine has to remember of these rows; nothing if kernel values are handed to it."""
        return np.empty((0, 0), samples.X.dtype) if self._is_precomputed() else samples.X[rows]

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _machine_decisions(self, X: Matrix) -> Matrix:
        inputs = KernelInputs(self._kernel, self.support_vectors_, self.support_, self.cache_size)
        products = inputs.times(X, self.dual_coef_.T.astype(X.dtype, copy=False))
        return products + self.intercept_.astype(X.dtype, copy=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags


class KernelSparseSVC(KernelMachines):
    """A kernel support vector machine that keeps at most k training points.

    For labels y in {-1, 1} it minimises over alpha and b ::

        1/(2n) sum_i s_i max(0, 1 - y_i (sum_j y_j alpha_j K(x_i, x_j) + b))^2 + lam/2 ||alpha||^2

    subject to at most k nonzero alpha_j, with lam = 1/(2 C n) and n the sum of the weights. Only the
    points with nonzero alpha are stored, and predicting takes one kernel value for each.

    Parameters
    ----------
    k : int or "all", default=10
        How many training points each machine may keep. ``k=0`` leaves the intercept.
    C : float, default=1.0
        Inverse strength of the ridge on alpha; ``inf`` is none.
    kernel : "rbf", "poly", "linear", "sigmoid", "precomputed" or callable, default="rbf"
        A callable gets two arrays of points, perhaps some of many, and returns their kernel matrix.
        With "precomputed", X is the kernel matrix: (n, n) when fitting, (n_new, n) when predicting.
    gamma : "scale", "auto" or float, default="scale"
        As in scikit-learn's SVC: 1/(n_features * X.var()), 1/n_features, or a number.
    degree : float, default=3
    coef0 : float, default=0.0
    solver : "exchange", "mm", "sd", or a solver object, default="exchange"
    multi_class : "ovo" or "ovr", default="ovo"
    fit_intercept : bool, default=True
    cache_size : float, default=200
        MB for kernel values, for each machine under way. A kernel matrix that fits is held; of a
        larger one so much is held and the rest computed in tiles each time it is asked for. Beside
        it the search takes 8 (k + 64) n bytes. A precomputed kernel is not counted.
    n_candidates : int, "all" or None, default=None
        From how many of its training points a machine chooses the k it keeps; if not from all, then
        from a random sample. None is all of them as long as their kernel matrix fits `cache_size`,
        beyond that as many as fit, but at least 2000 and 4 k. All samples count in the objective
        in any case.
    class_weight : dict, "balanced" or None, default=None
    n_jobs : int or None, default=None
        Machines fitted side by side. None is 1 unless joblib is configured otherwise.
    random_state : int, RandomState or None, default=None
        Draws the candidates where not all points are; and the starts of ``MM(start="normal")`` and
        ``SD(start="normal")``.

    Attributes
    ----------
    support_ : ndarray of int
        The training points that at least one machine keeps.
    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        These points, sparse if X was; empty for a precomputed kernel.
    dual_coef_ : ndarray of shape (n_machines, n_support)
        y_j alpha_j for each of them.
    intercept_, classes_, n_iter_, objective_, solutions_, n_features_in_, feature_names_in_
        As in :class:`~kmargin.SparseSVC`.

    Examples
    --------
    >>> from kmargin import KernelSparseSVC
    >>> from kmargin.datasets import make_spiral
    >>> X, y = make_spiral(random_state=0)
    >>> model = KernelSparseSVC(k=20, C=100.0, gamma=1.0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        k: int | str = 10,
        *,
        C: float = 1.0,
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
    ) -> None:
        self.k = k
        self.C = C
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "KernelSparseSVC":
        """Fit the machines. A sample weight of 2 counts as the sample twice, 0 as not at all."""
        self._fit(X, y, sample_weight)
        return self
