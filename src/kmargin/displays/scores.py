"""Scores against k."""

from typing import Any

import numpy as np

from kmargin.core.arrays import Vector
from kmargin.displays import palette
from kmargin.displays.common import Display, axis_label, find_model, log_axis

SHARES = ("accuracy", "balanced_accuracy")  # shown in per cent


class CVScoreDisplay(Display):
    """Score against k, with a band of one standard error and the chosen k marked.

    Parameters
    ----------
    ks : array of shape (n_ks,)
        The values of k.
    mean, error : arrays of shape (n_ks,)
        Mean score over the folds and its standard error.
    chosen : int or None, default=None
        The k that was chosen.
    score_name : str, default="score"
        Name of the score; proportions such as "accuracy" are shown in per cent.
    counted : str, default=""
        What k counts, for the axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes, after plotting.
    figure_ : matplotlib.figure.Figure
        Their figure.

    See Also
    --------
    SparsityPathDisplay : The features for each k.
    SparseSVCCV : Chooses k by these scores.

    Examples
    --------
    >>> from kmargin import CVScoreDisplay, SparseSVCCV
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=100, n_features=8, random_state=0)
    >>> display = CVScoreDisplay.from_estimator(SparseSVCCV(ks=[8, 4, 2, 1]).fit(X, y))
    >>> display.chosen
    2
    """

    def __init__(
        self,
        ks: Any,
        mean: Vector,
        error: Vector,
        chosen: int | None = None,
        score_name: str = "score",
        counted: str = "",
    ) -> None:
        order = np.argsort(ks)
        self.ks, self.mean, self.error = (np.asarray(values)[order] for values in (ks, mean, error))
        self.chosen = chosen
        self.score_name = score_name
        self.counted = counted

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> "CVScoreDisplay":
        """Draw the scores of a fitted SparseSVCCV or KernelSparseSVCCV at its `C_`.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator, or a pipeline or search that contains one.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        CVScoreDisplay
            Drawn.
        """
        needs = "a SparseSVCCV or KernelSparseSVCCV, which has scores for each k"
        estimator = find_model(estimator, "C_", cls.__name__, needs).model
        results = estimator.cv_results_
        at = results["param_C"] == estimator.C_
        name = estimator.scoring if isinstance(estimator.scoring, str) else None
        if name is None:
            name = "accuracy" if estimator.scoring is None else "score"
        mean, error = results["mean_test_score"][at], results["se_test_score"][at]
        counted = estimator.path_.counted
        return cls(results["param_k"][at], mean, error, estimator.k_, name, counted).plot(ax)

    def plot(self, ax: Any = None) -> "CVScoreDisplay":
        """Draw the scores.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        CVScoreDisplay
            Itself.
        """
        ax = self._axes(ax, (6.4, 4.0))
        band = {"color": palette.CURVE, "alpha": palette.BAND, "lw": 0}
        ax.fill_between(self.ks, self.mean - self.error, self.mean + self.error, **band)
        ax.plot(self.ks, self.mean, color=palette.CURVE, marker="o", ms=4, lw=1.5)
        log_axis(ax, self.ks)
        if self.chosen is not None:
            self._mark(ax, int(self.chosen))
        said = f"{self.score_name} (cross-validated)\nand one standard error"
        ax.set(xlabel=axis_label(self.counted), ylabel=said)
        if self.score_name in SHARES:
            from matplotlib.ticker import PercentFormatter

            low, high = ax.get_ylim()
            digits = 0 if high - low > 0.03 else 1
            ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=digits, symbol=" %"))
        return self

    def _mark(self, ax: Any, chosen: int) -> None:
        """A ring around the chosen score, and its k."""
        score = self.mean[self.ks == chosen][0]
        ax.axvline(chosen, color=palette.CHOSEN, lw=0.9, ls=palette.DOTTED, zorder=0)
        ring = {"mfc": "none", "mec": palette.CHOSEN, "mew": 1.6, "ms": 11}
        ax.plot([chosen], [score], "o", **ring)
        right = 2 * np.searchsorted(self.ks, chosen) > len(self.ks)
        ax.annotate(
            f"k = {chosen}, chosen",
            (chosen, 0.04),
            xycoords=("data", "axes fraction"),
            xytext=(-6 if right else 6, 0),
            textcoords="offset points",
            ha="right" if right else "left",
            color=palette.CHOSEN,
        )
