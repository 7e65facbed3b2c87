"""The blocks of dask collections: in this process, or on the workers of a cluster, some of which may be lost.

Workers import this module; it imports neither scikit-learn nor numba.
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

# Blocks of at most this many bytes in total are processed by one thread: starting others takes longer.
SMALL_DATA = 2**20

# A request with larger arguments, in bytes, is sent to the cluster once instead of with each block's task.
LARGE_REQUEST = 100_000

# Blocks on one worker are processed by one task up to this many bytes, because each task costs dask some
# milliseconds; larger batches would have to be in memory at once where dask has written blocks to disk.
BATCH_BYTES = 2**25

# Seconds between two checks that the workers are still there, and the time limit of a check.
CHECK_INTERVAL, CHECK_TIMEOUT = 1.0, 5.0

# A request fails if workers were lost in each of this many attempts.
MAX_LOSSES = 4


class ClusterLost(RuntimeError):
    """The cluster does not exist any more, or cannot process the data."""


class Stopped(RuntimeError):
    """A request was given up because the fit failed or was interrupted in another thread."""


def load_blocks(collections: Sequence[Any], dtype: np.dtype) -> "LocalBlocks | ClusterBlocks":
    """Read X, y and, if given, the sample weights, and hold them: X as arrays of `dtype`, y as given.

    The workers of a cluster hold them if the collections were persisted there or dask has a client;
    otherwise this process does.
    """
    from kmargin.data.blocks.problem import LocalBlocks  # which workers of a cluster do not need

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
    """The client of the cluster that has the data, or the one that dask uses; None without a cluster."""
    for future in futures_of(collections):
        return future.client
    return getattr(get_scheduler(), "__self__", None)


def _delayed_blocks(collections: Sequence[Any], dtype: np.dtype) -> list[list[Any]]:
    """The blocks of each collection, those of X as arrays. What several blocks need is computed once."""
    X, *others = collections
    if not hasattr(X, "columns"):
        collections = dask.optimize(X.astype(dtype), *others)  # joins the tasks that make a block
        return [_blocks_of(collection) for collection in collections]
    rows = [dask.delayed(to_array, pure=False)(frame, dtype) for frame in _blocks_of(X)]
    return [rows, *(_blocks_of(collection) for collection in others)]


def _blocks_of(collection: Any) -> list[Any]:
    if hasattr(collection, "simplify"):  # a dataframe, whose `optimize` might join small blocks
        return collection.simplify().to_delayed(optimize_graph=False)
    return list(collection.to_delayed(optimize_graph=False).flat)


def to_array(frame: Any, dtype: np.dtype) -> np.ndarray:
    """A dataframe as an array; missing values become NaN, which is found later."""
    plain = all(isinstance(kind, np.dtype) for kind in frame.dtypes)
    return np.ascontiguousarray(frame.to_numpy() if plain else frame.to_numpy(na_value=np.nan), dtype=dtype)


def to_labels(y: Any, weights: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The labels and the sample weights of a block."""
    y = np.asarray(y)
    return y, np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)


def encode(labels: tuple[np.ndarray, np.ndarray], classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The codes of the labels, and the sample weights."""
    return to_codes(labels[0], classes), labels[1]


def shape_of(block: Block) -> tuple[int, int]:
    return block.X.shape


class Request:
    """A function, and its arguments after the first one, which is a block or a result kept for a block.

    Dask does not search such an object for tasks and futures.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args

    def answer(self, thing: Any) -> Any:
        return self.function(thing, *self.args)

    def itself(self) -> "Request":
        """The request as the result of a task."""
        return self


def answer_blocks(request: Request, numbers: Sequence[int], X: list[Any], labels: list[Any]) -> list[Any]:
    """What a worker does for a request to some blocks."""
    parts = zip(numbers, X, labels, strict=True)
    return [request.answer(Block(number, rows, *others)) for number, rows, others in parts]


def answer_held(request: Request, things: list[Any]) -> list[Any]:
    """What a worker does for a request to what it holds of some blocks."""
    return [request.answer(thing) for thing in things]


class Batch(NamedTuple):
    """Some blocks that are processed by one task."""

    home: str  # the worker that holds them
    numbers: tuple[int, ...]  # of the blocks


class ClusterBlocks:
    """Blocks on the workers of a cluster.

    X never moves: dask's futures hold the blocks, and the tasks of a request are restricted to the workers
    that hold them. When a worker is lost, dask computes its blocks again from their task graph, on other
    workers, and the request is repeated. What does not fit into the memory of a worker is written to its disk
    by dask.
    """

    n_askers = 4  # binary problems to fit at once: while one computes a step, the workers serve another

    def __init__(self, client: Any, X: list[Any], labels: list[Any], dtype: np.dtype) -> None:
        self.client, self.X, self.labels, self.dtype = client, X, labels, dtype  # X and labels: futures
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
        """Replace labels by the codes of their classes."""
        self.labels = self.client.map(encode, self.labels, classes=classes, pure=False)

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self.answers(answer_blocks, self.parts, Request(function, args))

    def hold(self, function: Callable[..., Any], *args: Any) -> "HeldByCluster":
        return HeldByCluster(self, Request(function, args))

    def stop(self) -> None:
        self.stopped.set()

    def parts(self, batches: list[Batch]) -> list[tuple[Any, ...]]:
        """The arguments of each batch's task after the request: block numbers, X and labels of its blocks."""
        X, labels = self.X, self.labels
        return [(numbers, [X[i] for i in numbers], [labels[i] for i in numbers]) for _, numbers in batches]

    def answers(
        self,
        task: Callable[..., list[Any]],
        parts: Callable[[list[Batch]], list[tuple[Any, ...]]],
        request: Request,
    ) -> list[Any]:
        """The answers of all blocks to a request, in the order of the blocks."""
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
        """Start a task for each of some batches, on the worker that holds its blocks."""
        if self.stopped.is_set():
            raise Stopped
        try:
            if sizeof(request.args) > LARGE_REQUEST:
                # by a task: dask cannot restore what was scattered to a worker that is lost
                request = self.client.submit(request.itself, pure=False)
            return [
                self.client.submit(task, request, *part, workers=[batch.home], pure=False)
                for batch, part in zip(batches, parts, strict=True)
            ]
        except Exception as error:  # which one depends on the version of dask and on the moment
            if self.client.status != "closed":
                raise
            raise ClusterLost(DROPPED) from error

    def _find_batches(self, outdated: list[Batch]) -> None:
        """Wait until all blocks are held, and assign them to batches by the workers that hold them."""
        keys, last_seen = [future.key for future in self.X], time.monotonic()
        with self._lock:
            while self.batches is outdated:  # else another thread has found them
                self._wait_for(self._wait_until_held(), self.X)
                holders = self._ask_scheduler("who_has", keys=keys) or {}
                sizes = self._ask_scheduler("nbytes", keys=keys, summary=False) or {}
                by_home = defaultdict(list)
                for number, key in enumerate(keys):
                    by_home[min(holders.get(key, ()), default="")].append(number)
                workers = self._workers()
                last_seen = self._check_running(workers, last_seen)
                if workers is None or not by_home.keys() <= workers.keys():  # a worker was lost meanwhile
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
        """The result of a coroutine that waits for futures; None if a worker that holds batches is lost."""
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
                await future  # raises its exception

    def _check_running(self, workers: dict[str, Any] | None, last_seen: float) -> float:
        """When a worker was last there to compute. Raises if that is too long ago."""
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
        """The workers by their addresses; None if the scheduler does not answer."""
        identity = self._ask_scheduler("identity")
        return None if identity is None else identity["workers"]

    def _ask_scheduler(self, method: str, **arguments: Any) -> Any:
        try:
            call = getattr(self.client.scheduler, method)
            return self.client.sync(call, callback_timeout=CHECK_TIMEOUT, **arguments)
        except (OSError, TimeoutError, AttributeError):
            return None


class HeldByCluster:
    """The result of a request for each block, kept on the block's worker as long as this object exists."""

    def __init__(self, blocks: ClusterBlocks, request: Request) -> None:
        self.blocks, self.request = blocks, request
        self.made: dict[Batch, Any] = {}  # futures
        self.parts(blocks.batches)

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self.blocks.answers(answer_held, self.parts, Request(function, args))

    def parts(self, batches: list[Batch]) -> list[tuple[Any, ...]]:
        """The future of each batch; after a worker was lost, those of new batches are made."""
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
