"""X as the solvers see it: dense, sparse, or the values of a kernel."""

from typing import Any

import numpy as np
import scipy.sparse

from kmargin.design import dense
from kmargin.design.dense import DenseDesign
from kmargin.design.kernel import KernelDesign
from kmargin.design.protocol import Columns, Design, Moments, ThinSVD
from kmargin.design.sparse import SparseDesign, canonical
from kmargin.types import Indices

__all__ = [
    "Columns",
    "DenseDesign",
    "Design",
    "KernelDesign",
    "Moments",
    "SparseDesign",
    "ThinSVD",
    "canonical",
    "distinct_columns",
    "distinct_rows",
    "make_design",
    "n_bytes",
]


def make_design(X: Any, fit_intercept: bool = True) -> Design:
    """The design of an array or of a sparse matrix."""
    kind = SparseDesign if scipy.sparse.issparse(X) else DenseDesign
    return kind(X, fit_intercept)


def n_bytes(X: Any) -> int:
    """The memory that an array or a CSR matrix takes."""
    if scipy.sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def distinct_rows(X: Any) -> Indices:
    """The rows of X that repeat no earlier one, ascending."""
    if scipy.sparse.issparse(X):
        return distinct_columns(X.T)
    return np.sort(np.unique(X, axis=0, return_index=True)[1])


def distinct_columns(X: Any) -> Indices:
    """The columns of X that repeat no earlier one, ascending."""
    return SparseDesign(X).distinct_columns() if scipy.sparse.issparse(X) else dense.distinct_columns(X)
