"""Work as it is planned, cut and handed on."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from kmargin.types import Vector


class Unit(NamedTuple):
    """The smallest piece of work that is recorded: one fit, or one machine per pair of classes."""

    replicate: int  # fold, start or draw
    parameter: float  # sparsity s, or C


class Chain(NamedTuple):
    """Units that are done one after the other, each maybe starting from the last."""

    experiment: str
    protocol: str
    dataset: str
    solver: str
    units: tuple[Unit, ...]
    is_warm: bool = False  # whether each unit needs the state that the last one left

    @property
    def name(self) -> str:
        first = self.units[0]
        parts = (self.experiment, self.protocol, self.dataset, self.solver, first.replicate)
        return "-".join(map(str, parts))


class Finished(NamedTuple):
    """A unit's outcome."""

    unit: Unit
    values: dict[str, Any]  # the columns that its experiment knows
    seconds: float  # of processor time
    state: Sequence[Vector] = ()  # what the next unit of the chain starts from
