"""Progress bars on stderr: by rich on a terminal where it is installed, else as plain text."""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from kmargin.core.jit import on_compiling

# Seconds of compilation after which a message announces that there is more to come.
PATIENCE = 2.0
COMPILING = (
    "Compiling functions that are used for the first time. They are saved on disk, where that is possible, "
    "so later runs do not wait for them again."
)
_said: list[str] = []  # messages that this process has shown


def tell_of_compiling(say: Callable[[str], None]) -> AbstractContextManager[None]:
    """Announce compilation that has taken longer than PATIENCE and goes on; once in a process."""

    def announce() -> None:
        if not _said:
            _said.append(COMPILING)
            say(COMPILING)

    return on_compiling(PATIENCE, announce)


class Bar:
    """A bar that shows nothing, for ``verbose=0``."""

    def advance(self, steps: int = 1) -> None:
        """Count finished steps."""

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *error: Any) -> None:
        return None


class TextBar(Bar):
    """Rewrites one line of a terminal; if stderr is a file or a pipe, writes a line for every tenth done.

    It also announces compilation, which delays the first steps.
    """

    width = 30

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total, self.done = label, max(total, 1), 0
        self.started = time.monotonic()
        self.tenths = 0
        self.lock = threading.Lock()
        self.listening = tell_of_compiling(lambda sentence: self._write(f"{label}: {sentence}\n"))

    def advance(self, steps: int = 1) -> None:
        with self.lock:
            self.done += steps
            elapsed = time.monotonic() - self.started
            left = elapsed / self.done * (self.total - self.done)
            state = f"{self.done}/{self.total}, {elapsed:.1f} s, {left:.1f} s left"
            tenths = 10 * self.done // self.total
            if sys.stderr.isatty():
                filled = self.width * self.done // self.total
                self._write(f"\r{self.label} [{'#' * filled}{'-' * (self.width - filled)}] {state}")
            elif tenths > self.tenths:
                self.tenths = tenths
                self._write(f"{self.label}: {state}\n")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def __enter__(self) -> "TextBar":
        self.listening.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if sys.stderr.isatty():
            self._write("\n")
        self.listening.__exit__(*error)


class RichBar(Bar):
    """The same by rich, which also copes with other output around the bar."""

    def __init__(self, label: str, total: int) -> None:
        from rich import progress
        from rich.console import Console

        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
        )
        self.progress = progress.Progress(*columns, console=Console(stderr=True))
        self.task = self.progress.add_task(label, total=total)
        say = self.progress.console.print
        self.listening = tell_of_compiling(lambda sentence: say(sentence, highlight=False))

    def advance(self, steps: int = 1) -> None:
        self.progress.advance(self.task, steps)

    def __enter__(self) -> "RichBar":
        self.listening.__enter__()
        self.progress.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.progress.stop()
        self.listening.__exit__(*error)


def progress_bar(label: str, total: int, verbose: int) -> Bar:
    """A bar for `total` steps, or one that shows nothing."""
    if not verbose:
        return Bar()
    if sys.stderr.isatty():
        try:
            return RichBar(label, total)
        except ImportError:
            pass  # rich is optional
    return TextBar(label, total)
