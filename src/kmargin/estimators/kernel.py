"""`KernelSparseSVC`: a kernel classifier that keeps at most k training points."""

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import Tags

from kmargin.data.samples.array import ArraySamples
from kmargin.data.samples.read import Checks, read_into_memory
from kmargin.estimators.base import MarginClassifier, SingleModel
from kmargin.fitting.decisions import KernelDecisions, KernelInputs
from kmargin.fitting.fit import GridFit
from kmargin.fitting.spec import KernelBlueprint
from kmargin.solvers import DEFAULT, Solver

# Attributes of feature selectors. Kernel models lack them, and raise an error that says why if one is read.
SELECTOR_ATTRIBUTES = {
    "coef_", "fit_transform", "get_feature_names_out", "get_support", "inverse_transform", "set_output",
    "summary", "transform",
}  # fmt: skip


@dataclass(eq=False, repr=False, kw_only=True)
class KernelClassifier(MarginClassifier):
    """A kernel classifier: its decision function has a coefficient for each training point that it keeps."""

    kernel: Any = "rbf"
    gamma: Any = "scale"
    degree: float = 3
    coef0: float = 0.0
    standardize: bool = False
    solver: Any = DEFAULT
    multi_class: str = "ovo"
    shared: bool = True
    fit_intercept: bool = True
    cache_size: float = 200
    n_candidates: int | str | None = None
    class_weight: Any = None
    n_jobs: int | None = None
    random_state: Any = None

    def _read(self, blueprint: Any, X: Any, y: Any, sample_weight: Any, solver: Solver) -> ArraySamples:
        who = type(self).__name__
        checks, weights = self._checks(), (sample_weight, self.class_weight)
        samples: ArraySamples = read_into_memory(checks, X, y, *weights, solver, who)
        if not blueprint.is_precomputed:
            return samples
        if self.n_features_in_ != np.shape(X)[0]:
            raise ValueError(
                f"X has shape {np.shape(X)}, but with kernel='precomputed' it must be a square kernel "
                "matrix. Give one row and one column per point, or choose a kernel to compute it."
            )
        return replace(samples, X=samples.X[:, samples.kept])

    def _checks(self, *formats: str, reset: bool = True) -> Checks:
        checks = super()._checks(*formats, reset=reset)
        if not self._blueprint().is_precomputed:
            return checks
        return checks._replace(array=partial(checks.array, accept_sparse=False))

    def _blueprint(self, names: Any = None) -> KernelBlueprint:
        return KernelBlueprint(**{field.name: getattr(self, field.name) for field in fields(KernelBlueprint)})

    def _adopt(self, fit: GridFit, row: int, column: int) -> KernelDecisions:
        decisions: KernelDecisions = super()._adopt(fit, row, column)
        inputs = decisions.inputs
        self.dual_coef_, self.intercept_ = decisions.coef, decisions.intercept
        self.kernel_, self.support_, self.support_vectors_ = inputs.kernel, inputs.columns, inputs.points
        return decisions

    def _decisions(self) -> KernelDecisions:
        inputs = KernelInputs(self.kernel_, self.support_vectors_, self.support_, self.cache_size)
        return KernelDecisions(inputs, self.dual_coef_, self.intercept_)

    def __getattr__(self, name: str) -> Any:
        who = type(self).__name__
        if name in SELECTOR_ATTRIBUTES:
            raise AttributeError(
                f"{who} has no {name}: a kernel model selects training points (support_) and uses all "
                "of their features. Use SparseSVC to select features."
            )
        return super().__getattribute__(name)  # raises the usual AttributeError

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        is_precomputed = self._blueprint().is_precomputed
        tags.input_tags.pairwise, tags.input_tags.sparse = is_precomputed, not is_precomputed
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class KernelSparseSVC(KernelClassifier, SingleModel):
    """A kernel support vector machine that keeps at most k training points.

    For labels y in {-1, 1} it minimises over alpha and b ::

        1/(2n) sum_i s_i max(0, 1 - y_i (sum_j y_j alpha_j K(x_i, x_j) + b))^2 + lam/2 ||alpha||^2

    subject to at most k nonzero alpha_j. The weights s_i and lam = 1/(2 C n) are those of
    :class:`~kmargin.SparseSVC`. Only the points with nonzero alpha are stored, and a prediction needs one
    kernel value for each of these points.

    Parameters
    ----------
    k : int or "all", default=10
        The number of training points the model may keep, whatever the number of classes (see `shared`).
        Points that equal an earlier one are never kept. ``k=0`` fits the intercept alone.
    C : float, default=1.0
        Inverse strength of the ridge on alpha; ``inf`` means no ridge.
    kernel : "rbf", "poly", "linear", "sigmoid", "precomputed" or callable, default="rbf"
        A callable takes two arrays of points, which may be subsets, and returns their kernel matrix.
        With "precomputed", X is the kernel matrix: (n, n) when fitting, (n_new, n) when predicting.
    gamma : "scale", "auto" or float, default="scale"
        As in scikit-learn's SVC: 1/(n_features * X.var()), 1/n_features, or a number.
    degree : float, default=3
        Exponent of the kernel "poly", (gamma x'z + coef0)^degree.
    coef0 : float, default=0.0
        Constant in the kernels "poly" and "sigmoid"; the latter is tanh(gamma x'z + coef0).
    standardize : bool, default=False
        Scale the features to (weighted) mean 0 and variance 1 before the kernel is computed.
        ``gamma="scale"`` is then 1 over the number of features that vary. A sparse X stays sparse.
    solver, multi_class : see SparseSVC
        As in :class:`~kmargin.SparseSVC`.
    shared : bool, default=True
        With more than two classes: whether the binary classifiers share one set of k points, from all
        classes, so that the whole model keeps at most k. Otherwise each classifier has k points of its own,
        from the classes that it separates.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    cache_size : float, default=200
        Megabytes for kernel values, for each binary classifier being fitted. If the kernel matrix is larger,
        only its first columns are stored, and the others are computed whenever they are needed. The search
        takes 8 (k + 64) n bytes in addition, for n samples. The limit does not apply to a precomputed kernel.
    n_candidates : int, "all" or None, default=None
        The number of training points from which a binary classifier chooses the k it keeps; if not all, they
        are a random sample. None means all points if their kernel matrix fits into `cache_size`, otherwise as
        many as fit, but at least 2000 and 4 k. All samples count in the objective in any case.
    class_weight, n_jobs : see SparseSVC
        As in :class:`~kmargin.SparseSVC`.
    random_state : int, RandomState or None, default=None
        Draws the candidate points if they are a sample, and the starts of ``MM(start="normal")`` and
        ``SD(start="normal")``.

    Attributes
    ----------
    support_ : ndarray of int
        Row indices of the training points that at least one binary classifier keeps.
    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        The training points in rows `support_`, sparse if X was; empty for a precomputed kernel.
    dual_coef_ : ndarray of shape (n_machines, n_support)
        y_j alpha_j for each training point in `support_`.
    kernel_ : callable or None
        The kernel as a function of two arrays of points; its `numbers` are gamma, degree and coef0,
        with "scale" and "auto" resolved. None for a precomputed kernel.
    intercept_, classes_, n_iter_, objective_, solutions_, n_features_in_, feature_names_in_
        As in :class:`~kmargin.SparseSVC`.

    See Also
    --------
    KernelSparseSVCCV : Chooses k and C.
    SparseSVC : Bounds the number of features; a kernel model uses all features.

    Examples
    --------
    >>> from kmargin import KernelSparseSVC
    >>> from kmargin.datasets import make_spiral
    >>> X, y = make_spiral(random_state=0)
    >>> model = KernelSparseSVC(k=20, C=100.0, gamma=1.0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """
