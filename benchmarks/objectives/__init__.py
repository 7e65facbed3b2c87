"""How results are scored. Written apart from the package, so that it cannot share its mistakes."""

from benchmarks.objectives.probabilities import brier, calibration_error, log_loss
from benchmarks.objectives.refit import Refit, objective, refit
from benchmarks.objectives.scores import accuracy, f1, mean_features, predict, share_found

__all__ = [
    "Refit",
    "accuracy",
    "brier",
    "calibration_error",
    "f1",
    "log_loss",
    "mean_features",
    "objective",
    "predict",
    "refit",
    "share_found",
]
