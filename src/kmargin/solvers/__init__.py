"""The solvers, by name and as configurable objects."""

from sklearn.base import clone

from kmargin.core.validation import shortly, suggest
from kmargin.solvers.exchange import Exchange
from kmargin.solvers.proximal.anneal import MM, SD
from kmargin.solvers.solution import Ending, OuterRecord, Regime, Solution, Status, StepRecord
from kmargin.solvers.solver import Solver

__all__ = [
    "DEFAULT",
    "MM",
    "SD",
    "SOLVERS",
    "Ending",
    "Exchange",
    "OuterRecord",
    "Regime",
    "Solution",
    "Solver",
    "Status",
    "StepRecord",
]

SOLVERS: dict[str, type[Solver]] = {"exchange": Exchange, "mm": MM, "sd": SD}
DEFAULT = "exchange"


def resolve_solver(solver: object) -> Solver:
    """Return a solver with default options for a name, or a clone of a solver object, after checking it."""
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(f"solver={solver!r} is not known.{suggest(solver, SOLVERS)}")
        return SOLVERS[solver]()
    if not isinstance(solver, Solver):
        raise ValueError(
            f"solver={shortly(solver)} is neither a name nor a solver object. Use one of "
            f"{', '.join(map(repr, SOLVERS))}, or an object such as MM()."
        )
    solver.check()
    return clone(solver)
