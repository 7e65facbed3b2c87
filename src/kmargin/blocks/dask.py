"""Dask arrays and dataframes as blocks."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kmargin.blocks.examine import examine
from kmargin.blocks.graphs import Sources, take_apart
from kmargin.blocks.ingest import Summary, check_collections, check_features, known_rows, summarize
from kmargin.blocks.protocol import Held
from kmargin.blocks.rows import encode, keep_rows, make_rows
from kmargin.design.distinct import SEED

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
    from kmargin.blocks.threads import Threads

    return Threads()


def _cluster(client: Any) -> Any:
    from kmargin.blocks.cluster import Cluster

    return Cluster(client)
