"""Things that can be made again, and so need never travel."""

import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping
from typing import Any

Leaves = Mapping[Hashable, Any]  # what a recipe needs and does not hold

NOTHING = object()


class Shelf:
    """How much one process keeps."""

    def __init__(self) -> None:
        self.room = float("inf")  # bytes
        self.used = 0
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
    """What a recipe makes, kept in the memory of one process.

    Only the recipe is pickled. Whoever is sent this object, or reads it back from disk, makes the
    thing anew from its source: a scheduler may move it as it likes, and X stays where it is. Without
    `keep`, and where the shelf is full, the thing is made anew for every use, which takes time instead
    of memory.
    """

    def __init__(self, recipe: Callable[[Leaves], Any], keep: bool = True) -> None:
        self.recipe = recipe
        self.keep = keep
        self._made: Any = NOTHING
        self._lock = threading.Lock()

    def get(self, leaves: Leaves) -> Any:
        if not self.keep:
            return self.recipe(leaves)
        with self._lock:
            if self._made is not NOTHING:
                return self._made
            return self.put(self.recipe(leaves))

    def put(self, made: Any) -> Any:
        """Keep this if there is room."""
        n_bytes = size_of(made)
        if self.keep and SHELF.take(n_bytes):
            self._made = made
            weakref.finalize(self, SHELF.give_back, n_bytes).atexit = False
        return made

    def fresh(self) -> "Kept":
        """The same recipe, nothing made, nothing to be kept."""
        return Kept(self.recipe, keep=False)

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
        derived.put(function(origin.get(leaves), *args))
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
