"""Many cases, side by side, counted by family."""

import time
from collections import Counter, deque
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from multiprocessing.connection import wait

from fuzz.families import family_of
from fuzz.judge import Verdict
from fuzz.pieces import code_version
from fuzz.worker import SILENCE, Worker

BATCH = 50
WARM = 1000  # cases after which a worker has seen everything once, and its memory should stay as it is


@dataclass
class Results:
    """What is known so far."""

    first: int
    family: str | None = None  # the only one that was run, if it was
    code: str = field(default_factory=code_version)
    end: int = 0  # the number after the last one handed out
    cases: Counter = field(default_factory=Counter)  # by family
    complaints: Counter = field(default_factory=Counter)  # cases that ended with a sentence
    skips: dict = field(default_factory=dict)  # family -> Counter of reasons
    failures: list = field(default_factory=list)  # verdicts
    seconds: float = 0.0
    slowest: tuple = (0.0, -1)
    memory: dict = field(default_factory=dict)  # worker -> megabytes, each few thousand cases

    def add(self, verdict):
        self.cases[verdict.family] += 1
        self.complaints[verdict.family] += verdict.complained
        self.skips.setdefault(verdict.family, Counter()).update(verdict.skips)
        self.slowest = max(self.slowest, (verdict.seconds, verdict.number))
        if verdict.failures:
            self.failures.append(verdict)

    def growth(self):
        """By how many megabytes the memory of a worker grew once it was warm, at most."""
        return max((m[-1] - m[0] for m in self.memory.values() if len(m) > 1), default=0.0)

    def as_json(self):
        piece = {"code": self.code, "first": self.first, "end": self.end, "family": self.family}
        piece |= {"cases": sum(self.cases.values()), "seconds": self.seconds}
        return {
            "pieces": [piece],
            "cases": dict(self.cases),
            "complaints": dict(self.complaints),
            "skips": {family: dict(skips) for family, skips in self.skips.items() if skips},
            "failures": [asdict(verdict) for verdict in self.failures],
            "slowest": list(self.slowest),
            "memory_growth_mb": self.growth(),
        }


def numbers(first, n_cases, family):
    """The numbers of the cases to run."""
    every = count(first) if family is None else (i for i in count(first) if family_of(i) == family)
    return islice(every, n_cases)


def run(n_cases, *, first=0, jobs=1, family=None, seconds=None, on_batch=None):
    """Run so many cases, or as many as there is time for."""
    results = Results(first, family, end=first)
    return _run(results, numbers(first, n_cases, family), jobs, seconds, on_batch, BATCH)


def run_again(results, jobs=1):
    """The failing cases of some results, as in their file, by the present source: what fails is kept beside
    what failed.
    """
    failed = sorted({verdict["number"] for verdict in results["failures"]})
    if not failed:
        return results
    again = _run(Results(failed[0], end=failed[0]), iter(failed), jobs, None, None, 1)
    left = {verdict.number: verdict.failures for verdict in again.failures}
    told = [
        verdict | {"again": {"code": again.code, "failures": left.get(verdict["number"], [])}}
        for verdict in results["failures"]
    ]
    return results | {"failures": told}


def _run(results, waiting, jobs, seconds, on_batch, batch_size):
    started = time.monotonic()
    returned = deque()  # what a lost worker left undone
    workers = [Worker() for _ in range(jobs)]
    done = Counter()  # cases by worker

    def refill(worker):
        over = seconds is not None and time.monotonic() - started > seconds
        batch = returned.popleft() if returned else [] if over else list(islice(waiting, batch_size))
        worker.numbers = []
        if batch:
            results.end = max(results.end, batch[-1] + 1)
            worker.give(batch)

    for worker in workers:
        refill(worker)
    while busy := [worker for worker in workers if worker.numbers]:
        ready = wait([worker.connection for worker in busy], timeout=1.0)
        for worker in busy:
            if worker.connection in ready and _receive(worker, results, done):
                refill(worker)
                results.seconds = time.monotonic() - started
                if on_batch is not None:
                    on_batch(results)
                continue
            lost = worker.lost_case()
            if lost is not None:
                left, fresh = _bury(worker, lost, results), Worker()
                returned.extend(left)
                workers[workers.index(worker)] = fresh
                refill(fresh)
    for worker in workers:
        worker.end()
    results.seconds = time.monotonic() - started
    return results


def _receive(worker, results, done):
    """Take a batch of verdicts; False if the worker has gone without any."""
    try:
        verdicts, megabytes = worker.connection.recv()
    except (EOFError, ConnectionResetError):
        return False
    for verdict in verdicts:
        results.add(verdict)
    pid = worker.process.pid
    before, done[pid] = done[pid], done[pid] + len(verdicts)
    if done[pid] >= WARM and before // WARM < done[pid] // WARM:
        results.memory.setdefault(pid, []).append(megabytes)
    return True


def _bury(worker, lost, results):
    """End a worker that is silent; its case is a failure, the others of its batch are run again."""
    alive = worker.process.is_alive()
    worker.process.kill()
    worker.process.join()
    worker.connection.close()
    what = f"hang: silent for {SILENCE:.0f} s" if alive else f"crash: exit code {worker.process.exitcode}"
    results.add(Verdict(lost, family_of(lost), [what], seconds=SILENCE if alive else 0.0))
    # verdicts are sent by the batch, so those before the lost case are gone with the worker
    return [[number for number in worker.numbers if number != lost]] if len(worker.numbers) > 1 else []
