"""The paper's figures, drawn from rows (1, 2, 3) or from data (S1, S2), and a picture of how MM converges."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kmargin import MM, ConvergenceDisplay, KernelSparseSVC, SparseSVC
from kmargin.displays.palette import BAND, CLASS_MARKS, CLASSES, INK, solver_line
from kmargin.paper import protocol, recovery, sensitivity
from kmargin.paper.protocol import DATASETS, SOLVERS, TRUE_SIZE, Settings
from kmargin.paper.tables import NAMES, of_crossval

if TYPE_CHECKING:
    import pandas as pd

SHORT = {
    "breast-cancer-wisconsin": "breast cancer",
    "letter-recognition": "letters",
    "TCGA-PANCAN-HiSeq": "TCGA",
}

TITLES = {
    "descent": "How MM converges: every inner iteration on synthetic, k = 2",
    "figure1": "Figure 1: random starts, at half the features",
    "figure2": "Figure 2: accuracy and recovery of 50 causal features",
    "figure3": "Figure 3: {dataset} along the path",
    "figureS1": "Figure S1: synthetic, three pairs of features",
    "figureS2": "Figure S2: spiral, and the points that a kernel classifier keeps",
}
CAPTIONS = {
    "descent": (
        "MM on the training rows of synthetic with k = 2, the true number of features. Each thin vertical "
        "line is an outer iteration of Algorithm 3, where the penalty rho grows by 20 %. Within one rho "
        "the squared gradient falls until it is below 1e-6 and the penalised objective goes down. When "
        "rho grows, the objective jumps up because its penalty does, and the distance to the set of "
        "vectors with at most k nonzero entries falls. The title says why the run ended: stalled means "
        "that the distance hardly changed from one rho to the next."
    ),
    "figure1": (
        "Random starts, keeping half of the features. MM and SD start from standard normal parameters, "
        "the exchange from a random support. Each box holds the middle half of the starts: the longer a "
        "box, the more the start matters. The paper reports that starts matter little for the objective "
        "and more for test accuracy, and that neither MM nor SD is better everywhere. The gradient and "
        "the distance of the exchange are zero and are not drawn. The training loss is measured alike for "
        "all solvers: the mean squared hinge loss of the final classifiers, without a ridge."
    ),
    "figure2": (
        "Simulated data with 50 causal features. Left: results against the sparsity; the black line marks "
        "the true one. Right: results at the true sparsity against the number of samples or features. "
        "Bands are standard errors over draws. Given enough samples, accuracy peaks and false discoveries "
        "vanish at the true sparsity, and the exchange needs fewer samples for that. FDR is the false "
        "discovery rate, FOR the false omission rate. (The paper draws MM in blue; on our pages blue is "
        "the exchange.)"
    ),
    "figure3": (
        "Left: convergence along the path. Right: accuracy. Lines are means over folds, bands their "
        "standard errors. Where the distance stops falling, the projection onto k features costs "
        "accuracy. The training loss is measured alike for all solvers: the mean squared hinge loss of "
        "the final classifiers, without a ridge. The exchange has no distance. Its iterations are Newton "
        "steps and belong to the path as a whole; an even share of them is drawn at each sparsity."
    ),
    "figureS1": (
        "The data set synthetic. The first two features together separate the classes (left); one of them "
        "alone (middle) or two others (right) do not."
    ),
    "figureS2": (
        "The data set spiral: three classes of 600, 300 and 100 points. Circles mark the training points "
        "that a kernel classifier keeps when it may keep three for each pair of classes."
    ),
}


def figure_descent(settings: Settings) -> Any:
    """Objective, gradient and distance along the inner iterations of one run of MM."""
    data = protocol.read("synthetic", "paper", settings.seed)
    X = protocol.whole(data).X[data.train]
    model = SparseSVC(2, C=np.inf, solver=MM(trace="steps", ending="projection"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the title says how the run ended
        model.fit(X, data.y[data.train])
    figure = _figure("descent", 9, 7.5)
    display = ConvergenceDisplay.from_estimator(model, axes=figure.subplots(3, 1, sharex=True))
    display.axes_[0].set_yscale("log")  # the first steps lower the objective by orders of magnitude
    for ax in display.axes_:
        _finish(ax)
    return figure


def figure1(rows: "pd.DataFrame") -> Any:
    """Six measures over random starts, a box for each data set and solver."""
    mine = rows[rows.experiment == sensitivity.NAME]
    datasets = [name for name in DATASETS if name in set(mine.dataset)]
    measures = {
        "iterations": "iterations",
        "loss": "training loss",
        "gradient_sq": "squared gradient",
        "distance_sq": "distance to $S_k$ (d)",
        "support_vectors": "support vectors",
        "test": "test accuracy (%)",
    }
    figure = _figure("figure1", 10, 9.8)
    axes = figure.subplots(3, 2).ravel()
    for ax, (measure, label) in zip(axes, measures.items(), strict=True):
        for shift, solver in enumerate(SOLVERS):
            boxes = [
                mine[(mine.dataset == d) & (mine.solver == solver)][measure].to_numpy() for d in datasets
            ]
            _boxes(
                ax,
                boxes,
                np.arange(len(datasets)) + 0.27 * (shift - 1),
                solver_line(solver).color,
                measure != "test",
            )
        ax.set_xticks(range(len(datasets)), [SHORT.get(d, d) for d in datasets], rotation=25, ha="right")
        ax.set_ylabel(label)
        _finish(ax)
    _legend(figure, [s for s in SOLVERS if s in set(mine.solver)])
    return figure


def _boxes(ax: Any, values: Sequence[np.ndarray], positions: np.ndarray, color: str, is_log: bool) -> None:
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
    """Accuracy, FDR and FOR: against sparsity at a few shapes, and against size at the true sparsity."""
    mine = rows[rows.experiment == recovery.NAME].copy()
    shapes = [s for s in settings.shapes if recovery.shape_name(*s) in set(mine.dataset)]
    figure = _figure("figure2", 11, 7.8)
    axes = figure.subplots(3, len(shapes) + 2, squeeze=False, sharey="row")
    measures = (("test", 1.0), ("fdr", 100.0), ("for", 100.0))
    labels = {"test": "test accuracy (%)", "fdr": "FDR (%)", "for": "FOR (%)"}
    for line, (measure, unit) in zip(axes, measures, strict=True):
        mine[measure] = unit * mine[measure]
        for ax, (n, p) in zip(line, shapes, strict=False):
            at_shape = mine[mine.dataset == recovery.shape_name(n, p)]
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
    """At the true sparsity, one of n and p being 500."""
    base = recovery.BASE
    sizes_by_name = {
        recovery.shape_name(*((size, base) if varied == "n" else (base, size))): size for size in sizes
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
    """Means over replicates with their standard errors."""
    for solver in SOLVERS:
        group = rows[rows.solver == solver].groupby(x)[y].agg(["mean", "sem"])
        if len(group):
            at = unit * group.index.to_numpy()
            line = solver_line(solver)
            ax.plot(at, group["mean"], markersize=3, linewidth=1.3, **line.drawn)
            low, high = (group["mean"] + side * group["sem"].fillna(0) for side in (-1, 1))
            ax.fill_between(at, low, high, color=line.color, alpha=BAND, linewidth=0)


def figure3(rows: "pd.DataFrame", dataset: str, protocol_name: str) -> Any:
    """Convergence (left) and evaluation (right) along the path."""
    mine = of_crossval(rows, protocol_name)
    mine = mine[(mine.dataset == dataset) & mine.solver.isin(SOLVERS)]
    figure = _figure("figure3", 9, 7.8, dataset)
    axes = figure.subplots(3, 2, sharex=True)
    left = {
        "iterations": "iterations",
        "loss": "training loss",
        "distance_sq": "distance to $S_k$ (d)",
    }
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
    """Each parameter's place in its data set's grid: the paper's grids are far from even."""
    rows = rows.copy()
    rows["place"] = rows.groupby(["experiment", "dataset", "solver"])["parameter"].rank("dense") - 1
    return rows


def figure_s1(settings: Settings) -> Any:
    """`synthetic` in three pairs of features."""
    data = protocol.read("synthetic", "paper", settings.seed)
    X = protocol.whole(data).X
    figure = _figure("figureS1", 10, 3.7)
    axes = figure.subplots(1, 3)
    titles = ("two informative features", "one informative, one not", "two uninformative features")
    for ax, (i, j), title in zip(axes, ((0, 1), (0, 2), (2, 3)), titles, strict=True):
        for label, color, marker in zip(np.unique(data.y), CLASSES, CLASS_MARKS, strict=False):
            at = data.y == label
            ax.plot(
                X[at, i],
                X[at, j],
                marker,
                color=color,
                markersize=2.2,
                alpha=0.6,
                rasterized=True,
                label=f"class {label}",
            )
        ax.set_xlabel(f"feature {i + 1}")
        ax.set_ylabel(f"feature {j + 1}")
        ax.set_title(title, fontsize=10)
        _finish(ax)
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def figure_s2(settings: Settings) -> Any:
    """`spiral`, and the points that a machine with three per pair of classes keeps."""
    data = protocol.read("spiral", "paper", settings.seed)
    X = protocol.whole(data).X
    model = KernelSparseSVC(3, C=100.0, gamma=1.0, shared=False).fit(X[data.train], data.y[data.train])
    figure = _figure("figureS2", 6, 4.9)
    ax = figure.subplots()
    for label, color, marker in zip(np.unique(data.y), CLASSES, CLASS_MARKS, strict=True):
        at = data.y == label
        ax.plot(
            X[at, 0],
            X[at, 1],
            marker,
            color=color,
            markersize=2.5,
            alpha=0.5,
            rasterized=True,
            label="ABC"[int(label)],
        )
    kept = model.support_vectors_
    ax.plot(kept[:, 0], kept[:, 1], "o", color=INK, fillstyle="none", markersize=9, label="kept")
    ax.set_xlabel("$x_1$ (z-score)")
    ax.set_ylabel("$x_2$ (z-score)")
    ax.legend(frameon=False, fontsize=9)
    _finish(ax)
    return figure


def _figure(name: str, width: float, height: float, dataset: str = "") -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(TITLES[name].format(dataset=dataset), fontsize=12, fontweight="bold")
    return figure


def _finish(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.tick_params(labelsize=8)


def _legend(figure: Any, solvers: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linewidth=1.8, markersize=5, label=NAMES[s], **solver_line(s).drawn) for s in solvers
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
