"""Small tables for the tests of the command line."""

import numpy as np
import pandas as pd


def make_table(n_rows=60, n_classes=2, seed=0):
    """Two columns that matter, three that do not, and classes with names."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 5)) * [1.0, 10.0, 0.1, 1.0, 1.0] + [0, 50, 0, 0, 5]
    signal = X[:, 0] + (X[:, 1] - 50) / 10 + 0.4 * rng.standard_normal(n_rows)
    edges = np.quantile(signal, np.arange(1, n_classes) / n_classes)
    names = np.array(["low", "mid", "top"] if n_classes == 3 else ["no", "yes"])
    frame = pd.DataFrame(X, columns=["age", "dose", "noise", "x y", "z"])
    frame["outcome"] = names[np.searchsorted(edges, signal)]
    return frame
