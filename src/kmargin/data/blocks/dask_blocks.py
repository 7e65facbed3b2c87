"""Blocks of dask collections, in this process or on a cluster, and recovery when the cluster loses workers.

The workers of the cluster import this module, so it imports neither scikit-learn nor numba.
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

# If all blocks in this process together have at most this many bytes, one thread processes them: to start
# more threads would take more time than they save.
SMALL_DATA = 2**20

# If the arguments of a request have more bytes than this, they are sent to the cluster once, not per task.
LARGE_REQUEST = 100_000

# Blocks on one worker are combined into one task up to this many bytes, because each task costs dask some
# milliseconds. All blocks of a task are in memory at once, even if dask has written them to disk.
BATCH_BYTES = 2**25

# Seconds between two checks whether all workers are still connected, and the time limit for each check.
CHECK_INTERVAL, CHECK_TIMEOUT = 1.0, 5.0

# A request is repeated when workers are lost; it fails if workers are lost in each of this many attempts.
MAX_LOSSES = 4


class ClusterLost(RuntimeError):
    """Raised if the cluster has been stopped, has no workers left, or runs out of memory."""


class Stopped(RuntimeError):
    """Raised by a request if the fit has failed or was interrupted in another thread."""


def load_blocks(collections: Sequence[Any], dtype: np.dtype) -> "LocalBlocks | ClusterBlocks":
    """Compute the blocks of X (as arrays of `dtype`), y and the sample weights, and keep them in memory.

    They are kept on the cluster if the collections were persisted there or dask has a client, otherwise in
    this process.
    """
    from kmargin.data.blocks.problem import LocalBlocks  # imported here because workers do not need it

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
    """Return the client of the cluster that has the data, or dask's default client; None if there is none."""
    for future in futures_of(collections):
        return future.client
    return getattr(get_scheduler(), "__self__", None)


def _delayed_blocks(collections: Sequence[Any], dtype: np.dtype) -> list[list[Any]]:
    """For each collection, list its blocks as dask delayed objects; X, the first, is converted to `dtype`."""
    X, *others = collections
    if not hasattr(X, "columns"):
        collections = dask.optimize(X.astype(dtype), *others)  # fuses the tasks that compute a block
        return [_blocks_of(collection) for collection in collections]
    rows = [dask.delayed(to_array, pure=False)(frame, dtype) for frame in _blocks_of(X)]
    return [rows, *(_blocks_of(collection) for collection in others)]


def _blocks_of(collection: Any) -> list[Any]:
    if hasattr(collection, "simplify"):  # a dask dataframe, whose `optimize` might merge small blocks
        return collection.simplify().to_delayed(optimize_graph=False)
    return list(collection.to_delayed(optimize_graph=False).flat)


def to_array(frame: Any, dtype: np.dtype) -> np.ndarray:
    """Convert a dataframe to an array; missing values become NaN, which a later check reports."""
    plain = all(isinstance(kind, np.dtype) for kind in frame.dtypes)
    return np.ascontiguousarray(frame.to_numpy() if plain else frame.to_numpy(na_value=np.nan), dtype=dtype)


def to_labels(y: Any, weights: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels and the sample weights of a block as arrays; weights are 1 if none are given."""
    y = np.asarray(y)
    return y, np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)


def encode(labels: tuple[np.ndarray, np.ndarray], classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Replace the labels of a block by class codes, the positions in `classes`; keep the sample weights."""
    return to_codes(labels[0], classes), labels[1]


def shape_of(block: Block) -> tuple[int, int]:
    return block.X.shape


class Request:
    """A function to call on every block, or on the object kept for each block, and its other arguments.

    It is a class, not a tuple, because dask would search a tuple for tasks and futures.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args

    def answer(self, block_or_kept: Any) -> Any:
        """Call the function. Its first argument is a block, or the object that a worker made of a block."""
        return self.function(block_or_kept, *self.args)

    def itself(self) -> "Request":
        """Return the request; called as a dask task, this method stores the request on the cluster."""
        return self


def answer_blocks(request: Request, numbers: Sequence[int], X: list[Any], labels: list[Any]) -> list[Any]:
    """On a worker, make a `Block` of each number, X and labels; return the request's results for them."""
    arrays = zip(numbers, X, labels, strict=True)
    return [request.answer(Block(number, rows, *others)) for number, rows, others in arrays]


def answer_held(request: Request, kept: list[Any]) -> list[Any]:
    """On a worker, return the request's result for each object in `kept`, one for each of some blocks."""
    return [request.answer(one) for one in kept]


class Batch(NamedTuple):
    """Blocks on one worker that are processed by one task."""

    home: str  # the address of the worker
    numbers: tuple[int, ...]  # the positions of the blocks among all blocks


class ClusterBlocks:
    """Blocks on the workers of a cluster.

    X never moves: dask's futures keep the blocks on the workers, and the tasks of a request run only on the
    workers that have their blocks. When a worker is lost, dask computes its blocks again on other workers,
    and the request is repeated. Dask writes blocks to disk that do not fit into the memory of a worker.
    """

    n_askers = 4  # while this process computes for one binary problem, workers compute for the other three

    def __init__(self, client: Any, X: list[Any], labels: list[Any], dtype: np.dtype) -> None:
        """Find the worker of each block; `X` and `labels` are lists with one future for each block."""
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
        """Replace the labels in all blocks by class codes, the positions in `classes`."""
        self.labels = self.client.map(encode, self.labels, classes=classes, pure=False)

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self.answers(answer_blocks, self.parts, Request(function, args))

    def hold(self, function: Callable[..., Any], *args: Any) -> "HeldByCluster":
        return HeldByCluster(self, Request(function, args))

    def stop(self) -> None:
        self.stopped.set()

    def parts(self, batches: list[Batch]) -> list[tuple[Any, ...]]:
        """Return, for each batch of blocks, their numbers and the futures of their X and of their labels."""
        X, labels = self.X, self.labels
        return [(numbers, [X[i] for i in numbers], [labels[i] for i in numbers]) for _, numbers in batches]

    def answers(
        self,
        task: Callable[..., list[Any]],
        parts: Callable[[list[Batch]], list[tuple[Any, ...]]],
        request: Request,
    ) -> list[Any]:
        """Run a task for each batch, repeat this if a worker is lost, and return results in block order."""
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
        """Start a task for each batch on the worker that has its blocks, and return their futures."""
        if self.stopped.is_set():
            raise Stopped
        try:
            if sizeof(request.args) > LARGE_REQUEST:
                # stored as the result of a task, because dask cannot restore scattered data after a loss
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
        """Wait until all blocks are computed, find the worker of each block, and replace the batches."""
        keys, last_seen = [future.key for future in self.X], time.monotonic()
        with self._lock:
            while self.batches is outdated:  # otherwise another thread has just made new batches
                self._wait_for(self._wait_until_held(), self.X)
                holders = self._ask_scheduler("who_has", keys=keys) or {}
                sizes = self._ask_scheduler("nbytes", keys=keys, summary=False) or {}
                by_home = defaultdict(list)
                for number, key in enumerate(keys):
                    by_home[min(holders.get(key, ()), default="")].append(number)
                workers = self._workers()
                last_seen = self._check_running(workers, last_seen)
                if workers is None or not by_home.keys() <= workers.keys():  # another worker was lost
                    time.sleep(CHECK_INTERVAL / 10)
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
        """Return the result of a coroutine that waits for futures; None if a worker with a batch is lost."""
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
        """Return when a worker was last running; raise ClusterLost if that is over `patience` seconds ago."""
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
        """Return the workers by their addresses; None if the scheduler does not answer."""
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
    """The results of a request, each kept on the worker of its block as long as this object exists."""

    def __init__(self, blocks: ClusterBlocks, request: Request) -> None:
        self.blocks, self.request = blocks, request
        self.made: dict[Batch, Any] = {}  # the future of the results for each batch
        self.parts(blocks.batches)

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self.blocks.answers(answer_held, self.parts, Request(function, args))

    def parts(self, batches: list[Batch]) -> list[tuple[Any, ...]]:
        """Return the future of the results of each batch; start tasks for batches that have no future yet."""
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
