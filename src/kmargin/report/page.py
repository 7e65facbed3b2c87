"""The report as a page, and all results written to a folder."""

import csv
import io
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kmargin import __version__
from kmargin.core.validation import InputError, count, listing
from kmargin.displays import CVScoreDisplay
from kmargin.displays.palette import REFERENCE
from kmargin.report import html
from kmargin.report.frames import feature_frame, point_frame, prediction_frame
from kmargin.report.sections import distributions, points_section, quality_section, weights_section
from kmargin.report.text import (
    PERCENT,
    all_features_text,
    axis_text,
    change_text,
    choice_text,
    class_counts,
    error_text,
    evidence_text,
    fold_choices_text,
    headline,
    honesty_text,
    interval_text,
    methods_text,
    most_common,
    neighbour_text,
    p_value_text,
    rows_text,
    score_name,
    score_text,
    used_units,
)
from kmargin.tables import model_file
from kmargin.tables.analysis import Analysis, Neighbour, Step
from kmargin.tables.dataset import Dataset
from kmargin.tables.files import is_temporary, replace_file, replace_folder

ABOVE_LABEL = 0.15  # share of the height of the score plot that the label of the chosen k needs


def answer_section(analysis: Analysis) -> Iterator[str]:
    """The sentence, and why this k, beside the curve and what one feature more or fewer would do.

    Warnings come before the sentence: they say why its score may be too high.
    """
    for warning in analysis.dataset.warnings:
        yield html.paragraph(f"Warning: {warning}".replace(" %", "\u00a0%"), "note warning")
    yield html.columns("".join(answer(analysis)), "".join(curve(analysis)), kind="answer")
    yield from (html.paragraph(f"Note: {note}", "note") for note in analysis.notes)


def answer(analysis: Analysis) -> Iterator[str]:
    yield html.paragraph(headline(analysis).replace(" %", "\u00a0%"), "lead")
    yield score_strip(analysis)
    yield summary(analysis)
    for text in (all_features_text(analysis), evidence_text(analysis)):
        if text:
            yield html.paragraph(text)
    if analysis.assessment.p_value is not None:
        yield html.paragraph(p_value_text(analysis))
    yield html.paragraph(" ".join(filter(None, (choice_text(analysis), fold_choices_text(analysis)))))
    yield html.paragraph(" ".join(neighbour_text(analysis, near) for near in analysis.neighbours))


def score_strip(analysis: Analysis) -> str:
    """The score with its interval, and guessing, on the scale from nothing to all; of such scores alone."""
    assessed, scoring = analysis.assessment, analysis.settings.scoring
    low, high = (min(max(end, 0.0), 1.0) for end in assessed.interval)
    if scoring.startswith("neg_") or not 0 <= assessed.score <= 1:
        return ""
    text = (
        f"{score_name(scoring)} {score_text(scoring, assessed.score)}, 95 % interval "
        f"{interval_text(scoring, assessed.interval)}; guessing {score_text(scoring, assessed.guessing)}"
    )
    ends = ("0 %", "100 %") if scoring in PERCENT else ("0", "1")
    return (
        f'<div class="strip" role="img" aria-label="{html.escape(text)}"><div class="scale">'
        f'<span class="interval" style="left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%"></span>'
        f'<span class="guess" style="left:{100 * assessed.guessing:.1f}%"></span>'
        f'<span class="at" style="left:{100 * assessed.score:.1f}%"></span></div>'
        f'<div class="ends"><span>{ends[0]}</span><span>{ends[1]}</span></div></div>'
    )


def summary(analysis: Analysis) -> str:
    """Numbers to see at once; the first two are the marks of the strip."""
    assessed, scoring = analysis.assessment, analysis.settings.scoring
    n_features = len(analysis.model.machine.support_)
    use = (n_features, "training points kept" if analysis.model.is_kernel else features_text(n_features))
    if not analysis.model.is_kernel and analysis.counted.is_grouped:
        made_of = f"{analysis.things} in use, {count(n_features, 'feature')}"
        use = (len(used_units(analysis)), made_of)
    return html.cards(
        (
            score_text(scoring, assessed.score),
            f"{score_name(scoring)} on held-out rows, {interval_text(scoring, assessed.interval)}",
            "reached",
        ),
        (score_text(scoring, assessed.guessing), f"by guessing{most_common(analysis)}", "guessed"),
        use,
        (f"{len(analysis.dataset.y):,}", f"rows, {class_counts(analysis)}"),
    )


def features_text(number: int) -> str:
    return "feature in use" if number == 1 else "features in use"


def curve(analysis: Analysis) -> Iterator[str]:
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    scores, scoring = analysis.curve, analysis.settings.scoring
    yield f'<h2 id="curve">How many {analysis.things} are needed</h2>'
    with mpl.rc_context(html.FONT):
        figure = Figure(figsize=(5.2, 3.1), layout="constrained")
        name = score_name(scoring)
        shown = CVScoreDisplay(scores.ks, scores.mean, scores.error, analysis.k, name).plot(figure.subplots())
        low, high = shown.ax_.get_ylim()
        if low - (high - low) / 3 < analysis.assessment.guessing:
            draw_guessing(shown.ax_, analysis.assessment.guessing)
            shown.ax_.legend(frameon=False, loc="best")
        shown.ax_.set_xlabel(axis_text(analysis.things, analysis.is_shared))
        if scoring in PERCENT:
            shown.ax_.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        image = html.svg(figure, "scores")
    n_folds = len(analysis.choice.table.scores)
    chose = "" if analysis.highest is None else " These scores chose k and C, so they are optimistic."
    caption = (
        f"At C = {analysis.C:g}, mean of {n_folds} folds; the band is one standard error, the ring is the "
        f"chosen k.{chose}"
    )
    yield html.figure(image, caption, id="scores")
    yield neighbour_table(analysis)


def draw_guessing(axes: Any, score: float) -> None:
    """A line at the score of guessing, above the label of the chosen k at the bottom."""
    axes.axhline(score, label="guessing", **REFERENCE)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, (score - ABOVE_LABEL * high) / (1 - ABOVE_LABEL)), high)


def neighbour_table(analysis: Analysis) -> str:
    """What the next smaller and the next larger k would do."""
    scoring = analysis.settings.scoring
    has_names = not analysis.model.is_kernel
    own = [analysis.k, score_text(scoring, analysis.curve.at(analysis.k)[0]), "chosen"]
    rows = {analysis.k: html.Row([*own, *([""] if has_names else [])], "marked")}
    for near in analysis.neighbours:
        change = change_text(scoring, near.change.value)
        kind = {"+": "good", "−": "bad"}.get(change[0], "")
        shown = f"{change} ± {error_text(scoring, near.change.error)}"
        cells = [near.k, score_text(scoring, near.score), html.Cell(shown, kind)]
        rows[near.k] = html.Row([*cells, *([html.Cell(swap_text(near), "name")] if has_names else [])])
    head = ["k", score_name(scoring), "change ± standard error"]
    names = [html.Cell("enters (+), leaves (−)", "name")] if has_names else []
    return html.table([*head, *names], [rows[k] for k in sorted(rows)], id="neighbours", kind="full")


def swap_text(near: Neighbour, most: int = 4) -> str:
    """What comes in and what goes out: the first few, and how many more."""
    parts = []
    for sign, names in (("+", near.enters), ("−", near.leaves)):
        more = f" and {len(names) - most} more" if len(names) > most else ""
        if names:
            parts.append(f"{sign}\u00a0{', '.join(map(html.shortened, names[:most]))}{more}")
    return "; ".join(parts)


def render(analysis: Analysis, source: str, folder: str) -> str:
    """The page. `source` is the name of the table, `folder` that of the results."""
    title = f"{analysis.dataset.target} from {source}"
    return html.page(title, sections(analysis, source, folder))


def sections(analysis: Analysis, source: str, folder: str) -> Iterator[str]:
    yield f"<h1>{html.escape(analysis.dataset.target)}, from {html.escape(source)}</h1>"
    looks = ("points", "rows in the model") if analysis.model.is_kernel else ("features", "features")
    links = (("curve", f"how many {analysis.things}"), looks, ("confusion", "errors"))
    yield html.section_nav((*links, ("made", "how it was made"), ("methods", "methods")))
    yield from answer_section(analysis)
    yield from points_section(analysis) if analysis.model.is_kernel else weights_section(analysis)
    yield from distributions(analysis)
    yield from quality_section(analysis)
    yield from settings_section(analysis, source, folder)
    yield '<h2 id="methods">Methods, to copy into a paper</h2>'
    yield html.paragraph(methods_text(analysis, source))


def settings_section(analysis: Analysis, source: str, folder: str) -> Iterator[str]:
    settings, dataset, table = analysis.settings, analysis.dataset, analysis.choice.table
    n_encoded = len(dataset.encoding.categories)
    at_most = "" if settings.repeats is None else f" (at most {settings.repeats})"
    rows = [
        ["table", f"{source}, {rows_text(analysis)}, {len(dataset.encoding.feature_names)} features"],
        ["target", dataset.target],
        ["model", f"kernel {settings.kernel}" if settings.kernel else "linear"],
        ["k counts", analysis.things + ("" if analysis.is_shared else ", for each binary classifier")],
        *asked_rows(analysis),
        ["k and C", f"{analysis.k} and {analysis.C:g}; C from {', '.join(f'{C:g}' for C in table.Cs)}"],
        ["folds", f"{len(analysis.supports)}, shuffled (seed {settings.seed}) and stratified by class"],
        ["rows kept together", together_text(dataset)],
        ["rounds of folds", str(analysis.choice.n_rounds) + at_most],
        ["score", settings.scoring],
        ["scaling", "standard deviation 1" if settings.standardize else "none"],
        ["missing values", "replaced by medians" if dataset.impute else "none"],
        ["text columns", f"{n_encoded}, one feature per value" if n_encoded else "none"],
        ["row weights", "from a column" if dataset.weights is not None else "none"],
        ["class weights", "balanced" if settings.balanced else "none"],
        ["kmargin", __version__],
    ]
    yield '<h2 id="made">How it was made</h2>'
    made = "Scaling, imputation and fitting were repeated in each fold, from its training rows alone."
    use = (
        f"<p>To use the model on new rows: <code>kmargin predict {html.escape(shlex.quote(folder))} "
        "new.csv</code></p>"
    )
    found = "The columns of new.csv are found by name, in any order; other columns are ignored."
    yield html.columns(
        html.paragraph(f"{made} {honesty_text(analysis)}"), use + html.paragraph(found, "soft")
    )
    cells = [[name, html.Cell(value, "name")] for name, value in rows]
    half = -(-len(cells) // 2)
    heads = ["setting", html.Cell("value", "name")]
    yield html.columns(
        html.table(heads, cells[:half], id="settings", kind="full"),
        html.table(heads, cells[half:], id="more-settings", kind="full"),
    )


def together_text(dataset: Dataset) -> str:
    """Which rows are never on both sides of a fold."""
    if dataset.groups is None:
        return "none"
    if dataset.grouped_by is None:
        return "rows with the same features"
    return f"by column {dataset.grouped_by}: {count(len(np.unique(dataset.groups)), 'group')}"


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


_FORMULA = re.compile(r"[=@\t\r\n＝＠]|[+\-＋－](?![\w .,+-]*\Z)")


def csv_text(frame: pd.DataFrame) -> str:
    """A frame as CSV, texts protected."""
    safe = {
        at: frame.iloc[:, at].map(protect)
        for at, dtype in enumerate(frame.dtypes)
        if not pd.api.types.is_numeric_dtype(dtype)
    }
    columns = [safe.get(at, frame.iloc[:, at]) for at in range(frame.shape[1])]
    guarded = pd.concat(columns, axis=1) if columns else frame
    guarded.columns = [protect(name) for name in frame.columns]
    text = str(guarded.to_csv(index=False, lineterminator="\n"))
    if "\r" in text:  # breaks the line for those who read it, unless in quotes
        text = str(guarded.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC))
    return text


def protect(value: Any) -> Any:
    """A text that no spreadsheet runs; anything else as it is."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


FILES = (model_file.NAME, "features.csv", "points.csv", "predictions.csv", "report.html")


def check_folder(folder: Path, force: bool) -> None:
    """Raises InputError where results must not go. Best asked before the work is done."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file. Name a folder with --out.")
    parent = folder.resolve().parent
    if not parent.is_dir():
        raise InputError(f"There is no folder {folder.parent} to write {folder.name} into. Create it first.")
    if not os.access(folder if folder.exists() else parent, os.W_OK):
        raise InputError(f"The folder {folder} cannot be written. Choose another with --out.")
    there = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    there = [name for name in there if not is_temporary(name)]
    if there and model_file.NAME not in there and not force:
        raise InputError(
            f"The folder {folder} holds {listing(there, 3)}, which kmargin did not write. "
            "Choose another with --out, or add --force to write into it."
        )


def check_file(path: Path, endings: tuple[str, ...]) -> None:
    """Raises InputError where a file cannot be written, or has the wrong ending."""
    if path.suffix not in endings:
        raise InputError(f"{path} does not end in {' or '.join(endings)}. Use that file extension.")
    if path.is_dir() or not path.resolve().parent.is_dir():
        problem = "is a folder" if path.is_dir() else "lies in a folder that is not there"
        raise InputError(f"{path} {problem}. Choose another name.")


def write_results(analysis: Analysis, folder: Path, source: str) -> list[Path]:
    """Write model, tables and report; files of earlier results are replaced, others left alone.

    All of them or none: see `kmargin.tables.files`.
    """
    kind, frame = "features.csv", feature_frame
    if analysis.model.is_kernel:
        kind, frame = "points.csv", point_frame
    page = render(analysis, source, folder.resolve().name)
    contents = {
        model_file.NAME: model_file.to_bytes(analysis.model),
        kind: csv_text(frame(analysis)).encode(),
        "predictions.csv": csv_text(prediction_frame(analysis)).encode(),
        "report.html": page.encode(errors="backslashreplace"),  # a file's name need not be text
    }
    replace_folder(folder, contents, FILES)
    return [folder / name for name in contents]


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a CSV as a whole or not at all."""
    replace_file(path, csv_text(frame).encode())


def plot_steps(steps: list[Step], path: Path, counted: str = "features", scoring: str = "accuracy") -> None:
    """The score against k over the folds; if they were not asked, the accuracy on the training rows."""
    from matplotlib.figure import Figure

    mean = np.array([step.training_accuracy if step.score is None else step.score for step in steps])
    error = np.array([step.error or 0.0 for step in steps])
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    ks = [step.k for step in steps]
    scoring = "accuracy" if steps[0].score is None else scoring
    name = scoring if scoring in PERCENT else score_name(scoring)
    display = CVScoreDisplay(ks, mean, error, score_name=name, counted=counted).plot(figure.subplots())
    if steps[0].score is None:
        display.ax_.set_ylabel("accuracy (training rows)")
    image = io.BytesIO()
    figure.savefig(image, format=path.suffix[1:])
    replace_file(path, image.getvalue())
