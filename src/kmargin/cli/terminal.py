"""What is printed in a terminal."""

import functools
import io
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from kmargin.core.validation import InputError
from kmargin.report.frames import feature_frame, order_features, point_weights, weights_by_class
from kmargin.report.text import (
    all_features_text,
    choice_text,
    class_list,
    counting_text,
    evidence_text,
    fold_choices_text,
    frequency_text,
    groups_text,
    halves_text,
    headline,
    marks,
    neighbour_text,
    p_value_text,
    percent,
    score_name,
    score_text,
    signs_text,
)
from kmargin.tables.analysis import Analysis, Step

MOST_ROWS = 20
# control characters, and those that break lines, turn their direction, or are halves of others
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plainly(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose errors are one sentence on stderr: exit code 2, or 130 if interrupted."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # a name in letters that this terminal has not
        try:
            done = command(*args, **kwargs)
            sys.stdout.flush()  # a full disk is to be noticed here
            return done
        except BrokenPipeError:
            raise  # whoever read the output has read enough
        except (InputError, OSError, MemoryError) as error:
            if isinstance(error, OSError) and error.filename is None:
                _drop_output()
            say(f"Error: {describe(error)}")
            raise typer.Exit(2) from error
        except KeyboardInterrupt as interrupt:
            say("Interrupted; nothing was written.")
            raise typer.Exit(130) from interrupt

    return wrapped


def describe(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the output'}: {error.strerror.lower()}."
    if isinstance(error, MemoryError):
        return "not enough memory. Leave out rows or columns."
    return str(error)


def say(sentence: str) -> None:
    """To stderr, on one line; words without end are cut."""
    sentence = re.sub(r"\S{200,}", lambda match: match[0][:150] + "...", printable(sentence))
    sys.stderr.write(sentence + "\n")


def printable(text: str) -> str:
    """Text that a terminal shows and never obeys: names in tables may hold escape sequences."""
    return _UNSHOWN.sub(lambda match: repr(match[0])[1:-1], text)


def shown(text: object) -> str:
    """Text for rich: neither obeyed by the terminal nor taken for markup."""
    return escape(printable(str(text)))


def shown_in(out: Console, sentence: str) -> str:
    """A sentence in lines of a console's width; a number and its per cent are not parted."""
    together = printable(sentence).replace(" %", "\xa0%")
    lines = textwrap.wrap(together, out.width, break_long_words=False, break_on_hyphens=False)
    return escape("\n".join(lines).replace("\xa0", " "))


def print_whole(text: str) -> None:
    """To stdout, in UTF-8 where that goes to a file or a program."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    sys.stdout.write(text)
    sys.stdout.flush()  # a full disk is to be noticed before anything is said of what was written


def _drop_output() -> None:
    """Forget what cannot be written, or it would be tried once more when the program ends."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def console() -> Console:
    """To stdout: colours and the terminal's width there, plain text of any width in a pipe."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=100)


def tell(sentence: str) -> None:
    """To stdout: broken between words in a terminal, on one line elsewhere."""
    out = console()
    out.print(*map(shown, sentence.split("\n")), sep="\n", soft_wrap=not out.is_terminal)


def show_analysis(analysis: Analysis) -> None:
    out = console()
    out.print(f"\n[bold]{shown_in(out, headline(analysis))}[/bold]")
    for text in (all_features_text(analysis), evidence_text(analysis), groups_text(analysis)):
        if text:
            out.print(shown_in(out, text))
    out.print()
    show_warnings(analysis.dataset.warnings)
    if analysis.model.is_kernel:
        out.print(_points(analysis))
    else:
        out.print(_features(analysis))
    out.print()
    told = (choice_text, fold_choices_text, p_value_text, counting_text, signs_text)
    for text in (say_it(analysis) for say_it in told):
        if text:
            out.print(shown_in(out, text.replace("`", "")))
    for neighbour in analysis.neighbours:
        out.print(shown_in(out, neighbour_text(analysis, neighbour)))
    show_notes(analysis.notes)


def show_warnings(warnings: Iterable[str]) -> None:
    """What may make the results better than they are."""
    out = console()
    for warning in warnings:
        out.print(shown_in(out, f"Warning: {warning}".replace("`", "")), style="bold red")


def show_notes(notes: Iterable[str]) -> None:
    """What there is to say beside the results."""
    out = console()
    for note in notes:
        out.print(f"Note: {shown(note)}", style="yellow")


def _features(analysis: Analysis) -> Grid:
    frame = feature_frame(analysis).assign(place=order_features(analysis))
    used = frame[frame["chosen"] | frame["always_in"]]
    group = [analysis.things.removesuffix("s")] if analysis.counted.is_grouped else []
    asked = [""] if any(marks(analysis, j) for j in used["place"]) else []
    several = len(analysis.model.machine_names) > 1
    weights = ["favours", "against"] if several else ["weight>", "per unit>", "favours"]
    halves = ["halves>"] if analysis.halves is not None else []
    grid = make_grid("feature", *group, *asked, *weights, "folds>", *halves)
    by_class = weights_by_class(analysis)
    for row in used.head(MOST_ROWS).itertuples():
        if several:
            weighed = [class_text(analysis, by_class.loc[row.place], sign) for sign in (1, -1)]
        else:
            weighed = [f"{row.weight:+.3f}", f"{row.weight_per_unit:+.4g}", row.favours]
        said = [*([row.group] if group else []), *([marks(analysis, row.place)] if asked else [])]
        cells = [row.feature, *said, *weighed, frequency_text(analysis, row.frequency)]
        cells += [halves_text(analysis, row.place) for _ in halves]
        grid.add_row(*(shown(str(cell)) for cell in cells))
    if len(used) > MOST_ROWS:
        grid.add_row(f"... {len(used) - MOST_ROWS} more in features.csv")
    return grid


def class_text(analysis: Analysis, weights: Any, sign: int) -> str:
    """The class that a feature speaks for (1), or against (-1), most."""
    at = int((sign * weights).argmax())
    return f"{class_list(analysis)[at]} ({weights[at]:+.2f})" if sign * weights[at] > 0 else ""


def _points(analysis: Analysis) -> Grid:
    frame = point_weights(analysis)
    grid = make_grid(*(f"{name}>" if name in ("row", "weight") else name for name in frame.columns))
    for row in frame.head(MOST_ROWS).itertuples(index=False):
        grid.add_row(*(shown(f"{v:+.3f}" if isinstance(v, float) else str(v)) for v in row))
    if len(frame) > MOST_ROWS:
        grid.add_row(f"... {len(frame) - MOST_ROWS} more in points.csv")
    return grid


def show_steps(steps: Iterable[Step], scoring: str, counted: str = "features") -> None:
    k = "k>" if counted == "features" else f"k ({counted})>"
    is_rate = scoring == "accuracy"
    training, folds = (
        ("training>", "folds>")
        if is_rate
        else ("training\naccuracy>", f"{textwrap.fill(score_name(scoring), 14)}>")
    )
    grid = make_grid(k, "features>", training, folds, "objective>", "enters (+), leaves (−)")
    for step in steps:
        changes = [f"+{name}" for name in step.enters] + [f"−{name}" for name in step.leaves]
        more = f" and {len(changes) - 4} more" if len(changes) > 4 else ""
        grid.add_row(
            str(step.k),
            str(len(step.features)),
            percent(step.training_accuracy),
            "" if step.score is None else score_text(scoring, step.score),
            f"{step.objective:.4g}",
            shown(", ".join(changes[:4]) + more),
        )
    console().print(grid)


def make_grid(*columns: str) -> Grid:
    """A table; a column whose name ends in > is of numbers."""
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        is_number = name.endswith(">")
        grid.add_column(name.rstrip(">"), justify="right" if is_number else "left", no_wrap=is_number)
    return grid
