"""How good probabilities are; a column for each class, classes by their codes."""

import numpy as np

LEAST = 1e-15  # who is certain, and wrong, is not lost altogether
N_BINS = 15


def log_loss(P: np.ndarray, codes: np.ndarray) -> float:
    return float(-np.log(np.maximum(P[np.arange(len(P)), codes], LEAST)).mean())


def brier(P: np.ndarray, codes: np.ndarray) -> float:
    """The mean squared distance from the truth, summed over the classes."""
    return float(((P - np.eye(P.shape[1])[codes]) ** 2).sum(axis=1).mean())


def calibration_error(P: np.ndarray, codes: np.ndarray) -> float:
    """The mean difference of what was said and how often it came true.

    In bins of equally many rows for each class (for the second alone of two), and then over the classes.
    """
    columns = [1] if P.shape[1] == 2 else range(P.shape[1])
    errors = []
    for column in columns:
        said, true = P[:, column], codes == column
        bins = np.array_split(np.argsort(said, kind="stable"), N_BINS)
        errors.append(np.mean([abs(said[rows].mean() - true[rows].mean()) for rows in bins]))
    return float(np.mean(errors))
