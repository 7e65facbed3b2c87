"""Example data: the data sets of the paper's Table 1, and simulated data of any size."""

from kmargin.datasets.download import (
    TABLE_1,
    CacheFolderError,
    ChecksumError,
    DamagedFileError,
    Dataset,
    DatasetError,
    DownloadError,
    RemoteFile,
    cache_folder,
    fetch,
)
from kmargin.datasets.loaders import (
    load,
    load_breast_cancer_wisconsin,
    load_iris,
    load_letter_recognition,
    load_optdigits,
    load_splice,
    load_tcga_pancan_hiseq,
)
from kmargin.datasets.simulate import make_genes, make_sparse_hyperplane, make_spiral, make_synthetic

__all__ = [
    "TABLE_1",
    "CacheFolderError",
    "ChecksumError",
    "DamagedFileError",
    "Dataset",
    "DatasetError",
    "DownloadError",
    "RemoteFile",
    "cache_folder",
    "fetch",
    "load",
    "load_breast_cancer_wisconsin",
    "load_iris",
    "load_letter_recognition",
    "load_optdigits",
    "load_splice",
    "load_tcga_pancan_hiseq",
    "make_genes",
    "make_sparse_hyperplane",
    "make_spiral",
    "make_synthetic",
]
