"""Compiled linear algebra for small dense systems, and a context that limits BLAS to one thread."""

from functools import cache
from threading import Lock, local
from types import TracebackType
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.jit import compiled, inlined


@cache
def blas_libraries() -> list[Any]:
    """List the BLAS libraries of this process; cached, because finding them takes longer than a small fit."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


class OneThread:
    """A context manager in which BLAS uses one thread; several Python threads may be in it at once.

    MKL, and libraries that use OpenMP, keep a number of BLAS threads for each Python thread. This number is
    restored when that Python thread leaves the context. Other libraries keep one number for the whole
    process, which the first Python thread to enter records and the last one to leave restores.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0
        self._of_process: list[int] = []
        self._of_thread = local()

    def __enter__(self) -> None:
        with self._lock:
            counts = []
            for library in blas_libraries():
                counts.append(library.num_threads)
                library.set_num_threads(1)
            self._of_thread.counts = [*getattr(self._of_thread, "counts", []), counts]
            if self._n_inside == 0:
                self._of_process = counts
            self._n_inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._n_inside -= 1
            own = self._of_thread.counts.pop()
            for library, mine, common in zip(blas_libraries(), own, self._of_process, strict=True):
                if library.internal_api == "mkl" or getattr(library, "threading_layer", "") == "openmp":
                    library.set_num_threads(mine)
                elif self._n_inside == 0:
                    library.set_num_threads(common)
                if hasattr(library, "clear_controlling_thread"):
                    # threadpoolctl >= 3.8 lets no other thread set the number of BLAS threads until this call
                    library.clear_controlling_thread()


one_blas_thread = OneThread()


@inlined
def add_scaled4(
    f0: float, x0: Vector, f1: float, x1: Vector, f2: float, x2: Vector, f3: float, x3: Vector, out: Vector
) -> None:
    """Add f0 x0 + f1 x1 + f2 x2 + f3 x3 to the vector `out`, in one pass over the vectors."""
    for i in range(out.size):
        out[i] += (f0 * x0[i] + f1 * x1[i]) + (f2 * x2[i] + f3 * x3[i])


@inlined
def add_scaled(f: float, x: Vector, out: Vector) -> None:
    """Add f x to the vector `out`."""
    for i in range(out.size):
        out[i] += f * x[i]


U64 = np.uint64  # with signed indices, numba adds tests for negative ones, and loops are not vectorised

# If a pivot of a Cholesky factorisation is at most this fraction of the diagonal entry of the matrix, the
# column is treated as linearly dependent on earlier columns, and its coefficient in a solution is 0.
SINGULAR = 1e-13


@inlined
def eliminate(
    W: Matrix, first: int, count: int, Y: Matrix, begin: int, end: int, lo: int, hi: int, upper: bool
) -> None:
    """Subtract multiples of some rows of Y (first, ..., first + count - 1) from others (begin, ..., end - 1).

    For begin <= i < end and lo <= l < hi, Y[i, l] -= sum_r W[first + r, i] * Y[first + r, l], r < count <= 4.
    If `upper` is True, the caller does not need entries with l < i, and most of them are skipped. This is the
    inner step of triangular factorisations and solves. For speed, it updates two rows at a time.
    """
    stop = U64(hi)
    if count < 4:
        for i in range(begin, end):
            ui, start = U64(i), U64(max(lo, i) if upper else lo)
            for r in range(first, first + count):
                ur, f = U64(r), W[r, i]
                for l in range(start, stop):
                    Y[ui, l] -= f * Y[ur, l]
        return
    a, b, c, d = U64(first), U64(first + 1), U64(first + 2), U64(first + 3)
    i = begin
    while i < end:
        ui, start = U64(i), U64(max(lo, i) if upper else lo)
        f0, f1, f2, f3 = W[a, ui], W[b, ui], W[c, ui], W[d, ui]
        if i + 1 == end:
            for l in range(start, stop):
                Y[ui, l] -= (f0 * Y[a, l] + f1 * Y[b, l]) + (f2 * Y[c, l] + f3 * Y[d, l])
            return
        vi = U64(i + 1)
        g0, g1, g2, g3 = W[a, vi], W[b, vi], W[c, vi], W[d, vi]
        for l in range(start, stop):
            y0, y1, y2, y3 = Y[a, l], Y[b, l], Y[c, l], Y[d, l]
            Y[ui, l] -= (f0 * y0 + f1 * y1) + (f2 * y2 + f3 * y3)
            Y[vi, l] -= (g0 * y0 + g1 * y1) + (g2 * y2 + g3 * y3)
        i += 2


@inlined
def cholesky(H: Matrix, k: int) -> None:
    """Replace the upper triangle of H[:k, :k] by the upper triangular U for which H[:k, :k] = U'U.

    Entries of H below the diagonal have no meaning afterwards. If column j of H depends linearly on earlier
    columns, U[j, j] becomes infinite and the rest of row j zero, so that entry j of a solution is 0.
    """
    diagonal = np.empty(k)
    for j in range(k):
        diagonal[j] = H[j, j]
    stop = U64(k)
    for first in range(0, k, 4):
        last = min(first + 4, k)
        for j in range(first, last):
            eliminate(H, first, j - first, H, j, j + 1, j, k, True)
            uj, inverse = U64(j), 0.0
            if H[j, j] > SINGULAR * diagonal[j]:
                H[j, j] = np.sqrt(H[j, j])
                inverse = 1.0 / H[j, j]
            else:
                H[j, j] = np.inf
            for l in range(U64(j + 1), stop):
                H[uj, l] *= inverse
        eliminate(H, first, last - first, H, last, k, last, k, True)


@inlined
def solve(U: Matrix, k: int, x: Vector) -> None:
    """Replace the vector x by (U'U)^-1 x, where the k x k matrix U is the factor that `cholesky` computed."""
    stop = U64(k)
    for j in range(k):
        uj = U64(j)
        f = x[uj] / U[uj, uj]
        x[uj] = f
        for l in range(U64(j + 1), stop):
            x[l] -= f * U[uj, l]
    for j in range(k - 1, -1, -1):
        uj = U64(j)
        f = x[uj]
        for l in range(U64(j + 1), stop):
            f -= U[uj, l] * x[l]
        x[uj] = f / U[uj, uj]


@compiled
def order_smallest(values: Vector, count: int, limit: float = np.inf) -> Indices:
    """Return the indices of the `count` smallest values, smallest first; equal values are in index order.

    Infinity, NaN and values above `limit` are left out. A heap holds the indices of the smallest values found
    so far; at its root is the index of the largest of them, which is replaced when a smaller value is found.
    """
    heap = np.empty(min(count, values.size), np.int64)
    size = 0
    for i in range(values.size if heap.size else 0):
        v = values[i]
        if not (v < np.inf and v <= limit):
            continue
        if size < heap.size:
            h = size
            size += 1
            while h > 0:
                parent = (h - 1) // 2
                if values[heap[parent]] > v:
                    break
                heap[h] = heap[parent]
                h = parent
            heap[h] = i
        elif v < values[heap[0]]:
            _sift(values, heap, size, i)
    for last in range(size - 1, 0, -1):  # heap sort: move the index of the largest value to the end
        moved = heap[last]
        heap[last] = heap[0]
        _sift(values, heap, last, moved)
    return heap[:size].copy()


@inlined
def _sift(values: Vector, heap: Indices, size: int, item: int) -> None:
    """Replace the root of a max-heap of indices, ordered by (value, index), by `item`; restore the order."""
    h = 0
    while True:
        child = 2 * h + 1
        if child >= size:
            break
        if child + 1 < size:
            a, b = heap[child], heap[child + 1]
            if values[b] > values[a] or (values[b] == values[a] and b > a):
                child += 1
        a = heap[child]
        if values[a] > values[item] or (values[a] == values[item] and a > item):
            heap[h] = a
            h = child
        else:
            break
    heap[h] = item
