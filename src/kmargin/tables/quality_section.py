"""What goes right and wrong, and for whom, as part of a page."""

from collections.abc import Iterator
from typing import Any

from kmargin import html
from kmargin.intervals import Estimate
from kmargin.palette import CURVE, REFERENCE
from kmargin.tables.analyse import Analysis
from kmargin.tables.class_quality import (
    area_under_curve,
    calibration_error,
    log_loss_of,
    precision,
    recall,
    reliability,
    results_by_group,
    roc_points,
)
from kmargin.tables.results import confusion, wrong_frame
from kmargin.tables.score_words import interval_text, percent
from kmargin.tables.sentences import MOST_GROUPS, class_list, groups_text, rows_text

MOST_BESIDE = 12  # classes whose two tables have room side by side


def quality_section(analysis: Analysis) -> Iterator[str]:
    yield '<h2 id="confusion">Errors by class</h2>'
    wrong = wrong_frame(analysis)
    yield html.paragraph(
        f"{len(wrong):,} of {rows_text(analysis)} were misclassified by models fitted without them. "
        "`predictions.csv` lists every row."
    )
    parts = confusion_table(analysis) + html.paragraph(classes_text(analysis), "soft"), class_table(analysis)
    yield html.columns(*parts) if len(class_list(analysis)) <= MOST_BESIDE else "".join(parts)
    yield from groups_table(analysis)
    roc = [roc_figure(analysis)] if len(class_list(analysis)) == 2 else []
    yield html.columns(*roc, reliability_figure(analysis), worst_table(analysis) if len(wrong) else "")


def confusion_table(analysis: Analysis) -> str:
    """How many of each class were taken for which: right in one colour, wrong in another."""
    counts, names = confusion(analysis), class_list(analysis)
    shares = counts / counts.sum(axis=1, keepdims=True)
    rows = [
        [
            html.Cell(name, "name"),
            *(
                html.Shade(counts[i, j] or "·", shares[i, j], "curve" if i == j else "bad")
                for j in range(len(names))
            ),
        ]
        for i, name in enumerate(names)
    ]
    kind = "full" if len(names) <= 3 else "heat" if len(names) <= MOST_BESIDE else "heat wide"
    return html.table(["actual ↓ predicted →", *names], rows, id="matrix", kind=kind)


def worst_table(analysis: Analysis) -> str:
    """The rows that went furthest wrong."""
    worst = wrong_frame(analysis).head(10)
    own = "probability of its class"
    told = [name for name in ("row", "id", "actual", "predicted", own) if name in worst.columns]
    kinds = {"row": "text", own: ""}
    listed = [
        [
            html.Cell(percent(v) if name == own else v, kinds.get(name, "name"))
            for name, v in zip(told, row, strict=True)
        ]
        for row in worst[told].itertuples(index=False)
    ]
    heads = [html.Cell(name, kinds.get(name, "name")) for name in told]
    return "<h3>The clearest errors</h3>" + html.table(heads, listed, id="wrong", kind="stack")


def class_table(analysis: Analysis) -> str:
    """Shares of each class with their intervals."""
    names = class_list(analysis)
    rows = [
        [
            html.Cell(name, "name"),
            share_cell(recall(analysis, code)),
            share_cell(precision(analysis, code)),
            share_cell(area_under_curve(analysis, code), "auc"),
        ]
        for code, name in enumerate(names)
    ]
    columns = [html.Cell("class", "name"), "recall", "precision", "area under ROC"]
    return html.folded_table(columns, rows, "more of the classes", "classes", "full stack")


def groups_table(analysis: Analysis) -> Iterator[str]:
    """The accuracy for each group of rows; of very many groups, how it varies among them."""
    results, by = results_by_group(analysis), analysis.dataset.grouped_by
    if not results:
        return
    yield f'<h3 id="by-group">Results by {html.escape(str(by))}</h3>'
    if len(results) > MOST_GROUPS:
        yield html.paragraph(groups_text(analysis))
        return
    rows = [
        [html.Cell(r.name, "name"), r.n_rows, share_cell(r.correct), percent(r.most_common)] for r in results
    ]
    heads = [html.Cell(str(by), "name"), "rows", "accuracy", "largest class"]
    yield html.table(heads, rows, id="groups", kind="full")
    yield html.paragraph(
        "Each row was predicted by a model fitted without any row of its group. `largest class`: the "
        "accuracy of always predicting the most common class of the group.",
        "soft",
    )


def classes_text(analysis: Analysis) -> str:
    """What the shares are; of two classes by the names that doctors give them."""
    names = class_list(analysis)
    texts = [
        (
            "`recall`: the proportion of the rows of a class that are predicted as such. `precision`: the "
            "proportion of the rows predicted as a class that belong to it. `area under ROC`: how often a "
            "row of the class is ranked above a row of another class."
        ),
        "Each with its 95 % interval: Wilson's for proportions, DeLong's within folds for areas.",
    ]
    if analysis.dataset.weights is not None:
        texts.append("Rows are weighted, here and in all other proportions; the matrix counts rows.")
    if len(names) == 2:
        texts.append(
            f"With {names[1]} as the positive class, sensitivity is the recall of {names[1]}, specificity "
            f"the recall of {names[0]}."
        )
    return " ".join(texts)


def share_cell(share: Estimate | None, scoring: str = "accuracy") -> html.Cell:
    if share is None:
        return html.Cell("never predicted")
    value = percent(share.value) if scoring == "accuracy" else f"{share.value:.3f}"
    return html.Cell(value, "strong two", aside=interval_text(scoring, share.interval))


def roc_figure(analysis: Analysis) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    negative, positive = class_list(analysis)
    false, true = roc_points(analysis)
    area = area_under_curve(analysis, 1)
    with mpl.rc_context(html.FONT):
        figure = Figure(figsize=(3.6, 3.4), layout="constrained")
        ax = figure.subplots()
        ax.plot([0, 1], [0, 1], **REFERENCE)
        ax.plot(false, true, color=CURVE, lw=1.6)
        ax.set(
            xlabel=f"{plain(negative)} predicted as {plain(positive)}",
            ylabel=f"{plain(positive)} predicted correctly",
        )
        whole_shares(ax)
        image = html.svg(figure, "roc")
    caption = (
        f"ROC curve on held-out rows, the mean of {len(analysis.assessment.folds)} folds. The area under it "
        f"is {area.value:.3f} (95 % interval {interval_text('auc', area.interval)}). The dashed line is "
        "guessing."
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
    with mpl.rc_context(html.FONT):
        figure = Figure(figsize=(3.6, 3.4), layout="constrained")
        ax = figure.subplots()
        ax.plot([0, 1], [0, 1], **REFERENCE)
        ax.errorbar(told, true, yerr=[low, high], fmt="o", ms=4, lw=1.2, color=CURVE, capsize=2)
        about = f"of {plain(names[1])}" if len(names) == 2 else "of the most likely class"
        ax.set_xlabel(f"probability {about}")
        ax.set_ylabel("observed frequency")
        whole_shares(ax)
        image = html.svg(figure, "reliability")
    off = 100 * calibration_error(analysis)
    where = "" if analysis.settings.proba else " (with --proba they are in predictions.csv)"
    caption = (
        f"Predicted probabilities on held-out rows{where} and observed frequencies, with 95 % intervals; "
        f"calibrated probabilities lie on the dashed line. They are off by {off:.1f} points on average; log "
        f"loss {log_loss_of(analysis):.3f}."
    )
    return html.figure(image, caption, id="reliability", small=True)


def whole_shares(ax: Any) -> None:
    """Both axes from none to all, in per cent."""
    from matplotlib.ticker import PercentFormatter

    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([0, 0.25, 0.5, 0.75, 1])
        axis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    ax.spines[["top", "right"]].set_visible(False)


def plain(name: object) -> str:
    """Text that matplotlib takes as it is, cut where it would fill the figure."""
    text = "".join(letter if letter.isprintable() else "\ufffd" for letter in str(name))
    return html.shortened(text, 20).replace("$", r"\$")
