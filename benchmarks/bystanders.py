"""What other processes take of the machine while something is measured; seen on Linux only."""

import os
import time
from collections.abc import Callable
from pathlib import Path

PROC = Path("/proc")


def busy_seconds() -> float:
    """Processor time of all processes since the machine was started."""
    user, nice, system, _, _, *interrupts = map(int, (PROC / "stat").read_text().splitlines()[0].split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Processor time of this process and its descendants, those that run and those waited for."""
    parents, seconds = {}, {}
    for folder in PROC.glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # ended meanwhile
            continue
        parents[int(folder.name)] = int(fields[1])
        seconds[int(folder.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    family = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(seconds[process] for process in family)


def measure(do: Callable[[], object]) -> tuple[float, float]:
    """The seconds that it takes, and how many cores others kept busy meanwhile."""
    if not (PROC / "stat").exists():
        started = time.perf_counter()
        do()
        return time.perf_counter() - started, 0.0
    others, started = busy_seconds() - own_seconds(), time.perf_counter()
    do()
    seconds = time.perf_counter() - started
    return seconds, (busy_seconds() - own_seconds() - others) / seconds


def wait_until_alone(patience: float, limit: float) -> None:
    """Return when others keep less than `limit` cores busy, or when patience has run out."""
    ends = time.perf_counter() + patience
    while time.perf_counter() < ends and measure(lambda: time.sleep(0.3))[1] > limit:
        pass
