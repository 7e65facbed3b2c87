"""Groups of options: a command takes one as a single argument, the command line takes its members.

    @plainly
    @with_shared_options
    def fit_command(data: Data, reading: ReadingOptions, k: Annotated[int, ...] = 3) -> None: ...

is `kmargin fit DATA --sep ... --decimal ... --k ...`. Beside it, texts of options as numbers.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_type_hints

from kmargin.errors import InputError


def with_shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose groups of options are given one by one."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            kinds = get_type_hints(groups[name], include_extras=True)
            parameters += [_parameter(field, kinds[field.name]) for field in fields(groups[name])]
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def wrapped(**given: Any) -> Any:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        return command(**given)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


def _parameter(field: Field[Any], kind: Any) -> inspect.Parameter:
    assert field.default is not MISSING, "an option has a default"
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kind
    )


def parse_numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"{option} {text} is not a list of numbers. Write it as 0.1,1,10.") from error


def parse_number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{option} {text} is not a number. Write one, such as 0.5.") from error


def parse_ks(text: str) -> int | list[int]:
    """A list of values, or how many."""
    try:
        values = [int(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise InputError(f"--ks {text} is not a list of values of k. Write it as 1,2,5.") from error
    return values if "," in text else values[0] if values else 0
