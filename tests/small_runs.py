"""The paper's experiments, cut to the size of a test."""

from dataclasses import replace

from kmargin.experiments.reproduce import Request
from kmargin.experiments.settings import QUICK

TINY = replace(
    QUICK, n_folds_run=2, n_starts=3, n_draws=1, shapes=((60, 80),), sample_sizes=(60,), feature_sizes=(80,)
)


def small_request():
    """Every part, on two data sets that need no network."""
    request = Request("all", datasets=["iris", "synthetic"], protocols=["paper", "shuffled"], quick=True)
    request.settings = TINY
    return request
