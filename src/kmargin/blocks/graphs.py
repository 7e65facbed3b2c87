"""Dask collections taken apart: what each block of rows is to be read from.

A block's own part of the graph travels as data, inside one object, so that a block of X is never
itself something the scheduler knows and could send about.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from dask.core import flatten, get_dependencies, toposort
from dask.core import get as execute
from dask.sizeof import sizeof

from kmargin.blocks.recipes import Leaves, Value

Key = Any
Graph = dict[Key, Any]

# What several blocks need is computed once if so many reads lie behind it, or if it is so large.
FEW_READS = 2
LARGE = 2**20

MANY = -1


class Source:
    """One block of a collection: the part of the graph that it needs."""

    def __init__(self, graph: Graph, key: Key, leaves: list[Key]) -> None:
        self.graph = graph
        self.key = key
        self.leaves = leaves  # what is computed outside this graph

    def read(self, leaves: Leaves) -> Any:
        """The block, computed here and now."""
        given = {key: (Value(leaves[key]),) for key in self.leaves}
        return execute(self.graph | given, [self.key])[0]


class Sources(NamedTuple):
    """The blocks of several collections, side by side."""

    blocks: list[list[Source]]  # [block][collection]
    graph: Graph  # of all
    shared: list[Key]  # to be computed once: leaves of some blocks
    futures: Graph  # what is already on a cluster: leaves too

    def leaves_of(self, number: int) -> set[Key]:
        return {key for source in self.blocks[number] for key in source.leaves}


def take_apart(collections: Sequence[Any]) -> Sources:
    """A source for each block of rows, from collections with equally many of them."""
    graph: Graph = {}
    columns = []
    for collection in collections:
        if hasattr(collection, "simplify"):  # a dataframe; its `optimize` might also join small blocks
            collection = collection.simplify()
        graph.update(collection.__dask_graph__())
        columns.append(list(flatten(collection.__dask_keys__())))
    outputs = [list(keys) for keys in zip(*columns, strict=True)]
    futures = {key: value for key, value in graph.items() if is_future(value)}
    needs = {key: set() if key in futures else get_dependencies(graph, key) for key in graph}
    shared = _shared_keys(graph, needs, outputs)
    stops = shared | set(futures)
    blocks = [[_cut_out(graph, needs, key, stops) for key in keys] for keys in outputs]
    return Sources(blocks, graph, sorted(shared, key=str), futures)


def is_future(value: Any) -> bool:
    return hasattr(value, "key") and hasattr(value, "client") and hasattr(value, "release")


def _cut_out(graph: Graph, needs: dict[Key, set[Key]], key: Key, stops: set[Key]) -> Source:
    inside: Graph = {}
    leaves: set[Key] = set()
    todo = [key]
    while todo:
        one = todo.pop()
        if one in stops:
            leaves.add(one)
        elif one not in inside:
            inside[one] = graph[one]
            todo += needs[one]
    return Source(inside, key, sorted(leaves, key=str))


def _shared_keys(graph: Graph, needs: dict[Key, set[Key]], outputs: list[list[Key]]) -> set[Key]:
    """What must not be computed block by block.

    A mean over all rows, say, that every block subtracts: each block would read all the others for
    it. Likewise the results of a shuffle between workers, which no single task can repeat. A chunk
    that a few blocks are cut from is read by each of them.
    """
    order = toposort(graph, dependencies=needs)
    reads: dict[Key, int] = {}  # at least so many lie behind a key, up to double counting
    for key in order:
        behind = sum(reads[other] for other in needs[key])
        reads[key] = behind or int(_is_task(graph[key]))
    user: dict[Key, int] = {}  # the block that needs a key, or MANY
    for number, keys in enumerate(outputs):
        for key in keys:
            user[key] = number if user.get(key, number) == number else MANY
    shared = set()
    for key in reversed(order):
        if key not in user:
            continue
        if _is_shuffled(graph[key]) or (user[key] == MANY and _is_costly(graph[key], reads[key])):
            shared.add(key)
            continue
        for other in needs[key]:
            user[other] = user[key] if user.get(other, user[key]) == user[key] else MANY
    return shared


def _is_costly(node: Any, n_reads: int) -> bool:
    return n_reads > FEW_READS or (n_reads == 0 and sizeof(getattr(node, "value", node)) > LARGE)


def _is_task(node: Any) -> bool:
    return _function_of(node) is not None


def _is_shuffled(node: Any) -> bool:
    return str(getattr(_function_of(node), "__module__", "")).startswith("distributed.shuffle")


def _function_of(node: Any) -> Any:
    """What a task calls; None for data and other names of data. Older tasks are tuples."""
    if isinstance(node, tuple):
        return node[0] if node and callable(node[0]) else None
    function = getattr(node, "func", None)
    return function if callable(function) else None
