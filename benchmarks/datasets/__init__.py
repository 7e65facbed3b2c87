"""What is loaded or simulated. Nothing here fits or scores."""

from benchmarks.datasets.dataset import Dataset
from benchmarks.datasets.files import load, load_rows
from benchmarks.datasets.simulated import (
    arms,
    clusters,
    dense,
    grouped,
    hyperplane,
    scattered,
    several_classes,
    shells,
    spiral,
    synthetic,
    with_known_probabilities,
)

__all__ = [
    "Dataset",
    "arms",
    "clusters",
    "dense",
    "grouped",
    "hyperplane",
    "load",
    "load_rows",
    "scattered",
    "several_classes",
    "shells",
    "spiral",
    "synthetic",
    "with_known_probabilities",
]
