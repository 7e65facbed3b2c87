"""Support vector machines that use at most k features, or at most k training points."""

from kmargin.displays import CoefficientDisplay, CVScoreDisplay, SparsityPathDisplay
from kmargin.estimators import KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV
from kmargin.path import SparsityPath, sparse_svm_path
from kmargin.solvers import MM, SD, Exchange, OuterRecord, Solution, Status

__version__ = "0.1.0"

__all__ = [
    "MM",
    "SD",
    "CVScoreDisplay",
    "CoefficientDisplay",
    "Exchange",
    "KernelSparseSVC",
    "KernelSparseSVCCV",
    "OuterRecord",
    "Solution",
    "SparseSVC",
    "SparseSVCCV",
    "SparsityPath",
    "SparsityPathDisplay",
    "Status",
    "sparse_svm_path",
]
