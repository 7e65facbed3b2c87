"""Tables so small that the best of all their supports can be known."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer

from benchmarks.datasets.files import find

LAMS = (1e-1, 1e-2, 1e-3, 1e-4)


@dataclass(frozen=True)
class Table:
    """Two classes, labelled -1 and 1, with the sizes and ridges that are asked of it."""

    family: str
    name: str
    X: np.ndarray
    y: np.ndarray
    ks: tuple[int, ...]
    lams: tuple[float, ...] = LAMS
    fit_intercept: bool = True
    path_ks: tuple[int, ...] = ()  # sizes of a path, where one is asked for


def normal(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return rng.standard_normal((n, p))


def neighbours(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Each column has a correlation of 0.9 with the one before."""
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
    return X


def binary(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return (rng.random((n, p)) < rng.uniform(0.1, 0.6, p)).astype(float)


def heavy(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Student's t with 2 degrees of freedom: no variance."""
    return rng.standard_normal((n, p)) / np.sqrt(rng.standard_exponential((n, p)))


def counts(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return rng.poisson(rng.uniform(0.5, 5.0, p), (n, p)).astype(float)


FAMILIES = {
    "gaussian": normal,
    "AR(.9)": neighbours,
    "binary": binary,
    "heavy-tailed": heavy,
    "counts": counts,
}


def simulated(family: str, n: int, p: int, ks: tuple[int, ...], seed: int) -> Table:
    """Labels by 2 to 6 of the columns, with noise, the classes of equal size."""
    rng = np.random.default_rng([list(FAMILIES).index(family), n, seed])
    X = FAMILIES[family](rng, n, p)
    coef = np.zeros(p)
    causal = rng.permutation(p)[: rng.integers(2, 7)]
    coef[causal] = rng.choice([-1.0, 1.0], len(causal)) * rng.uniform(0.5, 1.5, len(causal))
    signal = X @ coef
    spread = np.subtract(*np.quantile(signal, [0.75, 0.25])) or 1.0
    signal = signal + 0.3 * spread * rng.standard_normal(n)
    y = np.where(np.argsort(np.argsort(signal, kind="stable")) >= n // 2, 1, -1)
    return Table(family, f"{family} {n} x {p}, seed {seed}", X, y, ks)


def standardised(X: np.ndarray) -> np.ndarray:
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def breast_cancer(
    ks: tuple[int, ...] = tuple(range(1, 11)),
    lams: tuple[float, ...] = LAMS,
    path_ks: tuple[int, ...] = (),
) -> Table:
    X, y = load_breast_cancer(return_X_y=True)
    return Table("breast cancer", "breast cancer", standardised(X), 2 * y - 1, ks, lams, path_ks=path_ks)


def genes(name: str, n_genes: int, by: str, ks: tuple[int, ...]) -> Table:
    """The genes of a set that vary most, or have the largest correlation with the class."""
    with np.load(find(f"extra/{name}.npz"), allow_pickle=False) as file:
        X, y = file["X"].astype(float), np.where(file["y"] == file["y"].max(), 1, -1)
    score = X.var(axis=0) if by == "variance" else np.abs(standardised(X).T @ y)
    kept = np.sort(np.argsort(-score, kind="stable")[:n_genes])
    title = f"{name} {len(y)} x {n_genes} by {by}"
    X = np.ascontiguousarray(standardised(X[:, kept]))
    return Table("genes", title, X, y, ks)


def leukaemia() -> Table:
    """300 genes without an intercept: a single fit can be far off here."""
    table = genes("golub", 300, "class", (4,))
    return Table(
        "genes", table.name + ", no intercept", table.X, table.y, (4,), lams=(0.1,), fit_intercept=False
    )


def small_tables(n_seeds: int = 12) -> Iterator[Table]:
    """All of them; genes are left out, with a line that says so, where their files are missing."""
    for family in FAMILIES:
        for seed in range(n_seeds):
            yield simulated(family, 80, 14, (2, 3, 4, 5, 6), seed)
    for seed in range(2 * n_seeds):
        yield simulated("AR(.9)", 60, 12, (4,), seed)
    yield breast_cancer()
    try:
        for name in ("colon", "golub"):
            for by in ("variance", "class"):
                yield genes(name, 200, by, (2, 3))
        yield leukaemia()
    except FileNotFoundError as error:
        print(f"    genes are left out: {error}", flush=True)
