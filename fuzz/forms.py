"""The kinds of arrays, matrices and tables that callers pass as X."""

import importlib.util

import numpy as np
import scipy.sparse

ARRAYS = ("c", "fortran", "gaps", "reversed", "readonly", "frame", "list")
SPARSE = ("csr", "csc", "coo", "lil", "dok", "csr_messy", "csr_array", "coo_repeats")
FOREIGN = ("dask", "strict", "torch")


def dress(X, form, rng):
    """X in this form."""
    match form:
        case "c":
            return np.ascontiguousarray(X)
        case "csr" | "csc" | "coo" | "lil" | "dok":
            return getattr(scipy.sparse, f"{form}_matrix")(X)
        case "csr_array":
            return scipy.sparse.csr_array(X)
        case "csr_messy":
            return _messy(X, rng)
        case "coo_repeats":
            return _coo_repeats(X)
        case "fortran":
            return np.asfortranarray(X)
        case "gaps":
            return np.repeat(X, 2, axis=1)[:, ::2]
        case "reversed":
            return np.ascontiguousarray(X[::-1])[::-1]
        case "readonly":
            X = X.copy()
            X.flags.writeable = False
            return X
        case "list":
            return X.tolist()
        case "frame":
            import pandas as pd

            return pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
        case "dask":
            import dask.array

            chunks = int(rng.integers(1, len(X) + 1)), X.shape[1]
            return dask.array.from_array(np.asarray(X), chunks=chunks)
        case "torch" if importlib.util.find_spec("torch") is not None:
            import torch

            return torch.asarray(np.ascontiguousarray(X))
        case "strict" | "torch":
            import array_api_strict

            return array_api_strict.asarray(X)
    raise ValueError(f"{form!r} is not the name of a form.")


def _messy(X, rng):
    """CSR with explicit zeros and unsorted indices."""
    n, p = X.shape
    data, indices, indptr = [], [], [0]
    for i in range(n):
        stored = np.flatnonzero((X[i] != 0) | (rng.random(p) < 0.2))
        stored = rng.permutation(stored)
        indices.extend(stored)
        data.extend(X[i, stored])
        indptr.append(len(indices))
    return scipy.sparse.csr_matrix((np.array(data, dtype=X.dtype), indices, indptr), shape=X.shape)


def _coo_repeats(X):
    """COO in which every entry is the sum of two halves, where halves are exact."""
    where = np.nonzero(X)
    values = X[where]
    if X.dtype.kind == "f" and np.array_equal(values / 2 + values / 2, values):
        values, where = np.tile(values / 2, 2), np.tile(where, 2)
    return scipy.sparse.coo_matrix((values, tuple(where)), shape=X.shape)
