"""A command run in this process, with an end to what takes too long."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from fuzz import clock

SECONDS = 20.0


class Flaw(Exception):
    """What is wrong, in a sentence."""


def call(arguments: list[str], seconds: float = SECONDS) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command. Raises Flaw for a traceback or a hang."""
    from typer.testing import CliRunner

    from kmargin.cli import make_app

    global _app
    _app = _app or make_app()
    try:
        with clock.running(seconds), warnings.catch_warnings():
            warnings.simplefilter("default")
            result = CliRunner().invoke(_app, arguments)
    except clock.TooSlow:
        raise Flaw(f"it runs for more than {seconds:g} s") from None
    error = result.exception
    if error is not None and clock.rang_in(error):
        raise Flaw(f"it runs for more than {seconds:g} s")
    if error is not None and not isinstance(error, SystemExit):
        trace: Any = result.exc_info[2] if result.exc_info else None
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "?"
        raise Flaw(f"{type(error).__name__} at {where}: {str(error)[:200]}")
    return result.exit_code, result.stdout, result.stderr


_app: Any = None


@contextmanager
def inside(folder: str) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def drawing(really: bool) -> Iterator[None]:
    """Figures that are not drawn: they hold numbers only, and take nearly all of the time."""
    if really:
        yield
        return
    with mock.patch("kmargin.report.html.svg", return_value="<svg></svg>"):
        yield
