"""A training set, a test set, and what is known about them."""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Dataset:
    """Rows to fit and rows to score; the causal features where they are known."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    X_valid: np.ndarray | None = None  # to choose among fits, where a case needs it
    y_valid: np.ndarray | None = None
    causal: np.ndarray | None = None  # indices of the features that decide the label

    def of_classes(self, n_classes: int | None) -> "Dataset":
        """The same data with only this many of its classes, spread evenly over them."""
        classes = np.unique(self.y)
        if n_classes is None or n_classes >= len(classes):
            return self
        kept = classes[np.linspace(0, len(classes) - 1, n_classes).round().astype(int)]
        train, test = np.isin(self.y, kept), np.isin(self.y_test, kept)
        name = f"{self.name} ({n_classes} of {len(classes)} classes)"
        return replace(
            self,
            name=name,
            X=self.X[train],
            y=self.y[train],
            X_test=self.X_test[test],
            y_test=self.y_test[test],
        )

    def of_features(self, n_features: int | None) -> "Dataset":
        """The same data with only its first features."""
        if n_features is None or n_features >= self.X.shape[1]:
            return self
        name = f"{self.name} (first {n_features} features)"
        X, X_test = (np.ascontiguousarray(A[:, :n_features]) for A in (self.X, self.X_test))
        return replace(self, name=name, X=X, X_test=X_test)

    def sample(self, n_per_class: int = 30, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
        """A few rows of a few classes: enough to compile every loop, too few to take time."""
        rows = [np.flatnonzero(self.y == c)[:n_per_class] for c in np.unique(self.y)[:n_classes]]
        rows = np.sort(np.concatenate(rows))
        return self.X[rows], self.y[rows]


def scale_to_unit(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features to [0, 1] by the range of the training rows; constant ones to 0."""
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    span = np.where(span > 0, span, 1.0)
    return (X - low) / span, (X_test - low) / span
