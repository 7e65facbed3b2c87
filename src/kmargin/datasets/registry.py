"""Table 1 of the paper as data: where each data set comes from, its shape, and how the paper uses it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclass(frozen=True)
class RemoteFile:
    """A file to download.

    Attributes
    ----------
    name : str
        Its name in the cache folder.
    url : str
        Its address.
    sha256 : str
        Its checksum.
    """

    name: str
    url: str
    sha256: str


@dataclass(frozen=True)
class Dataset:
    """A row of Table 1. A data set without files is simulated.

    Attributes
    ----------
    name : str
        As in the paper.
    summary : str
        What a row, a feature and a class are.
    source : str
        Who made it, where it was described.
    licence : str
        That of the data.
    n_samples, n_features, n_classes : int
        Its shape.
    scaling : "zscore", "minmax" or "none"
        How the paper scales the features.
    kernel : "linear" or "rbf"
        The kernel that the paper uses.
    train_share : float
        Proportion of the rows, in file order, in the training set.
    files : tuple of RemoteFile
        The files to download.
    """

    name: str
    summary: str
    source: str
    licence: str
    n_samples: int
    n_features: int
    n_classes: int
    scaling: Literal["zscore", "minmax", "none"]
    kernel: Literal["linear", "rbf"] = "linear"
    train_share: float = 0.8
    files: tuple[RemoteFile, ...] = ()

    @property
    def n_train(self) -> int:
        """Rows of the paper's training set."""
        return round(self.train_share * self.n_samples)

    @property
    def n_test(self) -> int:
        """Rows of the paper's test set."""
        return self.n_samples - self.n_train


def _uci(folder: str, name: str, sha256: str) -> RemoteFile:
    return RemoteFile(name, f"{UCI}/{folder}/{name}", sha256)


_SYNTHETIC = Dataset(
    name="synthetic",
    summary="Two correlated features decide the class, 498 others have nothing to do with it.",
    source="Simulated by kmargin.datasets.make_synthetic (the paper's appendix B.1).",
    licence="none needed",
    n_samples=1000,
    n_features=500,
    n_classes=2,
    scaling="zscore",
)

_IRIS = Dataset(
    name="iris",
    summary="Four measurements of flowers from three species of iris, 50 of each.",
    source=(
        "R. A. Fisher (1936), The use of multiple measurements in taxonomic problems, Annals of Eugenics 7,"
        " 179-188. UCI Machine Learning Repository, https://doi.org/10.24432/C56C76. This is UCI's file,"
        " shipped with kmargin; scikit-learn's differs from it in two rows."
    ),
    licence="CC BY 4.0",
    n_samples=150,
    n_features=4,
    n_classes=3,
    scaling="zscore",
    files=(_uci("iris", "iris.data", "6f608b71a7317216319b4d27b4d9bc84e6abd734eda7872b71a458569e2656c0"),),
)

_LETTERS = Dataset(
    name="letter-recognition",
    summary="Sixteen moments and edge counts of distorted images of the capital letters in twenty fonts.",
    source=(
        "P. W. Frey and D. J. Slate (1991), Letter recognition using Holland-style adaptive classifiers,"
        " Machine Learning 6, 161-182. UCI Machine Learning Repository, https://doi.org/10.24432/C5ZP40."
    ),
    licence="CC BY 4.0",
    n_samples=20_000,
    n_features=16,
    n_classes=26,
    scaling="minmax",
    files=(
        _uci(
            "letter-recognition",
            "letter-recognition.data",
            "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2",
        ),
    ),
)

_SPLICE = Dataset(
    name="splice",
    summary=(
        "Sixty nucleotides around a point of primate DNA, three binary features each; the point is a boundary"
        " from exon to intron (EI), from intron to exon (IE), or neither (N)."
    ),
    source=(
        "M. O. Noordewier, G. G. Towell and J. W. Shavlik (1991), Training knowledge-based neural networks to"
        " recognize genes in DNA sequences, Advances in Neural Information Processing Systems 3. The StatLog"
        " project's version, as data set 40670 (dna) of https://www.openml.org."
    ),
    licence="public, according to OpenML",
    n_samples=3186,
    n_features=180,
    n_classes=3,
    scaling="minmax",
    files=(
        RemoteFile(
            "dna.csv",
            "https://www.openml.org/data/get_csv/4965245/dna.arff",
            "2775c83180277226d445e66acdc6370f298e5d4811ef20b8ce9d111485600b5c",
        ),
    ),
)

_SPIRAL = Dataset(
    name="spiral",
    summary="Three noisy spirals in the plane with 600, 300 and 100 points.",
    source="Simulated by kmargin.datasets.make_spiral (the paper's appendix B.2).",
    licence="none needed",
    n_samples=1000,
    n_features=2,
    n_classes=3,
    scaling="zscore",
    kernel="rbf",
)

_OPTDIGITS = Dataset(
    name="optdigits",
    summary=(
        "Handwritten digits as 8 x 8 images with 17 levels of grey. The first 3823 rows are UCI's training"
        " file, the others its test file, by other writers; the share 0.68 puts all but the last row of the"
        " training file into the training set."
    ),
    source=(
        "E. Alpaydin and C. Kaynak (1998), Optical recognition of handwritten digits. UCI Machine Learning"
        " Repository, https://doi.org/10.24432/C50P49."
    ),
    licence="CC BY 4.0",
    n_samples=5620,
    n_features=64,
    n_classes=10,
    scaling="none",
    train_share=0.68,
    files=(
        _uci(
            "optdigits", "optdigits.tra", "e1b683cc211604fe8fd8c4417e6a69f31380e0c61d4af22e93cc21e9257ffedd"
        ),
        _uci(
            "optdigits", "optdigits.tes", "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"
        ),
    ),
)

_BREAST_CANCER = Dataset(
    name="breast-cancer-wisconsin",
    summary=(
        "Nine properties of cells from breast tumours, graded from 1 to 10. Sixteen of the file's 699 rows"
        " lack a value and are left out."
    ),
    source=(
        "W. H. Wolberg and O. L. Mangasarian (1990), Multisurface method of pattern separation for medical"
        " diagnosis applied to breast cytology, PNAS 87, 9193-9196. UCI Machine Learning Repository,"
        " https://doi.org/10.24432/C5HP4Z."
    ),
    licence="CC BY 4.0",
    n_samples=683,
    n_features=9,
    n_classes=2,
    scaling="none",
    files=(
        _uci(
            "breast-cancer-wisconsin",
            "breast-cancer-wisconsin.data",
            "402c585309c399237740f635ef9919dc512cca12cbeb20de5e563a4593f22b64",
        ),
    ),
)

_TCGA = Dataset(
    name="TCGA-PANCAN-HiSeq",
    summary=(
        "Expression of genes in tumours of five kinds. Of the file's 20,531 genes the paper keeps the first"
        " 10,000 that are not zero in every sample."
    ),
    source=(
        "J. N. Weinstein et al. (2013), The Cancer Genome Atlas Pan-Cancer analysis project, Nature Genetics"
        " 45, 1113-1120. S. Fiorini (2016), Gene expression cancer RNA-Seq, UCI Machine Learning Repository,"
        " https://doi.org/10.24432/C5R88H."
    ),
    licence="CC BY 4.0",
    n_samples=801,
    n_features=10_000,
    n_classes=5,
    scaling="minmax",
    files=(
        _uci(
            "00401",
            "TCGA-PANCAN-HiSeq-801x20531.tar.gz",
            "e6ea3628f9656efa2d7cf382bf5a403e2cc214df3d90312b1928f5650b43a559",
        ),
    ),
)

_ROWS = (_SYNTHETIC, _IRIS, _LETTERS, _SPLICE, _SPIRAL, _OPTDIGITS, _BREAST_CANCER, _TCGA)

TABLE_1: Mapping[str, Dataset] = MappingProxyType({row.name: row for row in _ROWS})
"""The paper's data sets by name, in the order of its Table 1."""
