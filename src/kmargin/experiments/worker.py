"""A process that does work and hands back each result as soon as it has it."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any


class Worker:
    """Calls a generator function in a process of its own; iterating over a call gives what it yields.

    The process ends with the program that started it, also if that is killed: its next word to a
    program that is gone fails.
    """

    def __init__(self, function: Callable[[Any], Iterator[Any]]) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads
        self.pipe, other_end = context.Pipe()
        self.process = context.Process(target=_serve, args=(other_end, function), daemon=True)
        self.process.start()
        other_end.close()

    def __call__(self, argument: Any) -> Iterator[Any]:
        self.pipe.send(argument)
        while True:
            kind, value = self._receive()
            if kind == "end":
                return
            if kind == "failure":
                raise value
            yield value

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()  # not closed: when the program ends, multiprocessing asks for it once more

    def _receive(self) -> tuple[str, Any]:
        try:
            return self.pipe.recv()
        except EOFError:
            self.process.join()
            raise RuntimeError(
                f"A worker process ended unexpectedly (exit code {self.process.exitcode}), perhaps because "
                "memory ran out. Finished results are on disk; run again with fewer jobs."
            ) from None


def _serve(pipe: Connection, function: Callable[[Any], Iterator[Any]]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's affair
    try:
        while True:
            argument = pipe.recv()
            try:
                for value in function(argument):
                    pipe.send(("value", value))
                pipe.send(("end", None))
            except (EOFError, BrokenPipeError):
                raise
            except Exception as failure:
                pipe.send(("failure", failure))
    except (EOFError, BrokenPipeError):
        return  # nobody is listening any more
