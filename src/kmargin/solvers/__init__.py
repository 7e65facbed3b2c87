"""The solvers, by name and as configurable objects."""

from kmargin.solvers.anneal import MM, SD
from kmargin.solvers.result import OuterRecord, Solution, Status

SOLVERS = {"mm": MM, "sd": SD}
DEFAULT = "mm"

__all__ = ["DEFAULT", "MM", "SD", "SOLVERS", "OuterRecord", "Solution", "Status"]
