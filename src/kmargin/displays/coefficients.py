"""The display of a model's coefficients."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kmargin.core.arrays import Matrix, to_host
from kmargin.core.labels import class_weights, machine_names
from kmargin.displays import palette
from kmargin.displays.common import Display, find_model, name_features, plain

MAX_BARS = 6  # with more bars than this per feature, a heat map is drawn instead
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++")  # patterns that tell bars apart without colours


@dataclass(eq=False, repr=False)
class CoefficientDisplay(Display):
    """Bar plot of the coefficients of features; each feature has a bar for each binary classifier.

    With more than six rows in `coefs`, a heat map is drawn instead. `from_estimator` puts the feature with
    the largest coefficient on top. For an estimator fitted with its parameter ``standardize=True``, it draws
    weights: coefficients times the standard deviations of the features in the training rows. Weights can be
    compared between features, whereas coefficients depend on the scales of the features.

    Parameters
    ----------
    feature_names : list of str
        A name for each feature.
    coefs : array of shape (n_machines, n_features)
        The coefficients, with a row for each binary classifier or class.
    machines : list of str
        A name for each row of `coefs`: the classes that a binary classifier separates, such as "a vs b", or
        one class.
    quantity : str, default="coefficient"
        Label of the axis that shows the coefficients.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes, after plotting.
    figure_ : matplotlib.figure.Figure
        The figure that contains the axes.

    See Also
    --------
    SparseSVC.summary : The same as a data frame.

    Examples
    --------
    >>> from kmargin import CoefficientDisplay, SparseSVC
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=100, n_features=8, random_state=0)
    >>> CoefficientDisplay.from_estimator(SparseSVC(k=2).fit(X, y)).feature_names
    ['x0', 'x1']
    """

    feature_names: list[str]
    coefs: Matrix
    machines: list[str]
    quantity: str = "coefficient"

    def __post_init__(self) -> None:
        self.feature_names, self.machines = list(self.feature_names), list(self.machines)
        self.coefs = np.atleast_2d(self.coefs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Any = None, n_features: int = 20, ax: Any = None
    ) -> "CoefficientDisplay":
        """Draw the features that a fitted linear model uses.

        With more than six binary classifiers, a feature has a coefficient for each class instead: its mean
        over the binary classifiers that separate this class from others, positive if it favours this class.

        Parameters
        ----------
        estimator : estimator
            A fitted SparseSVC or SparseSVCCV, or a pipeline or search that contains one.
        feature_names : list of str or None, default=None
            A name for each feature; None uses the column names of the training data.
        n_features : int, default=20
            Maximum number of features shown, those with the largest weights or coefficients.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        CoefficientDisplay
            The display, drawn.
        """
        needs = "a SparseSVC or SparseSVCCV, which has a coefficient for each feature"
        estimator, known = find_model(estimator, "coef_", cls.__name__, needs)
        coef, quantity = to_host(estimator.coef_), "coefficient per unit of the feature"
        scale = getattr(estimator, "scale_", None)
        if scale is not None:
            coef = coef * to_host(scale)
            quantity = "weight, per standard deviation of the feature"
        names = name_features(feature_names, known, coef.shape[1])
        size = np.abs(coef).max(axis=0)
        used = sorted(to_host(estimator.support_), key=lambda j: -size[j])[:n_features]
        if not used:
            raise ValueError("The model uses no features, so there is nothing to draw. Fit it with k > 0.")
        machines = machine_names(estimator.classes_, estimator.multi_class)
        coef = coef[:, used]
        if len(machines) > MAX_BARS:
            machines = [str(name) for name in to_host(estimator.classes_)]
            coef = class_weights(coef, len(machines), estimator.multi_class)
        return cls([names[j] for j in used], coef, machines, quantity).plot(ax)

    @property
    def _size(self) -> tuple[float, float]:  # type: ignore[override]
        n_columns, n_features = self.coefs.shape
        if n_columns > MAX_BARS:
            return min(2.6 + 0.42 * n_columns, 14.0), 1.1 + 0.26 * n_features
        return 6.4, 1.1 + 0.26 * n_features * max(1.0, 0.5 * n_columns)

    def _draw(self, ax: Any) -> None:
        n_machines, n_features = self.coefs.shape
        if n_machines > MAX_BARS:
            self._draw_heat_map(ax)
            return
        height = 0.8 / n_machines
        places = np.arange(n_features)
        for m, coef in enumerate(self.coefs):
            look: dict[str, Any] = {}
            if n_machines == 1:
                look = {"color": [palette.POSITIVE if value > 0 else palette.NEGATIVE for value in coef]}
            else:
                look = {"color": palette.SERIES[m].color, "hatch": HATCHES[m], "edgecolor": "white", "lw": 0}
                look["label"] = plain(self.machines[m])
            ax.barh(places + (m - (n_machines - 1) / 2) * height, coef, height, **look)
        ax.axvline(0, color=palette.SOFT, lw=0.8)
        ax.set_yticks(places, [plain(name) for name in self.feature_names])
        ax.tick_params(axis="y", length=0)
        ax.invert_yaxis()
        ax.set_ylim(n_features - 0.45, -0.55)
        alone = "" if n_machines > 1 else f"\n({plain(self.machines[0], 60)})"
        ax.set_xlabel(self.quantity + alone)
        if n_machines > 1:
            ax.legend(fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))

    def _draw_heat_map(self, ax: Any) -> None:
        """Draw a heat map, a row per feature, with + or − on values above 5 % of the largest in magnitude."""
        from matplotlib.colors import LinearSegmentedColormap

        n_columns, n_features = self.coefs.shape
        largest = float(np.abs(self.coefs).max(initial=0.0)) or 1.0
        ends = [palette.NEGATIVE, "white", palette.POSITIVE]
        colours = LinearSegmentedColormap.from_list("coefficients", ends)
        image = ax.imshow(self.coefs.T, cmap=colours, vmin=-largest, vmax=largest, aspect="auto")
        for column, row in zip(*np.nonzero(np.abs(self.coefs) > 0.05 * largest), strict=True):
            value = self.coefs[column, row]
            ink = "white" if abs(value) > 0.55 * largest else palette.INK
            ax.text(column, row, "+" if value > 0 else "−", ha="center", va="center", color=ink, fontsize=8)
        ax.set_xticks(np.arange(n_columns), [plain(name) for name in self.machines])
        if max(map(len, self.machines)) > 3:
            ax.tick_params(axis="x", rotation=90)
        ax.set_yticks(np.arange(n_features), [plain(name) for name in self.feature_names])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.figure.colorbar(image, ax=ax, label=self.quantity, shrink=0.8)
