"""One way to show progress."""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol

from kmargin.core.jit import on_compiling

# Seconds of compilation after which a message announces that there is more to come.
PATIENCE = 2.0
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


def tell_of_compiling(say: Callable[[str], None]) -> AbstractContextManager[None]:
    """Announce compilation that has taken longer than PATIENCE and goes on; once in a process."""

    def tell() -> None:
        if not _said:
            _said.append(COMPILING)
            say(COMPILING)

    return on_compiling(PATIENCE, tell)


_said: list[str] = []  # so far


class CompilingBar:
    """A bar that also announces compilation, which delays its first steps."""

    def __init__(self, bar: Telling) -> None:
        self.bar = bar
        self.listening = tell_of_compiling(bar.say)

    def advance(self, steps: int = 1) -> None:
        self.bar.advance(steps)

    def extend(self, steps: int) -> None:
        self.bar.extend(steps)

    def __enter__(self) -> "CompilingBar":
        self.listening.__enter__()
        self.bar.__enter__()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.bar.__exit__(kind, error, trace)
        self.listening.__exit__(kind, error, trace)


def progress_bar(label: str, total: int, verbose: int) -> Bar:
    """A bar for `total` steps, or silence."""
    if not verbose:
        return Silence()
    if sys.stderr.isatty():
        try:
            return CompilingBar(RichBar(label, total))
        except ImportError:
            pass  # rich is optional
    return CompilingBar(TextBar(label, total))
