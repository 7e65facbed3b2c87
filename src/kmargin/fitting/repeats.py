"""Features that repeat an earlier one: which they are, and what users are told of them."""

import numpy as np
from scipy.sparse import issparse

from kmargin.errors import RepeatedFeaturesWarning, called_for_a_fold, warn_caller
from kmargin.samples.protocol import Samples
from kmargin.solvers import Exchange
from kmargin.solvers.solver import Solver
from kmargin.types import Indices


def find_repeats(samples: Samples, solver: Solver) -> Indices:
    """The features that a search passes over because an earlier one is the same."""
    return samples.repeated_columns() if isinstance(solver, Exchange) else np.arange(0)


def repeats_to_report(samples: Samples, solver: Solver) -> Indices:
    """Those of them that users should know about.

    Constant columns are of no use, repeated or not. In a sparse matrix repeated columns are the rule, such as
    words that always occur together.
    """
    if issparse(getattr(samples, "X", None)):
        return np.arange(0)
    repeats = find_repeats(samples, solver)
    if len(repeats) == 0:
        return repeats
    constant = samples.designs(fit_intercept=True, standardize=True).are_constant
    return repeats[~constant[repeats]]


def warn_of_repeats(samples: Samples, solver: Solver) -> None:
    """Say which features a search passes over because an earlier one is the same.

    Fits to the folds of a cross-validation say nothing: a grid search warns once, at the refit to all rows.
    """
    repeats = np.arange(0) if called_for_a_fold() else repeats_to_report(samples, solver)
    if len(repeats):
        some = ", ".join(map(str, repeats[:5])) + (", ..." if len(repeats) > 5 else "")
        which = f"1 feature repeats an earlier one (column {some})"
        if len(repeats) > 1:
            which = f"{len(repeats)} features repeat an earlier one (columns {some})"
        warn_caller(f"{which}: only the first of each is used.", RepeatedFeaturesWarning)
