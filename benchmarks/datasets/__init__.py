"""What is loaded or simulated. Nothing here fits or scores."""

from benchmarks.datasets.dataset import Dataset
from benchmarks.datasets.files import ROOT, load, load_rows, load_sparse
from benchmarks.datasets.simulated import (
    arms,
    clusters,
    dense,
    draw_classes,
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
    "ROOT",
    "Dataset",
    "arms",
    "clusters",
    "dense",
    "draw_classes",
    "grouped",
    "hyperplane",
    "load",
    "load_rows",
    "load_sparse",
    "scattered",
    "several_classes",
    "shells",
    "spiral",
    "synthetic",
    "with_known_probabilities",
]
