"""`SparseSVC`, a linear classifier with at most k features; `sparse_svm_path` fits it for many k."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from kmargin.core import validation
from kmargin.core.arrays import Matrix, Vector, space_of, to_host
from kmargin.core.labels import machine_names
from kmargin.core.units import UnitRequest
from kmargin.data.samples import Samples
from kmargin.data.samples.read import read
from kmargin.estimators.base import FeatureSelector, SingleModel
from kmargin.fitting.drop_costs import Worth, find_stand_ins
from kmargin.fitting.fit import GridFit, Procedure, fit_grid
from kmargin.fitting.path import LinearDecisions, SparsityPath
from kmargin.fitting.spec import LinearBlueprint, warn_of_repeats
from kmargin.solvers import DEFAULT, SOLVERS, Solver, resolve_solver

if TYPE_CHECKING:
    import pandas as pd

SIGNS = {1: "+", -1: "-", 0: ""}


def make_summary(
    coef: Matrix,
    machines: Sequence[str],
    request: UnitRequest,
    feature_names: Sequence[str] | None,
    spreads: Vector | None = None,
    worths: Sequence[Worth] | None = None,
) -> "pd.DataFrame":
    """Return the data frame of `LinearClassifier.summary`: a row for each chosen feature, the largest first.

    `machines` names the binary classifiers. Weights are coefficients times `spreads`, the standard deviations
    of the features. `worths` has the rise of the objective without a feature (or group), and replacements.
    """
    import pandas as pd

    n_features = coef.shape[1]
    names = [f"x{j}" for j in range(n_features)] if feature_names is None else list(map(str, feature_names))
    units = request.resolve(n_features, feature_names)
    unit_of, labels = units.unit_of_each_column, request.label_units(units, feature_names)
    chosen = np.flatnonzero(units.chosen((coef != 0).any(axis=0)))
    weights = coef if spreads is None else coef * spreads
    shown = chosen[np.argsort(-np.abs(weights[:, chosen]).max(axis=0), kind="stable")]
    columns: dict[str, Any] = {
        "feature": [names[j] for j in shown],
        "group": [names[j] if request.groups is None else labels[unit_of[j]] for j in shown],
        "always_in": units.fixed[unit_of[shown]],
        "sign": [SIGNS[int(units.signs[j])] for j in shown],
    }
    for what, values in (("coef", coef), ("weight", None if spreads is None else weights)):
        if values is not None:
            titles = [what] if len(machines) == 1 else [f"{what}: {machine}" for machine in machines]
            columns |= dict(zip(titles, np.asarray(values[:, shown]), strict=True))
    if worths is not None:
        of_column = {int(j): worth for worth in worths for j in worth.columns}
        found = [of_column[int(j)] for j in shown]
        best = [worth.stand_ins[0] if worth.stand_ins else None for worth in found]
        columns["cost_without"] = [worth.cost for worth in found]
        columns["stand_in"] = ["" if at is None else " + ".join(names[j] for j in at.columns) for at in best]
        columns["stand_in_cost"] = [np.nan if at is None else at.cost for at in best]
    return pd.DataFrame(columns)


@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(FeatureSelector):
    """A linear classifier: its decision function has a coefficient for each feature."""

    solver: Any = DEFAULT
    multi_class: str = "ovo"
    shared: bool = True
    groups: Any = None
    keep: Any = None
    avoid: Any = None
    signs: Any = None
    standardize: bool = False
    fit_intercept: bool = True
    class_weight: Any = None
    n_jobs: int | None = None
    random_state: Any = None

    def summary(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> "pd.DataFrame":
        """Return the chosen features as a pandas data frame, one row for each, the largest weight first.

        Without data the columns are: `feature` and `group` (without groups the feature's own name);
        `always_in` and `sign`, as in the parameters `keep` and `signs`; `coef`, the change of the decision
        value per unit of the feature; and, if the parameter `standardize` is True, `weight`, the coefficient
        times the feature's standard deviation, which can be compared between features. Features always in
        have a row even if their coefficients are zero. Without weights, the largest coefficient is first.

        Given the training data, there is always a `weight`, and three more columns, which take two fits per
        feature: `cost_without`, the relative rise of the objective when the feature (or its group) is left
        out and the others are refitted; `stand_in`, the best replacement; `stand_in_cost`, the relative rise
        with that replacement. Features that are always in have no replacement. A negative `stand_in_cost`
        means that the replacement would lower the objective, because the search did not try this exchange;
        ``solver=Exchange(effort="thorough")`` tries all exchanges.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or dask collection of shape (n_samples, n_features)
            The training data, or None (the default).
        y : array-like of shape (n_samples,)
            The labels of the training data.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The sample weights of the training data.

        Returns
        -------
        pandas.DataFrame
            A row for each chosen feature. With more than two classes there is a column ``coef: a vs b`` (and
            ``weight: a vs b``) for each binary classifier.

        Examples
        --------
        >>> from kmargin import SparseSVC
        >>> from kmargin.datasets import make_synthetic
        >>> X, y = make_synthetic(n_samples=200, n_features=20, random_state=0)
        >>> frame = SparseSVC(k=2).fit(X, y).summary(X, y)
        >>> frame[["feature", "coef", "cost_without", "stand_in"]].round(2)
          feature  coef  cost_without stand_in
        0      x1 -2.59          8.62       x5
        1      x0  2.68          4.43       x5
        """
        check_is_fitted(self)
        blueprint = self._blueprint(getattr(self, "feature_names_in_", None))
        machines = machine_names(self.classes_, self.multi_class)
        if (X is None) != (y is None):
            missing = "y" if y is None else "X"
            raise ValueError(
                f"summary was given data without {missing}. Give both X and y, as to fit, or neither for the "
                "columns that need no data."
            )
        spreads, worths = to_host(self.scale_) if "scale_" in vars(self) else None, None
        if X is not None:
            spreads, worths = self._assess(X, y, sample_weight, blueprint)
        return make_summary(
            to_host(self.coef_), machines, blueprint.request, blueprint.names, spreads, worths
        )

    def _assess(
        self, X: Any, y: Any, sample_weight: Any, blueprint: LinearBlueprint
    ) -> tuple[Vector, list[Worth]]:
        """Return the standard deviation of each feature of X. Also return, for each feature (or group) in the
        model, how much the objective rises without it, and which feature would be the best in its place.
        """
        if len(self.classes_) > 2 and not self.shared:
            raise ValueError(
                "With shared=False each binary classifier has its own features, so costs for the whole model "
                "are not defined. Use summary() without data, or shared=True."
            )
        solver = resolve_solver(self.solver)
        samples = read(self._checks(reset=False), X, y, sample_weight, self.class_weight, solver)
        spreads = samples.unit_variance_scaling(self.fit_intercept).scales
        procedure = Procedure(solver, self.n_jobs, self.random_state)
        C = self.C_ if "C_" in vars(self) else self.C  # C_ was chosen by cross-validation
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # otherwise each of many refits could warn
            worths = find_stand_ins(blueprint, samples, C, self._columns(), procedure, n_best=1)
        return spreads, worths

    def _read(self, blueprint: Any, X: Any, y: Any, sample_weight: Any, solver: Solver) -> Samples:
        samples = read(self._checks(), X, y, sample_weight, self.class_weight, solver)
        if getattr(self, "k", None) != "all" and blueprint.units(samples).are_plain:
            warn_of_repeats(samples, solver)
        return samples

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        solver = SOLVERS.get(self.solver, self.solver) if isinstance(self.solver, str) else self.solver
        # A solver that uses X in matrix products alone works with sparse matrices and arrays on a device.
        tags.input_tags.sparse = tags.array_api_support = getattr(solver, "takes_sparse", True)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _blueprint(self, names: Any = None) -> LinearBlueprint:
        return LinearBlueprint(
            self.multi_class,
            self.fit_intercept,
            self.standardize,
            self.shared,
            request=UnitRequest(self.groups, self.keep, self.avoid, self.signs),
            names=None if names is None else tuple(names),
        )

    def _adopt(self, fit: GridFit, row: int, column: int) -> LinearDecisions:
        decisions: LinearDecisions = super()._adopt(fit, row, column)
        self.coef_, self.intercept_, self.support_ = decisions.coef, decisions.intercept, decisions.used
        self.__dict__.pop("scale_", None)  # an earlier fit may have set this attribute
        if self.standardize and fit.designs is not None:
            self.scale_ = space_of(self.intercept_).put(fit.designs.scaling.scales)
        return decisions

    def _decisions(self) -> LinearDecisions:
        return LinearDecisions(self.coef_, self.intercept_)


@dataclass(eq=False, repr=False, kw_only=True)
class SparseSVC(LinearClassifier, SingleModel):
    """A linear support vector machine that uses at most k features.

    For labels y in {-1, 1} it minimises over w and b ::

        1/(2n) sum_i s_i max(0, 1 - y_i (x_i'w + b))^2 + lam/2 ||w||^2     subject to ||w||_0 <= k

    with s_i = 1 and lam = 1/(2 C n). The intercept b is neither penalised nor counted. With sample or class
    weights, v_i is their product for row i, W the sum of all v_i, s_i = v_i n / W, and lam = 1/(2 C W). C has
    exactly the meaning it has in scikit-learn's LinearSVC.

    Parameters
    ----------
    k : int or "all", default=10
        The number of features the model may use, whatever the number of classes (see `shared`). A k larger
        than the number of features keeps them all, with a warning. ``k=0`` fits the intercept alone.
    C : float, default=1.0
        Inverse strength of the ridge. ``inf`` is the paper's problem, without a ridge.
    solver : "exchange", "mm", "sd", or a solver object, default="exchange"
        Use an object such as ``Exchange(effort="thorough")`` to set options of the solver; in a grid search
        this option is called ``solver__effort``.
    multi_class : "ovo" or "ovr", default="ovo"
        With more than two classes: one binary classifier for each pair of classes, or for each class against
        the rest.
    shared : bool, default=True
        With more than two classes: whether the binary classifiers share one set of features, so that the
        whole model uses at most k. Otherwise each classifier has k features of its own, as in the paper.
        Shared features minimise the sum of the objectives of all binary classifiers, each with the same
        weight, even if their numbers of samples differ.
    groups : list of labels, list of lists, dict or None, default=None
        Features that enter and leave the model together; k then counts groups. Give a label for each feature,
        or lists of names or indices; a feature in no list is a group of its own.
    keep, avoid : list of features or groups, or None, default=None
        Features that are always in the model (they count in k), and features that are never in it. Give
        names, indices, a mask, or group labels that are strings. Keeping a feature keeps its whole group;
        avoiding a feature removes it from its group.
    signs : list, dict or None, default=None
        1 for a feature whose coefficients may not be negative, -1 for not positive, 0 for either. A list has
        an entry for each feature, a dict is by name or index. With more than two classes the signs apply to
        every binary classifier.
    standardize : bool, default=False
        Scale the features to (weighted) mean 0 and variance 1. `coef_` is in the original units; `summary`
        also has the coefficients of the scaled features, as `weight`. A sparse X stays sparse.
    fit_intercept : bool, default=True
        Whether to fit an intercept; without one, `standardize` does not centre the features.
    class_weight : dict, "balanced" or None, default=None
        Class weights, as in scikit-learn: they multiply the sample weights.
    n_jobs : int or None, default=None
        Number of binary classifiers fitted in parallel: in threads, or by the configured joblib backend
        ("loky", "dask", "ray", ...). None means 1 unless joblib is configured otherwise. The result is
        exactly the same for any number of jobs and any backend; each binary classifier uses one thread,
        including BLAS.
    random_state : int, RandomState or None, default=None
        Only used by ``MM(start="normal")`` and ``SD(start="normal")``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_machines, n_features)
        The coefficients: one row for two classes; otherwise one per class (ovr), or per pair of classes (ovo)
        in the order (0, 1), (0, 2), ..., (1, 2), ..., positive for the second class of the pair.
    intercept_ : ndarray of shape (n_machines,)
        The intercept of each binary classifier.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    support_ : ndarray of int
        Indices of the features with a nonzero coefficient in at least one binary classifier. `get_support`
        also includes features with coefficients of zero that are in a chosen group or are in `keep`.
    n_iter_ : ndarray of shape (n_machines,)
        The number of Newton steps of the search, or of inner iterations of MM or SD.
    objective_ : ndarray of shape (n_machines,)
        The minimised objective of each binary classifier.
    solutions_ : tuple of Solution
        The result of the solver for each binary classifier, with the reason why the solver stopped.
    scale_ : ndarray of shape (n_features,)
        Only with ``standardize=True``: the standard deviations of the features, 1 for a constant feature.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        Only if X has column names.

    See Also
    --------
    SparseSVCCV : Chooses k and C.
    KernelSparseSVC : Bounds the number of training points, with a kernel.
    sparse_svm_path : Fits a model for each of many k.

    Notes
    -----
    The estimator is also a feature selector: ``make_pipeline(SparseSVC(k=10), AnyClassifier())`` passes on
    exactly the chosen features. scikit-learn's SelectFromModel keeps only features whose absolute
    coefficients sum to at least 1e-5, its default for sparse models, which may drop chosen features with
    values of 10,000 and more: use ``threshold=1e-300`` for such features, or the estimator itself.

    Examples
    --------
    >>> from kmargin import SparseSVC
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=200, n_features=20, random_state=0)
    >>> model = SparseSVC(k=2).fit(X, y)
    >>> model.support_
    array([0, 1])
    >>> model.transform(X).shape
    (200, 2)
    """


def sparse_svm_path(
    X: Any,
    y: Any,
    ks: int | Sequence[int | str] | None = None,
    *,
    C: float = 1.0,
    solver: str | Solver = DEFAULT,
    multi_class: str = "ovo",
    shared: bool = True,
    groups: Any = None,
    keep: Any = None,
    avoid: Any = None,
    signs: Any = None,
    standardize: bool = False,
    fit_intercept: bool = True,
    class_weight: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> SparsityPath:
    """Fit models for many k, from the largest to the smallest; the model of one k is a start for the next.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The features; also a dask collection in blocks of rows, or an array on a device if scikit-learn's
        `array_api_dispatch` is on.
    y : array-like of shape (n_samples,)
        The classes, two or more.
    ks : list of int, int, or None, default=None
        The values of k, or at most how many, log-spaced from all features down to one; None means up to 20.
    C, solver, multi_class, shared, groups, keep, avoid, signs : see SparseSVC
        As in :class:`~kmargin.SparseSVC`.
    standardize, fit_intercept, class_weight : see SparseSVC
        As in :class:`~kmargin.SparseSVC`.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        A sample of weight 2 counts as two samples, a sample of weight 0 is ignored.
    n_jobs, random_state : see SparseSVC
        As in :class:`~kmargin.SparseSVC`.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    SparsityPath
        The models for each k.

    See Also
    --------
    SparseSVCCV : Chooses k by cross-validation.
    SparsityPathDisplay : Draws a path.

    Examples
    --------
    >>> from kmargin import sparse_svm_path
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=200, n_features=20, random_state=0)
    >>> path = sparse_svm_path(X, y, ks=[20, 5, 2])
    >>> path.coefs.shape
    (3, 1, 20)
    >>> path.solutions[2][0].support
    array([0, 1])
    """
    validation.check_C(C)
    validation.check_verbose(verbose)
    model = SparseSVC(
        C=C,
        solver=solver,
        multi_class=multi_class,
        shared=shared,
        groups=groups,
        keep=keep,
        avoid=avoid,
        signs=signs,
        standardize=standardize,
        fit_intercept=fit_intercept,
        class_weight=class_weight,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    blueprint, samples, procedure = model._prepare_fit(X, y, sample_weight)
    units = blueprint.units(samples)
    path_ks = validation.resolve_ks(ks, units.n_units, None, blueprint.unit_label, units.fixed.sum())
    procedure = procedure._replace(verbose=verbose)
    return fit_grid(blueprint, samples, [C], path_ks, procedure, chosen=None).paths[0]
