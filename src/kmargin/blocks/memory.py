"""How much memory this process may still take."""

import os
from pathlib import Path

# of a container, in both versions: the limit, what is used, and how much of that is cached files
CGROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current", "file"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache"),
)


def available_memory() -> float:
    """Bytes: what is free on this machine, or what the container's or the process's limit leaves."""
    return max(0.0, min(_free(), *(_left_to_container(*names) for names in CGROUPS), _left_to_process()))


def _free() -> float:
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return 1024.0 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        pass
    try:
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2.0**31  # nothing can be learnt here: a machine of modest size


def _left_to_container(folder: Path, limit: str, usage: str, cached: str) -> float:
    try:
        lines = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        used = float((folder / usage).read_text()) - float(lines[cached])
        return float((folder / limit).read_text()) - used
    except (OSError, KeyError, ValueError):
        return float("inf")  # no such file, or "max"


def _left_to_process() -> float:
    try:
        import resource

        pages = [int(number) for number in Path("/proc/self/statm").read_text().split()]
    except (ImportError, OSError, ValueError):
        return float("inf")
    left = float("inf")
    for limit, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
        soft = resource.getrlimit(limit)[0]
        if soft != resource.RLIM_INFINITY:
            left = min(left, soft - used * resource.getpagesize())
    return left
