"""When to compile what only calls others: once interpreting it has cost about as much as compiling will.

To hire or to buy skis, without knowing how often one will ski: hire until the rent is as high as the price.
Who follows that rule pays at most twice what he would have paid, had he known. Here the rent is paid by the
call: each one from interpreted code takes four microseconds longer than from machine code. What was paid by
earlier processes counts, else many short ones would never compile. It is noted by the length of a file
beside the machine code, a byte for each SOME calls.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Calls from interpreted code after which compiling pays (they took about 3 s; to compile takes some 20), and
# how many of them are noted at a time.
ENOUGH, SOME = 600_000, 2_000

LEDGER = "interpreted_calls"


class Meter:
    """Counts calls from interpreted code, and says when there were enough."""

    def __init__(self, folder: Callable[[], Path | None]) -> None:
        """`folder` tells where machine code is kept; None if nowhere."""
        self.before_compiling: list[Callable[[], None]] = []  # what has to be done before compiled code runs
        self._folder = folder
        self._ledger: Path | None = None
        self._calls = 0
        self._noted = 0  # of these
        self._compiling: bool | None = None  # not known yet
        self._forced: bool | None = None

    def count(self) -> None:
        self._calls += 1  # two threads may count one: it need not be exact

    def compiling(self) -> bool:
        """Whether who asks is to be compiled."""
        if self._compiling is None:
            self._open()
        self.count()
        if self._calls - self._noted >= SOME and not self._compiling:
            self._note(1)
        return bool(self._compiling if self._forced is None else self._forced)

    @contextmanager
    def forced(self, compiling: bool) -> Iterator[None]:
        """Compiled or interpreted, whatever was counted. What was compiled so is used ever after."""
        if self._compiling is None:
            self._open()
        if compiling and not self._compiling:
            self._note(ENOUGH // SOME)
        before, self._forced = self._forced, compiling
        try:
            yield
        finally:
            self._forced = before

    def _open(self) -> None:
        folder = self._folder()
        self._ledger = None if folder is None else folder / LEDGER
        self._judge(self._calls)

    def _note(self, times: int) -> None:
        self._noted = self._calls
        if self._ledger is not None:
            try:
                with self._ledger.open("ab") as ledger:
                    ledger.write(b"." * times)
            except OSError:
                self._ledger = None  # then only what this process has paid counts
        self._judge(max(self._calls, SOME * times))

    def _judge(self, paid: int) -> None:
        if self._ledger is not None and self._ledger.is_file():
            paid = max(paid, SOME * self._ledger.stat().st_size)
        if paid >= ENOUGH:
            for prepare in self.before_compiling:
                prepare()
        self._compiling = paid >= ENOUGH
