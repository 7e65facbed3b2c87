"""Sums of multiples of vectors, in compiled code."""

from kmargin.jit import compiled
from kmargin.types import Vector


@compiled
def axpy4(
    f0: float, x0: Vector, f1: float, x1: Vector, f2: float, x2: Vector, f3: float, x3: Vector, y: Vector
) -> None:
    """y += f0 x0 + f1 x1 + f2 x2 + f3 x3"""
    for l in range(y.size):  # noqa: E741
        y[l] += (f0 * x0[l] + f1 * x1[l]) + (f2 * x2[l] + f3 * x3[l])


@compiled
def axpy(f: float, x: Vector, y: Vector) -> None:
    """y += f x"""
    for l in range(y.size):  # noqa: E741
        y[l] += f * x[l]


@compiled
def add_products(x: Vector, y: Vector, out: Vector) -> None:
    """out += x y, number by number"""
    for l in range(out.size):  # noqa: E741
        out[l] += x[l] * y[l]


@compiled
def subtract_products(x: Vector, y: Vector, out: Vector) -> None:
    """out -= x y, number by number"""
    for l in range(out.size):  # noqa: E741
        out[l] -= x[l] * y[l]


@compiled
def scale(x: Vector, out: Vector) -> None:
    """out *= x, number by number"""
    for l in range(out.size):  # noqa: E741
        out[l] *= x[l]


@compiled
def dot(x: Vector, y: Vector) -> float:
    """x'y, eight sums at a time: one would wait for itself"""
    n8 = x.size - x.size % 8
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for l in range(0, n8, 8):  # noqa: E741
        s0 += x[l] * y[l]
        s1 += x[l + 1] * y[l + 1]
        s2 += x[l + 2] * y[l + 2]
        s3 += x[l + 3] * y[l + 3]
        s4 += x[l + 4] * y[l + 4]
        s5 += x[l + 5] * y[l + 5]
        s6 += x[l + 6] * y[l + 6]
        s7 += x[l + 7] * y[l + 7]
    for l in range(n8, x.size):  # noqa: E741
        s0 += x[l] * y[l]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
