"""Claim: of data in blocks only small answers travel; docs/guide/scale.md says how small, this measures it.

Fits on a dask.distributed cluster of two worker processes on this machine, the blocks read from files,
while n, p and k grow by factors of two. Counted are the bytes of the answers of one block to each kind
of question, all that the workers sent, to each other and to the client, and by how much the memory of
a worker grew. Each is compared with what `docs/guide/scale.md` predicts.
"""

import pickle
import tempfile
from collections import defaultdict

import numpy as np

from benchmarks.cases.case import Case
from benchmarks.datasets.simulated import dense
from benchmarks.memory import forget_peak, resident
from benchmarks.records import select
from benchmarks.solvers import HEADLINE
from kmargin import SparseSVC

BLOCK = 25_000  # rows
N_WORKERS = 2

# n, p, k
SHAPES = {
    "quick": [(50_000, 20, 5)],
    "default": [
        (200_000, 50, 10),
        (400_000, 50, 10),
        (800_000, 50, 10),
        (200_000, 100, 10),
        (200_000, 200, 10),
        (200_000, 50, 5),
        (200_000, 50, 20),
    ],
}
SHAPES["full"] = [*SHAPES["default"], (1_600_000, 50, 10)]


def most_features(p, k):
    """A search for k features goes a fifth beyond k, and comes back."""
    return min(p, k + 1 + k // 5)


def panel_width(p, k):
    """Columns that a search is looking at."""
    k = most_features(p, k)
    return min(p, k + min(max(k, 16), 64))


def predicted_bytes(question, p, k):
    """Of the answer of one block: numbers of 8 bytes, and what pickle adds to them."""
    q, k = panel_width(p, k), most_features(p, k)
    n_numbers, wrapping = {
        "evaluate": ((k + 1) ** 2 + (k + 1) + 2, 440),  # a Newton step
        "full_gram": ((q + 2) ** 2 + 1, 140),  # an exchange of features
        "slopes": (p + 1, 130),  # a new choice of columns
    }[question]
    return 8.0 * n_numbers + wrapping


def predicted_memory(n, p, k):
    """Of each worker, above what its interpreter takes, if X is kept: its rows of X, their labels and
    weights, a panel and the one that comes in its place, and two blocks in hand.
    """
    rows = n / N_WORKERS
    return 8.0 * (rows * (p + 2 + 2 * (panel_width(p, k) + 3)) + 2 * BLOCK * p)


class Distributed(Case):
    name = "distributed"

    def run(self, record, scale):
        import dask

        with dask.config.set({"distributed.worker.memory.terminate": False}):
            for shape in SHAPES[scale]:
                self._measure(record, *shape)

    def _measure(self, record, n, p, k):
        from distributed import Client

        where = {"dataset": f"{n}x{p}, k = {k}"}
        data = dense(n, p, k)
        expected = SparseSVC(k).fit(data.X, data.y)
        with tempfile.TemporaryDirectory() as folder:
            X, y = _on_disk(f"{folder}/X", data.X), _on_disk(f"{folder}/y", data.y)
            options = {"memory_limit": "4GB", "dashboard_address": ":0"}
            with Client(n_workers=N_WORKERS, threads_per_worker=1, processes=True, **options) as client:
                small = slice(0, 2 * BLOCK)
                SparseSVC(k).fit(X[small], y[small])  # imports are not counted
                client.run(_count_sent)
                client.run(forget_peak)
                before = client.run(resident, "VmRSS")
                answers = _watch_answers()
                model = SparseSVC(k).fit(X, y)
                grown = max(peak - before[w] for w, peak in client.run(resident, "VmHWM").items())
                sent = sum(client.run(_bytes_sent).values())
        for question, (n_asked, n_bytes) in answers.items():
            for metric, value in (("asked", n_asked), ("bytes of an answer", n_bytes)):
                record.add(HEADLINE, metric, value, parameter="question", level=question, **where)
        figures = {
            "bytes sent by workers": sent,
            "blocks": -(-n // BLOCK),
            "bytes of X": data.X.nbytes,
            "bytes per worker": grown,
            "difference": float(np.abs(model.coef_ - expected.coef_).max()),
        }
        for metric, value in figures.items():
            record.add(HEADLINE, metric, value, **where)
        print(f"    {where['dataset']:<22} {dict(answers)} {grown / 1e6:7.0f} MB", flush=True)

    def reached(self, frame):
        reached = defaultdict(dict)
        for name, rows in frame.groupby("dataset", sort=False):
            n, p, k = (int(number) for number in str(name).replace(", k = ", "x").split("x"))
            answers, asked = (
                select(rows, metric=metric).set_index("level")["value"]
                for metric in ("bytes of an answer", "asked")
            )
            for question in ("evaluate", "full_gram", "slopes"):
                ratio = float(answers.get(question, np.nan)) / predicted_bytes(question, p, k)
                worst = reached["bytes over predicted"].get(question, 0.0)
                reached["bytes over predicted"][question] = max(worst, ratio)
            figures = rows.groupby("metric")["value"].max()
            sent, answered = figures["bytes sent by workers"], (asked * answers).sum() * figures["blocks"]
            for claim, value in (
                ("memory over predicted", figures["bytes per worker"] / predicted_memory(n, p, k)),
                ("bytes sent over answers", sent / answered),
                ("bytes sent over X", sent / figures["bytes of X"]),
                ("difference", figures["difference"]),
            ):
                reached[claim][str(name)] = float(value)
        return reached


def _on_disk(folder, array):
    """A dask array that reads its blocks from files."""
    import dask.array as da

    chunks = (BLOCK, *array.shape[1:])
    da.to_npy_stack(folder, da.from_array(array, chunks=chunks), axis=0)
    return da.from_npy_stack(folder, mmap_mode=None)


def _watch_answers():
    """From now on: how often each question was asked, and the largest answer of a block in bytes."""
    from kmargin.data.blocks.dask_blocks import ClusterBlocks

    seen = {}
    ask = getattr(ClusterBlocks.answers, "unwatched", ClusterBlocks.answers)

    def watched(blocks, task, parts, request):
        answers = ask(blocks, task, parts, request)
        name = request.function.__name__
        n_asked, n_bytes = seen.get(name, (0, 0.0))
        largest = max(len(pickle.dumps(answer, protocol=5)) for answer in answers)
        seen[name] = n_asked + 1, max(n_bytes, largest)
        return answers

    watched.unwatched = ask  # type: ignore[attr-defined]
    ClusterBlocks.answers = watched  # type: ignore[method-assign]
    return seen


def _count_sent():
    """Let this process count the bytes that it sends, whoever they are for."""
    from distributed.comm.tcp import TCP

    write = TCP.write

    async def counting(comm, *args, **kwargs):
        n_bytes = await write(comm, *args, **kwargs)
        TCP.n_sent += n_bytes  # type: ignore[attr-defined]
        return n_bytes

    TCP.n_sent = 0  # type: ignore[attr-defined]
    TCP.write = counting  # type: ignore[method-assign]


def _bytes_sent():
    from distributed.comm.tcp import TCP

    return int(TCP.n_sent)  # type: ignore[attr-defined]
