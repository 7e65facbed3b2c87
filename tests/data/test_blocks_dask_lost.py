"""Workers that die, clusters that go away, people who lose patience."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import dask
import numpy as np
import pytest
from dask_data import SHORT, assert_same, blocks, two_workers, wait_until
from dask_questions import die_once
from distributed import Client, KilledWorker
from distributed.comm import CommClosedError

from kmargin import SparseSVC
from kmargin.data.blocks import dask_blocks
from kmargin.data.blocks.dask_blocks import ClusterBlocks, ClusterLost, Stopped


@pytest.fixture
def during_request(monkeypatch):
    """Do something during a request of a fit (0: while blocks are read). The next one waits for it."""

    def schedule(number, action):
        asked = []
        answers = ClusterBlocks.answers
        meanwhile = threading.Timer(0.01, action)

        def counting(self, *args):
            asked.append(args)
            if len(asked) == number:
                meanwhile.start()
            elif len(asked) > number:
                meanwhile.join()
            return answers(self, *args)

        monkeypatch.setattr(ClusterBlocks, "answers", counting)
        if number == 0:
            meanwhile.start()

    return schedule


def pids(client):
    return list(client.run(os.getpid).values())


@pytest.mark.heavy
class TestWorkers:
    """Lost workers make no difference."""

    @pytest.mark.parametrize(
        ("number", "n_victims", "n_classes", "persisted"), [(0, 1, 2, 0), (10, 2, 2, 0), (12, 1, 3, 1)]
    )
    def test_killed_during_a_fit(self, client, data, during_request, number, n_victims, n_classes, persisted):
        X, y, _ = data
        y = y if n_classes == 2 else np.digitize(X[:, 0], [-0.5, 1.0])
        far = dask.persist(*blocks(X, y)) if persisted else blocks(X, y)
        victims = pids(client)[:n_victims]
        during_request(number, lambda: [os.kill(pid, signal.SIGKILL) for pid in victims])
        assert_same(SparseSVC(k=3, solver=SHORT).fit(*far), SparseSVC(k=3, solver=SHORT).fit(X, y))
        client.wait_for_workers(2)
        assert not {*victims} & {*pids(client)}

    def test_killed_during_a_prediction(self, client, data, tmp_path):
        X, y, _ = data
        model = SparseSVC(k=3).fit(X, y)
        died = tmp_path / "died"
        far = blocks(X)[0].map_blocks(die_once, str(died), dtype=X.dtype, meta=np.empty((0, 0)))
        decisions, predicted = dask.compute(model.decision_function(far), model.predict(far))
        assert died.exists()
        np.testing.assert_array_equal(decisions, model.decision_function(X))
        np.testing.assert_array_equal(predicted, model.predict(X))


def start(*command):
    command = sys.executable, "-m", f"distributed.cli.{command[0]}", *command[1:]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and one worker, with nobody to restart them; and a client."""
    address = tmp_path / "scheduler.json"
    scheduler = start("dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(address))
    wait_until(address.exists)
    options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--scheduler-file", str(address)]
    worker = start("dask_worker", *options)
    with Client(scheduler_file=str(address)) as client:
        client.wait_for_workers(1)
        yield {"scheduler": scheduler, "worker": worker}
    for process in (worker, scheduler):
        process.kill()
        process.wait()


@pytest.mark.heavy
class TestCluster:
    """A cluster that goes away is an error, soon."""

    @pytest.fixture(autouse=True)
    def soon(self):
        started = time.monotonic()
        with dask.config.set({"kmargin.patience": "2s"}):
            yield
        assert time.monotonic() - started < 60

    @pytest.mark.parametrize(
        ("lost", "message"),
        [
            ("worker", r"The cluster has no workers left, .*Start workers, or connect"),
            ("scheduler", r"The (cluster lost the computation|scheduler does not answer)"),
        ],
    )
    def test_without(self, cluster, data, during_request, lost, message):
        during_request(10, cluster[lost].kill)
        with pytest.raises(ClusterLost, match=message):
            SparseSVC(k=3, solver=SHORT).fit(*blocks(*data[:2]))
        if lost == "worker":
            with pytest.raises(ClusterLost, match="The cluster has no workers left"):
                SparseSVC(k=3, solver=SHORT).fit(*blocks(*data[:2]))

    def test_that_somebody_closes(self, data, during_request):
        cluster = two_workers()
        with Client(cluster):
            during_request(10, cluster.close)
            with pytest.raises(ClusterLost, match="Connect a Client to a running cluster"):
                SparseSVC(k=3, solver=SHORT).fit(*blocks(*data[:2]))
        cluster.close()


def future(value, key=None):
    """A task that has run."""
    return SimpleNamespace(value=value, key=key, status="finished", done=lambda: True)


def known(value):
    return [known(v) for v in value] if isinstance(value, list) else getattr(value, "value", value)


class FakeClient:
    """A client of workers that hold eight blocks; tasks run at once, in this process."""

    def __init__(self, loop):
        self.loop, self.scheduler, self.status = SimpleNamespace(asyncio_loop=loop), self, "running"
        self.workers = {home: {"nthreads": n} for home, n in [("a", 2), ("b", 1), ("c", 5), ("d", 1)]}
        self.homes = {f"x{n}": home for n, home in enumerate(["a", "b", "ba", "b", "a", "a", "b", "c"])}
        self.sent, self.cancelled, self.unknown = [], [], True
        self.meanwhile = []  # what happens, one after the other, while results are waited for

    def sync(self, call, callback_timeout, **arguments):
        return call(**arguments)

    def identity(self):
        return {"workers": self.workers.copy()}

    def who_has(self, keys):
        self.unknown, was = False, self.unknown
        return {} if was else {key: self.homes[key] for key in keys}

    def nbytes(self, keys, summary):
        return {key: {"b": 100, "c": 99}.get(self.homes[key][0], 10) - 50 * (key == "x6") for key in keys}

    def submit(self, task, *args, workers="?", pure):
        self.sent.append((task.__name__, workers[0]))
        return future(task(*map(known, args)))

    def map(self, task, futures, pure, **options):
        return [future(task(known(one), **options)) for one in futures]

    async def gather(self, futures, asynchronous):
        if self.meanwhile:
            self.meanwhile.pop(0)()
            await asyncio.sleep(60)
        return known(futures)

    async def cancel(self, futures, asynchronous, force):
        self.cancelled += futures

    def lose(self, worker):
        self.unknown = self.workers.pop(worker)
        self.homes = {key: home.replace(worker, "") or min(self.workers) for key, home in self.homes.items()}


@pytest.fixture
def fake(monkeypatch):
    """Blocks of 0 to 7 rows, and their client."""
    for name, value in {"CHECK_INTERVAL": 0.01, "BATCH_BYTES": 100, "LARGE_REQUEST": 1000}.items():
        monkeypatch.setattr(dask_blocks, name, value)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    client = FakeClient(loop)
    X = [future(np.zeros((n, 3)), f"x{n}") for n in range(8)]
    labels = [future((np.full(n, "b"), np.full(n, 0.5))) for n in range(8)]
    yield ClusterBlocks(client, X, labels, np.dtype(float)), client
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def describe(block, *others):
    return block.number, len(block.X), block.codes.tolist(), float(block.repeats.sum()), *others


def test_blocks_are_asked_where_they_are_in_a_task_for_each_thread_or_for_some_bytes(fake):
    blocks, client = fake
    homes = ["a", "a", "b", "b", "c"]
    assert blocks.batches == [*zip(homes, [(0, 4), (2, 5), (1, 6), (3,), (7,)], strict=True)]
    assert blocks.shape == (28, 3)
    blocks.encode(np.array(["a", "b"]))
    assert blocks.ask(describe, "?", 2) == [(n, n, [1] * n, n / 2, "?", 2) for n in range(8)]
    del client.sent[:]
    assert blocks.hold(describe, 2).ask(lambda made, i: made[i], 1) == [*range(8)]
    blocks.ask(describe, np.zeros(200))  # a large argument is sent once
    tasks = [(task, home) for task in ("answer_blocks", "answer_held", "answer_blocks") for home in homes]
    assert client.sent == [*tasks[:10], ("itself", "?"), *tasks[10:]]


@pytest.mark.parametrize("n_lost", [1, 3, 4])
def test_what_a_lost_worker_held_is_asked_of_others_up_to_three_times(fake, n_lost):
    blocks, client = fake
    client.workers["e"] = {"nthreads": 1}
    kept = blocks.hold(describe)
    client.meanwhile = [partial(client.lose, worker) for worker in "abcd"[:n_lost]]
    if n_lost == 4:
        with pytest.raises(ClusterLost, match="4 workers died while processing the same blocks"):
            kept.ask(len)
        return
    assert kept.ask(lambda made: made[0]) == [*range(8)]
    made = [home for task, home in client.sent if task == "answer_blocks"][5:]
    # then b has seven blocks of 650 bytes in six batches, one of which, (3,), it had before
    assert n_lost == 3 or made == ["b"] * 5


@pytest.mark.parametrize(
    ("error", "workers", "message"),
    [
        (KilledWorker("x0", SimpleNamespace(address="a"), 2), {"a": {}}, "^3 workers died while processing"),
        (CommClosedError(), {}, "^The cluster has no workers left, so"),
        (asyncio.CancelledError(), {"a": {}}, "^The cluster lost the computation"),
    ],
)
def test_a_cluster_that_gives_up_says_why(fake, error, workers, message):
    blocks, client = fake
    client.meanwhile, client.workers = [Mock(side_effect=error)], workers
    with pytest.raises(ClusterLost, match=message):
        blocks.ask(describe)


def test_a_fit_that_is_stopped_cancels_what_it_waits_for_and_asks_no_more(fake):
    blocks, client = fake
    client.meanwhile = [blocks.stop]
    for _ in range(2):
        with pytest.raises(Stopped):
            blocks.ask(describe)
    wait_until(lambda: len(client.cancelled) == 5)
    assert len(client.sent) == 5


@pytest.mark.parametrize("status", ["closed", "running"])
def test_what_dask_raises_is_a_lost_cluster_only_if_the_client_is_closed(fake, status):
    blocks, client = fake
    client.status, client.submit = status, Mock(side_effect=ZeroDivisionError)
    with pytest.raises(ClusterLost if status == "closed" else ZeroDivisionError) as caught:
        blocks.ask(describe)
    assert status == "running" or "Connect a Client to a running cluster" in str(caught.value)


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        (None, "^The scheduler does not answer, for 31 seconds"),
        ({}, "^The cluster has no workers left, for 31 seconds"),
        ({"a": {"status": "paused"}, "b": {"status": "closing"}}, "^All workers are paused because"),
        ({"a": {"status": "paused"}, "b": {}}, None),
    ],
)
def test_people_wait_half_a_minute_for_a_cluster_without_running_workers(fake, workers, message):
    (blocks, client), now = fake, time.monotonic()
    client.identity = Mock(side_effect=OSError if workers is None else lambda: {"workers": workers})
    assert blocks._workers() == workers
    if message is None:
        assert blocks._check_running(workers, now - 99) >= now
        return
    assert blocks._check_running(workers, now - 29) == now - 29
    with pytest.raises(ClusterLost, match=message):
        blocks._check_running(workers, now - 31)


@pytest.mark.heavy
def test_an_interrupted_fit_leaves_nothing_running(client, data, during_request, interruptible):
    X, _, _ = data
    y = np.digitize(X[:, 0], [-0.5, 1.0])
    during_request(10, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        SparseSVC(k=3, solver=SHORT).fit(*blocks(X, y))
    wait_until(lambda: not any(client.processing().values()))
    time.sleep(0.5)
    assert not any(client.processing().values())
