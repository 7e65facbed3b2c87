"""Compiles what most tests call, before they run side by side: else each process would compile it for itself.

python tests/helpers/compile_first.py
"""

import warnings

import numpy as np
import scipy.sparse as sp

from kmargin import KernelSparseSVC, SparseSVC, sparse_svm_path

FORMS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "float32": np.float32,
    "float32, Fortran order": lambda X: np.asfortranarray(X, np.float32),
    "CSR": sp.csr_array,
    "CSR, float32": lambda X: sp.csr_array(X, dtype=np.float32),
}


def main() -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20)) * (rng.random((60, 20)) < 0.7)
    two, three = X[:, 0] + rng.standard_normal(60) > 0, np.digitize(X[:, 0], [-0.3, 0.3])
    for name, form in FORMS.items():
        for solver in ("exchange", "sd") if "CSR" in name else ("exchange", "sd", "mm"):
            for y in (two, three):
                SparseSVC(k=3, solver=solver).fit(form(X), y)
        sparse_svm_path(form(X), two, [20, 10, 5, 2])
    SparseSVC(k=3, signs=np.ones(20)).fit(X, two)
    KernelSparseSVC(k=3).fit(X, three)
    wide = rng.standard_normal((30, 700))
    for k in (3, 200):
        SparseSVC(k=k).fit(wide, wide[:, 0] > 0)


if __name__ == "__main__":
    main()
