"""Dask arrays and dataframes as blocks."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kmargin.blocks.graphs import Sources, take_apart
from kmargin.blocks.ingest import Summary, check_collections, check_features, examine, known_rows, summarize
from kmargin.blocks.protocol import Held
from kmargin.blocks.rows import encode, keep_rows, make_rows


class DaskBlocks:
    """The blocks of dask collections, on a cluster if there is a client, else in this process.

    Each block is read from its own source where it is asked for; that of a collection that was
    persisted is asked where it lies. X is kept in memory where all of it fits into the room there is
    (`room`, in bytes), else read anew for every question. Labels and weights are always kept.
    """

    def __init__(self, held: Any, room: float, n_features: int, dtype: np.dtype, summary: Summary) -> None:
        self.held = held
        self.room = room
        self.n_features = n_features
        self.n_blocks = len(summary.n_rows)
        self.dtype = dtype
        self.summary = summary

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self.held.ask(function, *args)

    def hold(self, function: Callable[..., Any], *args: Any) -> Held:
        return self.held.hold(function, *args)

    def fits(self, n_numbers: int) -> bool:
        return 8 * n_numbers <= self.room


def read_blocks(X: Any, y: Any, sample_weight: Any = None, *, who: str = "kmargin") -> DaskBlocks:
    """Check the collections and all their blocks, in one pass; encode the classes."""
    X, y, sample_weight = check_collections(X, y, sample_weight, who)
    dtype = check_features(X)
    n_features = int(X.shape[1])
    collections = [X, y] if sample_weight is None else [X, y, sample_weight]
    sources = take_apart(collections)
    place = find_place(sources)
    held_already = any(key in sources.futures for X_source, *_ in sources.blocks for key in X_source.leaves)
    rows = known_rows(X)
    n_rows = float("nan") if rows is None else float(rows.sum())
    keep = not held_already and n_rows * n_features * dtype.itemsize <= place.room
    raw = place.settle(sources, partial(make_rows, dtype=dtype, keep=keep))
    summary = summarize(raw.ask(examine), n_features, getattr(X, "columns", None))
    held = raw.replace(encode, summary.classes)
    n_bytes = summary.n_rows.sum() * n_features * dtype.itemsize
    if not keep and not held_already and n_bytes <= place.room:
        held = held.replace(keep_rows)
    return DaskBlocks(held, place.room, n_features, dtype, summary)


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
