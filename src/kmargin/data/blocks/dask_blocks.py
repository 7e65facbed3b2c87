"""Blocks of dask collections, in this process or on a cluster, and recovery when the cluster loses workers.

The workers of the cluster import this module. To keep this fast, it imports neither scikit-learn nor numba.
"""

import asyncio
import concurrent.futures
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import dask
import numpy as np
from dask.base import get_scheduler
from dask.sizeof import sizeof
from dask.system import CPU_COUNT
from dask.utils import parse_timedelta
from distributed import KilledWorker, futures_of
from distributed.comm import CommClosedError

from kmargin.data.blocks import Block
from kmargin.data.blocks.sums import to_codes

if TYPE_CHECKING:
    from kmargin.data.blocks.problem import LocalBlocks

# If the blocks are in this process and X has at most this many bytes, a single thread processes all blocks,
# because starting more threads would take longer than they save.
SMALL_DATA = 2**20

# Arguments of more bytes than this are sent to the cluster once in each call of `ask`, not with every task.
LARGE_REQUEST = 100_000

# A dask task handles several blocks, since a task costs some milliseconds, but not many more bytes than this,
# since all blocks of a task are in memory at once, even if dask has written them to disk.
BATCH_BYTES = 2**25

# Seconds between two checks whether all workers are still connected, and how many seconds a check may take.
CHECK_INTERVAL, CHECK_TIMEOUT = 1.0, 5.0

# A computation on all blocks is repeated if a worker is lost meanwhile; it fails after this many losses.
MAX_LOSSES = 4


class ClusterLost(RuntimeError):
    """Raised if the cluster cannot go on: it was stopped, has no workers left, or is out of memory."""


class Stopped(RuntimeError):
    """Raised by `ask` and `hold` if the fit has failed, or was interrupted, in another thread."""


def load_blocks(collections: Sequence[Any], dtype: np.dtype) -> "LocalBlocks | ClusterBlocks":
    """Compute the blocks of `collections` (X, cast to `dtype`, y and any weights); keep them in memory.

    They stay on the cluster if collections were persisted there or dask has a client, else in this process.
    """
    from kmargin.data.blocks.problem import LocalBlocks  # not needed by workers, which import this module

    client = _find_client(collections)
    X, y, *weights = _delayed_blocks(collections, dtype)
    labels = [dask.delayed(to_labels, pure=False)(*parts) for parts in zip(y, *weights, strict=True)]
    if client is not None:
        futures = client.compute([*X, *labels])
        return ClusterBlocks(client, futures[: len(X)], futures[len(X) :], dtype)
    read = zip(*dask.compute(X, labels), strict=True)
    blocks = [Block(number, rows, *others) for number, (rows, others) in enumerate(read)]
    is_small = sum(sizeof(block.X) for block in blocks) <= SMALL_DATA
    is_serial = dask.config.get("scheduler", "threads") in ("sync", "synchronous", "single-threaded")
    n_threads = 1 if is_small or is_serial else dask.config.get("num_workers", CPU_COUNT)
    return LocalBlocks(blocks, ThreadPoolExecutor(n_threads) if n_threads > 1 else None)


def _find_client(collections: Sequence[Any]) -> Any:
    """Return the client of the cluster that holds persisted collections, else dask's default or None."""
    for future in futures_of(collections):
        return future.client
    return getattr(get_scheduler(), "__self__", None)


def _delayed_blocks(collections: Sequence[Any], dtype: np.dtype) -> list[list[Any]]:
    """List the blocks of each collection as dask delayed objects; X, the first one, is cast to `dtype`."""
    X, *others = collections
    if not hasattr(X, "columns"):
        collections = dask.optimize(X.astype(dtype), *others)  # fuses tasks, so that a block takes fewer
        return [_blocks_of(collection) for collection in collections]
    rows = [dask.delayed(to_array, pure=False)(frame, dtype) for frame in _blocks_of(X)]
    return [rows, *(_blocks_of(collection) for collection in others)]


def _blocks_of(collection: Any) -> list[Any]:
    if hasattr(collection, "simplify"):  # a dask dataframe; to optimise it fully might merge small blocks
        return collection.simplify().to_delayed(optimize_graph=False)
    return list(collection.to_delayed(optimize_graph=False).flat)


def to_array(frame: Any, dtype: np.dtype) -> np.ndarray:
    """Convert a dataframe to an array; missing values become NaN, which a later check reports."""
    plain = all(isinstance(kind, np.dtype) for kind in frame.dtypes)
    return np.ascontiguousarray(frame.to_numpy() if plain else frame.to_numpy(na_value=np.nan), dtype=dtype)


def to_labels(y: Any, weights: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels and the sample weights of a block as NumPy arrays; weights are 1 if not given."""
    y = np.asarray(y)
    return y, np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)


def encode(labels: tuple[np.ndarray, np.ndarray], classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Replace each label of a block by its position in `classes`; `labels` is (labels, sample weights)."""
    return to_codes(labels[0], classes), labels[1]


def shape_of(block: Block) -> tuple[int, int]:
    return block.X.shape


class Request:
    """A function to call on every block, or on an object made from each block, and its further arguments.

    It is a class, not a tuple, because dask would search a tuple for tasks and futures.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args

    def answer(self, block_or_kept: Any) -> Any:
        """Call the function on a block, or on an object that a worker has made from a block and kept."""
        return self.function(block_or_kept, *self.args)

    def itself(self) -> "Request":
        """Return this request. Run as a task of dask, the method stores the request on the cluster."""
        return self


def answer_blocks(request: Request, numbers: Sequence[int], X: list[Any], labels: list[Any]) -> list[Any]:
    """Run on a worker: return the request's result for each block ``(numbers[i], X[i], *labels[i])``."""
    arrays = zip(numbers, X, labels, strict=True)
    return [request.answer(Block(number, rows, *others)) for number, rows, others in arrays]


def answer_held(request: Request, kept: list[Any]) -> list[Any]:
    """Run on a worker: return the request's result for each object in `kept`; each was made from a block."""
    return [request.answer(one) for one in kept]


class Batch(NamedTuple):
    """Blocks on one worker that are processed by one task of dask."""

    home: str  # the address of the worker
    numbers: tuple[int, ...]  # the indices of the blocks in the list of all blocks


class ClusterBlocks:
    """Blocks of rows on the workers of a dask cluster.

    X is not sent between machines: futures keep the blocks on the workers, and each task runs on the worker
    that has its blocks. When a worker is lost, dask computes its blocks again on other workers, and calls of
    `ask` are repeated. Dask writes blocks to disk that do not fit into the memory of a worker.
    """

    n_askers = 4  # binary problems at once: while this process works on one, workers compute for the others

    def __init__(self, client: Any, X: list[Any], labels: list[Any], dtype: np.dtype) -> None:
        """Find each block's worker; X[i] is the future of block i's X, labels[i] that of its (y, weights)."""
        self.client, self.X, self.labels, self.dtype = client, X, labels, dtype
        self.n_blocks = len(X)
        self.patience = parse_timedelta(dask.config.get("kmargin.patience", "30s"))
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self.batches: list[Batch] = []
        self._find_batches(self.batches)

    @cached_property
    def shape(self) -> tuple[int, int]:
        shapes = self.ask(shape_of)
        return sum(shape[0] for shape in shapes), shapes[0][1]

    def encode(self, classes: np.ndarray) -> None:
        """Replace each label in all blocks by its position in `classes`."""
        self.labels = self.client.map(encode, self.labels, classes=classes, pure=False)

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self.answers(answer_blocks, self.parts, Request(function, args))

    def hold(self, function: Callable[..., Any], *args: Any) -> "HeldByCluster":
        return HeldByCluster(self, Request(function, args))

    def stop(self) -> None:
        self.stopped.set()

    def parts(self, batches: list[Batch]) -> list[tuple[Any, ...]]:
        """Return, for each batch, its blocks' indices, the futures of their X, and those of their labels."""
        X, labels = self.X, self.labels
        return [(numbers, [X[i] for i in numbers], [labels[i] for i in numbers]) for _, numbers in batches]

    def answers(
        self,
        task: Callable[..., list[Any]],
        parts: Callable[[list[Batch]], list[tuple[Any, ...]]],
        request: Request,
    ) -> list[Any]:
        """Run ``task(request, *part)`` for each batch; return the results of all blocks in their order.

        `parts(batches)` returns a tuple `part` for each batch. All tasks are repeated if a worker is lost.
        """
        for _ in range(MAX_LOSSES):
            batches = self.batches
            futures = self.submit(task, batches, parts(batches), request)
            results = self._wait_for(self._gather(futures), futures, batches)
            if results is not None:
                by_number: dict[int, Any] = {}
                for batch, answers in zip(batches, results, strict=True):
                    by_number |= zip(batch.numbers, answers, strict=True)
                return [by_number[number] for number in range(self.n_blocks)]
            self._find_batches(batches)
        raise ClusterLost(_out_of_memory(MAX_LOSSES))

    def submit(
        self, task: Callable[..., list[Any]], batches: list[Batch], parts: list[tuple[Any, ...]], request: Any
    ) -> list[Any]:
        """Start ``task(request, *part)`` for each batch, on the worker of its blocks; return the futures."""
        if self.stopped.is_set():
            raise Stopped
        try:
            if sizeof(request.args) > LARGE_REQUEST:
                # stored by a task, which dask can run again if a worker is lost; it cannot scatter data again
                request = self.client.submit(request.itself, pure=False)
            return [
                self.client.submit(task, request, *part, workers=[batch.home], pure=False)
                for batch, part in zip(batches, parts, strict=True)
            ]
        except Exception as error:  # versions of dask raise different exceptions if the client is closed
            if self.client.status != "closed":
                raise
            raise ClusterLost(DROPPED) from error

    def _find_batches(self, outdated: list[Batch]) -> None:
        """Wait until workers have all blocks, then replace the list of batches, if it still is `outdated`."""
        keys, last_seen = [future.key for future in self.X], time.monotonic()
        with self._lock:
            while self.batches is outdated:  # unless another thread has replaced it meanwhile
                self._wait_for(self._wait_until_held(), self.X)
                holders = self._ask_scheduler("who_has", keys=keys) or {}
                sizes = self._ask_scheduler("nbytes", keys=keys, summary=False) or {}
                by_home = defaultdict(list)
                for number, key in enumerate(keys):
                    by_home[min(holders.get(key, ()), default="")].append(number)
                workers = self._workers()
                last_seen = self._check_running(workers, last_seen)
                if workers is None or not by_home.keys() <= workers.keys():
                    time.sleep(CHECK_INTERVAL / 10)  # no answer, or another worker was lost: ask again soon
                    continue
                batches = []
                for home, numbers in by_home.items():
                    n_bytes = sum(sizes.get(keys[number], 0) for number in numbers)
                    n_batches = min(max(n_bytes // BATCH_BYTES, workers[home]["nthreads"]), len(numbers))
                    batches += [Batch(home, tuple(numbers[i::n_batches])) for i in range(n_batches)]
                self.batches = batches

    def _wait_for(
        self, work: Coroutine[Any, Any, Any], futures: list[Any], batches: Sequence[Batch] = ()
    ) -> Any:
        """Return the result of `work`, which waits for `futures`; None if the worker of a batch is lost."""
        loop = self.client.loop.asyncio_loop
        running = asyncio.run_coroutine_threadsafe(work, loop)
        last_seen = time.monotonic()
        try:
            while not concurrent.futures.wait([running], timeout=CHECK_INTERVAL).done:
                if self.stopped.is_set():
                    raise Stopped
                workers = self._workers()
                if workers is not None and not all(batch.home in workers for batch in batches):
                    return None
                last_seen = self._check_running(workers, last_seen)
            return running.result()
        except KilledWorker as error:
            raise ClusterLost(_out_of_memory(error.allowed_failures + 1)) from error
        except (concurrent.futures.CancelledError, CommClosedError) as error:
            raise ClusterLost(NO_WORKERS if self._workers() == {} else DROPPED) from error
        finally:
            if not running.done():
                running.cancel()
                asyncio.run_coroutine_threadsafe(self._cancel(futures), loop)

    async def _gather(self, futures: list[Any]) -> list[Any]:
        return await self.client.gather(futures, asynchronous=True)

    async def _cancel(self, futures: list[Any]) -> None:
        await self.client.cancel(futures, asynchronous=True, force=True)

    async def _wait_until_held(self) -> None:
        while not all(future.done() for future in self.X):
            await asyncio.sleep(0.01)
        for future in self.X:
            if future.status != "finished":
                await future  # raises the exception of the task that failed

    def _check_running(self, workers: dict[str, Any] | None, last_seen: float) -> float:
        """Return when a worker last ran: now or `last_seen`; raise ClusterLost `patience` seconds later."""
        now = time.monotonic()
        if any(worker.get("status", "running") == "running" for worker in (workers or {}).values()):
            return now
        if now - last_seen > self.patience:
            what = (
                "The scheduler does not answer"
                if workers is None
                else "All workers are paused because their memory is full"
                if workers
                else "The cluster has no workers left"
            )
            raise ClusterLost(
                f"{what}, for {now - last_seen:.0f} seconds, so nothing can be computed. Start workers, "
                "or connect a Client to another cluster, and fit again; "
                'dask.config.set({"kmargin.patience": "5 minutes"}) waits longer.'
            )
        return last_seen

    def _workers(self) -> dict[str, Any] | None:
        """Return the status of each worker, by its address; None if the scheduler does not answer."""
        identity = self._ask_scheduler("identity")
        return None if identity is None else identity["workers"]

    def _ask_scheduler(self, method: str, **arguments: Any) -> Any:
        """Call a method of dask's scheduler and return its result; None if there is no answer in time."""
        try:
            call = getattr(self.client.scheduler, method)
            return self.client.sync(call, callback_timeout=CHECK_TIMEOUT, **arguments)
        except (OSError, TimeoutError, AttributeError):
            return None


class HeldByCluster:
    """The results of a function for all blocks, kept on the workers as long as this object exists."""

    def __init__(self, blocks: ClusterBlocks, request: Request) -> None:
        self.blocks, self.request = blocks, request
        self.made: dict[Batch, Any] = {}  # for each batch, the future of the list of its results
        self.parts(blocks.batches)

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self.blocks.answers(answer_held, self.parts, Request(function, args))

    def parts(self, batches: list[Batch]) -> list[tuple[Any, ...]]:
        """Return a tuple (future of the results,) for each batch; start the tasks of batches without one."""
        new = [batch for batch in batches if batch not in self.made]
        futures = self.blocks.submit(answer_blocks, new, self.blocks.parts(new), self.request)
        made = self.made | dict(zip(new, futures, strict=True))
        self.made = {batch: made[batch] for batch in batches}
        return [(future,) for future in self.made.values()]


NO_WORKERS = (
    "The cluster has no workers left, so nothing can be computed. Start workers, or connect a Client to "
    "another cluster, and fit again."
)

DROPPED = (
    "The cluster lost the computation because its scheduler was stopped or restarted. "
    "Connect a Client to a running cluster and fit again."
)


def _out_of_memory(n_lost: int) -> str:
    return (
        f"{n_lost} workers died while processing the same blocks, probably because they ran out of memory. "
        "Use smaller blocks, or workers with more memory."
    )
