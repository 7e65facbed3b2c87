"""Two-class tables on which the effort policies of the search are compared: generated and real."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

import numpy as np

from benchmarks.datasets.dataset import Dataset
from benchmarks.datasets.files import find, load
from benchmarks.datasets.simulated import correlated
from benchmarks.datasets.small import Table, breast_cancer, counts, heavy, normal, standardised

LAMS = (1e-1, 1e-2, 1e-3)
GENE_KS = (5, 10, 20)
PATH_KS = (20, 15, 10, 5, 3)
FAMILIES = {
    "gaussian": normal,
    "AR(.8)": lambda rng, n, p: correlated(n, p, 0.8, rng),
    "counts": counts,
    "heavy-tailed": heavy,
}
SHAPES = (  # n, p, k, families
    (62, 2000, 5, tuple(FAMILIES)),
    (62, 2000, 10, tuple(FAMILIES)),
    (100, 5000, 10, tuple(FAMILIES)),
    (100, 5000, 20, ("gaussian", "counts")),
    (150, 300, 10, tuple(FAMILIES)),
    (150, 300, 20, tuple(FAMILIES)),
    (500, 100, 10, tuple(FAMILIES)),
    (300, 2000, 20, tuple(FAMILIES)),
    (1000, 500, 50, tuple(FAMILIES)),
    (2000, 2000, 20, tuple(FAMILIES)),
)
WITH_PATHS = ((62, 2000, 10), (150, 300, 20), (300, 2000, 20))
TCGA = "tcga_luad_coadread_10k"
LETTER_PAIRS = ("AH", "BR", "CG", "EF", "IJ", "MN", "OQ", "VY")


def policy_tables(only: str = "") -> Iterator[Table]:
    """Those with this text in their name.

    Real ones are left out, with a line that says so, where their files are missing.
    """
    for name, make in table_makers():
        if only in name:
            try:
                yield replace(make(), name=name)
            except FileNotFoundError as error:
                print(f"    {name} is left out: {error}", flush=True)


def table_makers() -> Iterator[tuple[str, Callable[[], Table]]]:
    for n, p, k, families in SHAPES:
        for family in families:
            yield f"{family} {n}x{p}, {k} causal", partial(generated, family, n, p, k)
    yield "breast cancer", partial(breast_cancer, (3, 5, 10), LAMS, (10, 8, 5, 3, 2))
    for pair in LETTER_PAIRS:
        yield f"letters {pair}", partial(letters, pair)
    yield "colon 62x2000", partial(genes, "colon", (1,), path_ks=PATH_KS)
    yield "golub 72x7129", partial(genes, "golub", (1,), path_ks=PATH_KS)
    for label in (0, 2):
        yield f"srbct {label} or not 83x2308", partial(genes, "srbct", (label,))
    for first, second, n in ((0, 1, 1109), (0, 2, 651), (1, 2, 576)):
        yield f"tcga {first} or {second}, {n}x10000", partial(genes, TCGA, (first,), (first, second))


def generated(family: str, n: int, p: int, k: int) -> Table:
    """Labels by the sign of a noisy combination of k columns, the classes of equal size."""
    rng = np.random.default_rng([24, list(FAMILIES).index(family), n, p, k])
    X = FAMILIES[family](rng, n, p)
    causal = rng.permutation(p)[:k]
    signal = X[:, causal] @ (rng.choice([-1.0, 1.0], k) * rng.uniform(0.5, 1.5, k))
    spread = np.subtract(*np.quantile(signal, [0.75, 0.25]))
    signal += 0.3 * spread * rng.standard_normal(n)
    y = np.where(np.argsort(np.argsort(signal, kind="stable")) >= n // 2, 1, -1)
    path_ks = PATH_KS if (n, p, k) in WITH_PATHS else ()
    return Table(family, "", X, y, (k,), LAMS, path_ks=path_ks)


@cache
def read_letters() -> Dataset:
    find("raw/letter-recognition.data")  # no stand-in
    return load("letters")


def letters(pair: str) -> Table:
    data = read_letters()
    rows = np.isin(data.y, list(pair))
    y = np.where(data.y[rows] == pair[0], 1, -1)
    path_ks = (12, 8, 4, 2) if pair in ("AH", "IJ") else ()
    return Table("letters", "", data.X[rows], y, (4, 8), (1e-2, 1e-3), path_ks=path_ks)


def genes(
    file_name: str,
    positive: tuple[int, ...],
    classes: tuple[int, ...] | None = None,
    path_ks: tuple[int, ...] = (),
) -> Table:
    """Some classes of a gene set against the others, or against others of these classes."""
    with np.load(find(f"extra/{file_name}.npz"), allow_pickle=False) as file:
        X, y = file["X"].astype(float), file["y"].astype(int)
    rows = np.isin(y, classes if classes is not None else np.unique(y))
    labels = np.where(np.isin(y[rows], positive), 1, -1)
    return Table("genes", "", standardised(X[rows]), labels, GENE_KS, LAMS, path_ks=path_ks)
