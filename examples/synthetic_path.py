"""The paper's `synthetic` example along its own grid of sparsities.

Two of 500 features decide the label. The path runs from all features to one; watch the accuracy on
new data rise as features leave, until the two that matter are left, and fall when one of them goes.
"""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kmargin import sparse_svm_path
from kmargin.datasets import make_synthetic
from kmargin.sparsity import count_kept

SPARSITIES = np.concatenate([np.linspace(*ends, 5) for ends in [(0, 0.9), (0.91, 0.99), (0.991, 0.999)]])
N_TRAIN = 800


def run(solver: str, X: np.ndarray, y: np.ndarray) -> None:
    train, test = slice(None, N_TRAIN), slice(N_TRAIN, None)
    ks = [count_kept(s, X.shape[1]) for s in SPARSITIES]
    sparse_svm_path(X[:60], y[:60], [500, 300, 2, 1], solver=solver)  # compiles, or loads what was compiled
    started = time.perf_counter()
    path = sparse_svm_path(X[train], y[train], ks, C=np.inf, solver=solver, verbose=1)
    seconds = time.perf_counter() - started
    print(f"\n{solver}: {len(path.ks)} machines in {seconds:.2f} s")
    print(f"{'k':>5} {'sparsity':>9} {'objective':>10} {'steps':>6} {'train':>7} {'test':>7}  features kept")
    for k, (solution,) in zip(path.ks, path.solutions, strict=True):
        accuracy = [np.mean(path.predict(X[rows], k) == y[rows]) for rows in (train, test)]
        kept = ", ".join(map(str, solution.support)) if k <= 5 else f"{len(solution.support)} of {X.shape[1]}"
        print(
            f"{k:>5} {1 - k / X.shape[1]:>9.1%} {solution.objective:>10.2e} {solution.n_iter:>6} "
            f"{accuracy[0]:>7.1%} {accuracy[1]:>7.1%}  {kept}"
        )
    print()


def main() -> None:
    # the paper's second stopping rule ends some runs of mm and sd early
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y, coef = make_synthetic(1000, 500, random_state=0, return_coef=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    causal = " and ".join(map(str, np.flatnonzero(coef)))
    print(f"1000 samples, 500 features; the label depends on features {causal} alone.")
    for solver in ("exchange", "mm", "sd"):
        run(solver, X, y)


if __name__ == "__main__":
    main()
