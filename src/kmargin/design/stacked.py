"""Designs one below the other, for compiled loops over several machines.

Machines that share a design share its rows. A machine's rows are a slice: where they start, and how many.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from kmargin.design.csr import CSR
from kmargin.design.protocol import Design
from kmargin.types import Indices, Matrix, Vector


class StackedCSR(NamedTuple):
    """CSR matrices one below the other, with the shifts of each."""

    data: Vector
    indices: Indices
    indptr: Indices
    shifts: Matrix  # (n_designs, n_features), or (n_designs, 0) if nothing is subtracted


class Stack(NamedTuple):
    """What several machines have stored, each design once."""

    stored: Any  # an array or a `StackedCSR`; rows of all designs
    which: Indices  # the design of each machine
    first: Indices  # the first row of each machine


def stack_designs(designs: Sequence[Design]) -> Stack | None:
    """All designs in one; None where some are not held, or are held in different ways."""
    distinct, which = index_distinct(designs)
    stored = [design.stored for design in distinct]
    ends = np.cumsum([0] + [design.n_samples for design in distinct])
    place = Stack(None, which, ends[which])
    if all(isinstance(X, np.ndarray) for X in stored):
        return place._replace(stored=stack_arrays(stored))
    if all(isinstance(X, CSR) for X in stored):
        return place._replace(stored=_stack_csr(stored))
    return None


def index_distinct(things: Sequence[Any]) -> tuple[list[Any], Indices]:
    """Each thing once, and the place of every thing among these."""
    distinct = {id(thing): thing for thing in things}
    places = {key: place for place, key in enumerate(distinct)}
    return list(distinct.values()), np.array([places[id(thing)] for thing in things])


def stack_arrays(arrays: Sequence[Matrix]) -> Matrix:
    """Rows one below the other, copied only if they have to be."""
    return np.ascontiguousarray(arrays[0] if len(arrays) == 1 else np.concatenate(arrays))


def _stack_csr(parts: Sequence[CSR]) -> StackedCSR:
    n_features = max(part.shift.size for part in parts)
    shifts = np.array([part.shift if part.shift.size else np.zeros(n_features) for part in parts])
    if len(parts) == 1:
        return StackedCSR(*parts[0][:3], shifts)
    starts = np.cumsum([0] + [len(part.data) for part in parts])
    indptr = [part.indptr[1:].astype(np.int64) + start for part, start in zip(parts, starts, strict=False)]
    return StackedCSR(
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([np.zeros(1, np.int64), *indptr]),
        shifts,
    )


def rows_of(stored: Any, which: int, first: int, n_rows: int) -> Any:
    """The rows of one machine, as `times` and `add_rows` take them."""
    if isinstance(stored, np.ndarray):
        return stored[first : first + n_rows]
    return CSR(stored.data, stored.indices, stored.indptr[first : first + n_rows + 1], stored.shifts[which])


@overload(rows_of)
def _rows_of(stored: Any, which: int, first: int, n_rows: int) -> Any:
    def of_array(stored: Any, which: int, first: int, n_rows: int) -> Any:
        return stored[first : first + n_rows]

    def of_csr(stored: Any, which: int, first: int, n_rows: int) -> Any:
        indptr = stored.indptr[first : first + n_rows + 1]
        return CSR(stored.data, stored.indices, indptr, stored.shifts[which])

    return of_array if isinstance(stored, types.Array) else of_csr
