"""Data to try a sparse machine on."""

from kmargin.datasets.simulate import make_sparse_hyperplane, make_spiral, make_synthetic

__all__ = ["make_sparse_hyperplane", "make_spiral", "make_synthetic"]
