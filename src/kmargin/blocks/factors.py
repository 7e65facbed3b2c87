"""The thin SVD of a block that has all the rows, and the questions that steps of MM ask of it."""

from typing import Any, NamedTuple

import numpy as np

from kmargin.blocks.protocol import Block
from kmargin.blocks.space import space_of
from kmargin.blocks.sums import count_true
from kmargin.blocks.view import View, show_columns, weigh
from kmargin.losses import squared_hinge
from kmargin.types import Vector


class FactorBlock(NamedTuple):
    """``diag(sqrt(weights)) [X 1] = U diag(s) V'`` of a block that has all the rows."""

    U: Any
    s: Any
    Vt: Any
    rows: Any  # the left hand side
    root_weights: Any
    y: Any


def factorize(block: Block, view: View, mass: float, fit_intercept: bool) -> FactorBlock:
    """The thin SVD with weights divided by `mass`; singular values within rounding of 0 are left out."""
    shown = weigh(block, view)
    space, _, y, weights = shown
    xp = space.xp
    root_weights = xp.sqrt(weights / mass)
    rows = show_columns(shown, view, None) * root_weights[:, None]
    if fit_intercept:
        rows = xp.concat([rows, root_weights[:, None]], axis=1)
    U, s, Vt = xp.linalg.svd(rows, full_matrices=False)
    noise = float(s[0]) * max(rows.shape) * float(np.finfo(space.bring(s).dtype).eps)
    rank = count_true(space, s > noise)
    return FactorBlock(U[:, :rank], s[:rank], Vt[:rank, :], rows, root_weights, y)


def singular_values(factors: FactorBlock) -> Vector:
    return space_of(factors.s).bring(factors.s)


def pull(factors: FactorBlock, beta: Vector) -> Vector:
    """U'z, z being the shifted response, weighted."""
    space = space_of(factors.U)
    z = squared_hinge.shifted_response(
        factors.rows @ space.put(beta), factors.y, factors.root_weights, space.xp
    )
    return space.bring(z @ factors.U)


def coordinates(factors: FactorBlock, beta: Vector) -> Vector:
    space = space_of(factors.Vt)
    return space.bring(factors.Vt @ space.put(beta))


def combine(factors: FactorBlock, coordinates: Vector) -> Vector:
    space = space_of(factors.Vt)
    return space.bring(space.put(coordinates) @ factors.Vt)
