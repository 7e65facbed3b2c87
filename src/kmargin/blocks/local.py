"""Blocks in this process: arrays on a device."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kmargin.blocks.protocol import Block
from kmargin.blocks.space import space_of


class LocallyHeld:
    def __init__(self, things: Sequence[Any]) -> None:
        self.things = things

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return [function(thing, *args) for thing in self.things]


class LocalBlocks:
    """Asked one after the other."""

    n_askers = 1

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.n_blocks = len(blocks)
        self.shape = sum(block.X.shape[0] for block in blocks), blocks[0].X.shape[1]
        space = space_of(blocks[0].X)
        self.dtype = np.dtype("float32" if blocks[0].X.dtype == space.xp.float32 else "float64")

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return [function(block, *args) for block in self.blocks]

    def hold(self, function: Callable[..., Any], *args: Any) -> LocallyHeld:
        return LocallyHeld(self.ask(function, *args))

    def fits(self, n_numbers: int) -> bool:
        return True

    def shared_by(self, n_askers: int) -> "LocalBlocks":
        return self

    def stop(self) -> None:
        pass
