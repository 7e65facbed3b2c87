"""Many cases, in processes side by side, counted by family."""

import faulthandler
import multiprocessing
import os
import resource
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, islice
from threading import Lock

from fuzz import clock
from fuzz.families import family_of, make_case
from fuzz.judge import Verdict, judge
from fuzz.warm import warm_up
from kmargin.solvers.exchange import EFFORTS

WARM = 1000  # cases after which a worker has imported and compiled everything, and its memory should not grow
MAX_GROWTH = 200.0  # megabytes by which it may
MAX_CASE_SECONDS = 120.0  # of processor time, after which the system ends a worker, even in compiled code
MAX_RESTART_SECONDS = 0.01  # of a search, which would otherwise restart for most of a case's time
MEGABYTE = 2**20
MAX_MEMORY = 4096 * MEGABYTE  # of a worker; whatever asks for more gets a MemoryError


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
            "| family | cases | ended with a sentence | undecided | failures |",
            "|---|---:|---:|---:|---:|",
        ]
        for family, numbers in rows.items():
            cells = " | ".join(f"{number:,}" for number in numbers)
            lines.append(f"| {family.replace('_', ' ')} | {cells} |")
        return "\n".join(lines)

    def summary(self):
        """A sentence about the run as a whole."""
        return (
            f"{sum(self.cases.values()):,} cases, of the numbers {self.first:,} to {self.end - 1:,}, in "
            f"{self.seconds / 60:.0f} minutes; the slowest took {self.slowest[0]:.1f} s; memory of a process "
            f"grew by {max(0.0, self.growth()):.0f} MB; {len(self.failures)} failures."
        )


def run(n_cases, *, first=0, jobs=1, family=None, seconds=None, verbose=False):
    """Run so many cases, or as many as there is time for."""
    numbers = count(first) if family is None else (i for i in count(first) if family_of(i) == family)
    waiting, lock = islice(numbers, n_cases), Lock()
    results, started = Results(first, first), time.monotonic()

    def serve(worker):
        """One case after another by one worker."""
        while seconds is None or time.monotonic() - started <= seconds:
            with lock:
                number = next(waiting, None)
            if number is None:
                break
            verdict, megabytes = worker.judge(number)
            with lock:
                results.add(verdict)
                results.end = max(results.end, number + 1)
                results.seconds = time.monotonic() - started
                if worker.n_judged and worker.n_judged % WARM == 0:
                    results.memory.setdefault(worker.process.pid, []).append(megabytes)
                n_done = sum(results.cases.values())
                if verbose and n_done % 50 == 0:
                    note = f"{n_done:,} cases, {len(results.failures)} failures"
                    print(note, end="\r", file=sys.stderr, flush=True)
        worker.stop()

    with ThreadPoolExecutor(jobs) as threads:
        list(threads.map(serve, [Worker() for _ in range(jobs)]))
    return results


class Worker:
    """A process that judges the numbers that it is sent; another one if a case ends it."""

    def __init__(self):
        self.start()

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=work, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.n_judged = 0

    def stop(self):
        self.connection.close()
        self.process.join()

    def judge(self, number):
        """The verdict, and the memory that the process holds."""
        try:
            self.connection.send(number)
            answer = self.connection.recv()
        except (EOFError, ConnectionError):
            self.stop()
            what = f"crash or hang: exit code {self.process.exitcode}"
            self.start()
            return Verdict(number, family_of(number), [what]), 0.0
        self.n_judged += 1
        return answer


def work(connection):
    """Judge the numbers that come; send back the verdict and the memory that this process holds."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    warm_up()
    for name, effort in EFFORTS.items():
        EFFORTS[name] = effort._replace(restart_seconds=min(effort.restart_seconds, MAX_RESTART_SECONDS))
    with suppress(EOFError):  # the campaign has ended
        while True:
            number = connection.recv()
            ends = int(time.process_time() + MAX_CASE_SECONDS)
            hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
            soft = ends if hard == resource.RLIM_INFINITY else min(ends, hard)
            resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
            connection.send((judge_in_time(number), resident()))


def judge_in_time(number):
    """The verdict on a case; a failure if it takes longer than it may, and does so again.

    Again, because the first time something may have been compiled on the way.
    """
    for _ in range(2):
        try:
            with clock.running():
                verdict = judge(make_case(number))
        except clock.TooSlow:
            what = f"slow: not done after {clock.LIMIT:.0f} s"
            verdict = Verdict(number, family_of(number), [what], seconds=2 * clock.LIMIT)
        if verdict.seconds <= clock.LIMIT:
            break
    return verdict


def resident():
    """Megabytes of memory that this process holds; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MEGABYTE
    except OSError:
        return 0.0
