"""A word to users about solvers that were not done."""

import warnings
from collections import Counter
from collections.abc import Sequence

from sklearn.exceptions import ConvergenceWarning

from kmargin.solvers import Solution


def warn_unless_converged(solutions: Sequence[Solution]) -> None:
    """One ConvergenceWarning for all machines that the solver left before it was done."""
    unfinished = Counter(s.status for s in solutions if not s.is_sound)
    for status, count in unfinished.items():
        which = "" if len(solutions) == 1 else f"{count} of {len(solutions)} solutions: "
        warnings.warn(which + status.value, ConvergenceWarning, stacklevel=3)
