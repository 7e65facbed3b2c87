"""The classifiers."""

from kmargin.estimators.cv import KernelSparseSVCCV, SparseSVCCV
from kmargin.estimators.kernel import KernelSparseSVC
from kmargin.estimators.linear import SparseSVC

__all__ = ["KernelSparseSVC", "KernelSparseSVCCV", "SparseSVC", "SparseSVCCV"]
