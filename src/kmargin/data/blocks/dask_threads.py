"""Dask collections as blocks, asked by threads of this process."""

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import dask
import numpy as np
from dask.base import get_scheduler

from kmargin.core.design import SEED
from kmargin.data.blocks import Held
from kmargin.data.blocks.dask_input import Summary, check_collections, check_features, known_rows, summarize
from kmargin.data.blocks.dask_rows import (
    FOLDER,
    SHELF,
    Leaves,
    Sources,
    Stopped,
    derive,
    encode,
    keep_rows,
    make_rows,
    take_apart,
)
from kmargin.data.blocks.sums import examine

# of a container, in both versions: the limit, what is used, and how much of that is cached files
CGROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current", "file"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache"),
)


def available_memory() -> float:
    """Bytes: what is free on this machine, or what the container's or the process's limit leaves."""
    return max(0.0, min(_free(), *(_left_to_container(*names) for names in CGROUPS), _left_to_process()))


def _free() -> float:
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return 1024.0 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        pass
    try:
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2.0**31  # nothing can be learnt here: a machine of modest size


def _left_to_container(folder: Path, limit: str, usage: str, cached: str) -> float:
    try:
        lines = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        used = float((folder / usage).read_text()) - float(lines[cached])
        return float((folder / limit).read_text()) - used
    except (OSError, KeyError, ValueError):
        return float("inf")  # no such file, or "max"


def _left_to_process() -> float:
    try:
        import resource

        pages = [int(number) for number in Path("/proc/self/statm").read_text().split()]
    except (ImportError, OSError, ValueError):
        return float("inf")
    left = float("inf")
    for limit, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
        soft = resource.getrlimit(limit)[0]
        if soft != resource.RLIM_INFINITY:
            left = min(left, soft - used * resource.getpagesize())
    return left


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


# X is kept in memory if it takes no more than this share of what may be kept.
KEEP = 0.5


class DaskBlocks:
    """The blocks of dask collections, on a cluster if there is a client, else in this process.

    Each block is read from its own source where it is asked for; that of a collection that was
    persisted is asked where it lies. X is kept in memory where that leaves room for what is held
    beside it, else read for every question: from its source, or, if that is slow, from a plain copy on
    the reader's own disk. Labels and weights are always kept.
    """

    def __init__(self, held: Any, room: float, dtype: np.dtype, shape: tuple[int, int], n_blocks: int):
        self.held = held
        self.room = room  # bytes
        self.dtype = dtype
        self.shape = shape
        self.n_blocks = n_blocks
        self.n_askers = held.place.n_askers

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self.held.ask(function, *args)

    def hold(self, function: Callable[..., Any], *args: Any) -> Held:
        return self.held.hold(function, *args)

    def fits(self, n_numbers: int) -> bool:
        return 8 * n_numbers <= self.room

    def shared_by(self, n_askers: int) -> "DaskBlocks":
        return DaskBlocks(self.held, self.room / n_askers, self.dtype, self.shape, self.n_blocks)

    def stop(self) -> None:
        self.held.place.stopped.set()


def read_blocks(X: Any, y: Any, sample_weight: Any = None, *, who: str = "fit") -> tuple[DaskBlocks, Summary]:
    """Check the collections and all their blocks, in one pass; encode the classes."""
    X, y, sample_weight = check_collections(X, y, sample_weight, who)
    dtype = check_features(X)
    n_features = len(X.columns) if hasattr(X, "columns") else int(X.shape[1])
    sources = take_apart([X, y] if sample_weight is None else [X, y, sample_weight])
    place = find_place(sources)
    elsewhere = any(key in sources.futures for X_source, *_ in sources.blocks for key in X_source.leaves)
    row_bytes = n_features * dtype.itemsize
    rows = known_rows(X)
    block_bytes = row_bytes * float(np.nan_to_num(rows).max())
    keep = not elsewhere and row_bytes * rows.sum() <= KEEP * place.room(block_bytes)
    raw = place.settle(sources, partial(make_rows, dtype=dtype, keep=keep), block_bytes)
    summary = summarize(raw.ask(examine, SEED), n_features, getattr(X, "columns", None))
    n_rows = int(summary.n_rows.sum())
    block_bytes = row_bytes * float(summary.n_rows.max())
    room = place.room(block_bytes)
    held = raw.with_blocks_of(block_bytes).replace(encode, summary.classes)
    if not keep and not elsewhere and row_bytes * n_rows <= KEEP * room:  # now that it is known
        keep, held = True, held.replace(keep_rows)
    room -= row_bytes * n_rows * keep
    return DaskBlocks(held, room, dtype, (n_rows, n_features), len(summary.n_rows)), summary


def find_place(sources: Sources) -> Any:
    """Where the work is to be done: on the cluster that has the data or is the client's, or here."""
    from dask.base import get_scheduler

    for future in sources.futures.values():
        return _cluster(future.client)
    client = getattr(get_scheduler(), "__self__", None)
    if client is not None:
        return _cluster(client)

    return Threads()


def _cluster(client: Any) -> Any:
    from kmargin.data.blocks.cluster import Cluster

    return Cluster(client)
