"""Two-class tables on which the effort policies of the search are compared: generated and real."""

from collections.abc import Iterator

import numpy as np

from benchmarks.datasets.files import find, load, load_rows
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
LETTER_PAIRS = ("AH", "BR", "CG", "EF", "IJ", "MN", "OQ", "VY")


def policy_tables() -> Iterator[Table]:
    """All of them; real ones are left out, with a line that says so, where their files are missing."""
    for n, p, k, families in SHAPES:
        for family in families:
            yield generated(family, n, p, k)
    yield breast_cancer(ks=(3, 5, 10), lams=LAMS, path_ks=(10, 8, 5, 3, 2))
    for make in (letter_pairs, small_gene_sets, tcga_pairs):
        try:
            yield from make()
        except FileNotFoundError as error:
            print(f"    {make.__name__} are left out: {error}", flush=True)


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
    return Table(family, f"{family} {n}x{p}, {k} causal", X, y, (k,), LAMS, path_ks=path_ks)


def letter_pairs() -> Iterator[Table]:
    find("raw/letter-recognition.data")
    data = load("letters")
    for pair in LETTER_PAIRS:
        rows = np.isin(data.y, list(pair))
        y = np.where(data.y[rows] == pair[0], 1, -1)
        path_ks = (12, 8, 4, 2) if pair in ("AH", "IJ") else ()
        yield Table("letters", f"letters {pair}", data.X[rows], y, (4, 8), (1e-2, 1e-3), path_ks=path_ks)


def small_gene_sets() -> Iterator[Table]:
    """Colon, leukaemia, and two of the four classes of srbct, each against the others."""
    for name, labels in (("colon", (1,)), ("golub", (1,)), ("srbct", (0, 2))):
        with np.load(find(f"extra/{name}.npz"), allow_pickle=False) as file:
            X, y = standardised(file["X"].astype(float)), file["y"].astype(int)
        for label in labels:
            title = name if len(labels) == 1 else f"{name} {label} or not"
            path_ks = PATH_KS if len(labels) == 1 else ()
            yield gene_table(f"{title} {X.shape[0]}x{X.shape[1]}", X, y == label, path_ks)


def tcga_pairs() -> Iterator[Table]:
    find("extra/tcga_luad_coadread_10k.npz")
    _, X, y = load_rows("tcga")
    for pair in ((0, 1), (0, 2), (1, 2)):
        rows = np.isin(y, pair)
        title = f"tcga {pair[0]} or {pair[1]}, {rows.sum()}x{X.shape[1]}"
        yield gene_table(title, standardised(X[rows]), y[rows] == pair[0])


def gene_table(name: str, X: np.ndarray, positive: np.ndarray, path_ks: tuple[int, ...] = ()) -> Table:
    y = np.where(positive, 1, -1)
    return Table("genes", name, np.ascontiguousarray(X), y, GENE_KS, LAMS, path_ks=path_ks)
