"""Plots in the manner of scikit-learn's displays: numbers first, then `plot`, then `ax_` and `figure_`.

matplotlib is imported when something is drawn.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kmargin.blocks.space import to_host
from kmargin.multiclass import class_weights, machine_names
from kmargin.palette import BAND, CHOSEN, CURVE, FAINT, NEGATIVE, POSITIVE, SERIES, SOFT
from kmargin.path import SparsityPath
from kmargin.types import Matrix, Vector

MOST_BARS = 6  # for a feature; beyond, shades tell more


class Display:
    """Something that can be drawn into axes."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any, size: tuple[float, float]) -> Any:
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        ax.spines[["top", "right"]].set_visible(False)
        return ax


class SparsityPathDisplay(Display):
    """Coefficients against k: where each feature enters, and how its weight changes.

    Parameters
    ----------
    ks : array of shape (n_ks,)
    coefs : array of shape (n_ks, n_features)
    feature_names : list of str
    title : str
    counted : str
        What k counts, for the axis.
    """

    def __init__(
        self, ks: Any, coefs: Matrix, feature_names: Sequence[str], title: str = "", counted: str = ""
    ) -> None:
        self.ks = np.asarray(ks)
        self.coefs = coefs
        self.feature_names = list(feature_names)
        self.title = title
        self.counted = counted

    @classmethod
    def from_path(
        cls, path: SparsityPath, *, machine: int = 0, feature_names: Any = None, ax: Any = None
    ) -> "SparsityPathDisplay":
        """Draw one machine of a path."""
        names = _names(feature_names, path.coefs.shape[2])
        title = machine_names(path.classes, path.multi_class)[machine]
        return cls(path.ks, to_host(path.coefs)[:, machine], names, title, path.counted).plot(ax)

    def plot(self, ax: Any = None, n_labels: int = 8) -> "SparsityPathDisplay":
        """Draw into `ax`, or new axes; name the features that stay longest."""
        ax = self._axes(ax, (6.4, 4.0))
        used = np.flatnonzero(self.coefs.any(axis=0))
        stays = (self.coefs[:, used] != 0).sum(axis=0)
        named = used[np.lexsort((-np.abs(self.coefs[:, used]).max(axis=0), -stays))][:n_labels]
        for j in used:
            if j not in named:
                ax.plot(self.ks, self.coefs[:, j], color=FAINT, lw=0.8, zorder=1)
        for number, j in enumerate(named):
            line = SERIES[number % len(SERIES)].drawn
            ax.plot(self.ks, self.coefs[:, j], lw=1.6, ms=4, label=_plain(self.feature_names[j]), **line)
        ax.axhline(0, color=SOFT, lw=0.8)
        _log_axis(ax, self.ks)
        ax.set(xlabel=_axis_label(self.counted), ylabel="coefficient", title=_plain(self.title))
        if len(named):
            ax.legend(fontsize="small", frameon=False)
        return self


class CVScoreDisplay(Display):
    """Score against k, with a band of one standard error and the chosen k marked.

    Parameters
    ----------
    ks : array of shape (n_ks,)
    mean, error : arrays of shape (n_ks,)
        Mean score over the folds and its standard error.
    chosen : int or None
    score_name : str
    counted : str
        What k counts, for the axis.
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
        self.ks, self.mean, self.error = np.asarray(ks)[order], mean[order], error[order]
        self.chosen = chosen
        self.score_name = score_name
        self.counted = counted

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> "CVScoreDisplay":
        """Draw the scores of a fitted SparseSVCCV or KernelSparseSVCCV at its `C_`."""
        results = estimator.cv_results_
        at = results["param_C"] == estimator.C_
        name = estimator.scoring if isinstance(estimator.scoring, str) else None
        if name is None:
            name = "accuracy" if estimator.scoring is None else "score"
        mean, error = results["mean_test_score"][at], results["se_test_score"][at]
        counted = estimator.path_.counted
        return cls(results["param_k"][at], mean, error, estimator.k_, name, counted).plot(ax)

    def plot(self, ax: Any = None) -> "CVScoreDisplay":
        ax = self._axes(ax, (6.4, 4.0))
        ax.fill_between(
            self.ks, self.mean - self.error, self.mean + self.error, color=CURVE, alpha=BAND, lw=0
        )
        ax.plot(self.ks, self.mean, color=CURVE, marker="o", ms=4, lw=1.5)
        if self.chosen is not None:
            score = self.mean[self.ks == self.chosen][0]
            ax.axvline(self.chosen, color=CHOSEN, lw=1, ls=(0, (4, 3)))
            ax.plot([self.chosen], [score], "o", color=CHOSEN, ms=9, fillstyle="none", mew=2)
            right = 2 * np.searchsorted(self.ks, self.chosen) > len(self.ks)
            ax.annotate(
                f"k = {self.chosen}",
                (self.chosen, 0.06),
                xycoords=("data", "axes fraction"),
                xytext=(-7 if right else 7, 0),
                textcoords="offset points",
                ha="right" if right else "left",
                color=CHOSEN,
            )
        _log_axis(ax, self.ks)
        ax.set(xlabel=_axis_label(self.counted), ylabel=f"{self.score_name} (cross-validated)")
        return self


class CoefficientDisplay(Display):
    """Bars of coefficients, the largest on top; with several machines a group of bars per feature.

    Beyond six rows of coefficients they are shades in place of bars.

    Parameters
    ----------
    feature_names : list of str
    coefs : array of shape (n_machines, n_features)
    machines : list of str
        Or classes, in place of the many machines that tell them apart.
    """

    def __init__(self, feature_names: Sequence[str], coefs: Matrix, machines: Sequence[str]) -> None:
        self.feature_names = list(feature_names)
        self.coefs = np.atleast_2d(coefs)
        self.machines = list(machines)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Any = None, n_features: int = 20, ax: Any = None
    ) -> "CoefficientDisplay":
        """Draw the features that a fitted linear machine uses, at most `n_features` of them.

        Of more than six machines the classes are drawn: a class's coefficient is the mean over the machines
        in which it takes part, positive speaking for the class.
        """
        given = getattr(estimator, "feature_names_in_", None) if feature_names is None else feature_names
        coef = to_host(estimator.coef_)
        names = _names(given, coef.shape[1])
        size = np.abs(coef).max(axis=0)
        used = sorted(to_host(estimator.support_), key=lambda j: -size[j])[:n_features]
        machines = machine_names(estimator.classes_, estimator.multi_class)
        coef = coef[:, used]
        if len(machines) > MOST_BARS:
            machines = [str(name) for name in to_host(estimator.classes_)]
            coef = class_weights(coef, len(machines), estimator.multi_class)
        return cls([names[j] for j in used], coef, machines).plot(ax)

    def plot(self, ax: Any = None) -> "CoefficientDisplay":
        n_machines, n_features = self.coefs.shape
        if n_machines > MOST_BARS:
            return self._plot_shades(ax)
        ax = self._axes(ax, (6.4, 0.9 + 0.26 * n_features * max(1.0, 0.45 * n_machines)))
        height = 0.8 / n_machines
        places = np.arange(n_features)
        for m, coef in enumerate(self.coefs):
            single = [POSITIVE if value > 0 else NEGATIVE for value in coef]
            colour: dict[str, Any] = {"color": single}
            if n_machines > 1:
                colour = {"color": SERIES[m].color, "label": _plain(self.machines[m])}
            ax.barh(places + (m - (n_machines - 1) / 2) * height, coef, height, **colour)
        ax.axvline(0, color=SOFT, lw=0.8)
        ax.set_yticks(places, [_plain(name) for name in self.feature_names])
        ax.invert_yaxis()
        ax.set_xlabel("coefficient" if n_machines > 1 else f"coefficient ({_plain(self.machines[0])})")
        if n_machines > 1:
            ax.legend(fontsize="small", frameon=False)
        return self

    def _plot_shades(self, ax: Any) -> "CoefficientDisplay":
        """A row per feature, a column per machine or class: violet for positive, green for negative."""
        from matplotlib.colors import LinearSegmentedColormap

        n_columns, n_features = self.coefs.shape
        ax = self._axes(ax, (min(2.2 + 0.42 * n_columns, 14.0), 1.1 + 0.26 * n_features))
        largest = float(np.abs(self.coefs).max(initial=0.0)) or 1.0
        colours = LinearSegmentedColormap.from_list("coefficients", [NEGATIVE, "white", POSITIVE])
        image = ax.imshow(self.coefs.T, cmap=colours, vmin=-largest, vmax=largest, aspect="auto")
        ax.set_xticks(np.arange(n_columns), [_plain(name) for name in self.machines])
        if max(map(len, self.machines)) > 3:
            ax.tick_params(axis="x", rotation=90)
        ax.set_yticks(np.arange(n_features), [_plain(name) for name in self.feature_names])
        ax.figure.colorbar(image, ax=ax, label="coefficient", shrink=0.8)
        return self


def _axis_label(counted: str) -> str:
    return f"k, the number of {counted}" if counted else "k"


def _names(given: Any, n_features: int) -> list[str]:
    if given is None:
        return [f"x{j}" for j in range(n_features)]
    if len(given) != n_features:
        raise ValueError(
            f"feature_names has {len(given)} names for {n_features} features. Give one for each."
        )
    return [str(name) for name in given]


def _plain(text: str) -> str:
    """Dollar signs are money, not formulas."""
    return text.replace("$", r"\$")


def _log_axis(ax: Any, ks: Any) -> None:
    """Small k stand apart; k = 0 has its place too."""
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    ticks = [k for k in (0, 1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500) if min(ks) <= k <= max(ks)]
    ticks += [k for k in (10**e for e in range(3, 9)) if min(ks) <= k <= max(ks)]
    ticks = ticks if len(ticks) > 2 else sorted({int(k) for k in ks})[:10]
    ax.set_xscale("symlog", linthresh=1, linscale=0.5)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
