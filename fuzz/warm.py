"""Compile what most cases and tests call, before any clock is running: `python -m fuzz.warm`.

numba keeps the machine code on disk. Without this, processes that run side by side would each compile it, and
the first case of a kind would seem to take seconds.
"""

import importlib
import warnings
from contextlib import suppress
from itertools import product

import numpy as np

from fuzz.forms import dress
from kmargin import KernelSparseSVC, SparseSVC, sparse_svm_path


def warm_up():
    for name in ("pandas", "dask.array", "array_api_strict", "torch"):
        with suppress(ImportError):
            importlib.import_module(name)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20)) * (rng.random((60, 20)) < 0.7)
    two, three = X[:, 0] + rng.standard_normal(60) > 0, np.digitize(X[:, 0], [-0.3, 0.3])
    wide = rng.standard_normal((30, 700))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for form, dtype in product(("c", "fortran", "csr_array"), (np.float64, np.float32)):
            dressed = dress(X.astype(dtype), form, rng)
            for solver in ("exchange", "sd") if form == "csr_array" else ("exchange", "sd", "mm"):
                for y in (two, three):
                    SparseSVC(k=3, solver=solver).fit(dressed, y)
            sparse_svm_path(dressed, two, [20, 10, 5, 2], C=np.inf)
        SparseSVC(k=3, signs=np.ones(20)).fit(X, two)
        SparseSVC(k=3, groups=np.arange(20) // 2).fit(X, three)
        KernelSparseSVC(k=3).fit(X, three)
        for k in (3, 200):  # 200: more features than rows
            SparseSVC(k=k).fit(wide, wide[:, 0] > 0)


if __name__ == "__main__":
    warm_up()
