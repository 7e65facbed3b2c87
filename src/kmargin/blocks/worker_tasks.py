"""What a worker of a cluster does with its groups of blocks, and what travels there."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dask.sizeof import sizeof
from distributed import get_worker

from kmargin.blocks.recipes import SHELF, Leaves
from kmargin.blocks.scratch import FOLDER

# An argument of more bytes goes to the workers once, not with every group's task.
LARGE_ARGUMENT = 100_000

# Of each worker's memory: beyond this share dask puts away what is kept. At least so much is taken by the
# interpreter and its libraries, and so much by libraries that come later. And each thread has so many
# copies of a block in hand while it reads one.
SPILL = 0.7
INTERPRETER, LIBRARIES = 220e6, 45e6
IN_HAND = 2


class Context(NamedTuple):
    """What a worker has to know before it touches a group."""

    keys: list[Any]  # of the leaves
    block_bytes: float  # of the largest block, as far as is known

    def open(self, values: Sequence[Any]) -> Leaves:
        """The leaves by their keys. Tells this process how much it may keep, and where."""
        worker = get_worker()
        limit, n_threads = worker.memory_manager.memory_limit, worker.state.nthreads
        SHELF.room = room_within(limit, taken_at_first(worker), n_threads, self.block_bytes)
        FOLDER.parent = worker.local_directory
        return dict(zip(self.keys, values, strict=True))


def room_within(limit: float | None, taken: float, n_threads: int, block_bytes: float) -> float:
    """Bytes that a worker may keep of its memory, some of which is taken; without a limit any number."""
    if not limit:
        return float("inf")
    taken = max(INTERPRETER, taken + LIBRARIES) + n_threads * IN_HAND * block_bytes
    return max(0.0, SPILL * limit - taken)


def taken_at_first(worker: Any) -> float:
    """The memory of a worker's process when it was first asked by this package."""
    if SHELF.taken_before is None:
        SHELF.taken_before = float(worker.monitor.get_process_memory())
    return SHELF.taken_before


class Sealed:
    """Something that dask is not to look into."""

    def __init__(self, content: Any) -> None:
        self.content = content


class _Hole(NamedTuple):
    """Where a large argument belongs."""

    number: int


def without_large(question: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """A question with holes, and what belongs there."""
    kept: list[Any] = []
    large: list[Any] = []
    for part in question:
        if sizeof(part) > LARGE_ARGUMENT:
            kept.append(_Hole(len(large)))
            large.append(part)
        else:
            kept.append(part)
    return kept, large


def _filled(sealed: Sealed, large: Sequence[Any]) -> list[Any]:
    return [large[part.number] if isinstance(part, _Hole) else part for part in sealed.content]


def settle_group(things: Sealed, context: Sealed, values: list[Any]) -> list[Any]:
    """The things of a group, whose recipes have what they need."""
    leaves = context.content.open(values)
    return [thing.made(leaves) for thing in things.content]


def ask_group(
    things: list[Any], context: Sealed, values: list[Any], question: Sealed, *large: Any
) -> list[Any]:
    """``function(thing, leaves, *args)`` of each thing, the question being the function and its arguments."""
    leaves = context.content.open(values)
    function, *args = _filled(question, large)
    return [function(thing, leaves, *args) for thing in things]


def answer(thing: Any, leaves: Leaves, function: Callable[..., Any], *args: Any) -> Any:
    """What a function says of what a recipe makes."""
    return function(thing.get(leaves), *args)
