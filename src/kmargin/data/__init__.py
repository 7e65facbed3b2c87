"""Data that a fit accepts: matrices in memory, rows in blocks (dask, devices), and labelled samples."""
