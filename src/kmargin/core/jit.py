"""One way to compile: numba with a cache on disk."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit, typeof, types
from numba.core import cgutils, event
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_jitable, register_model, typeof_impl

from kmargin.core import loss
from kmargin.core.arrays import Indices

# Calls from interpreted code after which compiling pays (they took about 3 s; to compile takes some 20), and
# how many of them are noted at a time.
ENOUGH, SOME = 600_000, 2_000

LEDGER = "interpreted_calls"


class Meter:
    """Counts calls from interpreted code, and says when there were enough."""

    def __init__(self, folder: Callable[[], Path | None]) -> None:
        """`folder` tells where machine code is kept; None if nowhere."""
        self.before_compiling: list[Callable[[], None]] = []  # what has to be done before compiled code runs
        self._folder = folder
        self._ledger: Path | None = None
        self._calls = 0
        self._noted = 0  # of these
        self._compiling: bool | None = None  # not known yet
        self._forced: bool | None = None

    def count(self) -> None:
        self._calls += 1  # two threads may count one: it need not be exact

    def compiling(self) -> bool:
        """Return whether outer loops run compiled by now; each call counts towards that decision."""
        if self._compiling is None:
            self._open()
        self.count()
        if self._calls - self._noted >= SOME and not self._compiling:
            self._note(1)
        return bool(self._compiling if self._forced is None else self._forced)

    @contextmanager
    def forced(self, compiling: bool) -> Iterator[None]:
        """Compiled or interpreted, whatever was counted. What was compiled so is used ever after."""
        if self._compiling is None:
            self._open()
        if compiling and not self._compiling:
            self._note(ENOUGH // SOME)
        before, self._forced = self._forced, compiling
        try:
            yield
        finally:
            self._forced = before

    def _open(self) -> None:
        folder = self._folder()
        self._ledger = None if folder is None else folder / LEDGER
        self._judge(self._calls)

    def _note(self, times: int) -> None:
        self._noted = self._calls
        if self._ledger is not None:
            try:
                with self._ledger.open("ab") as ledger:
                    ledger.write(b"." * times)
            except OSError:
                self._ledger = None  # then only what this process has paid counts
        self._judge(max(self._calls, SOME * times))

    def _judge(self, paid: int) -> None:
        if self._ledger is not None and self._ledger.is_file():
            paid = max(paid, SOME * self._ledger.stat().st_size)
        if paid >= ENOUGH:
            for prepare in self.before_compiling:
                prepare()
        self._compiling = paid >= ENOUGH


Function = TypeVar("Function", bound=Callable[..., Any])

loss.REGISTER.append(register_jitable)
for _function in loss.WAITING:
    register_jitable(_function)


def compiled(function: Function) -> Function:
    """Compile on first call, keep the machine code on disk, release the GIL while it runs."""
    return cast(Function, Compiled(function))


def compiled_or_remote(function: Function) -> Function:
    """Interpreted where the first argument is elsewhere, and for arrays until compiling pays; line by line
    the same.
    """
    return cast(Function, CompiledOrRemote(function))


def asked_of_rows(function: Function) -> Function:
    """For rows that are elsewhere, their own method answers. For those at hand it is this function: compiled
    if it is `compiled`; where it has no loop of its own, for Python it is as it stands.
    """
    return cast(Function, AskedOfRows(function))


class Remote:
    """What a solver handles without having it. What is `asked_of_rows` its methods of that name answer."""


def _is_remote(first: Any) -> bool:
    """Rows, or what holds them."""
    return isinstance(getattr(first, "rows", first), Remote)


class Compiled:
    """A function that is compiled when it is called: from Python, or from compiled code.

    What Python calls needs code that takes arguments out of their Python objects, and for tuples of arrays
    that is much. So compiled callers have a variant of their own, without it, unless the other is there.
    """

    __name__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.for_python = _compile(function, no_cfunc_wrapper=True)
        self.for_compiled = _compile(_renamed(function), no_cpython_wrapper=True, no_cfunc_wrapper=True)

    def __call__(self, *args: Any) -> Any:
        return self.for_python(*args)

    @property
    def for_callers(self) -> Any:
        return self.for_python if self.for_python.overloads else self.for_compiled


class CompiledOrRemote(Compiled):
    """A function that only calls others: compiled or not."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.interpreted = function

    def __call__(self, first: Any, *args: Any) -> Any:
        if _is_remote(first):
            return self.interpreted(first, *args)
        if meter.compiling():
            return self.for_python(first, *args)
        with np.errstate(all="ignore"):  # compiled code does not warn of infinities either
            return self.interpreted(first, *args)


class AskedOfRows(Compiled):
    """A function that rows elsewhere have an answer of their own to."""

    def __init__(self, function: Any) -> None:
        loops = isinstance(function, Compiled)
        super().__init__(function.__wrapped__ if loops else function)
        self.at_hand = self.for_python if loops else function

    def __call__(self, first: Any, *args: Any) -> Any:
        if _is_remote(first):
            return getattr(first, self.__name__)(*args)
        meter.count()
        return self.at_hand(first, *args)


class _CompiledType(types.Dispatcher):
    """What compiled callers see. A number that is written out is one like any other: else a function is
    compiled once more for each that it is called with, and for each that a variable begins with.
    """

    def get_call_type(self, context: Any, args: tuple[Any, ...], kws: Any) -> Any:
        return super().get_call_type(context, tuple(types.unliteral(arg) for arg in args), kws)


register_model(_CompiledType)(models.OpaqueModel)


@typeof_impl.register(Compiled)
def _type_of_compiled(value: Compiled, _context: Any) -> types.Dispatcher:
    return _CompiledType(value.for_callers)


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    """numba refuses `cache=True` outright where neither the package's folder nor the user's cache folder can
    be written (a read-only container, say). There the function still has to work, so it is compiled anew in
    each process.
    """
    try:
        return njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:
        return njit(nogil=True, **options)(function)


def _is_plain(dispatcher: Any) -> bool:
    """numba was told to compile nothing (NUMBA_DISABLE_JIT)."""
    return isinstance(dispatcher, FunctionType)


def _cache_folder() -> Path | None:
    """Where numba keeps what it makes of this file; None if it can be kept nowhere."""
    dispatcher = _compile(_is_remote)
    path = None if _is_plain(dispatcher) else dispatcher.stats.cache_path
    return None if path is None else Path(path)


meter = Meter(_cache_folder)


def _renamed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A twin whose machine code is kept in a file of its own."""
    code, defaults = function.__code__, function.__defaults__
    twin = FunctionType(code, function.__globals__, function.__name__, defaults, function.__closure__)
    twin.__qualname__, twin.__module__ = f"{function.__qualname__}_for_compiled", function.__module__
    return twin


@contextmanager
def on_compiling(patience: float, tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` once, when compilation has taken `patience` seconds and another function is next."""
    listener = _CompilingListener(patience, tell)
    with event.install_listener("numba:compile", listener):
        yield


class _CompilingListener(event.Listener):
    def __init__(self, patience: float, tell: Callable[[], None]) -> None:
        self.patience, self.tell = patience, tell
        self.started: list[float] = []  # of those that wait for each other
        self.spent = 0.0

    def on_start(self, event: Any) -> None:
        self.started.append(time.monotonic())
        if self.spent + self.started[-1] - self.started[0] >= self.patience:
            self.patience = float("inf")
            self.tell()

    def on_end(self, event: Any) -> None:
        since = time.monotonic() - self.started.pop()
        if not self.started:
            self.spent += since


class Far:
    """A compiled function that is called by its address.

    LLVM optimises a function anew together with all it calls, so that one with many callers is compiled
    many times over. Behind an address it is compiled once. The address is an argument of the callers,
    because their machine code is kept on disk and outlives it; `far(address, *args)` calls the function.
    """

    def __init__(self, function: Any, example: Callable[[], tuple[Any, ...]]) -> None:
        """`example` makes arguments of the types that the function is compiled for, no others."""
        update_wrapper(self, function)
        self.function, self.example = function, example
        infer_global(self, types.Function(self._template()))
        lower_builtin(self, types.VarArg(types.Any))(_lower_far_call)

    def __call__(self, _address: int, *args: Any) -> Any:
        return self.function(*args)

    @cached_property
    def address(self) -> int:
        if _is_plain(self.function.for_python):
            return 0
        result = self._compile()
        return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))

    def _compile(self) -> Any:
        argument_types = tuple(typeof(value) for value in self.example())
        self.function.for_python.compile(argument_types)
        return self.function.for_python.overloads[argument_types]

    def _template(far) -> type[AbstractTemplate]:
        class Template(AbstractTemplate):
            key = far

            def generic(self, args: tuple[Any, ...], _kws: Any) -> Any:
                result = far._compile()
                if result.signature.args != args[1:]:
                    raise TypingError(
                        f"{far.function.__name__} takes {result.signature.args}, not {args[1:]}"
                    )
                return signature(result.signature.return_type, *args)

        return Template


def addresses(*functions: Far) -> Indices:
    """An array of them, filled in before anything is run that takes them from there."""
    found = np.zeros(len(functions), np.int64)

    def find() -> None:
        found[:] = [function.address for function in functions]

    meter.before_compiling.append(find)
    return found


def _lower_far_call(context: Any, builder: Any, call: Any, args: Any) -> Any:
    argument_types = call.args[1:]
    function_type = context.call_conv.get_function_type(call.return_type, argument_types)
    function = builder.inttoptr(args[0], function_type.as_pointer())
    status, result = context.call_conv.call_function(
        builder, function, call.return_type, argument_types, args[1:]
    )
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return result
