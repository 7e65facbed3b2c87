"""Blocks asked by the workers of a dask cluster, some of which may be lost."""

import asyncio
import concurrent.futures
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import dask
from dask.sizeof import sizeof
from dask.utils import parse_timedelta
from distributed import Client, Future, KilledWorker, get_worker
from distributed.comm import CommClosedError

from kmargin.data.blocks.dask_rows import FOLDER, SHELF, Leaves, Sources, Stopped, Value, derive

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


# Groups for each thread: one would leave nothing to share out anew when a worker is lost.
GROUPS_PER_THREAD = 2

# Seconds between two looks at whether there is a cluster left to wait for, and for one look.
LOOK, LOOK_AT_MOST = 1.0, 5.0


DROPPED = (
    "The cluster lost the computation because its scheduler was stopped or restarted. "
    "Connect a Client to a running cluster and fit again."
)


class ClusterLost(RuntimeError):
    """The cluster that was to compute is not there any more."""


class Group(NamedTuple):
    """Some blocks, together on one worker."""

    numbers: list[int]
    future: Future  # of a list of what is held of each block
    context: Context
    leaves: list[Future]  # what recipes need besides


class Cluster:
    """Work on the cluster of a client."""

    n_askers = 4  # while one machine thinks, the workers answer others

    def __init__(self, client: Client) -> None:
        self.client = client
        self.patience = parse_timedelta(dask.config.get("kmargin.patience", "30s"))
        self.stopped = threading.Event()
        seen = time.monotonic()
        while not (workers := self._workers()):
            seen = self._check_cluster(seen)
            time.sleep(LOOK)
        self.workers = list(workers.values())
        self.n_threads = sum(worker["nthreads"] for worker in self.workers)

    def room(self, block_bytes: float) -> float:
        """Bytes that may be kept, while each thread reads blocks of so many."""
        return sum(
            room_within(
                worker["memory_limit"], worker["metrics"].get("memory", 0.0), worker["nthreads"], block_bytes
            )
            for worker in self.workers
        )

    def settle(self, sources: Sources, make: Callable[..., Any], block_bytes: float) -> "HeldThere":
        """``make(number, sources)`` for each block, read where it is asked for.

        Which worker gets a group is left to the scheduler: if a task prefers a worker that is gone, and
        all others are for a moment, dask (2026.8) never comes back to it. Where the group is, questions
        follow.
        """
        leaves = dict(sources.futures)
        if sources.shared:
            futures = self.client.get(sources.graph, sources.shared, sync=False)
            leaves |= dict(zip(sources.shared, futures, strict=True))
        groups = []
        for numbers in self._deal(sources):
            things = [make(number, sources.blocks[number]) for number in numbers]
            keys = sorted(set().union(*map(sources.leaves_of, numbers)), key=str)
            needed = [leaves[key] for key in keys]
            context = Context(keys, block_bytes)
            future = self.client.submit(settle_group, Sealed(things), Sealed(context), needed, pure=False)
            groups.append(Group(numbers, future, context, needed))
        return HeldThere(self, groups)

    def start(self, groups: Sequence[Group], question: Any) -> list[Future]:
        """A question to each group."""
        if self.stopped.is_set():
            raise Stopped
        small, large = without_large(question)
        with self._open():
            # by the scheduler, not by `scatter`: what was scattered is lost with the worker that has it
            sent = [self.client.submit(Value(value), pure=False) for value in large]
            return self.client.map(
                ask_group,
                [group.future for group in groups],
                [Sealed(group.context) for group in groups],
                [group.leaves for group in groups],
                *([one] * len(groups) for one in (Sealed(small), *sent)),
                pure=False,
            )

    def collect(self, futures: list[Future]) -> list[Any]:
        """What the tasks return. Nothing is left running if that is interrupted."""
        return self._watch(self._gather(futures), futures)

    def _watch(self, work: Coroutine[Any, Any, Any], futures: list[Future]) -> Any:
        """Wait for something as long as there is a cluster to wait for."""
        loop = self.client.loop.asyncio_loop  # type: ignore[union-attr]
        waiting = asyncio.run_coroutine_threadsafe(work, loop)
        seen = time.monotonic()
        try:
            while not concurrent.futures.wait([waiting], timeout=LOOK).done:
                seen = self._check_cluster(seen)
                if self.stopped.is_set():
                    raise Stopped
            return waiting.result()
        except KilledWorker as error:
            raise ClusterLost(
                f"{error.allowed_failures + 1} workers died while processing the same blocks, probably "
                "because they ran out of memory. Use smaller blocks, or workers with more memory."
            ) from error
        except (concurrent.futures.CancelledError, CommClosedError) as error:
            raise ClusterLost(DROPPED) from error
        finally:
            if not waiting.done():
                asyncio.run_coroutine_threadsafe(self._give_up(futures), loop)

    @contextmanager
    def _open(self) -> Iterator[None]:
        """What dask raises when the client was closed meanwhile differs by version and by moment."""
        try:
            yield
        except Exception as error:
            if self.client.status != "closed":
                raise
            raise ClusterLost(DROPPED) from error

    async def _gather(self, futures: list[Future]) -> list[Any]:
        return await self.client.gather(futures, asynchronous=True)

    async def _wait(self, futures: list[Future]) -> None:
        for future in futures:
            if future._state is not None:
                await future._state.wait()

    async def _give_up(self, futures: list[Future]) -> None:
        await self.client.cancel(futures, asynchronous=True, force=True)

    def _check_cluster(self, seen: float) -> float:
        """When somebody was last there to compute. Raises if that is too long ago."""
        now = time.monotonic()
        workers = self._workers()
        if any(worker.get("status", "running") == "running" for worker in (workers or {}).values()):
            return now
        if now - seen > self.patience:
            what = (
                "The scheduler does not answer"
                if workers is None
                else "All workers are paused because their memory is full"
                if workers
                else "The cluster has no workers left"
            )
            raise ClusterLost(
                f"{what}, for {now - seen:.0f} seconds, so nothing can be computed. Start workers, "
                "or connect a Client to another cluster, and fit again; "
                'dask.config.set({"kmargin.patience": "5 minutes"}) waits longer.'
            )
        return seen

    def _workers(self) -> dict[str, Any] | None:
        """Who is there; None if the scheduler does not answer."""
        try:
            return self.client.sync(self.client.scheduler.identity, callback_timeout=LOOK_AT_MOST)["workers"]
        except (OSError, TimeoutError, AttributeError):
            return None

    def _deal(self, sources: Sources) -> list[list[int]]:
        """Blocks to groups, in turn; those that are on the cluster already by their worker."""
        where = self._where(sources)
        by_home: dict[str, list[int]] = defaultdict(list)
        for number in range(len(sources.blocks)):
            by_home[where.get(number, "")].append(number)
        n_groups = GROUPS_PER_THREAD * -(-self.n_threads // len(by_home))
        return [
            numbers[first::n_groups]
            for numbers in by_home.values()
            for first in range(min(n_groups, len(numbers)))
        ]

    def _where(self, sources: Sources) -> dict[int, str]:
        """The worker that has a block's part of what is already on the cluster."""
        if not sources.futures:
            return {}
        futures = list(sources.futures.values())
        self._watch(self._wait(futures), [])  # some may still be on their way
        has = self.client.who_has(futures)
        found = {}
        for number, (X, *_) in enumerate(sources.blocks):
            for key in X.leaves:
                if key in sources.futures and has.get(key):
                    found[number] = min(has[key])
                    break
        return found


class HeldThere:
    """Something made of each block, in the memory of the workers until nothing refers to this."""

    def __init__(self, place: Cluster, groups: Sequence[Group]) -> None:
        self.place = place
        self.groups = groups

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        futures = self.place.start(self.groups, (answer, function, *args))
        answers: list[Any] = [None] * sum(len(group.numbers) for group in self.groups)
        for group, given in zip(self.groups, self.place.collect(futures), strict=True):
            for number, one in zip(group.numbers, given, strict=True):
                answers[number] = one
        return answers

    def hold(self, function: Callable[..., Any], *args: Any) -> "HeldThere":
        return self.replace(derive, function, args)

    def with_blocks_of(self, block_bytes: float) -> "HeldThere":
        """The same, now that the size of the largest block is known."""
        groups = [g._replace(context=g.context._replace(block_bytes=block_bytes)) for g in self.groups]
        return HeldThere(self.place, groups)

    def replace(self, function: Callable[..., Any], *args: Any) -> "HeldThere":
        """``function(thing, leaves, *args)`` in place of each thing."""
        futures = self.place.start(self.groups, (function, *args))
        groups = [group._replace(future=new) for group, new in zip(self.groups, futures, strict=True)]
        return HeldThere(self.place, groups)
