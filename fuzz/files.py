"""Files under attack, tables for the command line and model files: `python -m fuzz --files tables`.

A kind of file is a module with `make_case(number)`, always the same case for a number, and `check(case)`,
which returns a sentence that says what is wrong with the answer, or None.
"""

import importlib
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from fuzz import clock

KINDS = {"tables": "fuzz.tables", "models": "fuzz.modelfiles"}
SECONDS = 20.0
AT_ONCE = 200  # cases between two looks at the clock


def run_files(kind, first, count, seconds):
    """Run cases, print those that fail, and return them with what is wrong."""
    module, started, failures, done = importlib.import_module(KINDS[kind]), time.monotonic(), [], 0
    while done < count and (seconds is None or time.monotonic() - started < seconds):
        size = min(AT_ONCE, count - done)
        failures += failing(module, first + done, size)
        done += size
        print(f"{done:,} {kind}, {len(failures)} failures", file=sys.stderr)
    print(f"{done:,} {kind} from number {first:,} on: {len(failures)} failures")
    for case, flaw in failures:
        print(f"\n{flaw}\n{case}")
    return failures


def failing(module, first, count):
    """The cases that fail, each with what is wrong."""
    found = ((case, module.check(case)) for case in map(module.make_case, range(first, first + count)))
    return [(case, flaw) for case, flaw in found if flaw is not None]


class Draw:
    """A source of choices, always the same for the same number."""

    def __init__(self, number, family):
        self.rng = np.random.default_rng([number, family])

    def chance(self, share):
        return bool(self.rng.random() < share)

    def below(self, end):
        return int(self.rng.integers(end))

    def one(self, values):
        return values[self.below(len(values))]

    def some(self, values, count):
        return [self.one(values) for _ in range(count)]

    def weighted(self, shares):
        """One of the keys, as often as its share of the sum says."""
        weights = np.array(list(shares.values()), dtype=float)
        return list(shares)[int(self.rng.choice(len(shares), p=weights / weights.sum()))]


class Flaw(Exception):
    """What is wrong, in a sentence."""


def call(arguments, seconds=SECONDS):
    """Exit code, stdout and stderr of a command run in this process. Raise Flaw for a traceback or a hang."""
    from typer.testing import CliRunner

    from kmargin.cli.app import app

    try:
        with clock.running(seconds), warnings.catch_warnings():
            warnings.simplefilter("default")
            result = CliRunner().invoke(app, arguments)
    except clock.TooSlow:
        raise Flaw(f"it runs for more than {seconds:g} s") from None
    error = result.exception
    if error is not None and clock.rang_in(error):
        raise Flaw(f"it runs for more than {seconds:g} s")
    if error is not None and not isinstance(error, SystemExit):
        trace = result.exc_info[2]
        while trace.tb_next is not None:
            trace = trace.tb_next
        where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        raise Flaw(f"{type(error).__name__} at {where}: {str(error)[:200]}")
    return result.exit_code, result.stdout, result.stderr
