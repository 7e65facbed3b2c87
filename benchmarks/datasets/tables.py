"""Two-class tables: small ones whose best supports are known, and those on which search effort is tuned."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
from sklearn.datasets import load_breast_cancer

from benchmarks.datasets.files import load, read_genes
from benchmarks.datasets.simulated import correlated

LAMS = (1e-1, 1e-2, 1e-3, 1e-4)
LETTER_KS, LETTER_LAM = (2, 4, 8), 1e-4


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


def gaussian(rng, n, p):
    return rng.standard_normal((n, p))


def heavy(rng, n, p):
    """Student's t with 2 degrees of freedom: no variance."""
    return rng.standard_normal((n, p)) / np.sqrt(rng.standard_exponential((n, p)))


def counts(rng, n, p):
    return rng.poisson(rng.uniform(0.5, 5.0, p), (n, p)).astype(float)


SMALL_FAMILIES = {
    "gaussian": gaussian,
    "AR(.9)": lambda rng, n, p: correlated(n, p, 0.9, rng),
    "binary": lambda rng, n, p: (rng.random((n, p)) < rng.uniform(0.1, 0.6, p)).astype(float),
    "heavy-tailed": heavy,
    "counts": counts,
}
POLICY_FAMILIES = {
    "gaussian": gaussian,
    "AR(.8)": lambda rng, n, p: correlated(n, p, 0.8, rng),
    "counts": counts,
    "heavy-tailed": heavy,
}


def standardised(X):
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def noisy_labels(columns, rng):
    """Two classes of equal size, by a noisy sum of these columns with random coefficients."""
    k = columns.shape[1]
    signal = columns @ (rng.choice([-1.0, 1.0], k) * rng.uniform(0.5, 1.5, k))
    spread = np.subtract(*np.quantile(signal, [0.75, 0.25])) or 1.0
    signal = signal + 0.3 * spread * rng.standard_normal(len(signal))
    return np.where(np.argsort(np.argsort(signal, kind="stable")) >= len(signal) // 2, 1, -1)


def simulated(family, n, p, ks, seed):
    """A small table, its labels by 2 to 6 of the columns."""
    rng = np.random.default_rng([list(SMALL_FAMILIES).index(family), n, seed])
    X = SMALL_FAMILIES[family](rng, n, p)
    causal = rng.permutation(p)[: rng.integers(2, 7)]
    return Table(family, f"{family} {n} x {p}, seed {seed}", X, noisy_labels(X[:, causal], rng), ks)


def breast_cancer(ks=tuple(range(1, 11)), lams=LAMS, path_ks=()):
    X, y = load_breast_cancer(return_X_y=True)
    return Table("breast cancer", "breast cancer", standardised(X), 2 * y - 1, ks, lams, path_ks=path_ks)


def few_genes(name, n_genes, by, ks):
    """The genes of a set that vary most, or have the largest correlation with the class."""
    X, y = read_genes(name)
    y = np.where(y == y.max(), 1, -1)
    score = X.var(axis=0) if by == "variance" else np.abs(standardised(X).T @ y)
    kept = np.sort(np.argsort(-score, kind="stable")[:n_genes])
    title = f"{name} {len(y)} x {n_genes} by {by}"
    return Table("genes", title, np.ascontiguousarray(standardised(X[:, kept])), y, ks)


def small_tables(n_seeds=12):
    """All small tables; genes are left out, with a line that says so, where their files are missing."""
    for family in SMALL_FAMILIES:
        for seed in range(n_seeds):
            yield simulated(family, 80, 14, (2, 3, 4, 5, 6), seed)
    for seed in range(2 * n_seeds):
        yield simulated("AR(.9)", 60, 12, (4,), seed)
    yield breast_cancer()
    try:
        for name in ("colon", "golub"):
            for by in ("variance", "class"):
                yield few_genes(name, 200, by, (2, 3))
        golub = few_genes(
            "golub", 300, "class", (4,)
        )  # without an intercept a single fit can be far off here
        yield replace(golub, name=f"{golub.name}, no intercept", lams=(0.1,), fit_intercept=False)
    except FileNotFoundError as error:
        print(f"    genes are left out: {error}", flush=True)


def letter_pairs():
    """A table for each pair of letters."""
    for negative, positive in combinations(np.unique(load("letters").y), 2):
        yield letters(negative, positive, LETTER_KS, (LETTER_LAM,))


def letters(negative, positive, ks=(4, 8), lams=(1e-2, 1e-3), path_ks=()):
    data = load("letters")
    rows = np.isin(data.y, (negative, positive))
    y = np.where(data.y[rows] == positive, 1, -1)
    return Table("letters", f"letters {negative}-{positive}", data.X[rows], y, ks, lams, path_ks=path_ks)


# Tables on which the effort of the search is compared.

POLICY_LAMS = (1e-1, 1e-2, 1e-3)
GENE_KS = (5, 10, 20)
PATH_KS = (20, 15, 10, 5, 3)
POLICY_SHAPES = (  # n, p, k, families
    (62, 2000, 5, tuple(POLICY_FAMILIES)),
    (62, 2000, 10, tuple(POLICY_FAMILIES)),
    (100, 5000, 10, tuple(POLICY_FAMILIES)),
    (100, 5000, 20, ("gaussian", "counts")),
    (150, 300, 10, tuple(POLICY_FAMILIES)),
    (150, 300, 20, tuple(POLICY_FAMILIES)),
    (500, 100, 10, tuple(POLICY_FAMILIES)),
    (300, 2000, 20, tuple(POLICY_FAMILIES)),
    (1000, 500, 50, tuple(POLICY_FAMILIES)),
    (2000, 2000, 20, tuple(POLICY_FAMILIES)),
)
WITH_PATHS = ((62, 2000, 10), (150, 300, 20), (300, 2000, 20))
POLICY_PAIRS = ("AH", "BR", "CG", "EF", "IJ", "MN", "OQ", "VY")


def policy_tables(only=""):
    """Those with this text in their name.

    Real ones are left out, with a line that says so, where their files are missing.
    """
    for name, make in table_makers():
        if only in name:
            try:
                yield replace(make(), name=name)
            except FileNotFoundError as error:
                print(f"    {name} is left out: {error}", flush=True)


def table_makers():
    for n, p, k, families in POLICY_SHAPES:
        for family in families:
            yield f"{family} {n}x{p}, {k} causal", partial(generated, family, n, p, k)
    yield "breast cancer", partial(breast_cancer, (3, 5, 10), POLICY_LAMS, (10, 8, 5, 3, 2))
    for pair in POLICY_PAIRS:
        path_ks = (12, 8, 4, 2) if pair in ("AH", "IJ") else ()
        yield f"letters {pair}", partial(letters, pair[1], pair[0], path_ks=path_ks)
    yield "colon 62x2000", partial(genes, "colon", (1,), path_ks=PATH_KS)
    yield "golub 72x7129", partial(genes, "golub", (1,), path_ks=PATH_KS)
    for label in (0, 2):
        yield f"srbct {label} or not 83x2308", partial(genes, "srbct", (label,))
    for first, second, n in ((0, 1, 1109), (0, 2, 651), (1, 2, 576)):
        make = partial(genes, "tcga_luad_coadread_10k", (first,), (first, second))
        yield f"tcga {first} or {second}, {n}x10000", make


def generated(family, n, p, k):
    """Labels by the sign of a noisy combination of k columns."""
    rng = np.random.default_rng([24, list(POLICY_FAMILIES).index(family), n, p, k])
    X = POLICY_FAMILIES[family](rng, n, p)
    y = noisy_labels(X[:, rng.permutation(p)[:k]], rng)
    path_ks = PATH_KS if (n, p, k) in WITH_PATHS else ()
    return Table(family, "", X, y, (k,), POLICY_LAMS, path_ks=path_ks)


def genes(file_name, positive, classes=None, path_ks=()):
    """Some classes of a gene set against the others, or against others of these classes."""
    X, y = read_genes(file_name)
    rows = np.isin(y, classes if classes is not None else np.unique(y))
    labels = np.where(np.isin(y[rows], positive), 1, -1)
    return Table("genes", "", standardised(X[rows]), labels, GENE_KS, POLICY_LAMS, path_ks=path_ks)
