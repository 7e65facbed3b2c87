"""The display of how the paper's solvers, MM and SD, converge."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kmargin.core.labels import machine_names
from kmargin.displays import palette
from kmargin.displays.common import Display, find_model

# What each of three panels draws: a field of the records in `Solution.trace`, with axis label and axis scale.
# The records are `OuterRecord`s, one per value of rho, or their `StepRecord`s, one per inner iteration.
OUTER_PANELS = (
    ("objective", "penalised objective", "linear"),
    ("distance_sq", "squared distance to $S_k$", "log"),
    ("rho", r"penalty $\rho$", "log"),
)
STEP_PANELS = (
    ("objective", "penalised objective", "linear"),
    ("gradient_sq", "squared gradient norm", "log"),
    ("distance_sq", "squared distance to $S_k$", "log"),
)


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """Convergence of the paper's solvers, MM and SD, drawn in three panels.

    S_k is the set of coefficient vectors with at most k nonzeros, and rho the strength of the penalty on the
    squared distance to S_k. The panels show the penalised objective, the squared distance and rho after each
    outer iteration or, for solvers with ``trace="steps"``, the objective, its squared gradient norm and the
    distance after each inner iteration, with dots at resets of the momentum and lines at changes of rho.

    Parameters
    ----------
    traces : list of sequences of OuterRecord
        The trace of each run of a solver, as in `Solution.trace`.
    names : list of str
        A name for each run.
    solver : str, default=""
        "mm" or "sd", which determines the colour.
    title : str, default=""
        Title of the plot, such as why the solver stopped.

    Attributes
    ----------
    axes_ : array of matplotlib.axes.Axes
        The axes of the three panels, after plotting.
    ax_ : matplotlib.axes.Axes
        The axes of the first panel.
    figure_ : matplotlib.figure.Figure
        The figure of the panels.

    See Also
    --------
    MM, SD : The paper's solvers, which raise the penalty rho step by step.
    Solution : Has the trace and the status.

    Examples
    --------
    >>> from kmargin import MM, ConvergenceDisplay, SparseSVC
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=100, n_features=8, random_state=0)
    >>> display = ConvergenceDisplay.from_estimator(SparseSVC(k=2, solver=MM()).fit(X, y))
    >>> len(display.axes_)
    3
    """

    traces: Sequence[Sequence[Any]]
    names: Sequence[str]
    solver: str = ""
    title: str = ""

    def __post_init__(self) -> None:
        self.traces, self.names = [list(trace) for trace in self.traces], list(self.names)

    @classmethod
    def from_solution(
        cls, solution: Any, *, name: str = "", solver: str = "", axes: Any = None
    ) -> "ConvergenceDisplay":
        """Draw the convergence of one solution.

        Parameters
        ----------
        solution : Solution
            A solution of `MM` or `SD`, such as ``model.solutions_[0]``.
        name : str, default=""
            Name of the solution in the legend.
        solver : str, default=""
            "mm" or "sd", which determines the colour.
        axes : sequence of three matplotlib.axes.Axes, or None, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        ConvergenceDisplay
            The display, drawn.
        """
        if getattr(solution, "trace", None) is None:
            raise TypeError(
                f"from_solution was given {type(solution).__name__}, not a solution. Give a solution, such "
                "as model.solutions_[0]."
            )
        if not solution.trace:
            raise ValueError(
                "This solution has no trace: it was found by swapping features, or has k = 0. Fit with "
                "solver='mm' or solver='sd'."
            )
        title = f"{solution.status.name.lower()} after {len(solution.trace)} values of rho"
        return cls([solution.trace], [name], solver, title).plot(axes)

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> "ConvergenceDisplay":
        """Draw the convergence of the binary classifiers of a fitted model, at most the first eight of them.

        Parameters
        ----------
        estimator : estimator
            An estimator fitted with ``solver="mm"`` or "sd", or a pipeline or search that contains one.
        axes : sequence of three matplotlib.axes.Axes, or None, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        ConvergenceDisplay
            The display, drawn.
        """
        needs = "a SparseSVC, a KernelSparseSVC or one of their CV variants, which have solutions"
        model = find_model(estimator, "solutions_", cls.__name__, needs).model
        solver = model.solver if isinstance(model.solver, str) else type(model.solver).__name__
        solutions = [s for s in model.solutions_ if s.trace] or list(model.solutions_[:1])
        if len(solutions) == 1 or len({s.trace for s in solutions}) == 1:  # one run fitted all classifiers
            return cls.from_solution(solutions[0], solver=solver.lower(), axes=axes)
        names = machine_names(model.classes_, model.multi_class)
        shown = [(s, n) for s, n in zip(model.solutions_, names, strict=True) if s.trace]
        shown = shown[: len(palette.SERIES)]
        of_all = "" if len(shown) == len(names) else f" of {len(names)}"
        title = f"{len(shown)}{of_all} binary classifiers"
        return cls([s.trace for s, _ in shown], [n for _, n in shown], solver.lower(), title).plot(axes)

    def plot(self, axes: Any = None) -> "ConvergenceDisplay":
        """Draw the three panels.

        Parameters
        ----------
        axes : sequence of three matplotlib.axes.Axes, or None, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        ConvergenceDisplay
            This display.
        """
        axes = self._panels(axes)
        is_single = len(self.traces) == 1
        by_step = all(record.steps for trace in self.traces for record in trace)
        panels = STEP_PANELS if by_step else OUTER_PANELS
        are_positive = np.full(len(panels), True)
        for number, (trace, name) in enumerate(zip(self.traces, self.names, strict=True)):
            look = palette.solver_line(self.solver) if is_single else palette.SERIES[number]
            records, x = [*trace], np.arange(1, len(trace) + 1)
            style = {"lw": 1.4, "ms": 3.5, **look._asdict()}
            if by_step:  # the last record of one rho and the first of the next are at the same x
                records = [step for record in trace for step in record.steps]
                n_inner = [record.n_inner for record in trace]
                starts = np.cumsum(n_inner) - n_inner
                x = np.concatenate(
                    [start + np.arange(n + 1) for start, n in zip(starts, n_inner, strict=True)]
                )
                style = {"lw": 1.2, "color": look.color}
                resets = np.flatnonzero([step.restarted for step in records])
                axes[0].plot(x[resets], [records[i].objective for i in resets], "o", ms=3, color=look.color)
                for ax in axes if is_single else ():
                    for start in starts[1:]:
                        ax.axvline(start, color=palette.FAINT, lw=0.6, zorder=0)
            for at, (ax, (field, _, _)) in enumerate(zip(axes, panels, strict=True)):
                values = np.array([getattr(record, field) for record in records], dtype=float)
                ax.plot(x, values, label=name, **style)
                are_positive[at] &= (values > 0).all()
        for ax, (_, label, scale), is_positive in zip(axes, panels, are_positive, strict=True):
            ax.set(yscale=scale if is_positive else "linear", ylabel=label)
        axes[-1].set_xlabel("inner iteration" if by_step else "outer iteration, a value of $\\rho$ each")
        axes[0].set_title(self.title)
        if not is_single:
            axes[0].legend(fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return self

    def _panels(self, axes: Any) -> Any:
        """Return a list of the three `axes`, or of those in a new figure if None; store them in `axes_`."""
        if axes is None:
            import matplotlib.pyplot as plt

            size = (6.4, 6.0) if len(self.traces) == 1 else (7.8, 6.0)
            _, axes = plt.subplots(3, 1, sharex=True, figsize=size, layout="constrained")
        panels = list(np.ravel(np.asarray(axes, dtype=object)))
        if len(panels) != 3:
            raise ValueError(
                f"axes has {len(panels)} axes for 3 panels. Give three, as from plt.subplots(3, 1), or None "
                "for a new figure."
            )
        for ax in reversed(panels):
            self._axes(ax)
        self.axes_ = np.array(panels, dtype=object)
        return panels
