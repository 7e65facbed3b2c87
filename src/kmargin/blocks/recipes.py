"""Things that can be made again, and so need never travel."""

import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from kmargin.blocks.scratch import FOLDER, File

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
