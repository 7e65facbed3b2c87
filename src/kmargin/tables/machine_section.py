"""What a machine looks at, as part of a page: weights of features, or the points it keeps."""

from collections.abc import Iterator

import numpy as np

from kmargin import html
from kmargin.tables.analyse import Analysis
from kmargin.tables.results import (
    feature_frame,
    intercepts_per_unit,
    order_features,
    point_weights,
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

MOST_ROWS = 40  # of a table on the page; the files have all
MOST_TERMS = 12  # of a formula
WORTHS_TEXT = (
    "`without it`: by how much the minimised loss rises without the feature; `could stand in`: what could "
    "take its place, and by how much the loss rises then, everything else fitted anew."
)


def machine_section(analysis: Analysis) -> Iterator[str]:
    """The part that suits the machine."""
    if analysis.model.is_kernel:
        return points_section(analysis)
    if len(analysis.model.machine.classes_) == 2:
        return features_section(analysis)
    return classes_section(analysis)


def features_section(analysis: Analysis) -> Iterator[str]:
    """Two classes: one weight per feature."""
    frame = feature_frame(analysis).assign(place=order_features(analysis))
    is_in = frame["chosen"] | frame["always_in"]
    used, rest = frame[is_in], frame[~is_in]
    groups = [html.Cell(analysis.things.removesuffix("s"), "name")] if analysis.counted.is_grouped else []
    yield '<h2 id="features">What it looks at</h2>'
    largest = max(float(used["weight"].abs().max()), 1e-300) if len(used) else 1.0
    no_worths, halves = not analysis.worths, [] if analysis.halves is None else ["halves"]
    both_signs = bool((used["weight"] < 0).any())
    rows = [
        [
            html.Cell(row.feature, "name", aside=marks(analysis, row.place)),
            *(html.Cell(row.group, "name") for _ in groups),
            html.Bar(row.weight / largest, f"{row.weight:+.3f}", from_middle=both_signs),
            html.Cell(row.favours, "name"),
            html.Bar(row.frequency, frequency_text(analysis, row.frequency)),
            frequency_text(analysis, row.frequency),
            *(halves_text(analysis, row.place) for _ in halves),
            f"{row.weight:+.3f}",
            f"{row.weight_per_unit:+.4g}",
            *([] if no_worths else worth_cells(analysis, row.group)),
        ]
        for row in used.head(MOST_ROWS).itertuples()
    ]
    columns = [
        *(html.Cell("feature", "name"), *groups, html.Cell("weight", "bars")),
        html.Cell("more of it says", "name"),
        *(html.Cell("chosen by folds", "bars"), "", *halves, "weight", "per unit"),
        *([] if no_worths else ["without it", html.Cell("could stand in", "name")]),
    ]
    yield html.table(columns, rows, id="weights")
    yield html.paragraph(
        "Weights are for features scaled to a spread of 1, so they can be compared; `per unit` is for the "
        "numbers as they stand in the table. `chosen by folds`: of the first round, with the chosen k and C."
        + ("" if no_worths else f" {WORTHS_TEXT}")
        + f" {halves_sentence(analysis)}",
        "soft",
    )
    yield from asked_paragraphs(analysis)
    if len(used) > MOST_ROWS:
        yield html.paragraph(f"The other {len(used) - MOST_ROWS} are in `features.csv`.", "soft")
    if 0 < len(used) <= MOST_TERMS:
        yield html.details("The whole model as a formula", formula(analysis))
    close = rest[rest["frequency"] > 0].sort_values("frequency", ascending=False, kind="stable")
    if len(close):
        rows = [
            [
                html.Cell(row.feature, "name"),
                html.Bar(row.frequency),
                frequency_text(analysis, row.frequency),
            ]
            for row in close.head(MOST_ROWS).itertuples()
        ]
        yield html.details(
            f"Chosen by some folds, not in the end: {len(close)}",
            html.table(["feature", html.Cell("chosen by folds", "bars"), ""], rows, id="nearly"),
        )


def worth_cells(analysis: Analysis, label: str) -> list[html.Cell]:
    """What doing without would cost, and what could take the place at which cost."""
    worth = analysis.worths.get(label)
    if worth is None:
        return [html.Cell(""), html.Cell("", "name")]
    stand_ins = ", ".join(
        f"{stand_in_name(analysis, s)} ({rise_text(s.cost)})" for s in worth.stand_ins if s.cost < worth.cost
    )
    return [html.Cell(rise_text(worth.cost)), html.Cell(stand_ins or "none", "name")]


def rise_text(share: float) -> str:
    """By how much something rises."""
    return f"+{100 * share:.1f} %" if share < 1 else f"× {1 + share:.1f}"


def formula(analysis: Analysis) -> str:
    """The decision value from the numbers of the table."""
    frame = feature_frame(analysis)
    terms = [f"{intercepts_per_unit(analysis.model)[0]:+.5g}"]
    terms += [f"{row.weight_per_unit:+.5g} × {row.feature}" for row in frame[frame["chosen"]].itertuples()]
    lines = "".join(f"<br>{html.escape(term.replace('-', '−', 1))}" for term in terms)
    negative, positive = class_list(analysis)
    return f"<p><code>decision =</code>{lines}</p>" + html.paragraph(
        f"Above zero it says {positive}, otherwise {negative}."
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
            html.Bar(frequency[j]),
            frequency_text(analysis, frequency[j]),
            *(halves_text(analysis, j) for _ in halves),
            *(weight_cell(float(table.loc[j, c]), largest) for c in range(len(classes))),
        ]
        for j in table.index[:MOST_ROWS]
    ]
    folds = [html.Cell("chosen by folds", "bars"), "", *halves]
    head = [html.Cell("feature", "name"), *groups, *folds, *classes]
    yield '<h2 id="features">What it looks at</h2>'
    yield html.table(head, rows, id="weights")
    yield html.paragraph(class_weight_text(analysis), "soft")
    yield html.paragraph(halves_sentence(analysis), "soft")
    if analysis.worths:
        worths = [
            [html.Cell(label, "name"), *worth_cells(analysis, label)]
            for label in counted.labels_of(table.index)
        ]
        columns = [html.Cell(analysis.things.removesuffix("s"), "name"), "without it"]
        columns.append(html.Cell("could stand in", "name"))
        yield html.table(columns, worths[:MOST_ROWS], id="worths")
        yield html.paragraph(WORTHS_TEXT, "soft")
    yield from asked_paragraphs(analysis)
    if len(table) > MOST_ROWS or len(class_list(analysis)) > MOST_ROWS:
        yield html.paragraph(f"{len(table)} features in all; the rest is in `features.csv`.", "soft")


def weight_cell(weight: float, largest: float) -> html.Cell:
    """A number on a shade of its size; a dot where a class has none."""
    if weight == 0:
        return html.Cell("·")
    return html.Shade(f"{weight:+.2f}" if abs(weight) >= 0.005 else "0", weight / largest, weight > 0)


def class_weight_text(analysis: Analysis) -> str:
    """How a class comes to its weights."""
    how = "its weight in the machine that tells the class from all others."
    if analysis.model.machine.multi_class == "ovo":
        n_others = len(class_list(analysis)) - 1
        how = (
            f"the mean of its weights in the {n_others} machines that tell the class from one other each, "
            "signed so that positive speaks for the class."
        )
    return (
        "Blue: more of the feature speaks for the class; brown: against it. A class's weight for a feature "
        f"is {how} Weights are for features scaled to a spread of 1; those of all "
        f"{len(analysis.model.machine_names)} machines, also per unit of the table, are in `features.csv`."
    )


def asked_paragraphs(analysis: Analysis) -> Iterator[str]:
    """What k counts, and what was asked for of features."""
    yield from (
        html.paragraph(text, "soft") for text in (counting_text(analysis), signs_text(analysis)) if text
    )


def points_section(analysis: Analysis) -> Iterator[str]:
    """A kernel machine: the rows that it remembers."""
    frame = point_weights(analysis)
    n_points = frame["row"].nunique()
    largest = frame["weight"].abs().max()
    texts = [html.Cell(name, "text") for name in frame.columns[:-1]]
    rows = [
        [
            *(html.Cell(value, "text") for value in row[:-1]),
            html.Bar(row[-1] / largest, from_middle=True),
            f"{row[-1]:+.3f}",
        ]
        for row in frame.head(MOST_ROWS).itertuples(index=False)
    ]
    yield '<h2 id="points">The rows it remembers</h2>'
    yield html.paragraph(
        f"A new row is compared with these {n_points} rows of the table and no others "
        f"(kernel: {analysis.settings.kernel}). A positive weight speaks for the class named second."
    )
    yield html.table([*texts, html.Cell("weight", "bars"), ""], rows, id="kept")
    yield html.paragraph("`points.csv` has them with all their columns.", "soft")
