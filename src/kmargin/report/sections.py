"""The sections of the report: features and weights, training points, quality."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kmargin.core.arrays import Vector
from kmargin.displays.palette import CURVE, REFERENCE
from kmargin.model_selection.scores import Estimate
from kmargin.report import html
from kmargin.report.frames import (
    area_under_curve,
    calibration_error,
    confusion,
    feature_frame,
    intercepts_per_unit,
    log_loss_of,
    order_features,
    point_frame,
    precision,
    recall,
    reliability,
    results_by_group,
    roc_points,
    stand_in_name,
    weights_by_class,
    wrong_frame,
)
from kmargin.report.text import (
    MOST_GROUPS,
    class_list,
    counting_text,
    frequency_text,
    groups_text,
    halves_sentence,
    halves_text,
    interval_text,
    marks,
    percent,
    rows_text,
    signs_text,
)
from kmargin.tables.analysis import Analysis

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 60  # of a table on the page; the files have all
MOST_TERMS = 12  # of a formula
MOST_COLUMNS = 16  # classes side by side
MOST_STAND_INS = 3
WORTHS_TEXTS = (
    (
        "`loss without it`: the change of the training objective if the feature is left out and the model "
        "refitted."
    ),
    "`best replacements`: features that could take its place, with the change of the training objective.",
)


def weights_section(analysis: Analysis) -> Iterator[str]:
    """Of a linear machine: the part that suits the number of classes."""
    if len(analysis.model.machine.classes_) == 2:
        return features_section(analysis)
    return classes_section(analysis)


def features_section(analysis: Analysis) -> Iterator[str]:
    """Two classes: one weight per feature."""
    frame = feature_frame(analysis).assign(place=order_features(analysis))
    is_in = frame["chosen"] | frame["always_in"]
    used, rest = frame[is_in], frame[~is_in]
    yield '<h2 id="features">The features of the model</h2>'
    rows = list(feature_rows(analysis, used.head(MOST_ROWS)))
    yield html.folded_table(feature_columns(analysis), rows, "more of the features", "weights", "stack full")
    yield html.terms(
        (
            "`weight`: the coefficient of the feature scaled to standard deviation 1, so that weights can be "
            "compared; `per unit`: the coefficient in the units of the table."
        ),
        *(WORTHS_TEXTS if analysis.worths else ()),
        "`folds`: how many folds of the first round chose the feature, with the chosen k and C.",
        halves_sentence(analysis),
    )
    yield from asked_paragraphs(analysis)
    if len(used) > MOST_ROWS:
        yield html.paragraph(f"The other {len(used) - MOST_ROWS} are in `features.csv`.", "soft")
    if 0 < len(used) <= MOST_TERMS:
        yield html.details("The whole model as a formula", formula(analysis))
    close = rest[rest["frequency"] > 0].sort_values("frequency", ascending=False, kind="stable")
    if len(close):
        nearly = [
            [html.Cell(row.feature, "name"), html.Bar(frequency_text(analysis, row.frequency), row.frequency)]
            for row in close.head(MOST_ROWS).itertuples()
        ]
        yield html.details(
            f"Chosen in some folds, but not in the final model: {len(close)}",
            html.table([html.Cell("feature", "name"), html.Cell("folds", "bars")], nearly, id="nearly"),
        )


def feature_columns(analysis: Analysis) -> list[html.Cell]:
    """Return the column headings of the table that `feature_rows` fills."""
    group = [analysis.things.removesuffix("s")] if analysis.counted.is_grouped else []
    worth = ["loss without it", "best replacements"] if analysis.worths else []
    halves = [] if analysis.halves is None else ["halves"]
    kinds = dict.fromkeys(("feature", "higher values favour", "best replacements", *group), "name") | {
        "weight": "bars"
    }
    shown = ["feature", *group, "weight", "per unit", "higher values favour", *worth, "folds", *halves]
    return [html.Cell(name, kinds.get(name, "")) for name in shown]


def feature_rows(analysis: Analysis, used: "pd.DataFrame") -> Iterator[list[html.Cell]]:
    """A row per feature: what it is, what it weighs, what it is worth, how often it comes back."""
    largest = max(float(used["weight"].abs().max()), 1e-300) if len(used) else 1.0
    both_signs = bool((used["weight"] < 0).any())
    told: set[str] = set()  # what a group is worth is told once
    for row in used.itertuples():
        is_new = row.group not in told
        told.add(row.group)
        side = "positive" if row.weight > 0 else "negative"
        yield [
            html.Cell(row.feature, "name", aside=marks(analysis, row.place)),
            *([html.Cell(row.group, "name")] if analysis.counted.is_grouped else []),
            html.Bar(signed(row.weight, "+.3f"), row.weight / largest, side, from_middle=both_signs),
            html.Cell(signed(row.weight_per_unit, "+.4g")),
            html.Mark(row.favours, side, "name") if row.favours else html.Cell("", "name empty"),
            *(worth_cells(analysis, row.group if is_new else "") if analysis.worths else []),
            html.Cell(frequency_text(analysis, row.frequency)),
            *([] if analysis.halves is None else [html.Cell(halves_text(analysis, row.place))]),
        ]


def worth_cells(analysis: Analysis, label: str) -> list[html.Cell]:
    """What doing without would cost, and what could take the place at which cost."""
    worth = analysis.worths.get(label)
    if worth is None:
        return [html.Cell("", "empty"), html.Cell("", "name long empty")]
    stand_ins = ", ".join(
        f"{html.shortened(stand_in_name(analysis, s))} ({rise_text(s.cost)})"
        for s in worth.stand_ins[:MOST_STAND_INS]
        if s.cost < worth.cost
    )
    return [html.Cell(rise_text(worth.cost)), html.Cell(stand_ins or "none", "name long")]


def signed(value: float, form: str) -> str:
    """A number whose minus is as wide as its plus."""
    return format(value, form).replace("-", "−", 1)


def rise_text(share: float) -> str:
    """A relative change: in per cent up to a doubling, then as a factor."""
    if share >= 1:
        return f"×\u00a0{1 + share:.1f}"
    return signed(round(100 * share, 1) + 0.0, "+.1f") + "\u00a0%"


def formula(analysis: Analysis) -> str:
    """Return the formula of the decision value, with the intercept and the weights per unit of the table."""
    frame = feature_frame(analysis)
    terms = [f"{intercepts_per_unit(analysis.model)[0]:+.5g}"]
    terms += [f"{row.weight_per_unit:+.5g} × {row.feature}" for row in frame[frame["chosen"]].itertuples()]
    lines = "".join(f"<br>{html.escape(term.replace('-', '−', 1))}" for term in terms)
    negative, positive = class_list(analysis)
    return f"<p><code>decision =</code>{lines}</p>" + html.paragraph(
        f"Above zero the prediction is {positive}, otherwise {negative}."
    )


def classes_section(analysis: Analysis) -> Iterator[str]:
    """More classes: each feature once, with its weight for each class, as a heat map."""
    table, counted = weights_by_class(analysis), analysis.counted
    frequency = analysis.frequency if analysis.frequency is not None else np.zeros(len(counted.names))
    classes = class_list(analysis)[:MOST_ROWS]
    largest = max(float(table.abs().to_numpy().max(initial=0.0)), 1e-300)
    groups = [html.Cell(analysis.things.removesuffix("s"), "name")] if counted.is_grouped else []
    halves = [] if analysis.halves is None else ["halves"]
    rows = [
        [
            html.Cell(counted.names[j], "name", aside=marks(analysis, j)),
            *(html.Cell(counted.labels[j], "name") for _ in groups),
            *(weight_cell(float(table.loc[j, c]), largest) for c in range(len(classes))),
            frequency_text(analysis, frequency[j]),
            *(halves_text(analysis, j) for _ in halves),
        ]
        for j in table.index[:MOST_ROWS]
    ]
    head = [html.Cell("feature", "name"), *groups, *classes, "folds", *halves]
    kind = "heat always" if len(classes) > MOST_COLUMNS else "heat wrap full"
    yield '<h2 id="features">The features of the model</h2>'
    yield html.folded_table(head, rows, "more of the features", "weights", kind)
    yield html.terms(*class_weight_texts(analysis), halves_sentence(analysis))
    yield from asked_paragraphs(analysis)
    if len(table) > MOST_ROWS or len(class_list(analysis)) > MOST_ROWS:
        yield html.paragraph(f"{len(table)} features in total; the others are in `features.csv`.", "soft")
    if analysis.worths:
        thing = analysis.things.removesuffix("s")
        heads = ((thing, "name"), ("loss without it", "bars"), ("best replacements", "name"))
        columns, worths = [html.Cell(*head) for head in heads], worth_rows(analysis, table.index)
        yield f"<h3>The contribution of each {thing}</h3>"
        yield html.folded_table(
            columns, worths[:MOST_ROWS], f"more of the {analysis.things}", "worths", "stack full"
        )
        yield html.terms(*WORTHS_TEXTS)


def worth_rows(analysis: Analysis, features: Iterable[int]) -> list[list[html.Cell]]:
    """A row per unit of what k counts: a bar for what doing without would cost."""
    labels = analysis.counted.labels_of(features)
    costs = [worth.cost for label in labels if (worth := analysis.worths.get(label))]
    largest = max(costs, default=0.0) or 1.0
    rows = []
    for label in labels:
        cost, stand_ins = worth_cells(analysis, label)
        if worth := analysis.worths.get(label):
            cost = html.Bar(cost.text, worth.cost / largest)
        rows.append([html.Cell(label, "name"), cost, stand_ins])
    return rows


def weight_cell(weight: float, largest: float) -> html.Cell:
    """A number on a shade of its size; a dot where a class has none."""
    if weight == 0:
        return html.Cell("·")
    text = signed(weight, "+.2f") if abs(weight) >= 0.005 else "0"
    return html.Shade(text, weight / largest, "positive" if weight > 0 else "negative")


def class_weight_texts(analysis: Analysis) -> tuple[str, str]:
    """How a class comes to its weights."""
    how = "its weight in the classifier of the class against all others"
    if analysis.model.machine.multi_class == "ovo":
        n_others = len(class_list(analysis)) - 1
        how = (
            f"the mean of its weights in the {n_others} classifiers of the class against one other class "
            "each, signed so that positive values favour the class"
        )
    return (
        (
            "Positive (violet): higher values of the feature favour the class; negative (green): they count "
            "against it. Weights are for features scaled to standard deviation 1."
        ),
        (
            f"A class's weight for a feature is {how}. The weights of all "
            f"{len(analysis.model.machine_names)} binary classifiers, also per unit of the table, are in "
            "`features.csv`."
        ),
    )


def asked_paragraphs(analysis: Analysis) -> Iterator[str]:
    """What k counts, and what was asked for of features."""
    yield from (
        html.paragraph(text, "soft") for text in (counting_text(analysis), signs_text(analysis)) if text
    )


MOST_DRAWN = 9  # features, each with its distribution
MOST_CLASSES = 12
MARKS = ("negative", "positive")  # the colours that weights for two classes have; more are told by name alone


def distributions(analysis: Analysis) -> Iterator[str]:
    """Each chosen feature by class: its values as boxes, the most important features first."""
    machine, names = analysis.model.machine, class_list(analysis)
    if analysis.model.is_kernel:
        return
    used = [int(j) for j in order_features(analysis) if machine.coef_[:, j].any()]
    if not used or len(names) > MOST_CLASSES:
        return
    drawn = used[:MOST_DRAWN]
    boxes = "".join(feature_box(analysis, j) for j in drawn)
    more = f" The first {len(drawn)} of {len(used)}." if len(drawn) < len(used) else ""
    yield f'<div class="boxes" id="distributions">{boxes}</div>'
    yield html.paragraph(
        "Each feature by class, in the units of the table: the box holds the middle half of the rows, the "
        f"line is the median, and nine of ten rows lie between the ends.{more}",
        "soft",
    )


def feature_box(analysis: Analysis, feature: int) -> str:
    """A line per class, all on the scale of the feature."""
    values, y = analysis.dataset.X[:, feature], analysis.dataset.y
    of_class = [values[(y == name) & ~np.isnan(values)] for name in analysis.assessment.classes]
    marks = [quantiles(own) for own in of_class]
    known = np.concatenate([m for m in marks if m is not None])
    low, high = float(known.min()), float(known.max())
    names = class_list(analysis)
    lines = "".join(
        class_line(name, mark, low, high, MARKS[code] if len(names) == len(MARKS) else "soft")
        for code, (name, mark) in enumerate(zip(names, marks, strict=True))
    )
    ends = f'<div class="ends"><span>{number(low)}</span><span>{number(high)}</span></div>'
    title = html.escape(str(analysis.counted.names[feature]))
    return f'<div class="box"><h3>{title}</h3>{lines}<div class="line"><span></span>{ends}</div></div>'


def quantiles(values: Vector) -> Vector | None:
    """Ends, quarters and median; None without values."""
    return np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)) if len(values) else None


def class_line(name: str, mark: Vector | None, low: float, high: float, colour: str) -> str:
    label = f'<span class="of">{html.escape(name)}</span>'
    if mark is None:
        return f'<div class="line">{label}<span class="soft">no values</span></div>'
    at = 100 * (mark - low) / (high - low) if high > low else np.full(5, 50.0)
    said = f"median {number(mark[2])}, middle half {number(mark[1])} to {number(mark[3])}"
    return (
        f'<div class="line" style="--mark:var(--{colour})" title="{said}">{label}'
        f'<span class="span" role="img" aria-label="{said}">'
        f'<i class="whisker" style="left:{at[0]:.1f}%;width:{at[4] - at[0]:.1f}%"></i>'
        f'<i class="half" style="left:{at[1]:.1f}%;width:{at[3] - at[1]:.1f}%"></i>'
        f'<i class="median" style="left:{at[2]:.1f}%"></i></span></div>'
    )


def number(value: float) -> str:
    """Four digits; large numbers whole, without an exponent."""
    text = f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    return text.replace("-", "−", 1)


def points_section(analysis: Analysis) -> Iterator[str]:
    """A kernel machine: the rows that it remembers, each with its weight in each machine."""
    frame, machines = point_frame(analysis), analysis.model.machine_names
    own = [name for name in ("row", "id", "class") if name in frame.columns[:3]]
    weights = frame[[f"weight: {name}" for name in machines]].to_numpy()
    largest = max(float(np.abs(weights).max(initial=0.0)), 1e-300)
    rows = [
        [
            *(html.Cell(value, "name") for value in texts),
            *(point_cell(w, largest, machines) for w in of_point),
        ]
        for texts, of_point in zip(frame[own].itertuples(index=False), weights, strict=True)
    ]
    yield '<h2 id="points">The training rows of the model</h2>'
    yield html.paragraph(
        f"A new row is compared only with these {len(rows)} rows of the table (kernel: "
        f"{analysis.settings.kernel}). A positive weight (violet) favours the class named second, a negative "
        "one (green) the first. `points.csv` lists them with all their columns."
    )
    heads: list[Any] = [html.Cell(name, "name") for name in own]
    heads += machines if len(machines) > 1 else [html.Cell(f"weight ({machines[0]})", "bars")]
    kind = "stack full" if len(machines) == 1 else "heat always" if len(machines) > 6 else "heat wrap full"
    yield html.folded_table(heads, rows[:MOST_ROWS], "more of the rows", "kept", kind)


def point_cell(weight: float, largest: float, machines: Sequence[str]) -> html.Cell:
    """A bar in the only machine; a shade in one of several."""
    if len(machines) > 1:
        return weight_cell(weight, largest)
    side = "positive" if weight > 0 else "negative"
    return html.Bar(signed(weight, "+.3f"), weight / largest, side, from_middle=True)


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
