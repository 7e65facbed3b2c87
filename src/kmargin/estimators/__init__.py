"""The classifiers, and a selector of features that come back."""

from kmargin.estimators.cv import KernelSparseSVCCV, SparseSVCCV
from kmargin.estimators.half_model import stability_C
from kmargin.estimators.kernel import KernelSparseSVC
from kmargin.estimators.linear import SparseSVC
from kmargin.estimators.stability import StabilitySelection

__all__ = [
    "KernelSparseSVC",
    "KernelSparseSVCCV",
    "SparseSVC",
    "SparseSVCCV",
    "StabilitySelection",
    "stability_C",
]
