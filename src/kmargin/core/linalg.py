"""Compiled sums of vectors and small dense linear algebra, and BLAS kept to one thread."""

from functools import cache
from threading import Lock, local
from types import TracebackType
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.jit import compiled


@cache
def blas_libraries() -> list[Any]:
    """The libraries that are loaded; finding them takes longer than a small fit."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


class OneThread:
    """While somebody is inside, BLAS keeps to one thread.

    MKL, and whatever counts by OpenMP, has a number of threads for each thread that calls it: each
    gets its own back. The others have one for the process. There the first who enters notes it and
    the last who leaves restores it; if everybody restored what he found, a thread that ends would
    give BLAS its threads back while another still runs.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0
        self._of_process: list[int] = []
        self._of_thread = local()

    def __enter__(self) -> None:
        with self._lock:
            counts = [library.num_threads for library in blas_libraries()]
            self._of_thread.counts = [*getattr(self._of_thread, "counts", []), counts]
            if self._n_inside == 0:
                self._of_process = counts
            self._n_inside += 1
            for library in blas_libraries():
                library.set_num_threads(1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._n_inside -= 1
            own = self._of_thread.counts.pop()
            for library, mine, common in zip(blas_libraries(), own, self._of_process, strict=True):
                if _counts_by_thread(library):
                    library.set_num_threads(mine)
                elif self._n_inside == 0:
                    library.set_num_threads(common)
                if hasattr(library, "clear_controlling_thread"):
                    # since threadpoolctl 3.8 only who set a number may set it again, unless he resigns
                    library.clear_controlling_thread()


def _counts_by_thread(library: Any) -> bool:
    return library.internal_api == "mkl" or getattr(library, "threading_layer", "") == "openmp"


one_blas_thread = OneThread()


@compiled
def axpy4(
    f0: float, x0: Vector, f1: float, x1: Vector, f2: float, x2: Vector, f3: float, x3: Vector, y: Vector
) -> None:
    """y += f0 x0 + f1 x1 + f2 x2 + f3 x3"""
    for l in range(y.size):
        y[l] += (f0 * x0[l] + f1 * x1[l]) + (f2 * x2[l] + f3 * x3[l])


@compiled
def axpy(f: float, x: Vector, y: Vector) -> None:
    """y += f x"""
    for l in range(y.size):
        y[l] += f * x[l]


@compiled
def add_products(x: Vector, y: Vector, out: Vector) -> None:
    """out += x y, number by number"""
    for l in range(out.size):
        out[l] += x[l] * y[l]


@compiled
def subtract_products(x: Vector, y: Vector, out: Vector) -> None:
    """out -= x y, number by number"""
    for l in range(out.size):
        out[l] -= x[l] * y[l]


@compiled
def scale(x: Vector, out: Vector) -> None:
    """out *= x, number by number"""
    for l in range(out.size):
        out[l] *= x[l]


@compiled
def dot(x: Vector, y: Vector) -> float:
    """Return x'y, in eight partial sums that the processor can add up independently."""
    n8 = x.size - x.size % 8
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for l in range(0, n8, 8):
        s0 += x[l] * y[l]
        s1 += x[l + 1] * y[l + 1]
        s2 += x[l + 2] * y[l + 2]
        s3 += x[l + 3] * y[l + 3]
        s4 += x[l + 4] * y[l + 4]
        s5 += x[l + 5] * y[l + 5]
        s6 += x[l + 6] * y[l + 6]
        s7 += x[l + 7] * y[l + 7]
    for l in range(n8, x.size):
        s0 += x[l] * y[l]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


U64 = np.uint64

# a pivot below this share of its diagonal marks a dependent column
SINGULAR = 1e-13


@compiled
def eliminate(
    W: Matrix, first: int, count: int, Y: Matrix, begin: int, end: int, lo: int, hi: int, upper: bool
) -> None:
    """Y[i, l] -= sum_r W[first + r, i] * Y[first + r, l] for begin <= i < end, lo <= l < hi (from i
    if `upper`).

    The inner step of every triangular sweep below: count <= 4 rows act on all the following ones,
    two at a time.
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


@compiled
def cholesky(H: Matrix, k: int, dead: Vector) -> None:
    """Factor H[:k, :k] = U'U in place (upper; what lies below is scratch), four pivots at a time.

    A column that depends on earlier ones is marked dead: its row is 0 and its pivot a small
    positive number.
    """
    for j in range(k):
        dead[j] = H[j, j]  # the diagonal before elimination, to judge the pivot
    stop = U64(k)
    for first in range(0, k, 4):
        last = min(first + 4, k)
        for j in range(first, last):
            eliminate(H, first, j - first, H, j, j + 1, j, k, True)
            floor = SINGULAR * dead[j]
            uj = U64(j)
            if H[j, j] > floor:
                dead[j] = 0.0
                H[j, j] = np.sqrt(H[j, j])
                inv = 1.0 / H[j, j]
                for l in range(U64(j + 1), stop):
                    H[uj, l] *= inv
            else:
                dead[j] = 1.0
                H[j, j] = np.sqrt(floor) if floor > 0.0 else 1.0
                for l in range(U64(j + 1), stop):
                    H[uj, l] = 0.0
        eliminate(H, first, last - first, H, last, k, last, k, True)


@compiled
def solve(U: Matrix, k: int, dead: Vector, x: Vector) -> None:
    """x <- (U'U)^-1 x, with zero in the dead coordinates."""
    stop = U64(k)
    for j in range(k):
        uj = U64(j)
        f = x[uj] / U[uj, uj] if dead[uj] == 0.0 else 0.0
        x[uj] = f
        for l in range(U64(j + 1), stop):
            x[l] -= f * U[uj, l]
    for j in range(k - 1, -1, -1):
        uj = U64(j)
        f = x[uj]
        for l in range(U64(j + 1), stop):
            f -= U[uj, l] * x[l]
        x[uj] = f / U[uj, uj] if dead[uj] == 0.0 else 0.0


@compiled
def smallest(values: Vector, n: int, c: int, out: Indices) -> int:
    """Positions of the c smallest of values[:n], in increasing value, ties in index order (a heap
    of size c).
    """
    if c == 0:
        return 0
    size = 0
    for i in range(n):
        v = values[i]
        if size == c and not v < values[out[0]]:
            continue
        if size < c:
            h = size
            size += 1
            while h > 0:
                parent = (h - 1) // 2
                if values[out[parent]] >= v:  # on a tie the newer (larger) index sits nearer the root
                    if values[out[parent]] > v:
                        break
                out[h] = out[parent]
                h = parent
            out[h] = i
        else:
            h = _sift(values, out, size, i)
    for last in range(size - 1, 0, -1):  # heap sort: the largest goes to the end
        moved = out[last]
        out[last] = out[0]
        _sift(values, out, last, moved)
    return size


@compiled
def _sift(values: Vector, heap: Indices, size: int, item: int) -> int:
    """Put item at the root of a max-heap ordered by (value, index)."""
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
    return h
