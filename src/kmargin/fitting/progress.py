"""Progress on stderr: a bar on a terminal if rich is installed, else a line per tenth of the steps."""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

COMPILING = (
    "Compiling functions that are used for the first time. They are saved on disk, where that is possible, "
    "so later runs do not wait for them again."
)
_said: list[str] = []  # messages that this process has written, so that none is written twice


def announce_compilation(say: Callable[[str], Any]) -> None:
    """Call `say` with the text COMPILING, once per process, if functions still have to be compiled."""
    from kmargin.core.jit import has_cached_code  # imported here because importing numba is slow
    from kmargin.solvers.search.panels import try_exchanges

    if not _said and not has_cached_code(try_exchanges):
        _said.append(COMPILING)
        say(COMPILING)


class Bar(AbstractContextManager["Bar"]):
    """A progress bar that shows nothing, for ``verbose=0``; the base class of the other progress bars."""

    def advance(self, steps: int = 1) -> None:
        """Count `steps` more steps as finished."""

    def __exit__(self, *error: Any) -> None:
        return None


class TextBar(Bar):
    """Progress as lines of text on stderr, one whenever another tenth of the steps is finished."""

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total, self.done = label, max(total, 1), 0
        self.started, self.lock = time.monotonic(), threading.Lock()

    def advance(self, steps: int = 1) -> None:
        with self.lock:
            before, self.done = self.done, self.done + steps
            if 10 * self.done // self.total > 10 * before // self.total:
                elapsed = time.monotonic() - self.started
                left = elapsed / self.done * (self.total - self.done)
                self._write(f"{self.done}/{self.total}, {elapsed:.1f} s, {left:.1f} s left")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"{self.label}: {text}\n")
        sys.stderr.flush()

    def __enter__(self) -> "TextBar":
        announce_compilation(self._write)
        return self


class RichBar(Bar):
    """A progress bar drawn by the package rich, which stays intact if other output is written meanwhile."""

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

    def advance(self, steps: int = 1) -> None:
        self.progress.advance(self.task, steps)

    def __enter__(self) -> "RichBar":
        announce_compilation(lambda sentence: self.progress.console.print(sentence, highlight=False))
        self.progress.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.progress.stop()


def progress_bar(label: str, total: int, verbose: int) -> Bar:
    """Make a progress bar for `total` steps, with the name `label`; it shows nothing if `verbose` is 0."""
    if not verbose:
        return Bar()
    if sys.stderr.isatty():
        try:
            return RichBar(label, total)
        except ImportError:
            pass  # rich is not installed, and optional
    return TextBar(label, total)
