"""Warnings about solutions whose solver stopped before it had converged."""

from collections import Counter
from collections.abc import Sequence

from sklearn.exceptions import ConvergenceWarning

from kmargin.errors import called_for_a_fold, warn_caller
from kmargin.fitting.tasks import Sharing
from kmargin.solvers import Solution, Status
from kmargin.solvers.result import SMALL_COST


def warn_if_signs_leave_nothing(solutions: Sequence[Solution], k: int, sharing: Sharing | None) -> None:
    """One warning where no feature is of use with the sign that its coefficients have to have."""
    if sharing is None or not sharing.units.signs.any() or k == 0:
        return
    if not any(len(solution.support) for solution in solutions):
        warn_caller(
            "No feature lowers the objective with the sign that `signs` allows, so the model is the "
            "intercept alone. Check the signs, or allow either sign for some features."
        )


def warn_unless_converged(solutions: Sequence[Solution]) -> None:
    """Warn once for each reason to stop early, however many solutions stopped for it.

    A run that stalled close to S_k is mentioned too, but not for each fold of a cross-validation.
    """
    early = [s for s in solutions if s.status in (Status.STALLED, Status.EXHAUSTED)]
    for status, count in Counter(s.status for s in early).items():
        message = "" if len(solutions) == 1 else f"{count} of {len(solutions)} solutions: "
        message += status.value
        if all(s.is_sound for s in early if s.status is status):
            if called_for_a_fold():
                continue
            message += f" (the final projection onto S_k raised the objective by at most {SMALL_COST:g})"
        warn_caller(message, ConvergenceWarning)
