"""The page about an analysis: report.html."""

import shlex
from collections.abc import Iterator

from kmargin import __version__, html
from kmargin.displays import CVScoreDisplay
from kmargin.errors import count
from kmargin.tables.analyse import Analysis
from kmargin.tables.choice_words import choice_text, fold_choices_text, honesty_text, p_value_text
from kmargin.tables.machine_section import machine_section
from kmargin.tables.quality_section import distributions_figure, quality_section
from kmargin.tables.score_words import change_text, interval_text, score_name, score_text
from kmargin.tables.sentences import (
    axis_text,
    class_counts,
    headline,
    most_common,
    neighbour_text,
    rows_text,
    used_units,
)


def render(analysis: Analysis, source: str, folder: str) -> str:
    """The page. `source` is the name of the table, `folder` that of the results."""
    title = f"{analysis.dataset.target} from {source}"
    return html.page(title, sections(analysis, source, folder))


def sections(analysis: Analysis, source: str, folder: str) -> Iterator[str]:
    yield f"<h1>{html.escape(analysis.dataset.target)}, from {html.escape(source)}</h1>"
    yield html.paragraph(headline(analysis).replace(" %", "\u00a0%"), "lead")
    yield summary(analysis)
    if analysis.assessment.p_value is not None:
        yield html.paragraph(p_value_text(analysis))
    yield from (html.paragraph(f"Note: {note}", "soft") for note in analysis.notes)
    yield from curve_section(analysis)
    yield from machine_section(analysis)
    yield from distributions_figure(analysis)
    yield from quality_section(analysis)
    yield from settings_section(analysis, source, folder)


def summary(analysis: Analysis) -> str:
    assessed, scoring = analysis.assessment, analysis.settings.scoring
    n_features = len(analysis.model.machine.support_)
    use = (n_features, "training points kept" if analysis.model.is_kernel else features_text(n_features))
    if not analysis.model.is_kernel and analysis.counted.is_grouped:
        made_of = f"{analysis.things} in use, {count(n_features, 'feature')}"
        use = (len(used_units(analysis)), made_of)
    return html.cards(
        use,
        (
            score_text(scoring, assessed.score),
            f"{score_name(scoring)} on rows not seen, {interval_text(scoring, assessed.interval)}",
        ),
        (score_text(scoring, assessed.guessing), f"by guessing{most_common(analysis)}"),
        (f"{len(analysis.dataset.y):,}", f"rows, {class_counts(analysis)}"),
    )


def features_text(number: int) -> str:
    return "feature in use" if number == 1 else "features in use"


def curve_section(analysis: Analysis) -> Iterator[str]:
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    curve, scoring = analysis.curve, analysis.settings.scoring
    yield f'<h2 id="curve">How many {analysis.things} it takes</h2>'
    with mpl.rc_context({"font.size": 9.5, "font.family": "sans-serif"}):
        figure = Figure(figsize=(5.6, 3.1), layout="constrained")
        name = score_name(scoring)
        display = CVScoreDisplay(curve.ks, curve.mean, curve.error, analysis.k, name).plot(figure.subplots())
        display.ax_.set_xlabel(axis_text(analysis.things, analysis.is_shared))
        if scoring in ("accuracy", "balanced_accuracy"):
            display.ax_.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        image = html.svg(figure, "scores")
    n_folds = len(analysis.choice.table.scores)
    caption = f"At C = {analysis.C:g}, mean of {n_folds} folds; the band is one standard error."
    yield html.figure(image, caption, id="scores", narrow=True)
    yield html.paragraph(" ".join(filter(None, (choice_text(analysis), fold_choices_text(analysis)))))
    yield html.paragraph(" ".join(neighbour_text(analysis, near) for near in analysis.neighbours))
    swaps = [] if analysis.model.is_kernel else [html.Cell("comes in", "name"), html.Cell("goes out", "name")]
    yield html.table(["k", name, "change", *swaps], neighbour_rows(analysis), id="neighbours")


def neighbour_rows(analysis: Analysis) -> list[html.Row]:
    scoring = analysis.settings.scoring
    swaps = [] if analysis.model.is_kernel else ["", ""]
    own = [analysis.k, score_text(scoring, analysis.curve.at(analysis.k)[0]), "chosen", *swaps]
    rows = {analysis.k: html.Row(own, "marked")}
    for near in analysis.neighbours:
        change = change_text(scoring, near.change)
        kind = {"+": "good", "−": "bad"}.get(change[0], "")
        cells = [near.k, score_text(scoring, near.score), html.Cell(change, kind)]
        if swaps:
            cells += [html.Cell(", ".join(names[:8]), "name") for names in (near.enters, near.leaves)]
        rows[near.k] = html.Row(cells)
    return [rows[k] for k in sorted(rows)]


def settings_section(analysis: Analysis, source: str, folder: str) -> Iterator[str]:
    settings, dataset, table = analysis.settings, analysis.dataset, analysis.choice.table
    n_encoded = len(dataset.encoding.categories)
    rows = [
        ["table", f"{source}, {rows_text(analysis)}, {len(dataset.encoding.feature_names)} features"],
        ["target", dataset.target],
        ["machine", f"kernel {settings.kernel}" if settings.kernel else "linear"],
        ["k counts", analysis.things + ("" if analysis.is_shared else ", for each machine by itself")],
        *asked_rows(analysis),
        ["k and C", f"{analysis.k} and {analysis.C:g}; C from {', '.join(f'{C:g}' for C in table.Cs)}"],
        ["folds", f"{len(analysis.supports)}, shuffled by seed {settings.seed}, classes in proportion"],
        ["rounds of folds", f"{analysis.choice.n_rounds}, of at most {settings.repeats}"],
        ["score", settings.scoring],
        ["features", "scaled to spread 1" if settings.standardize else "as they are"],
        ["missing values", "filled with medians" if dataset.impute else "none"],
        ["text columns", f"{n_encoded}, a feature per value" if n_encoded else "none"],
        ["weights", "by column" if dataset.weights is not None else "none"],
        ["classes", "balanced" if settings.balanced else "weighted by their number of rows"],
        ["kmargin", __version__],
    ]
    yield '<h2 id="made">How it was made</h2>'
    made = "Scaling, filling in and fitting were done anew in each fold, from its training rows alone."
    yield html.paragraph(f"{made} {honesty_text(analysis)}")
    yield html.table(["", ""], [[a, html.Cell(b, "name")] for a, b in rows], id="settings")
    yield html.paragraph("To use the model on new rows:")
    yield f"<p><code>kmargin predict {html.escape(shlex.quote(folder))} new.csv</code></p>"
    yield html.paragraph(
        "The columns of new.csv are found by name, in any order; those the model does not need are ignored.",
        "soft",
    )


def asked_rows(analysis: Analysis) -> list[list[str]]:
    """What was asked for of features, as far as something was."""
    counted, said = analysis.counted, analysis.settings.columns
    features = range(len(counted.names))
    signs = {j: counted.sign_of(j).replace("-", "−") for j in features}
    rows = [
        ["always in", ", ".join(counted.labels_of(j for j in features if counted.always_in[j]))],
        ["never in", ", ".join(said.avoid)],
        ["signs", ", ".join(f"{counted.names[j]} {sign}" for j, sign in signs.items() if sign)],
    ]
    return [row for row in rows if row[1]]
