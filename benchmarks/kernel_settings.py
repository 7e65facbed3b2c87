"""How C, gamma and k of `kernel_blocks` were chosen; of all rows only those to fit to are looked at.

    python -m benchmarks.kernel_settings shells

SVC first: the C and gamma of a grid that predict the last fifth of the rows best after a fit to the
others. Then k: a twentieth of the points that SVC keeps with these, of all rows. Then ours, with that k,
by the same grid and the same rows. C grows while that helps; ties go to the smaller C, then gamma.
"""

import sys

from sklearn.base import ClassifierMixin
from sklearn.svm import SVC

from benchmarks.cases.kernel_blocks import N_TEST, PROBLEMS, ROWS
from benchmarks.datasets import Dataset
from benchmarks.solvers.fit import unfinished_allowed
from kmargin import KernelSparseSVC

CS = (1.0, 10.0, 100.0)
GAMMAS = {
    "clusters": (0.02, 0.04, 0.08),
    "shells": (0.1, 0.2, 0.4),
    "arms": (0.4, 0.8, 1.6),
    "letters": (4.0, 8.0, 16.0),
}


def best_of_grid(model: ClassifierMixin, data: Dataset) -> tuple[float, float]:
    n = 4 * len(data.y) // 5
    best, setting = 0.0, (CS[0], GAMMAS[data.name][0])
    for C in CS:
        before = best
        for gamma in GAMMAS[data.name]:
            with unfinished_allowed():
                model.set_params(C=C, gamma=gamma).fit(data.X[:n], data.y[:n])
            score = model.score(data.X[n:], data.y[n:])
            print(f"{type(model).__name__} C = {C:g}, gamma = {gamma:g}: {score:.5f}", flush=True)
            if score > best:
                best, setting = score, (C, gamma)
        if best == before:
            break
    return setting


def main(names: list[str]) -> None:
    for make in PROBLEMS:
        data = make(ROWS["default"], N_TEST)
        if names and data.name not in names:
            continue
        C, gamma = best_of_grid(SVC(), data)
        k = len(SVC(C=C, gamma=gamma).fit(data.X, data.y).support_) // 20
        ours = best_of_grid(KernelSparseSVC(k, random_state=0), data)
        print(f"{data.name}: k = {k}, ours {ours}, SVC {(C, gamma)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
