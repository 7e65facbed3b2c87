"""Print results, notes and errors of the commands to the terminal."""

import io
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from kmargin.core.validation import InputError
from kmargin.report import text as words
from kmargin.report.frames import (
    feature_frame,
    order_features,
    point_weights,
    stability_frame,
    weights_by_class,
)
from kmargin.report.text import headline
from kmargin.tables.analysis import Analysis, Stability, Step

MAX_ROWS = 20  # largest number of chosen features or training points that a table lists
RUNNERS_UP = 5  # number of other features printed below the stable ones: those selected most often
# what `printable` escapes: control characters, line separators, changes of text direction, surrogates
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def describe_error(error: Exception) -> str | None:
    """Return a one-sentence message for an error that users can cause or prevent; None for a bug."""
    if isinstance(error, MemoryError):
        return "not enough memory. Leave out rows or columns."
    if not isinstance(error, OSError):
        return str(error) if isinstance(error, InputError) else None
    if error.filename is None:  # writing to stdout failed: discard its data, or Python fails again at exit
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    reason = error.strerror.lower() + "." if error.strerror else str(error)
    return f"{error.filename or 'the output'}: {reason}"


def say(sentence: str) -> None:
    """Print a sentence to stderr as one line, with words of 200 characters or more shortened."""
    sentence = re.sub(r"\S{200,}", lambda match: match[0][:150] + "...", printable(sentence))
    sys.stderr.write(sentence + "\n")


def tell(text: str, style: str | None = None) -> None:
    """Print text to stdout in a style of rich, wrapped between words; print nothing if it is empty."""
    out = console()
    if text:
        out.print(escape(wrap(printable(text.replace("`", "")), out.width)), style=style)


def wrap(text: str, width: int) -> str:
    """Break text into lines of at most `width`, but not within a word, or between a number and its % sign."""
    together = text.replace(" %", "\xa0%")
    lines = textwrap.wrap(together, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\xa0", " ")


def printable(text: str) -> str:
    """Escape control characters, which names from a table may contain and a terminal would execute."""
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def print_whole(text: str) -> None:
    """Print text to stdout without changes, encoded as UTF-8 if stdout is a file or a pipe."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    sys.stdout.write(text)
    sys.stdout.flush()  # a full disk raises OSError here, before a summary is printed


def console() -> Console:
    """Return a console for stdout: with colours in a terminal, else plain text 100 characters wide."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=100)


def show_notes(notes: Iterable[str], warnings: Iterable[str] = ()) -> None:
    """Print warnings in red, then notes in yellow, to stdout."""
    for warning in warnings:
        tell(f"Warning: {warning}", "bold red")
    for note in notes:
        console().print(escape(printable(f"Note: {note}")), style="yellow")


def show_grid(
    names: Sequence[str], rows: Sequence[Sequence[object]], n_all: int = 0, where: str = "", n_dim: int = 0
) -> None:
    """Print a table. A > at the end of a name right-aligns its column. The last `n_dim` rows are dim.

    If `rows` are only the first of `n_all` rows, a last line counts the others: "... 5 more", then `where`.
    """
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        is_number = name.endswith(">")
        grid.add_column(name.rstrip(">"), justify="right" if is_number else "left", no_wrap=is_number)
    for place, row in enumerate(rows):
        cells = [escape(printable(str(cell))) for cell in row]
        grid.add_row(*cells, style="dim" if place >= len(rows) - n_dim else None)
    if n_all > len(rows):
        grid.add_row(f"... {n_all - len(rows)} more{where}")
    console().print(grid)


def show_analysis(analysis: Analysis) -> None:
    """Print the result of an analysis: headline, features or training points, how k and C were chosen."""
    typer.echo()
    tell(headline(analysis), "bold")
    for describe in (words.all_features_text, words.evidence_text, words.groups_text):
        tell(describe(analysis))
    typer.echo()
    show_notes((), analysis.dataset.warnings)
    (_show_points if analysis.model.is_kernel else _show_features)(analysis)
    typer.echo()
    details = (words.choice_text, words.fold_choices_text, words.p_value_text)
    for describe in (*details, words.counting_text, words.signs_text):
        tell(describe(analysis))
    for neighbour in analysis.neighbours:
        tell(words.neighbour_text(analysis, neighbour))
    show_notes(analysis.notes)


def _show_features(analysis: Analysis) -> None:
    frame = feature_frame(analysis).assign(place=order_features(analysis))
    used = frame[frame["chosen"] | frame["always_in"]]
    group = [] if analysis.unit_label == "features" else [analysis.unit_label.removesuffix("s")]
    has_marks = any(words.marks(analysis, j) for j in used["place"])
    has_halves = analysis.halves is not None
    several = len(analysis.model.machine_names) > 1
    weights = ["favours", "against"] if several else ["weight>", "per unit>", "favours"]
    by_class, rows = weights_by_class(analysis), []
    for row in used.head(MAX_ROWS).itertuples():
        cells = [row.feature, *([row.group] if group else [])]
        cells += [words.marks(analysis, row.place)] if has_marks else []
        if several:
            cells += [_extreme_class(analysis, by_class.loc[row.place], sign) for sign in (1, -1)]
        else:
            cells += [f"{row.weight:+.3f}", f"{row.weight_per_unit:+.4g}", row.favours]
        cells.append(words.frequency_text(analysis, row.frequency))
        rows.append(cells + ([words.halves_text(analysis, row.place)] if has_halves else []))
    columns = ["feature", *group, *[""] * has_marks, *weights, "folds>", *["halves>"] * has_halves]
    show_grid(columns, rows, len(used), " in features.csv")


def _extreme_class(analysis: Analysis, weights: Any, sign: int) -> str:
    """Return the class with the largest weight of `sign` (1 or -1), as "benign (+0.31)"; "" if none has."""
    at = int((sign * weights).argmax())
    return f"{words.class_list(analysis)[at]} ({weights[at]:+.2f})" if sign * weights[at] > 0 else ""


def _show_points(analysis: Analysis) -> None:
    frame = point_weights(analysis)
    names = [f"{name}>" if name in ("row", "weight") else str(name) for name in frame.columns]
    rows = [
        [f"{value:+.3f}" if isinstance(value, float) else value for value in row]
        for row in frame.head(MAX_ROWS).itertuples(index=False)
    ]
    show_grid(names, rows, len(frame), " in points.csv")


def show_stability(stability: Stability) -> None:
    """Print the stable features and a few others, selection frequencies, and bounds on false selections."""
    typer.echo()
    tell(words.stability_headline(stability), "bold")
    typer.echo()
    frame, counted = stability_frame(stability), stability.counted
    n_stable = int(frame["stable"].sum())
    group = [counted.unit_label.removesuffix("s")] if counted.unit_label != "features" else []
    rows = []
    n_shown = n_stable + RUNNERS_UP if n_stable <= MAX_ROWS else MAX_ROWS
    for row in frame.head(n_shown).itertuples(index=False):
        state = "always in" if row.always_in else "stable" if row.stable else ""
        rows.append([row.feature, *([row[1]] if group else []), f"{100 * row.frequency:.0f} %", state])
    show_grid(["feature", *group, "halves>", ""], rows, n_stable, n_dim=len(rows) - n_stable)
    if stability.stable:
        tell(words.chance_text(stability))
    tell(words.plan_text(stability))


def show_steps(steps: Sequence[Step], scoring: str, counted: str = "features") -> None:
    """Print a row for each k of a path: scores, and what enters and leaves. `counted` is what k counts."""
    score = ["training>", "folds>"]
    if scoring != "accuracy":
        score = ["training\naccuracy>", f"{textwrap.fill(words.score_name(scoring), 14)}>"]
    rows, has_scores = [], any(step.score is not None for step in steps)
    for step in steps:
        changes = [f"+{name}" for name in step.enters] + [f"−{name}" for name in step.leaves]
        more = f" and {len(changes) - 4} more" if len(changes) > 4 else ""
        cells = [step.k, len(step.features), words.percent(step.training_accuracy)]
        cells += [words.score_text(scoring, step.score)] if step.score is not None else []
        rows.append([*cells, f"{step.objective:.4g}", ", ".join(changes[:4]) + more])
    k = "k>" if counted == "features" else f"k ({counted})>"
    show_grid([k, "features>", *score[: 1 + has_scores], "objective>", "enters (+), leaves (−)"], rows)
