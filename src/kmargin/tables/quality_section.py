"""What goes right and wrong, and for whom, as part of a page."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from kmargin import html
from kmargin.palette import CURVE, REFERENCE
from kmargin.tables.analyse import Analysis
from kmargin.tables.class_quality import (
    Share,
    area_under_curve,
    calibration_error,
    log_loss_of,
    precision,
    recall,
    reliability,
    roc_points,
)
from kmargin.tables.results import confusion, order_features, wrong_frame
from kmargin.tables.score_words import interval_text, percent
from kmargin.tables.sentences import class_list, rows_text

MOST_DRAWN = 9  # features, each with its distribution
FONT: Any = {"font.size": 9.5, "font.family": "sans-serif"}


def quality_section(analysis: Analysis) -> Iterator[str]:
    yield '<h2 id="confusion">Right and wrong</h2>'
    counts, names = confusion(analysis), class_list(analysis)
    shares = counts / counts.sum(axis=1, keepdims=True)
    rows = [
        [
            html.Cell(name, "name"),
            *(html.Shade(counts[i, j] or "·", shares[i, j], i == j) for j in range(len(names))),
        ]
        for i, name in enumerate(names)
    ]
    wrong = wrong_frame(analysis)
    yield html.table(["is, taken for →", *names], rows, id="matrix")
    yield html.paragraph(
        f"{len(wrong):,} of {rows_text(analysis)} were taken for another class by machines that had not seen "
        "them. `predictions.csv` has every row."
    )
    yield from class_tables(analysis)
    roc = [roc_figure(analysis)] if len(names) == 2 else []
    yield html.beside(*roc, reliability_figure(analysis))
    if len(wrong):
        worst = wrong.head(10)
        listed = [
            [f"{v:.3f}" if isinstance(v, float) else v for v in row] for row in worst.itertuples(index=False)
        ]
        yield html.details(
            "Those that went furthest wrong", html.table(list(worst.columns), listed, id="wrong")
        )


def class_tables(analysis: Analysis) -> Iterator[str]:
    """Shares of each class with their intervals; of two classes by the names that doctors give them."""
    names = class_list(analysis)
    rows = [
        [
            html.Cell(name, "name"),
            *share_cells(recall(analysis, code)),
            *share_cells(precision(analysis, code)),
            *share_cells(area_under_curve(analysis, code), "auc"),
        ]
        for code, name in enumerate(names)
    ]
    columns = [html.Cell("class", "name"), "found", "", "right when told", "", "area under ROC", ""]
    yield html.table(columns, rows, id="classes")
    text = (
        "`found`: of the rows of a class, those told as such. `right when told`: of the rows told as a "
        "class, those that are of it. `area under ROC`: how often a row of the class is ranked above one "
        "of another. Each with its 95 % interval: of shares by Wilson, of areas by the spread of the folds."
    )
    if analysis.dataset.weights is not None:
        text += " Rows count by their weights, here and wherever a share is told; the matrix counts rows."
    if len(names) == 2:
        text += (
            f" With {names[1]} for positive, sensitivity is `found` of {names[1]}, specificity `found` of "
        )
        text += f"{names[0]}."
    yield html.paragraph(text, "soft")


def share_cells(share: Share | None, scoring: str = "accuracy") -> list[Any]:
    if share is None:
        return ["never told", ""]
    value = percent(share.value) if scoring == "accuracy" else f"{share.value:.3f}"
    return [html.Cell(value, "strong"), html.Cell(interval_text(scoring, share.interval), "soft")]


def roc_figure(analysis: Analysis) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    negative, positive = class_list(analysis)
    false, true = roc_points(analysis)
    area = area_under_curve(analysis, 1)
    with mpl.rc_context(FONT):
        figure = Figure(figsize=(3.6, 3.4), layout="constrained")
        ax = figure.subplots()
        ax.plot([0, 1], [0, 1], **REFERENCE)
        ax.step(false, true, where="post", color=CURVE, lw=1.6)
        ax.set(
            xlabel=f"{plain(negative)} told as {plain(positive)}", ylabel=f"{plain(positive)} told as such"
        )
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        image = html.svg(figure, "roc")
    caption = (
        f"ROC curve on rows not seen; area {area.value:.3f} "
        f"({interval_text('auc', area.interval)}). The dashed line is guessing."
    )
    return html.figure(image, caption, id="roc", small=True)


def reliability_figure(analysis: Analysis) -> str:
    """What was told as so many per cent, and how often it came true."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    bins, names = reliability(analysis), class_list(analysis)
    told = [b.told for b in bins]
    true = [b.true.value for b in bins]
    low = [b.true.value - b.true.interval.low for b in bins]
    high = [b.true.interval.high - b.true.value for b in bins]
    with mpl.rc_context(FONT):
        figure = Figure(figsize=(3.6, 3.4), layout="constrained")
        ax = figure.subplots()
        ax.plot([0, 1], [0, 1], **REFERENCE)
        ax.errorbar(told, true, yerr=[low, high], fmt="o", ms=4, lw=1.2, color=CURVE, capsize=2)
        about = f"of {plain(names[1])}" if len(names) == 2 else "of the likeliest class"
        ax.set_xlabel(f"probability {about}")
        ax.set_ylabel("share that came true")
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        image = html.svg(figure, "reliability")
    off = 100 * calibration_error(analysis)
    caption = (
        "Probabilities told of rows not seen (--proba writes them down), and how often they came true, with "
        f"95 % intervals; on the dashed line they are right. They are off by {off:.1f} points on average; "
        f"log loss {log_loss_of(analysis):.3f}."
    )
    return html.figure(image, caption, id="reliability", small=True)


def distributions_figure(analysis: Analysis) -> Iterator[str]:
    """Each chosen feature by class: its values as boxes, the most important features first."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    machine, names = analysis.model.machine, class_list(analysis)
    if analysis.model.is_kernel:
        return
    order = order_features(analysis)
    drawn = [j for j in order if machine.coef_[:, j].any()][:MOST_DRAWN]
    if not drawn or len(names) > 12:
        return
    n_columns = min(3, len(drawn))
    n_rows = -(-len(drawn) // n_columns)
    with mpl.rc_context(FONT):
        figure = Figure(
            figsize=(2.7 * n_columns + 0.5, (0.55 + 0.27 * len(names)) * n_rows + 0.2), layout="constrained"
        )
        axes = np.atleast_1d(figure.subplots(n_rows, n_columns, sharey=True)).ravel()
        for ax, j in zip(axes, drawn, strict=False):
            draw_boxes(ax, analysis, int(j))
            ax.set_title(plain(analysis.counted.names[j]), fontsize=9, loc="left")
        for ax in axes[len(drawn) :]:
            ax.set_visible(False)
        axes[0].set_yticks(range(1, len(names) + 1), [plain(name) for name in names])
        axes[0].invert_yaxis()
        image = html.svg(figure, "distributions")
    more = (
        f" The first {len(drawn)} of {int(machine.coef_.any(axis=0).sum())}."
        if len(drawn) == MOST_DRAWN
        else ""
    )
    caption = (
        "Each feature by class, as it stands in the table: the middle half of the rows in the box, the line "
        f"its median, nine of ten rows between the whiskers.{more}"
    )
    yield html.figure(
        image, caption, id="distributions", wide=n_columns == 3, narrow=n_columns == 2, small=n_columns == 1
    )


def draw_boxes(ax: Any, analysis: Analysis, feature: int) -> None:
    values, y = analysis.dataset.X[:, feature], analysis.dataset.y
    of_class = [values[(y == name) & ~np.isnan(values)] for name in analysis.assessment.classes]
    style = {"color": CURVE, "lw": 1.1}
    ax.boxplot(
        of_class,
        orientation="horizontal",
        whis=(5, 95),
        widths=0.55,
        showfliers=False,
        boxprops=style,
        whiskerprops=style,
        capprops=style,
        medianprops={"color": CURVE, "lw": 2},
    )
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)


def plain(name: object) -> str:
    """Text that matplotlib takes as it is, cut where it would fill the figure."""
    text = "".join(letter if letter.isprintable() else "\ufffd" for letter in str(name)).replace("$", r"\$")
    return text if len(text) <= 28 else text[:27] + "…"
