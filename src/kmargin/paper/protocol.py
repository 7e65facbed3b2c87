"""The settings of the paper's experiments, what a job and a fit are, and the splits and scalings of data."""

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from kmargin.core.arrays import Indices, Matrix
from kmargin.datasets import TABLE_1, load

SOLVERS = ("mm", "sd", "exchange")  # solvers of this package
PEERS = ("l2r", "l1r", "svc")  # competitors: LIBLINEAR with L2 or L1 penalty, and LIBSVM
PROTOCOLS = ("paper", "shuffled")  # how training and test rows are split: in file order, or at random

DATASETS = tuple(sorted(TABLE_1))  # all data sets of the paper, in the order of its Table 3
SHIPPED = ("iris", "spiral", "synthetic")  # data sets that need no download: simulated or in the package

TRUE_SIZE = 50  # number of causal features in the simulation of Figure 2
GAMMA = 0.5  # gamma of the RBF kernel exp(-gamma * distance**2), which only the data set `spiral` is run with
# C of the solver Exchange. MM and SD are run without a ridge, as in the paper. All data sets share this C,
# because C = 1, 10 or 100 changes the mean validation accuracy over data sets by only 0.3 percentage points.
EXCHANGE_C = 10.0


@dataclass(frozen=True)
class Settings:
    """The settings that results of the experiments depend on. The default sizes are those of the paper."""

    seed: int = 1903
    n_folds: int = 10
    n_folds_run: int = 10  # only the first `n_folds_run` of the `n_folds` folds are run
    n_starts: int = 100  # number of random starts of each solver on each data set, for Figure 1
    n_draws: int = 10  # number of simulated data sets of each shape, for Figure 2
    # (samples, features) of the simulated data on the left side of Figure 2; sizes on its right side follow
    shapes: tuple[tuple[int, int], ...] = ((500, 1000), (1000, 500), (2000, 500))
    sample_sizes: tuple[int, ...] = (250, 500, 1000, 2000, 4000, 8000)  # Figure 2: samples at 500 features
    feature_sizes: tuple[int, ...] = (250, 500, 1000, 2000, 4000, 8000)  # Figure 2: features at 500 samples
    exchange_C: float = EXCHANGE_C
    gamma: float = GAMMA

    def to_dict(self) -> dict[str, Any]:
        """The settings as they are read from `manifest.json`: with lists instead of tuples."""
        return dict(json.loads(json.dumps(asdict(self))))


QUICK = Settings(
    n_folds_run=3,
    n_starts=10,
    n_draws=2,
    shapes=((500, 1000), (1000, 500)),
    sample_sizes=(250, 500, 1000, 2000),
    feature_sizes=(250, 500, 1000),
)

_FINE = tuple(
    float(round(s, 6)) for ends in ((0.0, 0.9), (0.91, 0.99), (0.991, 0.999)) for s in np.linspace(*ends, 5)
)
_COARSE = {
    "iris": tuple(i / 4 for i in range(4)),
    "letter-recognition": tuple(i / 16 for i in range(16)),
    "breast-cancer-wisconsin": tuple(i / 10 for i in range(10)),
}
_COSTS = tuple(round(1 - s, 6) for s in _FINE)


def sparsities(dataset: str) -> tuple[float, ...]:
    """The paper's grid of sparsities s = 1 - k/p for a data set, in ascending order."""
    return _COARSE.get(dataset, _FINE)


def costs(dataset: str) -> tuple[float, ...]:
    """The paper's grid of C for fits of LIBLINEAR and LIBSVM to a data set, in descending order."""
    if dataset == "iris":
        return (1.0, 0.1, 0.01, 0.001)
    if dataset == "breast-cancer-wisconsin":
        return _COSTS[:10]
    return (*_COSTS, 1e-4) if dataset == "letter-recognition" else _COSTS


def recovery_sparsities(n_features: int) -> tuple[float, ...]:
    """The sparsities of Figure 2, ascending. They contain that of the true coefficients, 1 - 50/p."""
    grid = {i / 10 for i in range(10)} | {0.93, 0.97, 0.99}
    return tuple(sorted(grid | {1 - TRUE_SIZE / n_features}))


class Fit(NamedTuple):
    """One fit of an experiment to all classes of a data set. Its results are one row of `rows.csv`."""

    replicate: int  # index of the fold, random start or simulated data set (depending on the experiment)
    parameter: float  # the sparsity s = 1 - k/p; for LIBLINEAR and LIBSVM it is C


class Job(NamedTuple):
    """Fits of one solver to one data set. One process runs them in turn; their results are saved together."""

    experiment: str
    protocol: str
    dataset: str
    solver: str
    fits: tuple[Fit, ...]


class Data(NamedTuple):
    """A data set before scaling, the indices of its training and test rows, and how it is to be scaled."""

    X: Matrix
    y: np.ndarray
    train: Indices
    test: Indices
    scaling: str
    protocol: str


class Fold(NamedTuple):
    """A data set scaled for one fold, and the indices of the training, validation and test rows."""

    X: Matrix
    y: np.ndarray
    train: Indices
    validation: Indices
    test: Indices


@lru_cache(maxsize=2)
def read(dataset: str, protocol: str, seed: int) -> Data:
    """Load or simulate a data set; split it in file order (protocol "paper") or at random ("shuffled")."""
    X, y = load(dataset, random_state=seed, return_X_y=True)
    entry = TABLE_1[dataset]
    n = len(y)
    if protocol == "paper":
        train, test = np.arange(n)[: entry.n_train], np.arange(n)[entry.n_train :]
    else:
        rows = train_test_split(np.arange(n), train_size=entry.n_train, stratify=y, random_state=seed)
        train, test = map(np.sort, rows)
    return Data(X, y, train, test, entry.scaling, protocol)


def scale(X: Matrix, by: Matrix, scaling: str) -> Matrix:
    """Scale X by column means and standard deviations ("zscore") or minima and ranges of the rows `by`."""
    if scaling == "none":
        return X
    if scaling == "zscore":
        shift, size = by.mean(axis=0), by.std(axis=0)
    else:
        shift, size = by.min(axis=0), by.max(axis=0) - by.min(axis=0)
    return (X - shift) / np.where(size > 0, size, 1.0)


def whole(data: Data) -> Fold:
    """All training rows of a data set, scaled, as one fold without validation rows."""
    return _scaled(data, data.train, data.train[:0])


def folds(data: Data, n_folds: int, seed: int) -> list[tuple[Indices, Indices]]:
    """The indices of the training and validation rows of each cross-validation fold of the training set."""
    if data.protocol == "paper":
        splits = KFold(n_folds).split(data.train)
    else:
        splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        splits = splitter.split(data.train, data.y[data.train])
    return [(data.train[fit], data.train[validate]) for fit, validate in splits]


def fold(data: Data, settings: Settings, number: int) -> Fold:
    """The cross-validation fold with this number (counted from 0), with features scaled for it."""
    return _scaled(data, *folds(data, settings.n_folds, settings.seed)[number])


def _scaled(data: Data, train: Indices, validation: Indices) -> Fold:
    """Make a fold, with features scaled by all rows, as in the paper, or ("shuffled") by the rows `train`."""
    by = data.X if data.protocol == "paper" else data.X[train]
    return Fold(scale(data.X, by, data.scaling), data.y, train, validation, data.test)
