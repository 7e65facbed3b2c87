"""What all displays share: the model to draw, its feature names, axes and labels."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.isotonic import isotonic_regression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kmargin.displays import palette

LINE = 1.25  # the height of a line of text, in its size


class Display:
    """Something that can be drawn into axes."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any, size: tuple[float, float]) -> Any:
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=size, layout="constrained")
        if getattr(ax, "plot", None) is None or getattr(ax, "figure", None) is None:
            raise TypeError(f"ax={ax!r} is not a matplotlib Axes. Give one, or None for a new figure.")
        self.ax_, self.figure_ = ax, ax.figure
        ax.spines[["top", "right"]].set_visible(False)
        return ax


def axis_label(counted: str) -> str:
    return f"k, the number of {counted}" if counted else "k"


def shorten(text: str, longest: int = 36) -> str:
    """A text that is cut in its middle where it is too long, since names often differ at their ends."""
    return text if len(text) <= longest else f"{text[: longest // 2]}…{text[-longest // 2 + 1 :]}"


def plain(text: str, longest: int = 40) -> str:
    """A shortened text that matplotlib draws as it is: a dollar sign starts no formula."""
    printable = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return shorten(printable, longest).replace("$", r"\$")


TICKS = (0, 1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, *(10**e for e in range(3, 9)))
CLOSEST = 0.055  # two ticks, as a share of the axis
LETTER = 0.018  # the same of a digit


def log_axis(ax: Any, ks: Any) -> None:
    """Small k stand apart; k = 0 has its place too. The axis ends where the values do."""
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
    """Round numbers within the range, or the values themselves where these are few; none too close."""
    low, high = int(ks.min()), int(ks.max())
    every = sorted({int(k) for k in ks})
    wanted = every if len(every) <= 6 else sorted({low, high, *(k for k in TICKS if low <= k <= high)})
    places = dict(zip(wanted, place(np.array(wanted, dtype=float)), strict=True))
    length = places[high] - places[low]

    def has_room(left: int, right: int) -> bool:
        letters = (len(f"{left:,}") + len(f"{right:,}")) / 2
        return bool(places[right] - places[left] >= max(CLOSEST, LETTER * (letters + 1)) * length)

    kept = [high]  # both ends, and what has room between them
    for k in reversed([k for k in wanted if k not in (low, high)]):
        if has_room(k, kept[-1]) and has_room(low, k):
            kept.append(k)
    return sorted({low, *kept})


class Name(NamedTuple):
    """A line to be named: where it ends, and how it is drawn."""

    text: str
    y: float
    color: str
    line: Any = None  # for a legend


def name_lines(ax: Any, names: Sequence[Name], x: float, is_own: bool) -> None:
    """Beside the ends of the lines, apart from each other; in a legend where that leaves no room.

    In a figure that does not make room by itself the axes give up some of their width.
    """
    if not names:
        return
    if not is_own and ax.figure.get_layout_engine() is None:
        place = ax.get_position()
        ax.set_position([place.x0, place.y0, 0.7 * place.width, place.height])
    box = ax.get_window_extent()
    width, height = (float(side) / ax.figure.dpi * 72 for side in (box.width, box.height))  # points
    size = 9.0 if height > 160 else 7.0
    if len(names) * size * LINE > height:
        lines, texts = zip(*((name.line, plain(name.text)) for name in names), strict=True)
        ax.legend(lines, texts, fontsize=size, frameon=False, ncols=2, handlelength=3)
        return
    low, high = ax.get_ylim()
    places = spread_apart([(name.y - low) / (high - low) for name in names], size * LINE / height)
    longest = 40 if is_own else max(12, int(0.52 * width / (0.55 * size)))
    for name, place in zip(names, places, strict=True):
        ax.annotate(
            plain(name.text, longest),
            (x, name.y),
            xytext=(1.03, place),
            textcoords="axes fraction",
            va="center",
            fontsize=size,
            color=name.color,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": palette.FAINT, "lw": 0.6, "shrinkA": 1, "shrinkB": 3},
        )


def spread_apart(places: Sequence[float], gap: float) -> list[float]:
    """Places between 0 and 1, moved as little as needed for neighbours to be `gap` apart; same order."""
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(places))
    wanted = np.asarray(places, dtype=float)[order] - steps
    moved = isotonic_regression(wanted, y_min=0.0, y_max=max(0.0, 1.0 - float(steps[-1]))) + steps
    found = np.empty(len(places))
    found[order] = moved
    return [float(place) for place in found]


class FoundModel(NamedTuple):
    """A fitted model, and what its features are called if that is known."""

    model: Any
    names: list[str] | None


def find_model(estimator: Any, attribute: str, display: str, needs: str) -> FoundModel:
    """The fitted model that has this attribute, looked for in pipelines from the last step on.

    Raises NotFittedError, or TypeError with what the display draws (`needs`).
    """
    if isinstance(estimator, type):
        raise TypeError(
            f"{display} was given the class {estimator.__name__}. Give a fitted model instead, as in "
            f"{estimator.__name__}(...).fit(X, y)."
        )
    searched = getattr(estimator, "best_estimator_", estimator)
    if isinstance(searched, Pipeline):
        return _find_in_pipeline(searched, attribute, display, needs)
    model = _look_at(searched, attribute, display, needs)
    names = getattr(model, "feature_names_in_", None)
    return FoundModel(model, None if names is None else [str(name) for name in names])


def _find_in_pipeline(pipeline: Pipeline, attribute: str, display: str, needs: str) -> FoundModel:
    steps = [step for _, step in pipeline.steps]
    for at in reversed(range(len(steps))):
        step = getattr(steps[at], "best_estimator_", steps[at])
        if is_ours(step):
            model = _look_at(step, attribute, display, needs)
            names = getattr(model, "feature_names_in_", None)
            if names is None and at > 0:
                names = _names_after(pipeline[:at])
            return FoundModel(model, None if names is None else [str(name) for name in names])
    kinds = ", ".join(type(step).__name__ for step in steps)
    raise TypeError(f"{display} needs {needs}; this pipeline has none ({kinds}).")


def _names_after(before: Pipeline) -> Any:
    """What the features are called that come out of these steps, as far as they know."""
    try:
        return before.get_feature_names_out()
    except (AttributeError, NotFittedError, ValueError):
        return None


def is_ours(model: Any) -> bool:
    return type(model).__module__.split(".")[0] == "kmargin"


def _look_at(model: Any, attribute: str, display: str, needs: str) -> Any:
    if getattr(model, attribute, None) is not None:
        return model
    who = type(model).__name__
    if isinstance(model, BaseEstimator):
        try:
            check_is_fitted(model)
        except NotFittedError:
            raise NotFittedError(
                f"{who} is not fitted, and {display} needs a fitted model. Call fit(X, y) first."
            ) from None
    raise TypeError(f"{display} needs {needs}; it was given {who}.")


def name_features(given: Any, known: Any, n_features: int) -> list[str]:
    """The names given, those that the model knows, or x0, x1, ..."""
    if given is None and known is None:
        return [f"x{j}" for j in range(n_features)]
    names = known if given is None else given
    if isinstance(names, str) or not np.iterable(names):
        raise ValueError(f"feature_names={names!r} is not a list of names. Give a name for each feature.")
    names = list(names)
    if len(names) != n_features:
        raise ValueError(
            f"feature_names has {len(names)} names for {n_features} features. Give a name for each feature."
        )
    return [str(name) for name in names]
