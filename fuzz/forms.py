"""The kinds of X that callers bring: the same numbers in other clothes."""

import importlib.util

import numpy as np
import scipy.sparse

ARRAYS = ("c", "fortran", "gaps", "reversed", "readonly", "frame", "list")
SPARSE = ("csr", "csc", "coo", "lil", "dok", "csr_messy", "csr_array", "coo_repeats")
FOREIGN = ("dask", "strict", "torch")


def dress(X, form, rng):
    """X in this form."""
    if form in ("csr", "csc", "coo", "lil", "dok"):
        return getattr(scipy.sparse, f"{form}_matrix")(X)
    return _FORMS[form](X, rng)


def _gaps(X, rng):
    wide = np.zeros((X.shape[0], 2 * X.shape[1]), dtype=X.dtype)
    wide[:, ::2] = X
    return wide[:, ::2]


def _readonly(X, rng):
    X = X.copy()
    X.flags.writeable = False
    return X


def _frame(X, rng):
    import pandas as pd

    return pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])


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


def _coo_repeats(X, rng):
    """COO in which entries are given in two halves, which are to be added."""
    rows, columns = np.nonzero(X)
    values = X[rows, columns]
    if X.dtype.kind != "f":
        return scipy.sparse.coo_matrix((values, (rows, columns)), shape=X.shape)
    twice = np.concatenate([values / 2, values / 2])
    where = np.concatenate([rows, rows]), np.concatenate([columns, columns])
    halves = scipy.sparse.coo_matrix((twice, where), shape=X.shape)
    exact = np.array_equal(values / 2 + values / 2, values)
    return halves if exact else scipy.sparse.coo_matrix((values, (rows, columns)), shape=X.shape)


def _dask(X, rng):
    import dask.array

    return dask.array.from_array(np.asarray(X), chunks=(int(rng.integers(1, len(X) + 1)), X.shape[1]))


def _strict(X, rng):
    import array_api_strict

    return array_api_strict.asarray(X)


def _torch(X, rng):
    if importlib.util.find_spec("torch") is None:
        return _strict(X, rng)
    import torch

    return torch.asarray(np.ascontiguousarray(X))


_FORMS = {
    "c": lambda X, rng: np.ascontiguousarray(X),
    "fortran": lambda X, rng: np.asfortranarray(X),
    "gaps": _gaps,
    "reversed": lambda X, rng: np.ascontiguousarray(X[::-1])[::-1],
    "readonly": _readonly,
    "frame": _frame,
    "list": lambda X, rng: X.tolist(),
    "csr_array": lambda X, rng: scipy.sparse.csr_array(X),
    "csr_messy": _messy,
    "coo_repeats": _coo_repeats,
    "dask": _dask,
    "strict": _strict,
    "torch": _torch,
}
