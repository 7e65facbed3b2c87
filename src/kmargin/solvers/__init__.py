"""The solvers, by name and as configurable objects."""

from kmargin.solvers.anneal import MM, SD
from kmargin.solvers.result import OuterRecord, Solution, Status
from kmargin.solvers.solver import Solver

SOLVERS: dict[str, type[Solver]] = {"mm": MM, "sd": SD}
DEFAULT = "mm"

__all__ = ["DEFAULT", "MM", "SD", "SOLVERS", "OuterRecord", "Solution", "Solver", "Status"]
