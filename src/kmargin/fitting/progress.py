"""One way to show progress."""

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

COMPILING = (
    "Compiling functions that are used for the first time. They are saved on disk, where that is possible, "
    "so later runs do not wait for them again."
)


class Bar(Protocol):
    """Something that can be moved on, and put away."""

    def advance(self, steps: int = 1) -> None: ...

    def extend(self, steps: int) -> None:
        """So many steps more than was thought; or fewer."""

    def __enter__(self) -> "Bar": ...

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None: ...


class Telling(Bar, Protocol):
    """One that can say something as well."""

    def say(self, sentence: str) -> None: ...


class Silence:
    """The bar of ``verbose=0``."""

    def advance(self, steps: int = 1) -> None:
        return None

    def extend(self, steps: int) -> None:
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

    def extend(self, steps: int) -> None:
        with self.lock:
            self.total = max(self.total + steps, self.done, 1)

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

    def say(self, sentence: str) -> None:
        with self.lock:
            sys.stderr.write(f"{self.label}: {sentence}\n")
            sys.stderr.flush()

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

    def extend(self, steps: int) -> None:
        total = self.progress.tasks[0].total or 0
        self.progress.update(self.task, total=total + steps)

    def say(self, sentence: str) -> None:
        self.progress.console.print(sentence, highlight=False)

    def __enter__(self) -> "RichBar":
        self.progress.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.progress.stop()


def announce_compilation(say: Callable[[str], None]) -> None:
    """Announce that functions will be compiled, if their machine code is not on disk; once in a process."""
    from kmargin.core.jit import has_cached_code  # numba takes a while to import
    from kmargin.solvers.search.panels import try_exchanges

    if not _said and not has_cached_code(try_exchanges):
        _said.append(COMPILING)
        say(COMPILING)


_said: list[str] = []  # so far


def progress_bar(label: str, total: int, verbose: int) -> Bar:
    """A bar for `total` steps, or silence."""
    if not verbose:
        return Silence()
    if sys.stderr.isatty():
        try:
            bar: Telling = RichBar(label, total)
        except ImportError:  # rich is optional
            bar = TextBar(label, total)
    else:
        bar = TextBar(label, total)
    announce_compilation(bar.say)
    return bar
