"""Features that come back when half of the rows are drawn anew."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import validate_data

from kmargin import arguments, validate
from kmargin.addresses import Documented
from kmargin.chance import check_bound, check_max_false, check_threshold, needed_halves
from kmargin.errors import warn_caller
from kmargin.estimators.half_model import check_model, make_model, request_of
from kmargin.estimators.linear import SparseSVC
from kmargin.estimators.stable_features import StableFeatures
from kmargin.fitting.grid_fit import Procedure
from kmargin.fitting.halves import (
    Halves,
    Rows,
    first_step,
    read_rows,
    select_by_estimator,
    select_by_machines,
    warnings_told_once,
)
from kmargin.units import Units


class StabilitySelection(Documented, StableFeatures, BaseEstimator):
    """Features that are selected again and again on random halves of the rows.

    Complementary pairs (Shah and Samworth, 2013): `n_pairs` times the rows are split at random into two
    halves, each with half of the rows of every class, and a machine with at most k features is fitted to
    each. A feature is stable if it was selected on a share of at least ``threshold_`` of all halves. By
    default this is the lowest share at which at most one stable feature is expected by chance.

    How many features become stable by chance is bounded (`bounds_`). Chance means *low selection
    probability*: features that a fit to a random half selects with a probability of at most ``q_`` divided
    by the number of features, no more often than a blind choice would. A feature without an effect of its own
    that is correlated with one that has is selected more often, and no bound is about it.

    Parameters
    ----------
    estimator : estimator or None, default=None
        What is fitted to each half: anything that has `get_support` or `coef_` once fitted, or a pipeline
        that ends in it and leaves features at their places. None is ``SparseSVC(k, C=C)``. With groups of
        features it is groups that are stable, counted and bounded. Features that are always in (`keep`) are
        stable because that was asked for; the bounds are about the others.
    k, C : int and float, or None, default=None
        Of the default estimator, for features of variance 1: None is 10, and the C of
        :func:`~kmargin.stability_C`, a strong ridge where rows are few and features many. An estimator that
        is given has its own.
    n_pairs : int, default=50
        How many pairs of complementary halves; twice as many fits.
    threshold : float or "auto", default="auto"
        The share of halves on which a stable feature is selected: above 0.5, at most 1. "auto" is the lowest
        threshold for which `bound` is at most `max_false`.
    max_false : float, default=1.0
        How many stable features ``threshold="auto"`` allows to be there by chance, in expectation.
    bound : "worst_case", "unimodal" or "r_concave", default="unimodal"
        The bound that "auto" uses. The first always holds; the others assume something about the distribution
        of the number of halves that select a feature, see :func:`~kmargin.stability_bounds`.
    standardize : bool, default=True
        Scale the features of each half to variance 1, by its own rows.
    n_jobs : int or None, default=None
        Halves fitted side by side, as in :class:`~kmargin.SparseSVC`: same result to the bit for any number.
    random_state : int, RandomState or None, default=None
        Draws the halves, and goes to estimators that have a `random_state`.
    verbose : int, default=0
        1 shows a progress bar: rich's if it is installed.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features,)
        On which share of the halves each feature was selected.
    group_frequencies_ : ndarray of shape (n_groups,)
        The same of groups, called ``groups_``; without groups each feature is one.
    support_ : ndarray of int
        The stable features; with groups all features of the stable ones.
    q_ : float
        How many features (or groups) were selected on a half in the mean, not counting those always in.
    n_candidates_ : int
        How many there were to select from: neither always in nor never.
    threshold_ : float
        The share of halves on which a stable feature is selected: `threshold`, rounded up to whole halves, or
        what "auto" has found.
    bounds_ : SelectionBounds
        At most so many of the stable features are expected to be of low selection probability:
        `worst_case`, `unimodal`, `r_concave`.
    estimator_ : estimator
        What a copy of was fitted to each half, with its k and C.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        Only if X had names for its columns.

    See Also
    --------
    stability_bounds : The bounds, for any numbers.
    stability_k : Which k keeps a bound below a number.
    stability_C : The C of the default estimator.
    SparseSVC : What is fitted to each half.

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

    def __init__(
        self,
        estimator: Any = None,
        *,
        k: int | None = None,
        C: float | None = None,
        n_pairs: int = 50,
        threshold: float | str = "auto",
        max_false: float = 1.0,
        bound: str = "unimodal",
        standardize: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.k = k
        self.C = C
        self.n_pairs = n_pairs
        self.threshold = threshold
        self.max_false = max_false
        self.bound = bound
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "StabilitySelection":
        """Fit to both halves of each pair, and count.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            In memory.
        y : array-like of shape (n_samples,)
            The classes, each with two rows at least.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Given to the fits. Rows without weight are left out.
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
        request = request_of(self.estimator)
        units = request.resolve(self.n_features_in_, names)
        shape = len(rows.y), self.n_features_in_
        self.estimator_ = make_model(self.estimator, self.k, self.C, request, shape, names)
        self._count(self.estimator_, rows, units)
        self.groups_ = np.array(request.label_units(units, names), dtype=object)
        self.always_in_ = units.fixed
        self.n_candidates_ = int(np.count_nonzero(~units.fixed))
        self._unit_of, self._is_grouped = units.unit_of_each_column, request.groups is not None
        self.threshold_ = self._resolve_threshold()
        self.bounds_ = self.bounds_at(self.threshold_)
        self.support_ = np.flatnonzero(self._get_support_mask())
        self._warn_of_all()
        return self

    def _count(self, model: Any, rows: Rows, units: Units) -> None:
        """Fit to all halves; set how often what was selected."""
        seed = validate.resolve_seed(self.random_state)
        halves = Halves(rows.codes, self.n_pairs, seed, rows.groups)
        self.n_pairs_ = self.n_pairs
        by_column, by_unit = np.zeros(units.n_features, int), np.zeros(units.n_units, int)
        with warnings_told_once(len(halves)):
            if type(model) is SparseSVC:
                samples, blueprint, k = model._prepare(rows.X, rows.y, rows.weights)
                blueprint = replace(blueprint, standardize=self.standardize or blueprint.standardize)
                procedure = Procedure(model.solver, self.n_jobs, seed, self.verbose)
                each = select_by_machines(blueprint, samples, halves, model.C, k, procedure)
            else:
                each = select_by_estimator(model, rows, halves, self.standardize, self.n_jobs, self.verbose)
            for selected in each:
                by_column += units.chosen(selected)
                by_unit += units.fixed | (units.total(selected.astype(float)) > 0)
        self.frequencies_, self.group_frequencies_ = by_column / len(halves), by_unit / len(halves)
        self.q_ = float(by_unit[~units.fixed].sum() / len(halves))

    def _check_parameters(self) -> None:
        validate.check_count("n_pairs", self.n_pairs, "pairs of halves")
        validate.check_flag("standardize", self.standardize)
        check_bound(self.bound)
        check_max_false(self.max_false)
        if not (isinstance(self.threshold, str) and self.threshold == "auto"):
            check_threshold(self.threshold, ', or "auto"')
        check_model(self.estimator, self.k, self.C)
        arguments.check_n_jobs(self.n_jobs)
        arguments.check_verbose(self.verbose)

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

    def _warn_of_all(self) -> None:
        if self.q_ >= self.n_candidates_ > 0:
            warn_caller(
                f"All {self.n_candidates_} features were selected on every half, so that nothing was chosen. "
                "Use a smaller k."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        if self.estimator is not None:
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
            tags.input_tags.allow_nan = get_tags(first_step(self.estimator)).input_tags.allow_nan
        return tags
