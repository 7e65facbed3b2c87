"""`StabilitySelection` selects the features that are used by most models of random halves of the rows."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from kmargin.core import validation
from kmargin.core.arrays import Flags
from kmargin.core.summary import Documented
from kmargin.core.units import UnitRequest, Units
from kmargin.core.validation import warn_caller
from kmargin.estimators.linear import LinearClassifier, SparseSVC
from kmargin.fitting.fit import Procedure, fit_parts
from kmargin.fitting.subsampling import (
    LABEL,
    Halves,
    Rows,
    SelectionBounds,
    check_max_false,
    check_threshold,
    last_step,
    needed_halves,
    read_rows,
    select_by_estimator,
    stability_bounds,
    warnings_told_once,
)

if TYPE_CHECKING:
    import pandas as pd


DEFAULT_K = 10
C_DIVISOR = 2000  # `stability_C` is (rows of a half)² / features / C_DIVISOR; small C means a strong ridge
LARGEST_C = 1.0  # the largest C that `stability_C` returns: the default of SparseSVC


def stability_C(n_samples: int, n_features: int) -> float:
    """Return a C that suits stability selection, for features of variance 1.

    The more features there are per row of a half, the more a fit depends on the choice of rows, and the
    stronger is the ridge that works best. C is m² / (2000 p) for halves of m rows and p features, but at most
    1. This rule was fitted to simulated data with 100 to 400 rows and 200 to 5000 features, see the guide.

    Parameters
    ----------
    n_samples : int
        The number of all rows, not of a half.
    n_features : int
        The number of features, or of groups if groups are selected.

    Returns
    -------
    float
        The C that ``StabilitySelection(C=None)`` uses.

    Examples
    --------
    >>> from kmargin import stability_C
    >>> stability_C(n_samples=200, n_features=1000)
    0.005
    """
    validation.check_count("n_samples", n_samples, "rows", least=2)
    validation.check_count("n_features", n_features, "features")
    return min(LARGEST_C, (int(n_samples) // 2) ** 2 / (C_DIVISOR * int(n_features)))


def check_model(estimator: Any, k: Any, ridge: Any) -> None:
    """Raise ValueError if `estimator`, k or C (`ridge`) is invalid, or k or C is given with an estimator."""
    given = {name: value for name, value in (("k", k), ("C", ridge)) if value is not None}
    if estimator is None:
        refuse_all("k", k)
        validation.check_count("k", DEFAULT_K if k is None else k, "features to select on each half")
        validation.check_C(LARGEST_C if ridge is None else ridge)
    elif isinstance(estimator, type) or getattr(estimator, "fit", None) is None:
        advice = "Use one such as SparseSVC(k=10), or write StabilitySelection(k=10)."
        raise validation.invalid("estimator", estimator, "an estimator", advice)
    elif given:
        name, value = next(iter(given.items()))
        raise ValueError(
            f"{name}={value!r} cannot be combined with estimator={type(estimator).__name__}, which has "
            f"its own. Set it there, as in StabilitySelection(SparseSVC({name}={value!r}))."
        )
    else:
        refuse_all("estimator with k", getattr(last_step(estimator), "k", None))


def refuse_all(what: str, k: object) -> None:
    """Raise ValueError if k is "all", since then nothing is selected; the message starts with `what`."""
    if isinstance(k, str) and k == "all":
        raise ValueError(
            f'{what}="all" keeps every feature on every half, so nothing is selected. '
            "Use an integer, such as k=10."
        )


@dataclass(eq=False, repr=False)
class StabilitySelection(Documented, SelectorMixin, BaseEstimator):
    """Select features that are chosen consistently on random halves of the rows.

    Complementary pairs stability selection (Shah and Samworth, 2013): `n_pairs` times the rows are split at
    random into two halves, each with half of the rows of every class, and a model with at most k features is
    fitted to each half. A feature is stable if the proportion of halves that select it is at least
    ``threshold_``, by default the lowest threshold at which at most one feature is expected to be stable by
    chance.

    `bounds_` has upper bounds on the expected number of features that are stable by chance. These are stable
    features of *low selection probability*: a fit to a random half selects them with a probability of at most
    ``q_`` divided by the number of features, that is, no more often than a random choice would. The bounds do
    not cover features without an effect that are selected often because they are correlated with others.

    Parameters
    ----------
    estimator : estimator or None, default=None
        The estimator fitted to each half: any estimator with `get_support` or `coef_` after fitting, or a
        pipeline that ends in one and keeps the order of the features. None is ``SparseSVC(k, C=C)``. With
        groups of features, frequencies and bounds refer to groups. Features that are always in (`keep`) are
        stable by request; the bounds refer to the others.
    k, C : int and float, or None, default=None
        Parameters of the default estimator, for features of variance 1. None means k = 10 and the C of
        :func:`~kmargin.stability_C`, a strong ridge if rows are few and features many. They must be None if
        `estimator` is given.
    n_pairs : int, default=50
        Number of pairs of complementary halves; there are twice as many fits.
    threshold : float or "auto", default="auto"
        The least selection frequency of a stable feature: above 0.5, at most 1. "auto" is the lowest
        threshold for which `bound` is at most `max_false`.
    max_false : float, default=1.0
        The expected number of features stable by chance that ``threshold="auto"`` allows.
    bound : "worst_case", "unimodal" or "r_concave", default="unimodal"
        The bound that "auto" uses. "worst_case" always holds; the other two make assumptions about how often
        a feature is selected by chance, see :func:`~kmargin.stability_bounds`.
    standardize : bool, default=True
        Scale the features of each half to variance 1, using the rows of this half alone.
    n_jobs : int or None, default=None
        Number of halves fitted in parallel, as in :class:`~kmargin.SparseSVC`; the result is exactly the same
        for any number.
    random_state : int, RandomState or None, default=None
        Draws the halves, and is passed to estimators that have a `random_state`.
    verbose : int, default=0
        1 shows progress: a bar on a terminal if rich is installed, else lines of text.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features,)
        Selection frequency of each feature: the proportion of halves that select it.
    group_frequencies_ : ndarray of shape (n_groups,)
        Selection frequency of each group, named in ``groups_``; without groups each feature is a group.
    support_ : ndarray of int
        Indices of the stable features; with groups all features of the stable groups.
    q_ : float
        Mean number of features (or groups) selected on a half, not counting those always in.
    n_candidates_ : int
        Number of features (or groups) to select from, without those that are always or never in.
    threshold_ : float
        The least selection frequency of a stable feature: `threshold`, rounded up to a whole number of
        halves, or the result of "auto".
    bounds_ : SelectionBounds
        Upper bounds on the expected number of stable features of low selection probability: `worst_case`,
        `unimodal`, `r_concave`.
    estimator_ : estimator
        The estimator whose copies were fitted to the halves, with its k and C.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        Only if X has column names.

    See Also
    --------
    stability_bounds : The bounds, for any parameters.
    stability_k : The largest k that keeps a bound below a given number.
    stability_C : The C of the default estimator.
    SparseSVC : The model fitted to each half.

    Examples
    --------
    >>> from kmargin import StabilitySelection
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=300, n_features=100, random_state=0)
    >>> selection = StabilitySelection(k=5, n_pairs=20, random_state=0).fit(X, y)
    >>> selection.support_
    array([0, 1])
    >>> selection.threshold_, round(selection.bounds_.unimodal, 2)
    (0.6, 0.71)
    """

    estimator: Any = None
    _: KW_ONLY
    k: int | None = None
    C: float | None = None
    n_pairs: int = 50
    threshold: float | str = "auto"
    max_false: float = 1.0
    bound: str = "unimodal"
    standardize: bool = True
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "StabilitySelection":
        """Fit a model to each of many random halves of the rows; count how often each feature is selected.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features, in memory.
        y : array-like of shape (n_samples,)
            The classes, each with at least two rows.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Sample weights for the fits. Rows of weight zero are left out.
        groups : array-like of shape (n_samples,) or None, default=None
            Rows of one group (a patient, say) are in the same half.

        Returns
        -------
        StabilitySelection
            Itself.
        """
        self._check_parameters()
        rows = self._read(X, y, sample_weight, groups)
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else tuple(names)
        last, request = last_step(self.estimator), UnitRequest()
        if isinstance(last, LinearClassifier):
            request = UnitRequest(last.groups, last.keep, last.avoid, last.signs)
        units = request.resolve(self.n_features_in_, names)
        if self.estimator is None:
            C = stability_C(len(rows.y), self.n_features_in_) if self.C is None else self.C
            self.estimator_ = SparseSVC(DEFAULT_K if self.k is None else self.k, C=C)
        else:
            self.estimator_ = clone(self.estimator)
            if not request.is_empty:  # replace names by positions: halves are arrays, without column names
                by_place = request.by_place(self.n_features_in_, names)
                last_step(self.estimator_).set_params(**by_place._asdict())
        self._count(self.estimator_, rows, units)
        self.groups_ = np.array(request.label_units(units, names), dtype=object)
        self.always_in_ = units.fixed
        self.n_candidates_ = int(np.count_nonzero(~units.fixed))
        self._unit_of, self._is_grouped = units.unit_of_each_column, request.groups is not None
        self.threshold_ = self._resolve_threshold()
        self.bounds_ = self.bounds_at(self.threshold_)
        self.support_ = np.flatnonzero(self._get_support_mask())
        if self.q_ >= self.n_candidates_ > 0:
            warn_caller(
                f"All {self.n_candidates_} features were selected on every half, so no selection took place. "
                "Use a smaller k."
            )
        return self

    def bounds_at(self, threshold: float) -> SelectionBounds:
        """Return upper bounds on the expected number of features stable by chance, at another threshold.

        Parameters
        ----------
        threshold : float
            The least selection frequency of a stable feature; above 0.5, at most 1.

        Returns
        -------
        SelectionBounds
            Bounds on the expected number of features that would be stable by chance.
        """
        check_is_fitted(self, "q_")
        return stability_bounds(self.n_candidates_, self.q_, threshold, self.n_pairs_)

    def threshold_for(self, max_false: float, bound: str = "unimodal") -> float | None:
        """Return the lowest threshold at which a bound is at most `max_false`.

        Parameters
        ----------
        max_false : float
            Acceptable expected number of features stable by chance.
        bound : "worst_case", "unimodal" or "r_concave", default="unimodal"
            The bound to use, an attribute of `bounds_`.

        Returns
        -------
        float or None
            The threshold; None if the bound is larger than `max_false` even at a threshold of 1.
        """
        check_is_fitted(self, "q_")
        check_max_false(max_false)
        validation.check_choice("bound", bound, SelectionBounds._fields)
        n_halves = 2 * self.n_pairs_
        for n_selected in range(self.n_pairs_ + 1, n_halves + 1):  # bounds fall as the threshold rises
            if getattr(self.bounds_at(n_selected / n_halves), bound) <= max_false:
                return n_selected / n_halves
        return None

    def summary(self) -> "pd.DataFrame":
        """Return all features as a pandas data frame, those with the highest selection frequency first.

        Returns
        -------
        pandas.DataFrame
            The columns `feature`, `frequency`, `always_in` and `stable`; with groups also `group` (the name
            of the feature if it is in no group) and `group_frequency`.
        """
        import pandas as pd

        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_).astype(str))
        never, unit = self._unit_of < 0, np.maximum(self._unit_of, 0)
        frame = pd.DataFrame(
            {
                "feature": names,
                "group": np.where(never, names, self.groups_[unit]),
                "frequency": self.frequencies_,
                "group_frequency": np.where(never, 0.0, self.group_frequencies_[unit]),
                "always_in": ~never & self.always_in_[unit],
                "stable": self._get_support_mask(),
            }
        )
        order = ["group_frequency", "frequency"]
        frame = frame.sort_values(order, ascending=False, kind="stable").reset_index(drop=True)
        return frame if self._is_grouped else frame.drop(columns=["group", "group_frequency"])

    def _get_support_mask(self) -> Flags:
        check_is_fitted(self, "threshold_")
        needed = needed_halves(self.threshold_, self.n_pairs_)
        stable = np.rint(self.group_frequencies_ * 2 * self.n_pairs_) >= needed
        return np.append(stable, False)[self._unit_of]  # index -1, for features in no unit, reads False

    def _count(self, model: Any, rows: Rows, units: Units) -> None:
        """Fit `model` to each half, and set the selection frequencies of features and groups, and `q_`.

        `q_` is the mean number of features (or groups) selected on a half, not counting those always in.
        """
        seed = validation.resolve_seed(self.random_state)
        halves = Halves(rows.codes, self.n_pairs, seed, rows.groups)
        self.n_pairs_ = self.n_pairs
        by_column, by_unit = np.zeros(units.n_features, int), np.zeros(units.n_units, int)
        each: Iterator[Flags]
        with warnings_told_once(len(halves)):
            if type(model) is SparseSVC:
                validation.check_k(model.k)
                validation.check_C(model.C)
                blueprint, samples, procedure = model._prepare_fit(rows.X, rows.y, rows.weights)
                blueprint = replace(blueprint, standardize=self.standardize or blueprint.standardize)
                procedure = Procedure(procedure.solver, self.n_jobs, seed, self.verbose)
                k = validation.resolve_k(model.k, units.n_units, blueprint.unit_label, units.fixed.sum())
                parts = (blueprint.part(samples, half) for half, _ in halves)
                n_classes = len(samples.classes)
                fits = fit_parts(blueprint, parts, len(halves), n_classes, [model.C], [k], procedure, LABEL)
                each = ((fit.decisions(0, 0).coef != 0).any(axis=0) for fit in fits)
            else:
                each = select_by_estimator(model, rows, halves, self.standardize, self.n_jobs, self.verbose)
            for selected in each:
                by_column += units.chosen(selected)
                by_unit += units.fixed | (units.total(selected.astype(float)) > 0)
        self.frequencies_, self.group_frequencies_ = by_column / len(halves), by_unit / len(halves)
        self.q_ = float(by_unit[~units.fixed].sum() / len(halves))

    def _check_parameters(self) -> None:
        validation.check_count("n_pairs", self.n_pairs, "pairs of halves")
        validation.check_flags(self, "standardize")
        validation.check_choice("bound", self.bound, SelectionBounds._fields)
        check_max_false(self.max_false)
        if not (isinstance(self.threshold, str) and self.threshold == "auto"):
            check_threshold(self.threshold, ", or leave it out")
        check_model(self.estimator, self.k, self.C)
        validation.check_n_jobs(self.n_jobs)
        validation.check_verbose(self.verbose)

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Rows:
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan" if get_tags(self).input_tags.allow_nan else True,
            ensure_min_samples=2,
        )
        return read_rows(X, y, sample_weight, groups)

    def _resolve_threshold(self) -> float:
        if not isinstance(self.threshold, str):
            return needed_halves(self.threshold, self.n_pairs_) / (2 * self.n_pairs_)
        lowest = self.threshold_for(self.max_false, self.bound)
        if lowest is None and self.q_ < self.n_candidates_:
            at_most = getattr(self.bounds_at(1.0), self.bound)
            warn_caller(
                f"With {self.q_:.3g} of {self.n_candidates_} features selected on each half, no threshold "
                f"keeps the number expected by chance at max_false={self.max_false:g}: it is up to "
                f"{at_most:.3g} for features selected on every half, which are taken. Use a smaller k."
            )
        return 1.0 if lowest is None else lowest

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        if self.estimator is not None:
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
            first = self.estimator.steps[0][1] if isinstance(self.estimator, Pipeline) else self.estimator
            tags.input_tags.allow_nan = get_tags(first).input_tags.allow_nan
        return tags
