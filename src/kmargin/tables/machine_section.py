"""What a linear machine looks at, as part of a page: features, their weights, what they are worth."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from kmargin import html
from kmargin.tables.analyse import Analysis
from kmargin.tables.results import (
    feature_frame,
    intercepts_per_unit,
    order_features,
    stand_in_name,
    weights_by_class,
)
from kmargin.tables.sentences import (
    class_list,
    counting_text,
    frequency_text,
    halves_sentence,
    halves_text,
    marks,
    signs_text,
)

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
    """The heads of what `feature_rows` tells."""
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
    """The decision value from the numbers of the table."""
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
