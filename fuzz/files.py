"""Files under attack: tables for the command line, and model files (`python -m fuzz --files tables`)."""

import sys
import time
from typing import Any

from fuzz import modelfiles, tables

KINDS: dict[str, Any] = {"tables": tables, "models": modelfiles}
AT_ONCE = 200  # cases between two looks at the clock


def run(kind: str, first: int, count: int, seconds: float | None) -> list[tuple[Any, str]]:
    """The cases that fail, each with what is wrong; says how far it is."""
    started, failures, done = time.monotonic(), [], 0
    while done < count and (seconds is None or time.monotonic() - started < seconds):
        size = min(AT_ONCE, count - done)
        failures += KINDS[kind].run(first + done, size)
        done += size
        print(f"{done:,} {kind}, {len(failures)} failures", file=sys.stderr)
    print(f"{done:,} {kind} from number {first:,} on: {len(failures)} failures")
    for case, flaw in failures:
        print(f"\n{flaw}\n{case}")
    return failures
