"""Linear machines as selectors: what they chose, and X with these features alone."""

from typing import Any

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags, _safe_indexing
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from kmargin.blocks.space import space_of, to_host
from kmargin.estimators.classifier import MarginClassifier
from kmargin.samples.read import add_columns, select_columns
from kmargin.types import Flags, Indices
from kmargin.unit_request import UnitRequest


class FeatureSelector(SelectorMixin, MarginClassifier):
    """A classifier that hands on the features it chose.

    Chosen are the features of all units that some machine uses, and of those that are always in: with
    groups all columns of a chosen group, and what was to be kept even where its coefficient is zero.
    """

    groups: Any
    keep: Any
    avoid: Any
    signs: Any

    # SelectFromModel drops what is below the mean, half of what was chosen, unless this says that
    # coefficients are zero where a feature is not used; then its threshold is 1e-5.
    penalty = "l1"

    def get_support(self, indices: bool = False) -> Any:
        """Return which features were chosen.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return their indices instead of a mask.

        Returns
        -------
        array of bool of shape (n_features,), or array of int
            Of the array type of `coef_`.
        """
        mask = self._get_support_mask()
        return space_of(self.coef_).put(np.flatnonzero(mask) if indices else mask)

    def transform(self, X: Any) -> Any:
        """Return the chosen features of X.

        Parameters
        ----------
        X : array, sparse matrix, data frame or dask collection of shape (n_samples, n_features)
            With the features of the training data.

        Returns
        -------
        array, sparse matrix or dask collection of shape (n_samples, n_chosen)
            Of the type and dtype of X; a data frame if requested by `set_output`. Otherwise a data frame
            becomes an array, as with every scikit-learn transformer.
        """
        check_is_fitted(self)
        method = f"{type(self).__name__}.transform"
        checks, at_hand = self._checks(reset=False), super().transform
        return select_columns(checks, X, self._columns(), at_hand, method, self.intercept_)

    def inverse_transform(self, X: Any) -> Any:
        """Return X with a column for every feature, zero for those that were not chosen.

        Parameters
        ----------
        X : array, sparse matrix or dask array of shape (n_samples, n_chosen)
            As `transform` returns it.

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
            One for each column that `transform` returns.
        """
        check_is_fitted(self)
        return _check_feature_names_in(self, input_features)[self._get_support_mask()]

    def _get_support_mask(self) -> Flags:
        check_is_fitted(self)
        used = (to_host(self.coef_) != 0).any(axis=0)
        request = self._request()
        if request.is_empty:
            return used
        names = getattr(self, "feature_names_in_", None)
        return request.resolve(len(used), names).chosen(used)

    def _columns(self) -> Indices:
        return np.flatnonzero(self._get_support_mask())

    def _transform(self, X: Any) -> Any:
        return _safe_indexing(X, self._columns(), axis=1)

    def _request(self) -> UnitRequest:
        """What is said about features."""
        return UnitRequest(self.groups, self.keep, self.avoid, self.signs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
