"""Blocks computed on this machine, by dask's threads or in turn."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import dask
from dask.base import get_scheduler

from kmargin.blocks.graphs import Sources
from kmargin.blocks.memory import available_memory
from kmargin.blocks.recipes import SHELF, Leaves, Stopped, derive
from kmargin.blocks.scratch import FOLDER

# Of the memory that is free, what is kept may take this share.
SHARE = 0.5

# Blocks of so many bytes, all together, are asked in turn: threads would take longer to start.
SMALL = 2**20


class Threads:
    """Work on this machine."""

    n_askers = 1  # one machine's questions keep all threads busy

    def __init__(self) -> None:
        self.stopped = threading.Event()
        FOLDER.parent = dask.config.get("temporary-directory", None)
        self._room = SHARE * available_memory()
        SHELF.room = SHELF.used + self._room

    def room(self, block_bytes: float) -> float:
        """Bytes that may be kept; blocks in hand, of so many bytes, have to fit into the other half."""
        return self._room

    def settle(self, sources: Sources, make: Callable[..., Any], block_bytes: float) -> "HeldByThreads":
        """``make(number, sources)`` for each block."""
        leaves = {}
        if sources.shared:
            get = get_scheduler() or dask.threaded.get
            leaves = dict(zip(sources.shared, get(sources.graph, sources.shared), strict=True))
        return HeldByThreads(
            self, [make(number, block) for number, block in enumerate(sources.blocks)], leaves
        )


class HeldByThreads:
    """Something made of each block, in the memory of this process."""

    def __init__(self, place: Threads, things: Sequence[Any], leaves: Leaves, in_turn: bool = False) -> None:
        self.place = place
        self.things = things
        self.leaves = leaves
        self.in_turn = in_turn

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self._each(_answer, function, args)

    def hold(self, function: Callable[..., Any], *args: Any) -> "HeldByThreads":
        return self.replace(derive, function, args)

    def with_blocks_of(self, block_bytes: float) -> "HeldByThreads":
        return HeldByThreads(self.place, self.things, self.leaves, block_bytes * len(self.things) <= SMALL)

    def replace(self, function: Callable[..., Any], *args: Any) -> "HeldByThreads":
        """``function(thing, leaves, *args)`` in place of each thing."""
        return HeldByThreads(self.place, self._each(function, *args), self.leaves, self.in_turn)

    def _each(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        if self.place.stopped.is_set():
            raise Stopped
        if self.in_turn:
            return [function(thing, self.leaves, *args) for thing in self.things]
        calls = (_Call(function, thing, self.leaves, *args) for thing in self.things)
        tasks = [dask.delayed(call, pure=False, traverse=False)() for call in calls]
        return list(dask.compute(*tasks, traverse=False))


class _Call:
    """A call without arguments: dask would look through them for collections."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.function = function
        self.args = args

    def __call__(self) -> Any:
        return self.function(*self.args)


def _answer(thing: Any, leaves: Leaves, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return function(thing.get(leaves), *args)
