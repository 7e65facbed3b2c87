"""Matrices of many kinds, each a function of a random generator, a height and a width."""

import numpy as np


def gaussian(rng, n, p):
    return rng.standard_normal((n, p))


def binary(rng, n, p):
    return (rng.random((n, p)) < rng.choice([0.05, 0.4, 0.5])).astype(float)


def counts(rng, n, p):
    X = rng.poisson(rng.choice([0.3, 2.0, 30.0]), (n, p)).astype(float)
    return X * 10.0 ** rng.uniform(-8, 8) if rng.random() < 0.3 else X


def low_rank(rng, n, p):
    rank = int(rng.integers(1, max(2, min(n, p))))
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))


def heavy_tailed(rng, n, p):
    return rng.standard_t(rng.choice([1.0, 1.5, 3.0]), (n, p))


def autoregressive(rng, n, p):
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.81) * X[:, j]
    return X


def repeated_rows(rng, n, p):
    """Few distinct rows; their labels will contradict each other."""
    distinct = rng.standard_normal((max(1, n // 4), p))
    return distinct[rng.integers(0, len(distinct), n)]


def odd_columns(rng, n, p):
    """Constant, repeated, negated and collinear columns among others."""
    X = rng.standard_normal((n, p))
    for j in range(p):
        other = int(rng.integers(0, p))
        kind = rng.integers(0, 7)
        if kind == 0:
            X[:, j] = rng.choice([0.0, 0.1, 1.0, -3e5])
        elif kind == 1:
            X[:, j] = X[:, other]
        elif kind == 2:
            X[:, j] = -X[:, other]
        elif kind == 3:
            X[:, j] = X[:, other] * 2.0 + X[:, int(rng.integers(0, p))]
        elif kind == 4:
            X[:, j] = 7.0 * X[:, other] + 1.0
    return X


def nearly_collinear(rng, n, p):
    """Columns that differ from one another by little."""
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        if rng.random() < 0.6:
            X[:, j] = X[:, int(rng.integers(0, j))] + 10.0 ** rng.uniform(-14, -3) * X[:, j]
    return X


def zero(rng, n, p):
    """Nothing at all, or nearly."""
    X = np.zeros((n, p))
    if rng.random() < 0.3:
        X[int(rng.integers(0, n)), int(rng.integers(0, p))] = rng.choice([1.0, 1e-90, -1e90])
    return X


def scales(rng, n, p):
    """Columns in units that have nothing to do with each other."""
    X = MATRICES[rng.choice(["gaussian", "binary", "counts", "low_rank"])](rng, n, p)
    widest = rng.choice([6.0, 30.0, 90.0])
    powers = rng.uniform(-widest, widest, p)
    if rng.random() < 0.2:
        powers[:] = powers[0]
    return X * 10.0**powers


def spread(rng, n, p):
    """Columns spread over twelve orders of magnitude, as float32 still holds them."""
    X = MATRICES[rng.choice(["gaussian", "low_rank", "binary"])](rng, n, p)
    return X * 10.0 ** rng.uniform(-6, 6, p)


def offsets(rng, n, p):
    """Columns far from zero."""
    return rng.standard_normal((n, p)) + 10.0 ** rng.uniform(0, 9, p) * rng.choice([-1.0, 1.0], p)


_PLAIN = (gaussian, binary, counts, low_rank, heavy_tailed, autoregressive)
_ODD = (repeated_rows, odd_columns, nearly_collinear, zero, scales, spread, offsets)
PLAIN = [make.__name__ for make in _PLAIN]
MATRICES = {make.__name__: make for make in _PLAIN + _ODD}
