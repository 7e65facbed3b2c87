"""The grids of the paper's experiments, and how a ridge is written."""

import math

import numpy as np

SPARSITIES = np.concatenate([np.linspace(*ends, 5) for ends in [(0, 0.9), (0.91, 0.99), (0.991, 0.999)]])
CS = np.concatenate([np.linspace(*ends, 5) for ends in [(1, 0.1), (0.09, 0.01), (0.009, 0.001)]])
CS_LETTERS = np.append(CS, 1e-4)


def ks_of_sparsities(n_features: int) -> list[int]:
    """The paper's 15 sparsities as numbers of features; those that round to the same k, or to 0, merge."""
    ks = {math.floor((1 - s) * n_features + 0.5 + 1e-9) for s in SPARSITIES}
    return sorted(ks - {0}, reverse=True)


def ks_all(n_features: int) -> list[int]:
    """Every k, as the paper has it for the letters."""
    return list(range(n_features, 0, -1))


def C_of(lam: float, n_samples: int) -> float:
    """The C whose ridge is lam, for a problem of this many rows."""
    return 1 / (2 * lam * n_samples) if lam > 0 else math.inf


def lam_of(C: float, n_samples: int) -> float:
    """The ridge that C stands for."""
    return 1 / (2 * C * n_samples)
