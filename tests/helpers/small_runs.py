"""The paper's experiments, cut to the size of a test."""

from dataclasses import replace

from kmargin.paper import protocol
from kmargin.paper.protocol import QUICK
from kmargin.paper.run import Request

TINY = replace(
    QUICK, n_folds_run=2, n_starts=3, n_draws=1, shapes=((60, 80),), sample_sizes=(60,), feature_sizes=(80,)
)


def small_request():
    """Every part, on two data sets that need no network."""
    request = Request("all", datasets=["iris", "synthetic"], protocols=["paper", "shuffled"], quick=True)
    request.settings = TINY
    return request


def iris_request():
    """The two experiments with folds and random starts, on iris."""
    request = Request("all", datasets=["iris"], solvers=["sd", "exchange", "l1r"], quick=True)
    request.parts = ("figure1", "table3")
    request.settings = TINY
    return request


def read_few(dataset, protocol_name, seed, read=protocol.read):
    """A data set of which hundreds of rows are left out: a run of every part takes seconds."""
    data = read(dataset, protocol_name, seed)
    return data if dataset == "iris" else data._replace(train=data.train[:80], test=data.test[:40])
