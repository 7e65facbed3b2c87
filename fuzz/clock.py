"""A limit of processor time for what a case does, one thing after another."""

import signal
from contextlib import contextmanager

from numba.core.compiler_lock import global_compiler_lock

# Seconds of processor time, so that a busy machine fails no case.
LIMIT = 10.0

_runs = False


class TooSlow(BaseException):
    """Something takes longer than it may; not an Exception, so that no judge mistakes it for one."""


def _ring(signum, frame):
    if global_compiler_lock.is_locked():  # to compile takes its time once, and must not be cut short
        restart()
    else:
        raise TooSlow


@contextmanager
def running():
    """Within, TooSlow is raised LIMIT seconds after the last `restart`."""
    global _runs
    before, _runs = signal.signal(signal.SIGPROF, _ring), True
    restart()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        _runs = False
        signal.signal(signal.SIGPROF, before)


def restart():
    """The next thing begins; nothing where no clock is running."""
    if _runs:
        signal.setitimer(signal.ITIMER_PROF, LIMIT)


def rang_in(error):
    """Whether an exception is the clock's: compiled code makes a SystemError of it."""
    return isinstance(error.__cause__, TooSlow) or isinstance(error.__context__, TooSlow)
