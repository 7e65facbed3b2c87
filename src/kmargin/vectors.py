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
