"""Coefficients against k."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kmargin.core.arrays import Matrix, to_host
from kmargin.core.labels import machine_names
from kmargin.displays import palette
from kmargin.displays.common import (
    Display,
    Name,
    axis_label,
    find_model,
    log_axis,
    name_features,
    name_lines,
    plain,
)


class SparsityPathDisplay(Display):
    """Coefficients against k: where each feature enters, and how its coefficient changes.

    Parameters
    ----------
    ks : array of shape (n_ks,)
        The values of k.
    coefs : array of shape (n_ks, n_features)
        The coefficients of one binary classifier, or their norm over several.
    feature_names : list of str
        One for each feature.
    title : str, default=""
        The classes that are separated.
    counted : str, default=""
        What k counts, for the axis.
    quantity : str, default="coefficient"
        What is drawn, for the other axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes, after plotting.
    figure_ : matplotlib.figure.Figure
        Their figure.

    See Also
    --------
    CVScoreDisplay : Which k is the best.
    sparse_svm_path : Makes a path.

    Examples
    --------
    >>> from kmargin import SparsityPathDisplay, sparse_svm_path
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=100, n_features=8, random_state=0)
    >>> display = SparsityPathDisplay.from_path(sparse_svm_path(X, y))
    >>> display.ax_.get_xlabel()
    'k, the number of features'
    """

    def __init__(
        self,
        ks: Any,
        coefs: Matrix,
        feature_names: Sequence[str],
        title: str = "",
        counted: str = "",
        quantity: str = "coefficient",
    ) -> None:
        self.ks = np.asarray(ks)
        self.coefs = coefs
        self.feature_names = list(feature_names)
        self.title = title
        self.counted = counted
        self.quantity = quantity

    @classmethod
    def from_path(
        cls,
        path: Any,
        *,
        machine: int | str | None = None,
        feature_names: Any = None,
        n_labels: int = 8,
        ax: Any = None,
    ) -> "SparsityPathDisplay":
        """Draw a path: one binary classifier, or the features of all of them.

        Parameters
        ----------
        path : SparsityPath
            The result of `sparse_svm_path`, or the `path_` of a cross-validated estimator.
        machine : int, str or None, default=None
            Which binary classifier, by its index or its name ("a vs b"). None is the only one or, with
            several, the Euclidean norm of each feature's coefficients over all of them.
        feature_names : list of str or None, default=None
            A name for each feature; None uses the column names of the training data.
        n_labels : int, default=8
            Number of features with a name and a line of their own.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        SparsityPathDisplay
            Drawn.
        """
        coefs = to_host(path.coefs)
        known = getattr(path, "feature_names", None)
        inputs = getattr(path, "inputs", None)
        if inputs is not None:
            known = [f"row {row}" for row in inputs.columns]
        names = name_features(feature_names, known, coefs.shape[2])
        machines = machine_names(path.classes, path.multi_class)
        if machine is None and len(machines) > 1:
            title = f"{len(machines)} machines for {path.classes.shape[0]} classes"
            size = np.linalg.norm(coefs, axis=1)
            display = cls(path.ks, size, names, title, path.counted, "size of the coefficients")
        else:
            at = _find_machine(0 if machine is None else machine, machines)
            display = cls(path.ks, coefs[:, at], names, machines[at], path.counted)
        return display.plot(ax, n_labels)

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> "SparsityPathDisplay":
        """Draw the `path_` of a fitted SparseSVCCV or KernelSparseSVCCV.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator, or a pipeline or search that contains one.
        **options : dict
            As in `from_path`: `machine`, `feature_names`, `n_labels`, `ax`.

        Returns
        -------
        SparsityPathDisplay
            Drawn.
        """
        found = find_model(
            estimator, "path_", cls.__name__, "SparseSVCCV and KernelSparseSVCCV, which have a path"
        )
        if found.names is not None and found.model.path_.inputs is None:
            options = {"feature_names": found.names} | options
        return cls.from_path(found.model.path_, **options)

    def plot(self, ax: Any = None, n_labels: int = 8) -> "SparsityPathDisplay":
        """Draw the path, with names for the features that stay longest.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on; None creates a new figure.
        n_labels : int, default=8
            Number of features with a name and a colour of their own; the others are grey.

        Returns
        -------
        SparsityPathDisplay
            Itself.
        """
        is_own = ax is None
        ax = self._axes(ax, (7.2, 4.2))
        used = np.flatnonzero(self.coefs.any(axis=0))
        stays = (self.coefs[:, used] != 0).sum(axis=0)
        named = used[np.lexsort((-np.abs(self.coefs[:, used]).max(axis=0), -stays))][:n_labels]
        others = [j for j in used if j not in named]
        grey = [ax.plot(self.ks, self.coefs[:, j], color=palette.FAINT, lw=0.8, zorder=1)[0] for j in others]
        last = int(self.ks.argmax())
        names = []
        for number, j in enumerate(named):
            look = palette.SERIES[number % len(palette.SERIES)]
            text, coef = self.feature_names[j], self.coefs[:, j]
            marks = {"ms": 4, "markevery": np.flatnonzero(coef).tolist()}
            (line,) = ax.plot(self.ks, coef, lw=1.5, label=plain(text), **marks, **look.drawn)
            names.append(Name(text, float(self.coefs[last, j]), look.color, line))
        if others:
            text = f"{len(others)} others" if len(others) > 1 else self.feature_names[others[0]]
            height = float(np.median(self.coefs[last, others]))
            names.append(Name(text, height, palette.SOFT, grey[0]))
        ax.axhline(0, color=palette.SOFT, lw=0.8, zorder=0)
        log_axis(ax, self.ks)
        ax.set(xlabel=axis_label(self.counted), ylabel=self.quantity, title=plain(self.title, 60))
        name_lines(ax, names, float(self.ks.max()), is_own)
        return self


def _find_machine(machine: Any, machines: Sequence[str]) -> int:
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
