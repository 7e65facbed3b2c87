"""Print results, notes and errors."""

import functools
import io
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
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

MAX_ROWS = 20
RUNNERS_UP = 5  # features shown below the stable ones
# control characters, line and paragraph separators, changes of text direction, surrogates
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plainly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that prints its errors as one sentence: exit code 2, or 130 if interrupted."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # characters the terminal's encoding lacks
        try:
            done = command(*args, **kwargs)
            sys.stdout.flush()  # raises an error here if the disk is full
            return done
        except BrokenPipeError:
            raise  # such as that of `| head`, which typer handles
        except OSError as error:
            if error.filename is None:  # raised by stdout: forget its buffer, which would be written at exit
                with suppress(OSError):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            reason = error.strerror.lower() + "." if error.strerror else str(error)
            say(f"Error: {error.filename or 'the output'}: {reason}")
            raise typer.Exit(2) from error
        except (InputError, MemoryError) as error:
            is_memory = isinstance(error, MemoryError)
            say(f"Error: {'not enough memory. Leave out rows or columns.' if is_memory else error}")
            raise typer.Exit(2) from error
        except KeyboardInterrupt as interrupt:
            say("Interrupted; nothing was written.")
            raise typer.Exit(130) from interrupt

    return wrapped


def say(sentence: str) -> None:
    """Print a sentence to stderr on one line, with very long words cut."""
    sentence = re.sub(r"\S{200,}", lambda match: match[0][:150] + "...", printable(sentence))
    sys.stderr.write(sentence + "\n")


def printable(text: str) -> str:
    """Escape what a terminal would not show as text: names in tables may hold control sequences."""
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def shown(text: object) -> str:
    """Return text for rich, with control sequences and markup escaped."""
    return escape(printable(str(text)))


def shown_in(out: Console, sentence: str) -> str:
    """Wrap a sentence at a console's width, but never between a number and its per cent sign."""
    together = printable(sentence).replace(" %", "\xa0%")
    lines = textwrap.wrap(together, out.width, break_long_words=False, break_on_hyphens=False)
    return escape("\n".join(lines).replace("\xa0", " "))


def print_whole(text: str) -> None:
    """Print text to stdout, in UTF-8 if that is a file or a pipe."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    sys.stdout.write(text)
    sys.stdout.flush()  # raises an error here if the disk is full, before any summary is printed


def console() -> Console:
    """Return a console for stdout: with colours in a terminal, plain text of 100 columns in a pipe."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=100)


def tell(sentence: str) -> None:
    """Print a sentence to stdout: wrapped between words in a terminal, on one line in a pipe."""
    out = console()
    out.print(*map(shown, sentence.split("\n")), sep="\n", soft_wrap=not out.is_terminal)


def show_warnings(warnings: Iterable[str]) -> None:
    """Print warnings of what may make the score too high."""
    out = console()
    for warning in warnings:
        out.print(shown_in(out, f"Warning: {warning}".replace("`", "")), style="bold red")


def show_notes(notes: Iterable[str]) -> None:
    for note in notes:
        console().print(f"Note: {shown(note)}", style="yellow")


def show_grid(
    names: Sequence[str], rows: Sequence[Sequence[object]], n_all: int = 0, where: str = "", n_dim: int = 0
) -> None:
    """Print a table, and how many of `n_all` rows are not shown; the last `n_dim` rows are dim.

    A column whose name ends in > is right-aligned.
    """
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        is_number = name.endswith(">")
        grid.add_column(name.rstrip(">"), justify="right" if is_number else "left", no_wrap=is_number)
    for place, row in enumerate(rows):
        grid.add_row(*map(shown, row), style="dim" if place >= len(rows) - n_dim else None)
    if n_all > len(rows):
        grid.add_row(f"... {n_all - len(rows)} more{where}")
    console().print(grid)


def show_analysis(analysis: Analysis) -> None:
    out = console()
    out.print(f"\n[bold]{shown_in(out, headline(analysis))}[/bold]")
    for describe in (words.all_features_text, words.evidence_text, words.groups_text):
        if text := describe(analysis):
            out.print(shown_in(out, text))
    out.print()
    show_warnings(analysis.dataset.warnings)
    if analysis.model.is_kernel:
        _show_points(analysis)
    else:
        _show_features(analysis)
    out.print()
    details = (words.choice_text, words.fold_choices_text, words.p_value_text)
    for describe in (*details, words.counting_text, words.signs_text):
        if text := describe(analysis):
            out.print(shown_in(out, text.replace("`", "")))
    for neighbour in analysis.neighbours:
        out.print(shown_in(out, words.neighbour_text(analysis, neighbour)))
    show_notes(analysis.notes)


def _show_features(analysis: Analysis) -> None:
    frame = feature_frame(analysis).assign(place=order_features(analysis))
    used = frame[frame["chosen"] | frame["always_in"]]
    group = [analysis.things.removesuffix("s")] if analysis.counted.is_grouped else []
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
    """Return the class with the largest (sign 1) or smallest (-1) weight of a feature, and that weight."""
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
    """Print the stable features with their frequencies, runners-up, and the bounds on false selections."""
    out = console()
    out.print(f"\n[bold]{shown(words.stability_headline(stability))}[/bold]\n")
    frame, counted = stability_frame(stability), stability.counted
    n_stable = int(frame["stable"].sum())
    group = [counted.things.removesuffix("s")] if counted.is_grouped else []
    rows = []
    for row in frame.head(n_stable + RUNNERS_UP if n_stable <= MAX_ROWS else MAX_ROWS).itertuples(
        index=False
    ):
        state = "always in" if row.always_in else "stable" if row.stable else ""
        rows.append([row.feature, *([row[1]] if group else []), f"{100 * row.frequency:.0f} %", state])
    show_grid(["feature", *group, "halves>", ""], rows, n_stable, n_dim=len(rows) - n_stable)
    if stability.stable:
        out.print(shown(words.chance_text(stability)))
    out.print(shown(words.plan_text(stability)))


def show_steps(steps: Iterable[Step], scoring: str, counted: str = "features") -> None:
    """Print the steps of a path: for each k the features that enter and leave, and the scores."""
    score = ["training>", "folds>"]
    if scoring != "accuracy":
        score = ["training\naccuracy>", f"{textwrap.fill(words.score_name(scoring), 14)}>"]
    rows = []
    for step in steps:
        changes = [f"+{name}" for name in step.enters] + [f"−{name}" for name in step.leaves]
        more = f" and {len(changes) - 4} more" if len(changes) > 4 else ""
        cells = [step.k, len(step.features), words.percent(step.training_accuracy)]
        cells.append("" if step.score is None else words.score_text(scoring, step.score))
        rows.append([*cells, f"{step.objective:.4g}", ", ".join(changes[:4]) + more])
    k = "k>" if counted == "features" else f"k ({counted})>"
    show_grid([k, "features>", *score, "objective>", "enters (+), leaves (−)"], rows)
