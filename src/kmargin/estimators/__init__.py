"""The classifiers, their path over k, and stability selection."""

from kmargin.estimators.cv import KernelSparseSVCCV, SparseSVCCV
from kmargin.estimators.kernel import KernelSparseSVC
from kmargin.estimators.linear import SparseSVC, sparse_svm_path
from kmargin.estimators.stability import StabilitySelection, stability_C

__all__ = [
    "KernelSparseSVC",
    "KernelSparseSVCCV",
    "SparseSVC",
    "SparseSVCCV",
    "StabilitySelection",
    "sparse_svm_path",
    "stability_C",
]
