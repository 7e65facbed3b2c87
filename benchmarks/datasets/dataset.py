"""A training set, a test set, and what is known about them."""

import math
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

    @classmethod
    def split(cls, name, X, y, n_train, **known):
        """The first rows to fit and the others to score."""
        return cls(name, X[:n_train], y[:n_train], X[n_train:], y[n_train:], **known)

    @property
    def every_k(self):
        """All numbers of features from all of them to one, as in the paper's experiment with letters."""
        return list(range(self.X.shape[1], 0, -1))

    @property
    def paper_ks(self):
        """The paper's 15 sparsities as numbers of features; equal ones merge, and 0 is left out."""
        ends = ((0, 0.9), (0.91, 0.99), (0.991, 0.999))
        sparsities = np.concatenate([np.linspace(*pair, 5) for pair in ends])
        ks = {math.floor((1 - s) * self.X.shape[1] + 0.5 + 1e-9) for s in sparsities}
        return sorted(ks - {0}, reverse=True)

    def of_classes(self, n_classes):
        """The same data with only this many of its classes, spread evenly over them."""
        classes = np.unique(self.y)
        if n_classes is None or n_classes >= len(classes):
            return self
        kept = classes[np.linspace(0, len(classes) - 1, n_classes).round().astype(int)]
        train, test = np.isin(self.y, kept), np.isin(self.y_test, kept)
        name = f"{self.name} ({n_classes} of {len(classes)} classes)"
        X, y, X_test, y_test = self.X[train], self.y[train], self.X_test[test], self.y_test[test]
        return replace(self, name=name, X=X, y=y, X_test=X_test, y_test=y_test)

    def of_features(self, n_features):
        """The same data with only its first features."""
        if n_features is None or n_features >= self.X.shape[1]:
            return self
        name = f"{self.name} (first {n_features} features)"
        X, X_test = (np.ascontiguousarray(A[:, :n_features]) for A in (self.X, self.X_test))
        return replace(self, name=name, X=X, X_test=X_test)

    def sample(self, n_per_class=30, n_classes=3):
        """A few rows of a few classes: enough to compile every loop, too few to take time."""
        rows = [np.flatnonzero(self.y == c)[:n_per_class] for c in np.unique(self.y)[:n_classes]]
        rows = np.sort(np.concatenate(rows))
        return self.X[rows], self.y[rows]
