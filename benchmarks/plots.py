"""Plots of results, each from the rows of its case."""

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, PercentFormatter, StrMethodFormatter

from benchmarks.records import by_competitor, select
from kmargin.displays.palette import REFERENCE, SAME_AS, SOLVERS, solver_line

mpl.rcParams |= {"svg.hashsalt": "kmargin", "svg.fonttype": "none", "axes.grid": True, "grid.alpha": 0.3}


def panels(n_rows=1, n_columns=1, width=4.0, height=4.0):
    """A figure with a grid of panels, and the panels."""
    figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def round_numbers(axis):
    """Label a logarithmic axis with 1, 2, 5, 10 ..."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=7))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def accuracy_against_features(frame, title):
    """One line per competitor; the legend has its time for the whole path."""
    figure, [[axes]] = panels(width=6)
    rows = select(frame, metric=["features", "accuracy"])
    for name, own in rows.groupby("competitor", sort=False):
        table = own.pivot_table(index="level", columns="metric", values="value").sort_values("features")
        seconds = select(frame, metric="seconds", competitor=name)["value"].min()
        label = f"{name}, {seconds:.2g} s"
        axes.plot(table["features"], table["accuracy"], ms=4, label=label, **solver_line(name).drawn)
    axes.set(xscale="log", xlabel="features per machine", ylabel="test accuracy", title=title)
    round_numbers(axes.xaxis)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.legend()
    return figure


def place_of(name):
    """The position of a competitor in every legend; ours come first."""
    known = list(SOLVERS)
    name = SAME_AS.get(name, name)
    return known.index(name) if name in known else len(known)


def against_budget(rows, means, metric):
    """A panel for the mean over the data sets, and one for each; a line per competitor."""
    tables = {"mean over the data sets": means} | {
        str(name): by_competitor(own, "level").sort_index()
        for name, own in rows.groupby("dataset", sort=False)
        if own["level"].nunique() > 1
    }
    figure, grid = panels(-(-len(tables) // 3), 3, height=3.6)
    grid = grid.ravel()
    for axes, (title, table) in zip(grid, tables.items(), strict=False):
        for name in sorted(table.columns, key=place_of):
            axes.plot(table.index, table[name], ms=4, lw=1.2, label=name, **solver_line(name).drawn)
        axes.set(xscale="log", xlabel="features in all", ylabel=metric, title=title)
        axes.set_xticks(table.index, [f"{level:g}" for level in table.index])
        axes.minorticks_off()
        if metric == "accuracy":
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    for axes in grid[len(tables) :]:
        axes.axis("off")
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def objective_along_path(frame):
    """A panel per ridge: the objective after an exact refit, against k."""
    groups = list(select(frame, metric="objective").groupby("dataset", sort=False))
    figure, [grid] = panels(1, len(groups), width=5)
    for axes, (dataset, rows) in zip(grid, groups, strict=True):
        for name, own in rows.groupby("competitor", sort=False):
            means = own.groupby("level")["value"].mean().clip(lower=1e-9)
            axes.plot(means.index, means, ms=4, label=name, **solver_line(name).drawn)
        axes.set(xscale="log", yscale="log", xlabel="k", ylabel="objective", title=dataset)
        round_numbers(axes.xaxis)
        axes.legend()
    return figure


def tradeoff(frame, metric, label):
    """A panel per data set: seconds against a score, means over the seeds."""
    groups = list(select(frame, metric=["seconds", metric]).groupby("dataset", sort=False))
    figure, [grid] = panels(1, len(groups))
    for axes, (dataset, rows) in zip(grid, groups, strict=True):
        table = rows.pivot_table(index="competitor", columns="metric", values="value")
        for name, row in table.iterrows():
            if pd.isna(row["seconds"]):
                axes.axhline(row[metric], label=name, **REFERENCE)
            else:
                line = solver_line(name)
                axes.plot(row["seconds"], row[metric], line.marker, color=line.color, label=name)
        axes.set(xscale="log", xlabel="seconds", ylabel=label, title=dataset)
        round_numbers(axes.xaxis)
    axes.legend(fontsize="small")
    return figure
