"""Things that can be made again, and so need never travel."""

import sys
import threading
from collections.abc import Callable, Hashable, Mapping
from typing import Any

Leaves = Mapping[Hashable, Any]  # what a recipe needs and does not hold

NOTHING = object()


class Kept:
    """What a recipe makes, kept in the memory of one process.

    Only the recipe is pickled. Whoever is sent this object, or reads it back from disk, makes the
    thing anew from its source: a scheduler may move it as it likes, and X stays where it is. Without
    `keep` the thing is made anew for every use, which takes time instead of memory.
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
            if self._made is NOTHING:
                self._made = self.recipe(leaves)
            return self._made

    def fresh(self) -> "Kept":
        """The same recipe, nothing made, nothing to be kept."""
        return Kept(self.recipe, keep=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, (self.recipe, self.keep)

    def __sizeof__(self) -> int:
        """For a scheduler that watches over memory."""
        return object.__sizeof__(self) + (0 if self._made is NOTHING else size_of(self._made))


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
        derived._made = function(origin.get(leaves), *args)
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
