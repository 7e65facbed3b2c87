"""Scores in words: per cent where a score is a share of the rows, plain numbers otherwise."""

import numpy as np

from kmargin.intervals import Interval

PERCENT = ("accuracy", "balanced_accuracy")
SCORE_NAMES = {
    "roc_auc": "area under the ROC curve",
    "balanced_accuracy": "balanced accuracy",
    "neg_log_loss": "negative log loss",
    "neg_brier_score": "negative Brier score",
}


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def score_text(scoring: str, score: float) -> str:
    return percent(score) if scoring in PERCENT else f"{score:.3f}"


def score_name(scoring: str) -> str:
    return SCORE_NAMES.get(scoring, scoring.replace("_", " "))


def interval_text(scoring: str, interval: Interval) -> str:
    """From here to there; what lies beyond is not known better."""
    if scoring in PERCENT:
        return f"{100 * max(interval.low, 0):.1f} to {100 * min(interval.high, 1):.1f} %"
    most = 0.0 if scoring.startswith("neg_") else np.inf
    return f"{interval.low:.3f} to {min(interval.high, most):.3f}"


def change_text(scoring: str, change: float) -> str:
    """A difference of scores: in percentage points where the score is a share."""
    points = 100 * change if scoring in PERCENT else change
    digits = 1 if scoring in PERCENT else 3
    points = round(points, digits) + 0.0  # no minus zero
    return f"{points:+.{digits}f}".replace("-", "−") if points else "±0"


def amount_text(scoring: str, change: float) -> str:
    """The size of a difference of scores, with its unit."""
    amount = change_text(scoring, abs(change)).lstrip("+±")
    return amount if scoring not in PERCENT else f"{amount} point" if amount == "1.0" else f"{amount} points"


def error_text(scoring: str, error: float) -> str:
    """The standard error of a difference of scores, in its unit."""
    return f"{100 * error:.1f}" if scoring in PERCENT else f"{error:.3f}"
