"""What all displays share: axes, labels, the model to draw and the names of its features."""

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


class Display:
    """A plot of numbers in matplotlib axes. Subclasses draw in `_draw`; `_size` is that of new figures."""

    ax_: Any
    figure_: Any
    _size: tuple[float, float] = (6.4, 4.0)

    def plot(self, ax: Any = None) -> Self:
        """Draw the numbers.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        Display
            Itself.
        """
        self._draw(self._axes(ax))
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError

    def _axes(self, ax: Any) -> Any:
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=self._size, layout="constrained")
        if getattr(ax, "plot", None) is None or getattr(ax, "figure", None) is None:
            raise TypeError(f"ax={ax!r} is not a matplotlib Axes. Give one, or None for a new figure.")
        self.ax_, self.figure_ = ax, ax.figure
        ax.spines[["top", "right"]].set_visible(False)
        return ax


def shorten(text: str, longest: int = 36) -> str:
    """The text, without its middle if it is too long; names often differ at their ends."""
    return text if len(text) <= longest else f"{text[: longest // 2]}…{text[-longest // 2 + 1 :]}"


def plain(text: str, longest: int = 40) -> str:
    """The text shortened for matplotlib, with dollar signs escaped, since they would start a formula."""
    printable = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return shorten(printable, longest).replace("$", r"\$")


class FoundModel(NamedTuple):
    """A fitted model, and the names of its features if they are known."""

    model: Any
    names: list[str] | None


def find_model(estimator: Any, attribute: str, display: str, needs: str) -> FoundModel:
    """The fitted model that has this attribute: the estimator, or the last step of a pipeline that is ours.

    Raises NotFittedError, or TypeError with what the display draws (`needs`).
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
        _check_is_fitted(model, display)
        raise TypeError(f"{display} needs {needs}; it was given {type(model).__name__}.")
    names = getattr(model, "feature_names_in_", None)
    if names is None and before is not None and len(before):
        try:
            names = before.get_feature_names_out()
        except (AttributeError, NotFittedError, ValueError):  # the step cannot name its output columns
            names = None
    return FoundModel(model, None if names is None else [str(name) for name in names])


def _check_is_fitted(model: Any, display: str) -> None:
    if isinstance(model, BaseEstimator):
        try:
            check_is_fitted(model)
        except NotFittedError:
            raise NotFittedError(
                f"{type(model).__name__} is not fitted, and {display} needs a fitted model. Call fit(X, y) "
                "first."
            ) from None


def name_features(given: Any, known: Any, n_features: int) -> list[str]:
    """Return the given names of features, else those known from the training data, else x0, x1, ..."""
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
