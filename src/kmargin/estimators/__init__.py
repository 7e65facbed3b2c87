"""The classifiers, and a selector of features that come back."""

from kmargin.estimators.cv import KernelSparseSVCCV, SparseSVCCV
from kmargin.estimators.kernel import KernelSparseSVC
from kmargin.estimators.linear import SparseSVC
from kmargin.estimators.stability import StabilitySelection, stability_C

__all__ = [
    "KernelSparseSVC",
    "KernelSparseSVCCV",
    "SparseSVC",
    "SparseSVCCV",
    "StabilitySelection",
    "stability_C",
]
