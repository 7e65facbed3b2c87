"""The displays of cross-validated scores against k, and of coefficients against k."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kmargin.core.arrays import Matrix, Vector, to_host
from kmargin.core.labels import machine_names
from kmargin.displays import palette
from kmargin.displays.common import Display, find_model, name_features, plain

SHARES = ("accuracy", "balanced_accuracy")  # scores that are shown in per cent
# The round numbers that may be ticks on the axis that shows k.
TICKS = (0, 1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, *(10**e for e in range(3, 9)))
MIN_TICK_GAP = 0.055  # least distance between two ticks, as a fraction of the length of the axis
DIGIT_WIDTH = 0.018  # width of a digit of a tick label, as a fraction of the length of the axis


def log_axis(ax: Any, ks: Any) -> None:
    """Make the x axis, which shows k, logarithmic (linear from 0 to 1), with limits and ticks for `ks`."""
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    ks = np.asarray(ks)
    ax.set_xscale("symlog", linthresh=1, linscale=0.5)
    ax.xaxis.set_major_locator(FixedLocator(choose_ticks(ks, ax.xaxis.get_transform().transform)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    transform = ax.xaxis.get_transform()
    low, high = transform.transform(np.array([ks.min(), ks.max()], dtype=float))
    margin = 0.04 * (high - low) if high > low else 0.5
    ax.set_xlim(*transform.inverted().transform(np.array([low - margin, high + margin])))


def choose_ticks(ks: np.ndarray, place: Any) -> list[int]:
    """Choose ticks whose labels do not overlap: the smallest and largest k, and round numbers between them.

    With at most six values of k, these are used instead of round numbers. `place` is a function that maps an
    array of values of k to their positions on the axis.
    """
    low, high = int(ks.min()), int(ks.max())
    every = sorted({int(k) for k in ks})
    wanted = every if len(every) <= 6 else sorted({low, high, *(k for k in TICKS if low <= k <= high)})
    places = dict(zip(wanted, place(np.array(wanted, dtype=float)), strict=True))
    length = places[high] - places[low]

    def has_room(left: int, right: int) -> bool:
        letters = (len(f"{left:,}") + len(f"{right:,}")) / 2
        return bool(places[right] - places[left] >= max(MIN_TICK_GAP, DIGIT_WIDTH * (letters + 1)) * length)

    kept = [high]
    for k in reversed([k for k in wanted if k not in (low, high)]):
        if has_room(k, kept[-1]) and has_room(low, k):
            kept.append(k)
    return sorted({low, *kept})


def axis_label(counted: str) -> str:
    """Return the axis label "k, the number of features", with `counted` for "features"; "k" without it."""
    return f"k, the number of {counted}" if counted else "k"


@dataclass(eq=False, repr=False)
class CVScoreDisplay(Display):
    """Plot of the cross-validated score against k, with a band of one standard error and the chosen k marked.

    Parameters
    ----------
    ks : array of shape (n_ks,)
        The values of k.
    mean, error : arrays of shape (n_ks,)
        Mean score over the folds for each k, and its standard error.
    chosen : int or None, default=None
        The k to mark as the chosen one.
    score_name : str, default="score"
        Name of the score; "accuracy" and "balanced_accuracy" are shown in per cent.
    counted : str, default=""
        The noun for what k counts, such as "features", in the axis label.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes, after plotting.
    figure_ : matplotlib.figure.Figure
        The figure that contains the axes.

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

    ks: Any
    mean: Vector
    error: Vector
    chosen: int | None = None
    score_name: str = "score"
    counted: str = ""

    def __post_init__(self) -> None:
        order, columns = np.argsort(self.ks), (self.ks, self.mean, self.error)
        self.ks, self.mean, self.error = (np.asarray(values)[order] for values in columns)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> "CVScoreDisplay":
        """Draw the scores of a fitted SparseSVCCV or KernelSparseSVCCV against k, at the chosen C.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator, or a pipeline or search that contains one.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        CVScoreDisplay
            The display, drawn.
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

    def _draw(self, ax: Any) -> None:
        band = {"color": palette.CURVE, "alpha": palette.BAND, "lw": 0}
        ax.fill_between(self.ks, self.mean - self.error, self.mean + self.error, **band)
        ax.plot(self.ks, self.mean, color=palette.CURVE, marker="o", ms=4, lw=1.5)
        log_axis(ax, self.ks)
        if self.chosen is not None:
            self._mark(ax, int(self.chosen))
        label = f"{self.score_name} (cross-validated)\nand one standard error"
        ax.set(xlabel=axis_label(self.counted), ylabel=label)
        if self.score_name in SHARES:
            ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.6g} %")

    def _mark(self, ax: Any, chosen: int) -> None:
        """Mark the chosen k with a ring around its score, a dotted vertical line and a text."""
        score = self.mean[self.ks == chosen][0]
        ax.axvline(chosen, color=palette.CHOSEN, lw=0.9, ls=palette.DOTTED, zorder=0)
        ring = {"mfc": "none", "mec": palette.CHOSEN, "mew": 1.6, "ms": 11}
        ax.plot([chosen], [score], "o", **ring)
        is_right = 2 * np.searchsorted(self.ks, chosen) >= len(self.ks)
        side = {"xytext": (-6, 0), "ha": "right"} if is_right else {"xytext": (6, 0), "ha": "left"}
        place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        ax.annotate(f"k = {chosen}, chosen", (chosen, 0.04), color=palette.CHOSEN, **place, **side)


@dataclass(eq=False, repr=False)
class SparsityPathDisplay(Display):
    """Plot of coefficients against k, which shows where each feature enters and how its coefficient changes.

    Parameters
    ----------
    ks : array of shape (n_ks,)
        The values of k.
    coefs : array of shape (n_ks, n_features)
        The coefficients of one binary classifier, or for each feature their norm over several classifiers.
    feature_names : list of str
        A name for each feature.
    title : str, default=""
        Title of the plot, such as the classes that are separated.
    counted : str, default=""
        The noun for what k counts, such as "features", in the axis label.
    quantity : str, default="coefficient"
        Label of the vertical axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes, after plotting.
    figure_ : matplotlib.figure.Figure
        The figure that contains the axes.

    See Also
    --------
    CVScoreDisplay : The score for each k.
    sparse_svm_path : Computes a path.

    Examples
    --------
    >>> from kmargin import SparsityPathDisplay, sparse_svm_path
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=100, n_features=8, random_state=0)
    >>> display = SparsityPathDisplay.from_path(sparse_svm_path(X, y))
    >>> display.ax_.get_xlabel()
    'k, the number of features'
    """

    _size = (7.2, 4.2)

    ks: Any
    coefs: Matrix
    feature_names: list[str]
    title: str = ""
    counted: str = ""
    quantity: str = "coefficient"

    def __post_init__(self) -> None:
        self.ks, self.feature_names = np.asarray(self.ks), list(self.feature_names)

    @classmethod
    def from_path(
        cls,
        path: Any,
        *,
        machine: int | str | None = None,
        feature_names: Any = None,
        n_labels: int = 8,
        scale: Any = None,
        ax: Any = None,
    ) -> "SparsityPathDisplay":
        """Draw the coefficients of one binary classifier of a path, or their norm over all of them.

        Parameters
        ----------
        path : SparsityPath
            The result of `sparse_svm_path`, or the `path_` of a cross-validated estimator.
        machine : int, str or None, default=None
            Index or name ("a vs b") of the binary classifier. With None and several classifiers, the
            Euclidean norm of each feature's coefficients over all of them is drawn.
        feature_names : list of str or None, default=None
            A name for each feature; None uses the column names of the training data.
        n_labels : int, default=8
            Number of features with a name and a colour of their own; the others are grey.
        scale : array of shape (n_features,) or None, default=None
            Standard deviations of the features, by which the coefficients are multiplied.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        SparsityPathDisplay
            The display, drawn.
        """
        coefs = to_host(path.coefs) * (1.0 if scale is None else to_host(scale))
        known = getattr(path, "feature_names", None)
        inputs = getattr(path, "inputs", None)
        if inputs is not None:
            known = [f"row {row}" for row in inputs.columns]
        names = name_features(feature_names, known, coefs.shape[2])
        machines = machine_names(path.classes, path.multi_class)
        if machine is None and len(machines) > 1:
            title = f"{len(machines)} binary classifiers for {path.classes.shape[0]} classes"
            quantity = "size of the coefficients" if scale is None else "size of the weights"
            display = cls(path.ks, np.linalg.norm(coefs, axis=1), names, title, path.counted, quantity)
        else:
            at = _find_machine(0 if machine is None else machine, machines)
            quantity = "coefficient" if scale is None else "weight, per standard deviation"
            display = cls(path.ks, coefs[:, at], names, machines[at], path.counted, quantity)
        return display.plot(ax, n_labels)

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> "SparsityPathDisplay":
        """Draw the `path_` of a fitted SparseSVCCV or KernelSparseSVCCV.

        If a SparseSVCCV was fitted with its parameter ``standardize=True``, its coefficients are multiplied
        by the standard deviations of the features.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator, or a pipeline or search that contains one.
        **options : dict
            Keyword arguments of `from_path`: `machine`, `feature_names`, `n_labels`, `scale`, `ax`.

        Returns
        -------
        SparsityPathDisplay
            The display, drawn.
        """
        needs = "SparseSVCCV or KernelSparseSVCCV (of a SparsityPath, use from_path)"
        found = find_model(estimator, "path_", cls.__name__, needs)
        if found.model.path_.inputs is None:  # linear models have no kernel inputs
            scale = getattr(found.model, "scale_", None)
            options = {"feature_names": found.names, "scale": scale} | options
        return cls.from_path(found.model.path_, **options)

    def plot(self, ax: Any = None, n_labels: int = 8) -> "SparsityPathDisplay":
        """Draw the path, with names for the features that are selected for the most values of k.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on; None creates a new figure.
        n_labels : int, default=8
            Number of features with a name and a colour of their own; the others are grey.

        Returns
        -------
        SparsityPathDisplay
            This display.
        """
        is_own = ax is None
        ax = self._axes(ax)
        used = np.flatnonzero(self.coefs.any(axis=0))
        stays = (self.coefs[:, used] != 0).sum(axis=0)
        named = used[np.lexsort((-np.abs(self.coefs[:, used]).max(axis=0), -stays))][:n_labels]
        others = [j for j in used if j not in named]
        last = int(self.ks.argmax())
        lines = []  # tuples (coefficient at the largest k, line, name); the legend is sorted by coefficient
        for number, j in enumerate(named):
            look, coef = palette.SERIES[number % len(palette.SERIES)], self.coefs[:, j]
            marks = {"ms": 4, "markevery": np.flatnonzero(coef).tolist()}
            name = plain(self.feature_names[j])
            (line,) = ax.plot(self.ks, coef, lw=1.5, label=name, **marks, **look._asdict())
            lines.append((float(coef[last]), line, name))
        if others:
            grey = ax.plot(self.ks, self.coefs[:, others], color=palette.FAINT, lw=0.8, zorder=1)
            name = f"{len(others)} others" if len(others) > 1 else plain(self.feature_names[others[0]])
            lines.append((float(np.median(self.coefs[last, others])), grey[0], name))
        ax.axhline(0, color=palette.SOFT, lw=0.8, zorder=0)
        log_axis(ax, self.ks)
        ax.set(xlabel=axis_label(self.counted), ylabel=self.quantity, title=plain(self.title, 60))
        if not is_own and ax.figure.get_layout_engine() is None:  # make space for the legend beside the axes
            place = ax.get_position()
            ax.set_position([place.x0, place.y0, 0.6 * place.width, place.height])
        lines.sort(key=lambda entry: -entry[0])
        ax.legend(
            [line for _, line, _ in lines],
            [name for _, _, name in lines],
            **{"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False},
            **{"fontsize": "small" if is_own else "x-small", "handlelength": 2.4},
        )
        return self


def _find_machine(machine: Any, machines: Sequence[str]) -> int:
    """Return the index of a binary classifier; `machine` is its index, or its name in the list `machines`."""
    if isinstance(machine, str) and machine in machines:
        return machines.index(machine)
    is_place = isinstance(machine, int | np.integer) and not isinstance(machine, bool)
    if is_place and 0 <= machine < len(machines):
        return int(machine)
    shown = ", ".join(map(repr, machines[:6])) + (", ..." if len(machines) > 6 else "")
    raise ValueError(
        f"machine={machine!r} is not one of the {len(machines)} binary classifiers of this path. Use an "
        f"index from 0 to {len(machines) - 1}, or one of {shown}."
    )
