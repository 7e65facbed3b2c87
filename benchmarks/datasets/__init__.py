"""What is loaded or simulated. Nothing here fits or scores."""

from benchmarks.datasets.dataset import Dataset
from benchmarks.datasets.files import load
from benchmarks.datasets.simulated import arms, clusters, dense, hyperplane, shells, spiral, synthetic

__all__ = [
    "Dataset",
    "arms",
    "clusters",
    "dense",
    "hyperplane",
    "load",
    "shells",
    "spiral",
    "synthetic",
]
