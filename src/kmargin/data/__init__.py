"""Data for a fit: arrays in memory or on a GPU, sparse matrices and dask collections, with their labels."""
