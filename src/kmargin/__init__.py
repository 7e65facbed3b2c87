"""Support vector machines that use at most k features, or at most k training points.

A submodule is imported when one of its public names is first used. The workers of a dask cluster, which need
few submodules, thus do not spend memory on numba and scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kmargin.core.validation import GridEdgeWarning, InputError, RepeatedFeaturesWarning
    from kmargin.displays import CoefficientDisplay, ConvergenceDisplay, CVScoreDisplay, SparsityPathDisplay
    from kmargin.estimators import (
        KernelSparseSVC,
        KernelSparseSVCCV,
        SparseSVC,
        SparseSVCCV,
        StabilitySelection,
        sparse_svm_path,
        stability_C,
    )
    from kmargin.fitting.path import SparsityPath
    from kmargin.fitting.subsampling import SelectionBounds, stability_bounds, stability_k
    from kmargin.model_selection.nested import HonestScore, honest_score
    from kmargin.model_selection.scores import BlockKFold
    from kmargin.solvers import (
        MM,
        SD,
        Ending,
        Exchange,
        OuterRecord,
        Regime,
        Solution,
        Solver,
        Status,
        StepRecord,
    )
    from kmargin.tables import load_model, save_model

__all__ = [
    "MM",
    "SD",
    "BlockKFold",
    "CVScoreDisplay",
    "CoefficientDisplay",
    "ConvergenceDisplay",
    "Ending",
    "Exchange",
    "GridEdgeWarning",
    "HonestScore",
    "InputError",
    "KernelSparseSVC",
    "KernelSparseSVCCV",
    "OuterRecord",
    "Regime",
    "RepeatedFeaturesWarning",
    "SelectionBounds",
    "Solution",
    "Solver",
    "SparseSVC",
    "SparseSVCCV",
    "SparsityPath",
    "SparsityPathDisplay",
    "StabilitySelection",
    "Status",
    "StepRecord",
    "honest_score",
    "load_model",
    "save_model",
    "sparse_svm_path",
    "stability_C",
    "stability_bounds",
    "stability_k",
]

__version__ = "0.1.0"

# For each module, the public names that `__getattr__` imports from it when they are first used.
_HOMES = {
    "kmargin.fitting.subsampling": ("SelectionBounds", "stability_bounds", "stability_k"),
    "kmargin.displays": ("CoefficientDisplay", "ConvergenceDisplay", "CVScoreDisplay", "SparsityPathDisplay"),
    "kmargin.core.validation": ("GridEdgeWarning", "InputError", "RepeatedFeaturesWarning"),
    "kmargin.estimators": (
        "KernelSparseSVC",
        "KernelSparseSVCCV",
        "SparseSVC",
        "SparseSVCCV",
        "StabilitySelection",
        "sparse_svm_path",
        "stability_C",
    ),
    "kmargin.model_selection.nested": ("HonestScore", "honest_score"),
    "kmargin.tables": ("load_model", "save_model"),
    "kmargin.fitting.path": ("SparsityPath",),
    "kmargin.model_selection.scores": ("BlockKFold",),
    "kmargin.solvers": (
        "MM",
        "SD",
        "Ending",
        "Exchange",
        "OuterRecord",
        "Regime",
        "Solution",
        "Solver",
        "Status",
        "StepRecord",
    ),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(home), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
