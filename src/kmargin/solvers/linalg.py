"""Small dense linear algebra in compiled code: triangular systems, and the smallest of many numbers.

Matrices are upper triangles, row by row. Where an inner loop over a part of a row matters it uses
unsigned indices (U64): numba then knows that none is negative, and only then vectorises it.
"""

import numpy as np

from kmargin.jit import compiled
from kmargin.types import Indices, Matrix, Vector

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
