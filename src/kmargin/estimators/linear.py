"""Machines that use at most k features."""

import warnings
from typing import TYPE_CHECKING, Any

from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from kmargin import validate
from kmargin.blocks.space import to_host
from kmargin.estimators.classifier import WithoutProbabilities
from kmargin.estimators.selector import FeatureSelector
from kmargin.estimators.summary import Assessed, make_summary
from kmargin.fitting.grid_fit import Procedure
from kmargin.fitting.linear_blueprint import LinearBlueprint
from kmargin.fitting.repeats import find_repeats
from kmargin.fitting.stand_ins import find_stand_ins
from kmargin.linear_decisions import LinearDecisions
from kmargin.multiclass import machine_names
from kmargin.samples.protocol import Samples
from kmargin.samples.read import read
from kmargin.solvers import DEFAULT, SOLVERS

if TYPE_CHECKING:
    import pandas as pd


class LinearMachines(FeatureSelector):
    """Machines with a coefficient per feature."""

    fit_intercept: bool
    shared: bool
    standardize: bool

    def summary(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> "pd.DataFrame":
        """The chosen features as a pandas frame, one row for each, the heaviest first.

        Without data it has what the model knows: `feature` and `group` (its own name where no groups were
        given); `always_in` and `sign`, as asked for; `coef`, the change of the decision value per unit of
        the feature. A feature that is always in has a row even where its coefficients are zero.

        The training data add what the features are worth, by two fits for each of them: `weight`, the
        coefficient times the spread of the feature, which can be compared between features;
        `cost_without`, by which share the objective would rise without the feature (or its group), all
        others staying and fitted anew; `stand_in`, the best replacement; `stand_in_cost`, the same share
        with it in place. Features that are always in have no stand-in.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or dask collection of shape (n_samples, n_features)
            The data of the fit, or None, the default.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Their weights.

        Returns
        -------
        pandas.DataFrame
            With more than two classes there is a column ``coef: a vs b`` (and ``weight: a vs b``) for
            each machine.

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
        blueprint = self._blueprint()
        machines = machine_names(self.classes_, self.multi_class)
        if (X is None) != (y is None):
            missing = "y" if y is None else "X"
            raise ValueError(
                f"summary was given data without {missing}. Give both, as to fit, or neither for what the "
                "model knows without them."
            )
        assessed = None if X is None else self._assess(X, y, sample_weight, blueprint)
        return make_summary(to_host(self.coef_), machines, blueprint.request, blueprint.names, assessed)

    def _assess(self, X: Any, y: Any, sample_weight: Any, blueprint: LinearBlueprint) -> Assessed:
        if len(self.classes_) > 2 and not self.shared:
            raise ValueError(
                "With shared=False each machine has features of its own, and none has a cost for the whole "
                "model. Use summary() without data, or shared=True."
            )
        solver = validate.resolve_solver(self.solver)
        samples = read(self._checks(reset=False), X, y, sample_weight, self.class_weight, solver)
        spreads = samples.designs(self.fit_intercept, standardize=True).spreads
        procedure = Procedure(solver, self.n_jobs, self.random_state)
        C = self.C_ if "C_" in vars(self) else self.C  # chosen, or given
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of each of many fits, else
            worths = find_stand_ins(blueprint, samples, C, self._columns(), procedure, n_best=1)
        return Assessed(spreads, worths)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        samples = super()._read(X, y, sample_weight)
        if getattr(self, "k", None) != "all" and self._blueprint().request.is_empty:
            validate.warn_of_repeats(find_repeats(samples, validate.resolve_solver(self.solver)))
        return samples

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        solver = SOLVERS.get(self.solver, self.solver) if isinstance(self.solver, str) else self.solver
        tags.input_tags.sparse = getattr(solver, "takes_sparse", True)
        tags.array_api_support = True
        return tags

    def _blueprint(self) -> LinearBlueprint:
        names = getattr(self, "feature_names_in_", None)
        return LinearBlueprint(
            self.multi_class,
            self.fit_intercept,
            self.standardize,
            self.shared,
            request=self._request(),
            names=None if names is None else tuple(names),
        )

    def _take_over(self, decisions: LinearDecisions) -> None:
        self.coef_, self.intercept_ = decisions.coef, decisions.intercept
        self.support_ = decisions.used

    def _decisions(self) -> LinearDecisions:
        return LinearDecisions(self.coef_, self.intercept_)


class SparseSVC(WithoutProbabilities, LinearMachines):
    """A linear support vector machine that uses at most k features.

    For labels y in {-1, 1} it minimises over w and b ::

        1/(2n) sum_i s_i max(0, 1 - y_i (x_i'w + b))^2 + lam/2 ||w||^2     subject to ||w||_0 <= k

    with lam = 1/(2 C n). The intercept b is neither penalised nor counted. The weights s_i are
    sample weight times class weight, scaled to sum to n; in lam, n is the sum of the weights
    themselves. C thus has exactly the meaning it has in scikit-learn's LinearSVC.

    Parameters
    ----------
    k : int or "all", default=10
        How many features the model may use, whatever the number of classes (see `shared`). A k beyond
        the number of features keeps them all, with a warning. ``k=0`` leaves the intercept.
    C : float, default=1.0
        Inverse strength of the ridge. ``inf`` is the paper's problem, without a ridge.
    solver : "exchange", "mm", "sd", or a solver object, default="exchange"
        ``Exchange(max_swaps=None)`` sets a knob of the solver; so does ``solver__max_swaps`` in a grid.
    multi_class : "ovo" or "ovr", default="ovo"
        More than two classes: a machine for each pair of classes, or for each class against the rest.
    shared : bool, default=True
        More than two classes: whether the machines choose among the same features, so that the whole
        model uses at most k; else each machine has k of its own, as in the paper.
        Features are scored by the sum of what they do for all machines, each of which counts the same,
        however many samples it has.
    groups : list of labels, list of lists, dict or None, default=None
        Features that enter the model and leave it together, k then counting groups: a label for each
        feature; or lists of names or places, a feature in no list being by itself.
    keep, avoid : list of features or groups, or None, default=None
        Those that are always in, and counted in k; those that are never in. Names, places, a mask, or labels
        of groups if these are texts. A feature that is kept keeps its group; one that is avoided leaves it.
    signs : list, dict or None, default=None
        1 for a feature whose coefficients may not be negative, -1 for not positive, 0 for either: for each
        feature, or by name or place. With more than two classes this is said of every machine.
    standardize : bool, default=False
        Scale the features to mean 0 and variance 1, by the sample weights. The coefficients are those for the
        features as given; what they were for the scaled ones is in `summary`. A sparse X stays sparse.
    fit_intercept : bool, default=True
        Whether there is an intercept; without one nothing is centred.
    class_weight : dict, "balanced" or None, default=None
        Weights by class, as in scikit-learn: they multiply those of the samples.
    n_jobs : int or None, default=None
        Machines fitted side by side: in threads, or by the backend that joblib is configured for
        ("loky", "dask", "ray", ...). None is 1 unless joblib is configured otherwise. The result is the
        same to the bit for any number of jobs and any backend; each machine takes one thread, BLAS
        included.
    random_state : int, RandomState or None, default=None
        Only used by ``MM(start="normal")`` and ``SD(start="normal")``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_machines, n_features)
        One machine for two classes. Else one per class (ovr), or per pair of classes (ovo) in the
        order (0, 1), (0, 2), ..., (1, 2), ..., positive for the second of the pair.
    intercept_ : ndarray of shape (n_machines,)
        One for each machine.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    support_ : ndarray of int
        The features that at least one machine gives weight. `get_support` has the chosen ones, which is the
        same, but for groups and features to keep with coefficients of zero.
    n_iter_ : ndarray of shape (n_machines,)
        Newton steps of the search, or inner iterations of the annealing.
    objective_ : ndarray of shape (n_machines,)
        The minimised objective.
    solutions_ : tuple of Solution
        Why the solver stopped, and more, one per machine.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        Only if X had names for its columns.

    See Also
    --------
    SparseSVCCV : Chooses k and C.
    KernelSparseSVC : Bounds the number of training points, with a kernel.
    sparse_svm_path : A machine for each of many k.

    Notes
    -----
    It is a selector, too: ``make_pipeline(SparseSVC(k=10), AnyClassifier())`` hands on exactly the chosen
    features. In scikit-learn's SelectFromModel it keeps those whose coefficients add up to 1e-5 or more, its
    default for models that leave features out; for features on a scale of 10,000 and more use
    ``threshold=1e-300``, or the estimator itself.

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

    def __init__(
        self,
        k: int | str = 10,
        *,
        C: float = 1.0,
        solver: Any = DEFAULT,
        multi_class: str = "ovo",
        shared: bool = True,
        groups: Any = None,
        keep: Any = None,
        avoid: Any = None,
        signs: Any = None,
        standardize: bool = False,
        fit_intercept: bool = True,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.k = k
        self.C = C
        self.solver = solver
        self.multi_class = multi_class
        self.shared = shared
        self.groups = groups
        self.keep = keep
        self.avoid = avoid
        self.signs = signs
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SparseSVC":
        """Fit the machines.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            A data frame's columns keep their names. Dask collections are read where they are. Arrays of
            torch, CuPy and their like stay on their device under scikit-learn's `array_api_dispatch`; the
            fitted attributes are then of their kind.
        y : array-like of shape (n_samples,)
            The classes, two or more.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            A sample of weight 2 counts as the sample twice, of weight 0 as not at all.

        Returns
        -------
        SparseSVC
            Itself.
        """
        self._fit(X, y, sample_weight)
        return self
