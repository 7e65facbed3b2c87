"""A limit of processor time for what a case does, one thing after another."""

import signal
import threading
from contextlib import contextmanager

from numba.core.compiler_lock import global_compiler_lock

# Seconds of processor time, so that a busy machine fails no case.
LIMIT = 10.0

_limits: list[float] = []  # of the clocks that are running, the last one counts


class TooSlow(BaseException):
    """Something takes longer than it may; not an Exception, so that no judge mistakes it for one."""


def _ring(signum, frame):
    if global_compiler_lock.is_locked():  # to compile takes its time once, and must not be cut short
        restart()
    else:
        raise TooSlow


@contextmanager
def running(seconds=LIMIT):
    """Within, TooSlow is raised so many seconds after the last `restart`, where there are signals."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPROF, _ring)
    _limits.append(seconds)
    restart()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        _limits.pop()
        signal.signal(signal.SIGPROF, before)


def restart():
    """The next thing begins."""
    if _limits:
        signal.setitimer(signal.ITIMER_PROF, _limits[-1])


def rang_in(error):
    """Whether an exception is the clock's: compiled code makes a SystemError of it."""
    return isinstance(error.__cause__, TooSlow) or isinstance(error.__context__, TooSlow)
