"""The rows of one block of a dask collection: how they are made from the task graph, and kept."""

import contextlib
import os
import pickle
import shutil
import sys
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dask.core import flatten, get_dependencies, toposort
from dask.core import get as execute
from dask.sizeof import sizeof

from kmargin.data.blocks import foreign_blocks

# So much of the disk stays free.
LEFT_FREE = 0.1


class Folder:
    """Where one process writes. It is made when it is first needed, and removed with the process."""

    def __init__(self) -> None:
        self.parent: str | None = None  # None for the system's folder of temporary files
        self._made: Path | None = None
        self._lock = threading.Lock()

    def save(self, thing: Any, n_bytes: int) -> "File | None":
        """A file with the thing in it, if there is room."""
        path = None
        try:
            path = self._new_path(n_bytes)
            if path is None:
                return None
            with path.open("wb") as file:
                pickle.dump(thing, file, protocol=5)
            return File(path)
        except OSError:  # no room after all, or no folder to write to
            if path is not None:
                _remove(path)
            return None

    def _new_path(self, n_bytes: int) -> Path | None:
        with self._lock:
            if self._made is None:
                self._made = Path(tempfile.mkdtemp(prefix="kmargin-", dir=self.parent))
                weakref.finalize(self, shutil.rmtree, self._made, ignore_errors=True)
        disk = shutil.disk_usage(self._made)
        has_room = disk.free - n_bytes > LEFT_FREE * disk.total
        return self._made / uuid.uuid4().hex if has_room else None


class File:
    """A thing on disk, as long as somebody refers to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        weakref.finalize(self, _remove, path)

    def load(self) -> Any:
        with self.path.open("rb") as file:
            return pickle.load(file)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.remove(path)


FOLDER = Folder()


Leaves = Mapping[Hashable, Any]  # what a recipe needs and does not hold

NOTHING = object()

# Who makes fewer bytes per second is slower than a disk.
SLOW = 300e6


class Shelf:
    """How much one process keeps."""

    def __init__(self) -> None:
        self.room = float("inf")  # bytes
        self.used = 0
        self.taken_before: float | None = None  # the memory of the process before anything was kept
        self._lock = threading.Lock()

    def take(self, n_bytes: int) -> bool:
        """Whether there is room for so much more; if so it is taken."""
        with self._lock:
            fits = self.used + n_bytes <= self.room
            self.used += n_bytes * fits
            return fits

    def give_back(self, n_bytes: int) -> None:
        with self._lock:
            self.used -= n_bytes


SHELF = Shelf()


class Kept:
    """What a recipe makes, kept by one process: in memory, or on its own disk where the shelf is full.

    Only the recipe is pickled. Whoever is sent this object makes the thing anew from its source: a
    scheduler may move it as it likes, and X stays where it is. Without `keep` no memory is taken, and
    disk only if making the thing anew would take longer than to read it.
    """

    def __init__(self, recipe: Callable[[Leaves], Any], keep: bool = True) -> None:
        self.recipe = recipe
        self.keep = keep
        self._made: Any = NOTHING
        self._file: File | None = None
        self._lock = threading.Lock()

    def get(self, leaves: Leaves) -> Any:
        with self._lock:
            if self._made is not NOTHING:
                return self._made
            if self._file is None:
                started = time.perf_counter()
                made = self.recipe(leaves)
                self.put(made, time.perf_counter() - started)
                return made
            made = self._file.load()
            if self._shelve(made):  # somebody has made room
                self._file = None
            return made

    def put(self, made: Any, seconds: float) -> None:
        """Keep this, which took so long to make."""
        if not self._shelve(made) and (self.keep or size_of(made) < SLOW * seconds):
            self._file = FOLDER.save(made, size_of(made))

    def _shelve(self, made: Any) -> bool:
        n_bytes = size_of(made)
        if not self.keep or not SHELF.take(n_bytes):
            return False
        self._made = made
        weakref.finalize(self, SHELF.give_back, n_bytes).atexit = False
        return True

    def fresh(self) -> "Kept":
        """The same recipe, with no memory taken."""
        return Kept(self.recipe, keep=False) if self.keep else self

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, (self.recipe, self.keep)

    def __sizeof__(self) -> int:
        """For a scheduler that watches over memory."""
        return object.__sizeof__(self) + (0 if self._made is NOTHING else size_of(self._made))


class Stopped(RuntimeError):
    """Work was given up, because something went wrong or somebody interrupted it."""


class Derived:
    """The recipe of a thing that is made of another one."""

    def __init__(self, origin: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.origin = origin
        self.function = function
        self.args = args

    def __call__(self, leaves: Leaves) -> Any:
        return self.function(self.origin.get(leaves), *self.args)


class Value:
    """A call that returns a value, which is how dask takes any value as it is."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


def derive(
    origin: Any, leaves: Leaves, function: Callable[..., Any], args: tuple[Any, ...], keep: bool = True
) -> Kept:
    """``function(thing, *args)``, made now if it is to be kept.

    Its recipe starts from the source again, so what is derived does not keep alive what it came from.
    """
    derived = Kept(Derived(origin.fresh(), function, args), keep)
    if keep:
        started = time.perf_counter()
        derived.put(function(origin.get(leaves), *args), time.perf_counter() - started)
    return derived


def size_of(thing: Any) -> int:
    """Bytes of the arrays inside a thing, through tuples, lists, dicts and objects with fields."""
    nbytes = getattr(thing, "nbytes", None)
    if isinstance(nbytes, int):
        return nbytes
    if isinstance(thing, dict):
        return sum(map(size_of, thing.values()))
    if isinstance(thing, tuple | list):
        return sum(map(size_of, thing))
    fields = getattr(thing, "__dict__", None)
    return sum(map(size_of, fields.values())) if fields else sys.getsizeof(thing, 0)


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


class Labels(NamedTuple):
    """What is known of the rows of a block besides X."""

    y: Any  # as given, or codes of classes
    weights: Any  # None where none were given


class Rows:
    """A block that is made when it is asked for.

    X is kept in memory, or read each time; labels and weights are always kept, being p times smaller.
    """

    def __init__(self, number: int, X: Kept, labels: Kept) -> None:
        self.number = number
        self.X = X
        self.labels = labels

    def get(self, leaves: Leaves) -> "LazyBlock":
        return LazyBlock(self, leaves)

    def fresh(self) -> "Rows":
        return Rows(self.number, self.X.fresh(), self.labels.fresh())

    def made(self, leaves: Leaves) -> "Rows":
        """With everything made that is to be kept."""
        for part in (self.X, self.labels):
            if part.keep:
                part.get(leaves)
        return self

    def __sizeof__(self) -> int:
        return self.X.__sizeof__() + self.labels.__sizeof__()


class LazyBlock:
    """A `Block` whose X is read when it is needed."""

    def __init__(self, rows: Rows, leaves: Leaves) -> None:
        labels = rows.labels.get(leaves)
        self.number = rows.number
        self.codes = labels.y
        self.repeats = np.ones(len(labels.y)) if labels.weights is None else labels.weights
        self._read = partial(rows.X.get, leaves)

    @cached_property
    def X(self) -> np.ndarray:
        return self._read()


class Reading:
    """The recipe for something read from several sources."""

    def __init__(self, function: Callable[..., Any], *sources: Source | None) -> None:
        self.function = function
        self.sources = sources

    def __call__(self, leaves: Leaves) -> Any:
        return self.function(*(source and source.read(leaves) for source in self.sources))


def make_rows(number: int, sources: list[Source], dtype: Any, keep: bool) -> Rows:
    """A block from the sources of X, of y, and of weights if there are any."""
    X, y, weights = (*sources, None)[:3]
    return Rows(number, Kept(Reading(ToArray(dtype), X), keep), Kept(Reading(to_labels, y, weights)))


def keep_rows(rows: Rows, leaves: Leaves) -> Rows:
    """The same rows, X kept."""
    return Rows(rows.number, Kept(rows.X.recipe), rows.labels).made(leaves)


def encode(rows: Rows, leaves: Leaves, classes: np.ndarray) -> Rows:
    """The same rows with the codes of their classes as labels."""
    return Rows(rows.number, rows.X, derive(rows.labels, leaves, to_codes, (classes,)))


class ToArray:
    """X as the solvers take it: C-ordered, of one dtype in all blocks."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, X: Any) -> np.ndarray:
        if hasattr(X, "to_numpy"):
            return self._from_frame(X)
        if not isinstance(X, np.ndarray) or isinstance(X, np.ma.MaskedArray):
            raise TypeError(foreign_blocks(X))
        return np.ascontiguousarray(X, dtype=self.dtype)

    def _from_frame(self, X: Any) -> np.ndarray:
        plain = all(isinstance(dtype, np.dtype) for dtype in X.dtypes)
        # what is missing becomes NaN, and is found as that
        array = np.ascontiguousarray(X.to_numpy() if plain else X.to_numpy(na_value=np.nan), dtype=self.dtype)
        if "pyarrow" in sys.modules:  # keeps what it has read in memory that nobody else can use
            sys.modules["pyarrow"].default_memory_pool().release_unused()
        return array


def to_labels(y: Any, weights: Any) -> Labels:
    weights = weights if weights is None else np.asarray(weights, dtype=np.float64)
    return Labels(np.asarray(y), weights)


def to_codes(labels: Labels, classes: np.ndarray) -> Labels:
    """The place of each label among the classes, in as few bytes as will do."""
    dtype = np.min_scalar_type(-len(classes))
    return labels._replace(y=np.searchsorted(classes, labels.y).astype(dtype))
