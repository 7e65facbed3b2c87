"""The base class of the displays, and functions to find the model to draw and its feature names."""

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


class Display:
    """Base class of plots. Subclasses draw in `_draw`; `_size` is the size of a new figure in inches."""

    ax_: Any
    figure_: Any
    _size: tuple[float, float] = (6.4, 4.0)

    def plot(self, ax: Any = None) -> Self:
        """Draw the plot from the data in the display.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        Display
            This display.
        """
        self._draw(self._axes(ax))
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError

    def _axes(self, ax: Any) -> Any:
        """Return `ax`, or axes in a new figure if None; store them in `ax_`, their figure in `figure_`."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=self._size, layout="constrained")
        if getattr(ax, "plot", None) is None or getattr(ax, "figure", None) is None:
            raise TypeError(f"ax={ax!r} is not a matplotlib Axes. Give one, or None for a new figure.")
        self.ax_, self.figure_ = ax, ax.figure
        ax.spines[["top", "right"]].set_visible(False)
        return ax


def shorten(text: str, longest: int = 36) -> str:
    """Shorten a text to `longest` characters: … replaces its middle, as names often differ at the ends."""
    return text if len(text) <= longest else f"{text[: longest // 2]}…{text[-longest // 2 + 1 :]}"


def plain(text: str, longest: int = 40) -> str:
    """Prepare a text for matplotlib: shorten it, replace unprintable letters, escape $ (starts a formula)."""
    printable = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return shorten(printable, longest).replace("$", r"\$")


class FoundModel(NamedTuple):
    """A fitted model, and the names of its features (None if they are not known)."""

    model: Any
    names: list[str] | None


def find_model(estimator: Any, attribute: str, display: str, needs: str) -> FoundModel:
    """Return the model to draw, with its feature names: `estimator`, or the last kmargin step of a pipeline.

    Of a fitted search, its best estimator is taken. Raises NotFittedError or TypeError if the model does not
    have `attribute`. The message contains `display`, the name of the display, and `needs`, what it can draw.
    """
    if isinstance(estimator, type):
        raise TypeError(
            f"{display} was given the class {estimator.__name__}. Give a fitted model instead, as in "
            f"{estimator.__name__}(...).fit(X, y)."
        )
    whole, before = getattr(estimator, "best_estimator_", estimator), None
    model = whole
    if isinstance(whole, Pipeline):
        steps = [getattr(step, "best_estimator_", step) for _, step in whole.steps]
        ours = [at for at, step in enumerate(steps) if type(step).__module__.split(".")[0] == "kmargin"]
        if not ours:
            kinds = ", ".join(type(step).__name__ for step in steps)
            raise TypeError(f"{display} needs {needs}; this pipeline has none ({kinds}).")
        model, before = steps[ours[-1]], whole[: ours[-1]]
    if getattr(model, attribute, None) is None:
        if isinstance(model, BaseEstimator):
            check_is_fitted(model)
        raise TypeError(f"{display} needs {needs}; it was given {type(model).__name__}.")
    names = getattr(model, "feature_names_in_", None)
    if names is None and before is not None and len(before):
        try:
            names = before.get_feature_names_out()
        except (AttributeError, NotFittedError, ValueError):  # a step cannot name its output columns
            names = None
    return FoundModel(model, None if names is None else [str(name) for name in names])


def name_features(given: Any, known: Any, n_features: int) -> list[str]:
    """Return the names `given` by the user, else those `known` from the training data, else x0, x1, ..."""
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
