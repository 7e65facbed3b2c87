"""The classifiers."""

from kmargin.estimators.kernel import KernelSparseSVC
from kmargin.estimators.linear import SparseSVC

__all__ = ["KernelSparseSVC", "SparseSVC"]
