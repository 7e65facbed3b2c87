"""What is loaded or simulated. Nothing here fits or scores."""

from benchmarks.datasets.dataset import Dataset
from benchmarks.datasets.files import load
from benchmarks.datasets.simulated import dense, hyperplane, spiral, synthetic

__all__ = ["Dataset", "dense", "hyperplane", "load", "spiral", "synthetic"]
