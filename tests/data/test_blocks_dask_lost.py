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
from dask_data import SHORT, assert_same, blocks, two_workers, wait_until
from dask_questions import die_once
from distributed import Client

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


def pids(client):
    return list(client.run(os.getpid).values())


@pytest.mark.heavy
class TestWorkers:
    """Lost workers make no difference."""

    @pytest.mark.parametrize(
        ("number", "n_victims", "n_classes", "persisted"),
        [(0, 1, 2, False), (10, 2, 2, False), (12, 1, 3, True)],
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


@pytest.mark.parametrize("status", ["closed", "running"])
def test_what_dask_raises_is_a_lost_cluster_only_if_the_client_is_closed(status):
    blocks = object.__new__(ClusterBlocks)
    blocks.client, blocks.stopped = ClosedBetweenRequests(status), threading.Event()
    with pytest.raises(ClusterLost if status == "closed" else ZeroDivisionError) as caught:
        blocks.submit(answer_held, [Batch("here", (0,))], [()], Request(sum, ()))
    assert status == "running" or "Connect a Client to a running cluster" in str(caught.value)


class ClosedBetweenRequests:
    """A client that cannot send anything."""

    def __init__(self, status):
        self.status = status

    def submit(self, *args, **options):
        raise ZeroDivisionError


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
