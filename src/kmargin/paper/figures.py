"""Figures 1 to 3 from the results of a run, S1 and S2 from data, and a figure of one run of MM."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kmargin import MM, ConvergenceDisplay, KernelSparseSVC, SparseSVC
from kmargin.displays.palette import BAND, CLASS_MARKS, CLASSES, INK, solver_line
from kmargin.paper import experiments, protocol
from kmargin.paper.protocol import DATASETS, SOLVERS, TRUE_SIZE, Settings
from kmargin.paper.tables import NAMES, of_crossval
from kmargin.report.html import new_figure

if TYPE_CHECKING:
    import pandas as pd

SHORT_NAMES = {
    "breast-cancer-wisconsin": "breast cancer",
    "letter-recognition": "letters",
    "TCGA-PANCAN-HiSeq": "TCGA",
}


def figure_descent(rows: "pd.DataFrame", settings: Settings) -> Any:
    """Draw the objective, squared gradient and squared distance to S_k by inner iteration of a run of MM."""
    data = protocol.read("synthetic", "paper", settings.seed)
    X = protocol.whole(data).X[data.train]
    model = SparseSVC(2, C=np.inf, solver=MM(trace="steps", ending="projection"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the figure's title says why the run ended
        model.fit(X, data.y[data.train])
    figure = new_figure(9, 7.5)
    display = ConvergenceDisplay.from_estimator(model, axes=figure.subplots(3, 1, sharex=True))
    display.axes_[0].set_yscale("log")  # the first steps lower the objective by orders of magnitude
    for ax in display.axes_:
        _finish(ax)
    return figure


def figure1(rows: "pd.DataFrame", settings: Settings) -> Any:
    """Draw Figure 1: box plots, over random starts, of six measures for each data set and solver."""
    mine = rows[rows.experiment == "sensitivity"]
    datasets = [name for name in DATASETS if name in set(mine.dataset)]
    measures = {
        "iterations": "iterations",
        "loss": "training loss",
        "gradient_sq": "squared gradient",
        "distance_sq": "distance to $S_k$ (d)",
        "support_vectors": "support vectors",
        "test": "test accuracy (%)",
    }
    figure = new_figure(10, 9.8)
    axes = figure.subplots(3, 2).ravel()
    for ax, (measure, label) in zip(axes, measures.items(), strict=True):
        for shift, solver in enumerate(SOLVERS):
            boxes = [
                mine[(mine.dataset == d) & (mine.solver == solver)][measure].to_numpy() for d in datasets
            ]
            positions = np.arange(len(datasets)) + 0.27 * (shift - 1)
            _boxes(ax, boxes, positions, solver_line(solver).color, measure != "test")
        names = [SHORT_NAMES.get(name, name) for name in datasets]
        ax.set_xticks(range(len(names)), names, rotation=25, ha="right")
        ax.set_ylabel(label)
        _finish(ax)
    _legend(figure, [s for s in SOLVERS if s in set(mine.solver)])
    return figure


def _boxes(ax: Any, values: Sequence[np.ndarray], positions: np.ndarray, color: str, is_log: bool) -> None:
    """Draw a box plot of each array at its position; on a logarithmic axis, of its positive values only."""
    kept = [(v[v > 0] if is_log else v, at) for v, at in zip(values, positions, strict=True)]
    kept = [(v, at) for v, at in kept if len(v)]
    if is_log:
        ax.set_yscale("log")
    if not kept:
        return
    ax.boxplot(
        [v for v, _ in kept],
        positions=[at for _, at in kept],
        widths=0.22,
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": color, "alpha": 0.35, "edgecolor": color},
        medianprops={"color": color, "linewidth": 1.6},
        whiskerprops={"color": color},
        capprops={"color": color},
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": color},
    )


def figure2(rows: "pd.DataFrame", settings: Settings) -> Any:
    """Draw Figure 2: accuracy, false discovery and omission rates by sparsity, and by size of the data."""
    mine = rows[rows.experiment == "recovery"].copy()
    shapes = [s for s in settings.shapes if experiments.shape_name(*s) in set(mine.dataset)]
    figure = new_figure(11, 7.8)
    axes = figure.subplots(3, len(shapes) + 2, squeeze=False, sharey="row")
    measures = (("test", 1.0), ("fdr", 100.0), ("for", 100.0))
    labels = {"test": "test accuracy (%)", "fdr": "FDR (%)", "for": "FOR (%)"}
    for line, (measure, unit) in zip(axes, measures, strict=True):
        mine[measure] = unit * mine[measure]
        for ax, (n, p) in zip(line, shapes, strict=False):
            at_shape = mine[mine.dataset == experiments.shape_name(n, p)]
            _lines(ax, at_shape, "parameter", measure, 100.0)
            ax.axvline(100 * (1 - TRUE_SIZE / p), color=INK, linewidth=1)
            if measure == "test":
                ax.set_title(f"{n} samples, {p} features", fontsize=9)
            if measure == "for":
                ax.set_xlabel("sparsity (%)")
        _scaling(line[-2], mine, measure, settings.sample_sizes, "n")
        _scaling(line[-1], mine, measure, settings.feature_sizes, "p")
        line[0].set_ylabel(labels[measure])
        for ax in line:
            _finish(ax)
    _legend(figure, [s for s in SOLVERS if s in set(mine.solver)])
    return figure


def _scaling(ax: Any, rows: "pd.DataFrame", measure: str, sizes: Sequence[int], varied: str) -> None:
    """Plot `measure` at the true sparsity by samples (varied="n") or features ("p"), at 500 of the other."""
    base = experiments.BASE
    sizes_by_name = {
        experiments.shape_name(*((size, base) if varied == "n" else (base, size))): size for size in sizes
    }
    mine = rows[rows.dataset.isin(list(sizes_by_name))].copy()
    mine["size"] = mine.dataset.map(sizes_by_name)
    features = base if varied == "n" else mine["size"]
    mine = mine[np.isclose(mine.parameter, 1 - TRUE_SIZE / features, atol=1e-6)]
    _lines(ax, mine, "size", measure, 1.0)
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{size:g}" for size in sizes], rotation=45)
    ax.set_xticks([], minor=True)
    if measure == "test":
        ax.set_title(
            "true sparsity, 500 features" if varied == "n" else "true sparsity, 500 samples", fontsize=9
        )
    if measure == "for":
        ax.set_xlabel("samples" if varied == "n" else "features")


def _lines(ax: Any, rows: "pd.DataFrame", x: str, y: str, unit: float) -> None:
    """Plot each solver's mean of column `y` against `unit` times column `x`, with standard errors."""
    for solver in SOLVERS:
        group = rows[rows.solver == solver].groupby(x)[y].agg(["mean", "sem"])
        if len(group):
            at = unit * group.index.to_numpy()
            line = solver_line(solver)
            ax.plot(at, group["mean"], markersize=3, linewidth=1.3, **line._asdict())
            low, high = (group["mean"] + side * group["sem"].fillna(0) for side in (-1, 1))
            ax.fill_between(at, low, high, color=line.color, alpha=BAND, linewidth=0)


def figure3(rows: "pd.DataFrame", dataset: str, protocol_name: str) -> Any:
    """Draw Figure 3 for a data set: convergence (left) and accuracies (right) of each solver by sparsity."""
    mine = of_crossval(rows, protocol_name)
    mine = mine[(mine.dataset == dataset) & mine.solver.isin(SOLVERS)]
    figure = new_figure(9, 7.8)
    axes = figure.subplots(3, 2, sharex=True)
    left = {"iterations": "iterations", "loss": "training loss", "distance_sq": "distance to $S_k$ (d)"}
    right = {"train": "training", "validation": "validation", "test": "test"}
    for ax, (measure, label) in zip(axes[:, 0], left.items(), strict=True):
        positive = mine[mine[measure] > 0]
        _lines(ax, positive, "place", measure, 1.0)
        ax.set_yscale("log")
        ax.set_ylabel(label)
    for ax, (measure, label) in zip(axes[:, 1], right.items(), strict=True):
        _lines(ax, mine, "place", measure, 1.0)
        ax.set_ylabel(f"{label} accuracy (%)")
    grid = sorted(mine.parameter.unique())
    for ax in axes.ravel():
        step = 2 if len(grid) > 10 else 1
        ax.set_xticks(range(0, len(grid), step), [f"{100 * s:g}" for s in grid[::step]], rotation=60)
        _finish(ax)
    for ax in axes[-1]:
        ax.set_xlabel("sparsity (%)")
    _legend(figure, [s for s in SOLVERS if s in set(mine.solver)])
    return figure


def with_places(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Add the column `place`: each parameter's position in its grid, so that figures space grids evenly."""
    rows = rows.copy()
    rows["place"] = rows.groupby(["experiment", "dataset", "solver"])["parameter"].rank("dense") - 1
    return rows


def figure_s1(rows: "pd.DataFrame", settings: Settings) -> Any:
    """Draw Figure S1: scatter plots of three pairs of features of the data set `synthetic`."""
    data = protocol.read("synthetic", "paper", settings.seed)
    X = protocol.whole(data).X
    figure = new_figure(10, 3.7)
    axes = figure.subplots(1, 3)
    titles = ("two informative features", "one informative, one not", "two uninformative features")
    for ax, (i, j), title in zip(axes, ((0, 1), (0, 2), (2, 3)), titles, strict=True):
        for label, color, marker in zip(np.unique(data.y), CLASSES, CLASS_MARKS, strict=False):
            at = data.y == label
            look = {"color": color, "markersize": 2.2, "alpha": 0.6, "rasterized": True}
            ax.plot(X[at, i], X[at, j], marker, label=f"class {label}", **look)
        ax.set_xlabel(f"feature {i + 1}")
        ax.set_ylabel(f"feature {j + 1}")
        ax.set_title(title, fontsize=10)
        _finish(ax)
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def figure_s2(rows: "pd.DataFrame", settings: Settings) -> Any:
    """Draw Figure S2: the data set `spiral`, and the training points that kernel models with k = 3 keep."""
    data = protocol.read("spiral", "paper", settings.seed)
    X = protocol.whole(data).X
    model = KernelSparseSVC(3, C=100.0, gamma=1.0, shared=False).fit(X[data.train], data.y[data.train])
    figure = new_figure(6, 4.9)
    ax = figure.subplots()
    for label, color, marker in zip(np.unique(data.y), CLASSES, CLASS_MARKS, strict=True):
        at = data.y == label
        look = {"color": color, "markersize": 2.5, "alpha": 0.5, "rasterized": True}
        ax.plot(X[at, 0], X[at, 1], marker, label="ABC"[int(label)], **look)
    kept = model.support_vectors_
    ax.plot(kept[:, 0], kept[:, 1], "o", color=INK, fillstyle="none", markersize=9, label="kept")
    ax.set_xlabel("$x_1$ (z-score)")
    ax.set_ylabel("$x_2$ (z-score)")
    ax.legend(frameon=False, fontsize=9)
    _finish(ax)
    return figure


DRAWN = {  # the function that draws each part of the report from the results and settings of a run
    "descent": figure_descent,
    "figure1": figure1,
    "figure2": figure2,
    "figureS1": figure_s1,
    "figureS2": figure_s2,
}


def _finish(ax: Any) -> None:
    """Give axes the style of all figures: no top and right border, a light grid, small tick labels."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.tick_params(which="both", labelsize=8)


def _legend(figure: Any, solvers: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linewidth=1.8, markersize=5, label=NAMES[s], **solver_line(s)._asdict())
        for s in solvers
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
