"""What is read off how often features were selected: which are stable, how many of them by chance."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from kmargin.chance import (
    SelectionBounds,
    check_bound,
    check_max_false,
    lowest_threshold,
    needed_halves,
    stability_bounds,
)
from kmargin.types import Flags, Indices, Vector

if TYPE_CHECKING:
    import pandas as pd


class StableFeatures(SelectorMixin):
    """A selector of the features that were selected on enough of the halves; who counts sets these."""

    n_features_in_: int
    n_pairs_: int
    n_candidates_: int
    q_: float
    threshold_: float
    frequencies_: Vector
    group_frequencies_: Vector
    groups_: Any
    always_in_: Flags
    _unit_of: Indices

    def bounds_at(self, threshold: float) -> SelectionBounds:
        """Return the bounds at another threshold.

        Parameters
        ----------
        threshold : float
            Above 0.5, at most 1.

        Returns
        -------
        SelectionBounds
            For the parameters of this selection.
        """
        check_is_fitted(self, "q_")
        return stability_bounds(self.n_candidates_, self.q_, threshold, self.n_pairs_)

    def threshold_for(self, max_false: float, bound: str = "unimodal") -> float | None:
        """Return the lowest threshold at which a bound is at most `max_false`.

        Parameters
        ----------
        max_false : float
            Acceptable expected number of features selected by chance.
        bound : "worst_case", "unimodal" or "r_concave", default="unimodal"
            Which bound.

        Returns
        -------
        float or None
            None if the bound is larger even at a threshold of 1.
        """
        check_is_fitted(self, "q_")
        check_max_false(max_false)
        check_bound(bound)
        return lowest_threshold(self.n_candidates_, self.q_, max_false, self.n_pairs_, bound)

    def summary(self) -> "pd.DataFrame":
        """Return all features as a pandas data frame, the most frequent first.

        Returns
        -------
        pandas.DataFrame
            `feature`, `frequency`, `always_in`, `stable`; with groups also `group` (the feature's own name if
            it is in none) and `group_frequency`.
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
        return np.append(stable, False)[self._unit_of]  # those of no unit are at -1
