"""The clock: everything warm, one thread each, competitors taking turns."""

import gc
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Run:
    """What an entrant returned, and the seconds of each of its turns."""

    result: Any = None
    seconds: list[float] = field(default_factory=list)


def entrants_of(competitors, task, record, *arguments):
    """Those competitors that are installed, each as a function of the data. The others are noted."""
    entrants = {}
    for name, competitor in competitors.items():
        if not competitor.can(task):
            continue
        if not competitor.is_installed():
            record.add(name, "not installed", 1)
            continue
        method = getattr(competitor, task)
        entrants[name] = lambda X, y, method=method: method(X, y, *arguments)
    return entrants


def race(entrants, X, y, *, small, repeats=3, patience=3.0, clock=time.perf_counter):
    """Fit by turns: every round all entrants once, in the same order.

    First each fits `small`, off the clock, so that nothing is compiled or imported later; None says
    that this has been done. Who has used up its patience (seconds) in earlier rounds sits out: long
    fits are measured once, short ones several times. Who raises an error leaves the race. With
    `time.process_time` as its clock a race may have neighbours: all run on one thread.
    """
    runs = {name: Run() for name in entrants}
    if small is not None:
        for name in entrants:
            attempt(name, entrants, runs, *small, timed=False, clock=clock)
    for _ in range(repeats):
        for name in entrants:
            if name in runs and sum(runs[name].seconds) < patience:
                attempt(name, entrants, runs, X, y, clock=clock)
    return runs


def attempt(name, entrants, runs, X, y, timed=True, clock=time.perf_counter):
    """One turn of one entrant."""
    gc.collect()
    started = clock()
    try:
        result = entrants[name](X, y)
    except Exception as error:
        print(f"    {name} failed and is left out: {type(error).__name__}: {error}", flush=True)
        runs.pop(name, None)
        return
    if timed:
        runs[name].seconds.append(clock() - started)
        runs[name].result = result


def record_seconds(record, competitors, runs, **where):
    """A row for each turn."""
    for name, run in runs.items():
        for seconds in run.seconds:
            record.add(name, "seconds", seconds, version=competitors[name].version(), **where)
        if run.seconds:
            note = f"{min(run.seconds):9.3f} s, best of {len(run.seconds)}"
            print(f"    {where.get('dataset', '')!s:<28} {name:<14} {note}", flush=True)
