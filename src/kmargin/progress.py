"""A progress bar: rich's if it is installed, a line of text otherwise."""

import sys
import threading
import time
from types import TracebackType
from typing import Any, Protocol


class Bar(Protocol):
    """Something that can be moved on, and put away."""

    def advance(self, steps: int = 1) -> None: ...

    def __enter__(self) -> "Bar": ...

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None: ...


class Silence:
    """The bar of ``verbose=0``."""

    def advance(self, steps: int = 1) -> None:
        return None

    def __enter__(self) -> "Silence":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        return None


class TextBar:
    """Rewrites one line of stderr on a terminal; elsewhere writes a line for every tenth done."""

    width = 30

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total, self.done = label, max(total, 1), 0
        self.started = time.monotonic()
        self.tenths = 0
        self.lock = threading.Lock()

    def advance(self, steps: int = 1) -> None:
        with self.lock:
            self._advance(steps)

    def _advance(self, steps: int) -> None:
        self.done += steps
        if sys.stderr.isatty():
            filled = self.width * self.done // self.total
            bar = "#" * filled + "-" * (self.width - filled)
            sys.stderr.write(f"\r{self.label} [{bar}] {self._state()}")
        elif 10 * self.done // self.total > self.tenths:
            self.tenths = 10 * self.done // self.total
            sys.stderr.write(f"{self.label}: {self._state()}\n")
        sys.stderr.flush()

    def _state(self) -> str:
        elapsed = time.monotonic() - self.started
        left = elapsed / self.done * (self.total - self.done)
        return f"{self.done}/{self.total}, {elapsed:.1f} s, {left:.1f} s left"

    def __enter__(self) -> "TextBar":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\n")


class RichBar:
    """The same by rich, which also copes with other output around the bar."""

    def __init__(self, label: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=Console(stderr=True))
        self.task = self.progress.add_task(label, total=total)

    def advance(self, steps: int = 1) -> None:
        self.progress.advance(self.task, steps)

    def __enter__(self) -> "RichBar":
        self.progress.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.progress.stop()


def progress_bar(label: str, total: int, verbose: int) -> Bar:
    """A bar for `total` steps, or silence."""
    if not verbose:
        return Silence()
    if sys.stderr.isatty():
        try:
            return RichBar(label, total)
        except ImportError:
            pass  # rich is optional
    return TextBar(label, total)
