"""What a machine looks at, as part of a page: weights of features, or the points it keeps."""

from collections.abc import Iterator

from kmargin import html
from kmargin.tables.analyse import Analysis
from kmargin.tables.results import feature_frame, intercepts_per_unit, point_weights
from kmargin.tables.words import class_list, frequency_text

MOST_ROWS = 40  # of a table on the page; the files have all
MOST_TERMS = 12  # of a formula


def machine_section(analysis: Analysis) -> Iterator[str]:
    """The part that suits the machine."""
    if analysis.model.is_kernel:
        return points_section(analysis)
    if len(analysis.model.machine.classes_) == 2:
        return features_section(analysis)
    return machines_section(analysis)


def features_section(analysis: Analysis) -> Iterator[str]:
    """Two classes: one weight per feature."""
    frame = feature_frame(analysis)
    used, rest = frame[frame["chosen"]], frame[~frame["chosen"]]
    yield '<h2 id="features">What it looks at</h2>'
    largest = used["weight"].abs().max() if len(used) else 1.0
    both_signs = bool((used["weight"] < 0).any())
    rows = [
        [
            html.Cell(row.feature, "name"),
            html.Bar(row.weight / largest, f"{row.weight:+.3f}", from_middle=both_signs),
            html.Cell(row.favours, "name"),
            html.Bar(row.frequency, frequency_text(analysis, row.frequency)),
            frequency_text(analysis, row.frequency),
            f"{row.weight:+.3f}",
            f"{row.weight_per_unit:+.4g}",
        ]
        for row in used.head(MOST_ROWS).itertuples()
    ]
    columns = [
        *(html.Cell("feature", "name"), html.Cell("weight", "bars"), html.Cell("more of it says", "name")),
        *(html.Cell("chosen by folds", "bars"), "", "weight", "per unit"),
    ]
    yield html.table(columns, rows, id="weights")
    yield html.paragraph(
        "Weights are for features scaled to a spread of 1, so they can be compared; `per unit` is for the "
        "numbers as they stand in the table. A feature that every fold chose is one to rely on; one that "
        "few chose has a stand-in among the others.",
        "soft",
    )
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


def machines_section(analysis: Analysis) -> Iterator[str]:
    """More classes: a weight per feature and machine, as a heat map."""
    frame = feature_frame(analysis)
    table = frame.pivot(index="feature", columns="machine", values="weight")
    used = [name for name in dict.fromkeys(frame["feature"]) if table.loc[name].any()]
    frequency = frame.drop_duplicates("feature").set_index("feature")["frequency"]
    machines = analysis.model.machine_names[:MOST_ROWS]
    largest = max(float(table.abs().to_numpy().max()), 1e-300)
    rows = [
        [
            html.Cell(name, "name"),
            html.Bar(frequency[name]),
            frequency_text(analysis, frequency[name]),
            *(
                html.Shade(f"{w:+.2f}", w / largest, w > 0) if w else html.Cell("·")
                for w in (float(table.loc[name, machine]) for machine in machines)
            ),
        ]
        for name in used[:MOST_ROWS]
    ]
    yield '<h2 id="features">What it looks at</h2>'
    yield html.table(["feature", html.Cell("chosen by folds", "bars"), "", *machines], rows, id="weights")
    yield html.paragraph(
        "A column for each machine. Blue: more of the feature speaks for the class named second; brown: for "
        "the one named first. Weights are for features scaled to a spread of 1; those per unit of the table "
        "are in `features.csv`.",
        "soft",
    )
    if len(used) > MOST_ROWS or len(analysis.model.machine_names) > MOST_ROWS:
        yield html.paragraph(f"{len(used)} features in all; the rest is in `features.csv`.", "soft")


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
