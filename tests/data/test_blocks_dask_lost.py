"""Workers that die, clusters that go away, people who lose patience."""

import os
import signal
import subprocess
import sys
import threading
import time

import dask
import numpy as np
import pytest
from dask_data import SHORT, assert_same, blocks, wait_until
from distributed import Client, LocalCluster

from kmargin import SparseSVC
from kmargin.data.blocks.dask_blocks import Batch, ClusterBlocks, ClusterLost, Request, answer_held


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


@pytest.fixture
def interruptible():
    """SIGINT interrupts, even if a shell has started the tests in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pids(client):
    return list(client.run(os.getpid).values())


@pytest.mark.heavy
class TestWorkers:
    """Lost workers make no difference."""

    @pytest.mark.parametrize("number", [0, 1, 5, 20])
    def test_one_that_is_killed(self, client, data, during_request, number):
        X, y, _ = data
        victim = pids(client)[0]
        during_request(number, lambda: os.kill(victim, signal.SIGKILL))
        assert_same(SparseSVC(k=3, solver=SHORT).fit(*blocks(X, y)), SparseSVC(k=3, solver=SHORT).fit(X, y))
        assert victim not in pids(client)

    def test_all_of_them_at_once(self, client, data, during_request):
        X, y, _ = data
        during_request(10, lambda: [os.kill(pid, signal.SIGKILL) for pid in victims])
        victims = pids(client)
        assert_same(SparseSVC(k=3, solver=SHORT).fit(*blocks(X, y)), SparseSVC(k=3, solver=SHORT).fit(X, y))

    def test_one_that_has_persisted_blocks(self, client, data, during_request):
        X, y, _ = data
        far = dask.persist(*blocks(X, y))
        victim = pids(client)[0]
        during_request(10, lambda: os.kill(victim, signal.SIGKILL))
        assert_same(SparseSVC(k=3, solver=SHORT).fit(*far), SparseSVC(k=3, solver=SHORT).fit(X, y))

    def test_one_among_several_classes(self, client, data, during_request):
        X, _, _ = data
        y = np.digitize(X[:, 0], [-0.5, 1.0])
        victim = pids(client)[0]
        during_request(12, lambda: os.kill(victim, signal.SIGKILL))
        assert_same(SparseSVC(k=2, solver=SHORT).fit(*blocks(X, y)), SparseSVC(k=2, solver=SHORT).fit(X, y))


@pytest.fixture
def impatient():
    with dask.config.set({"kmargin.patience": "2s"}):
        yield


def start(*command):
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + command[0], *command[1:]], stderr=subprocess.DEVNULL
    )


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
        yield scheduler, worker
    for process in (worker, scheduler):
        process.kill()
        process.wait()


@pytest.mark.heavy
class TestCluster:
    """A cluster that goes away is an error, soon."""

    @pytest.fixture(autouse=True)
    def soon(self, impatient):
        started = time.monotonic()
        yield
        assert time.monotonic() - started < 60

    def test_without_workers(self, cluster, data, during_request):
        _, worker = cluster
        during_request(10, worker.kill)
        with pytest.raises(
            ClusterLost, match=r"The cluster has no workers left, .*Start workers, or connect"
        ):
            SparseSVC(k=3, solver=SHORT).fit(*blocks(*data[:2]))
        with pytest.raises(ClusterLost, match="The cluster has no workers left"):
            SparseSVC(k=3, solver=SHORT).fit(*blocks(*data[:2]))

    def test_without_a_scheduler(self, cluster, data, during_request):
        scheduler, _ = cluster
        during_request(10, scheduler.kill)
        with pytest.raises(
            ClusterLost, match=r"The (cluster lost the computation|scheduler does not answer)"
        ):
            SparseSVC(k=3, solver=SHORT).fit(*blocks(*data[:2]))

    def test_that_somebody_closes(self, data, during_request):
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
        with Client(cluster):
            during_request(10, cluster.close)
            with pytest.raises(ClusterLost, match="Connect a Client to a running cluster"):
                SparseSVC(k=3, solver=SHORT).fit(*blocks(*data[:2]))
        cluster.close()


@pytest.mark.parametrize("status", ["closed", "running"])
def test_what_dask_raises_is_a_lost_cluster_only_if_the_client_is_closed(status):
    blocks = object.__new__(ClusterBlocks)
    blocks.client, blocks.stopped = ClosedBetweenRequests(status), threading.Event()
    with pytest.raises(ClusterLost if status == "closed" else ZeroDivisionError) as caught:
        blocks.submit(answer_held, [Batch("here", (0,))], [()], Request(sum, ()))
    assert status == "running" or "Connect a Client to a running cluster" in str(caught.value)


class ClosedBetweenRequests:
    """A client that can send nothing."""

    def __init__(self, status):
        self.status = status

    def submit(self, *args, **options):
        raise ZeroDivisionError


@pytest.mark.heavy
@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_interrupted_fit_leaves_nothing_running(client, data, during_request, interruptible, n_classes):
    X, y, _ = data
    y = y if n_classes == 2 else np.digitize(X[:, 0], [-0.5, 1.0])
    during_request(10, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        SparseSVC(k=3, solver=SHORT).fit(*blocks(X, y))
    wait_until(lambda: not any(client.processing().values()))
    time.sleep(0.5)
    assert not any(client.processing().values())
