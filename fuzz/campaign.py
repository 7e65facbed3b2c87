"""Many cases, side by side, counted by family."""

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import count, islice
from multiprocessing.connection import wait

from fuzz.families import family_of
from fuzz.judge import Verdict
from fuzz.worker import MAX_SILENCE, Worker

BATCH = 50
WARM = 1000  # cases after which a worker has imported and compiled everything, and its memory should not grow
MAX_GROWTH = 200.0  # megabytes by which it may


@dataclass
class Results:
    """The verdicts so far, by family."""

    first: int
    end: int  # the number after the last one handed out
    cases: Counter = field(default_factory=Counter)
    refused: Counter = field(default_factory=Counter)  # cases that ended with a sentence
    undecided: Counter = field(default_factory=Counter)
    failures: list = field(default_factory=list)  # verdicts
    seconds: float = 0.0
    slowest: tuple = (0.0, -1)
    memory: dict = field(default_factory=dict)  # worker -> megabytes, after each thousand cases

    def add(self, verdict):
        self.cases[verdict.family] += 1
        self.refused[verdict.family] += verdict.refused
        self.undecided[verdict.family] += len(verdict.skips)
        self.slowest = max(self.slowest, (verdict.seconds, verdict.number))
        if verdict.failures:
            self.failures.append(verdict)
            for failure in verdict.failures:
                print(f"make_case({verdict.number}).run()  # {verdict.family}, {failure}", flush=True)

    def growth(self):
        """By how many megabytes the memory of a worker grew once it was warm, at most."""
        return max((m[-1] - m[0] for m in self.memory.values() if len(m) > 1), default=0.0)

    def table(self):
        """A row for each family, in Markdown."""
        failed = Counter(verdict.family for verdict in self.failures)
        columns = self.cases, self.refused, self.undecided, failed
        rows = {family: [column[family] for column in columns] for family in sorted(self.cases)}
        rows["all"] = [sum(column.values()) for column in columns]
        lines = [
            f"| {family.replace('_', ' ')} | " + " | ".join(f"{number:,}" for number in numbers) + " |"
            for family, numbers in rows.items()
        ]
        head = [
            "| family | cases | ended with a sentence | undecided | failures |",
            "|---|---:|---:|---:|---:|",
        ]
        return "\n".join(head + lines)

    def summary(self):
        """A sentence about the run as a whole."""
        return (
            f"{sum(self.cases.values()):,} cases, of the numbers {self.first:,} to {self.end - 1:,}, in "
            f"{self.seconds / 60:.0f} minutes; the slowest took {self.slowest[0]:.1f} s; memory of a process "
            f"grew by {max(0.0, self.growth()):.0f} MB; {len(self.failures)} failures."
        )


def run(n_cases, *, first=0, jobs=1, family=None, seconds=None, on_batch=None):
    """Run so many cases, or as many as there is time for."""
    numbers = count(first) if family is None else (i for i in count(first) if family_of(i) == family)
    waiting, returned = islice(numbers, n_cases), deque()  # `returned`: what a lost worker left undone
    results, started = Results(first, first), time.monotonic()
    workers, done = [Worker() for _ in range(jobs)], Counter()  # cases by worker

    def refill(worker):
        over = seconds is not None and time.monotonic() - started > seconds
        batch = returned.popleft() if returned else [] if over else list(islice(waiting, BATCH))
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
            elif (lost := worker.lost_case()) is not None:
                returned.extend(_end_silent(worker, lost, results))
                workers[workers.index(worker)] = fresh = Worker()
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
    if before // WARM < done[pid] // WARM:
        results.memory.setdefault(pid, []).append(megabytes)
    return True


def _end_silent(worker, lost, results):
    """End a worker that is silent; its case is a failure, the others of its batch are run again.

    Verdicts are sent by the batch, so those before the lost case are gone with the worker.
    """
    alive = worker.process.is_alive()
    worker.process.kill()
    worker.process.join()
    worker.connection.close()
    what = f"hang: silent for {MAX_SILENCE:.0f} s" if alive else f"crash: exit code {worker.process.exitcode}"
    results.add(Verdict(lost, family_of(lost), [what], seconds=MAX_SILENCE if alive else 0.0))
    rest = [number for number in worker.numbers if number != lost]
    return [rest] if rest else []
