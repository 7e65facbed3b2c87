"""How competitors are timed: processor time on one thread, everything compiled, taking turns."""

import gc
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Run:
    """What an entrant returned, and the seconds of each of its turns."""

    result: Any = None
    seconds: list[float] = field(default_factory=list)


def installed(competitors, task, record):
    """Those competitors that can do a task and are installed. Versions, and what is missing, are recorded."""
    found = {}
    for name, competitor in competitors.items():
        if competitor.can(task) and competitor.is_installed():
            found[name] = competitor
            record.add(name, "installed", 1, version=competitor.version())
        elif competitor.can(task):
            record.add(name, "not installed", 1)
    return found


def entrants_of(competitors, task, record, *arguments):
    """The competitors that can do a task and are installed, each as a function of the data."""
    return {
        name: lambda X, y, competitor=competitor: getattr(competitor, task)(X, y, *arguments)
        for name, competitor in installed(competitors, task, record).items()
    }


def timed(function, *arguments):
    """What a function returns, and the processor time it takes."""
    started = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - started


def race(entrants, X, y, *, small, repeats=3, patience=3.0):
    """Fit by turns: every round all entrants once, in the same order.

    First each fits `small`, off the clock, so that nothing is compiled or imported later. Long fits are
    measured once, short ones several times: an entrant that has taken more seconds than its patience takes
    no further turns. An entrant that raises an error leaves the race.
    """
    runs = {name: Run() for name in entrants}

    def attempt(name, *data):
        gc.collect()
        try:
            runs[name].result, seconds = timed(entrants[name], *data)
            runs[name].seconds.append(seconds)
        except Exception as error:
            print(f"    {name} failed and is left out: {type(error).__name__}: {error}", flush=True)
            del runs[name]

    for name in entrants:
        attempt(name, *small)
    for run in runs.values():
        run.seconds.clear()
    for _ in range(repeats):
        for name in list(runs):
            if sum(runs[name].seconds) < patience:
                attempt(name, X, y)
    return runs


def record_seconds(record, runs, **where):
    """A row for each turn."""
    for name, run in runs.items():
        for seconds in run.seconds:
            record.add(name, "seconds", seconds, **where)
        note = f"{min(run.seconds):9.3f} s, best of {len(run.seconds)}"
        print(f"    {where.get('dataset', '')!s:<28} {name:<14} {note}", flush=True)
