"""A word to users about solvers that were not done."""

from collections import Counter
from collections.abc import Sequence

from sklearn.exceptions import ConvergenceWarning

from kmargin.errors import warn_caller
from kmargin.fitting.tasks import Sharing
from kmargin.solvers import Solution


def warn_if_signs_leave_nothing(solutions: Sequence[Solution], k: int, sharing: Sharing | None) -> None:
    """One warning where no feature is of use with the sign that its coefficients have to have."""
    if sharing is None or not sharing.units.signs.any() or k == 0:
        return
    if not any(len(solution.support) for solution in solutions):
        warn_caller(
            "No feature lowers the objective with the sign that `signs` gives it: the intercept is all that "
            "is left. Check the signs, or leave some features without."
        )


def warn_unless_converged(solutions: Sequence[Solution]) -> None:
    """One ConvergenceWarning for all machines that the solver left before it was done."""
    unfinished = Counter(s.status for s in solutions if not s.is_sound)
    for status, count in unfinished.items():
        which = "" if len(solutions) == 1 else f"{count} of {len(solutions)} solutions: "
        warn_caller(which + status.value, ConvergenceWarning)
