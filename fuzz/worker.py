"""A process that runs cases, and a parent that notices when one of them never ends."""

import faulthandler
import multiprocessing
import os
import resource
import time

from fuzz import clock
from fuzz.warm import warm_up

# Seconds of processor time after which a worker counts as hanging: compiled code does not hear signals.
MAX_SILENCE = 25.0
MAX_IDLE = 150.0  # seconds on the clock, for a worker that computes nothing
MEGABYTE = 2**20
MAX_MEMORY = 4096 * MEGABYTE  # of a worker; whatever asks for more gets a MemoryError


def judge_in_time(number):
    """The verdict on a case; a failure if it takes longer than it may, and does so again.

    Again, because the first time something may have been compiled on the way.
    """
    from fuzz.families import family_of, make_case
    from fuzz.judge import Verdict, judge

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
    """Megabytes of memory that this process holds."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MEGABYTE
    except OSError:
        return 0.0


def processor_time(pid):
    """Seconds that a process has computed for; None where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            user, system = stat.read().rpartition(")")[2].split()[11:13]
    except OSError:
        return None
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def work(connection, current, started, spent):
    """Judge the numbers that come, and send back each verdict."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    warm_up()

    def begin():
        started.value, spent.value = time.monotonic(), time.process_time()

    clock.listeners.append(begin)
    while True:
        numbers = connection.recv()
        if numbers is None:
            return
        verdicts = []
        for number in numbers:
            begin()
            current.value = number
            verdicts.append(judge_in_time(number))
        current.value = -1
        connection.send((verdicts, resident()))


class Worker:
    """One such process, seen from the parent."""

    def __init__(self):
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.current = context.Value("q", -1)
        self.started, self.spent = context.Value("d", 0.0), context.Value("d", 0.0)
        shared = other, self.current, self.started, self.spent
        self.process = context.Process(target=work, args=shared, daemon=True)
        self.process.start()
        other.close()
        self.numbers = []

    def give(self, numbers):
        self.numbers = list(numbers)
        self.connection.send(self.numbers)

    def lost_case(self):
        """The number of the case that this worker has been silent about for too long, or that ended it."""
        number = self.current.value
        if not self.process.is_alive():
            return number if number >= 0 else self.numbers[0]
        if number < 0:
            return None
        waited, computed = time.monotonic() - self.started.value, processor_time(self.process.pid)
        if computed is None:
            return number if waited > MAX_SILENCE else None
        return number if computed - self.spent.value > MAX_SILENCE or waited > MAX_IDLE else None

    def end(self):
        """At once if it is at work, else by itself."""
        if self.current.value >= 0:
            self.process.kill()
        elif self.process.is_alive():
            self.connection.send(None)
        self.process.join()
        self.connection.close()
