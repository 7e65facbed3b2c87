"""The solvers, by name and as configurable objects."""

from kmargin.solvers.exchange import Exchange
from kmargin.solvers.mm import MM
from kmargin.solvers.regime import Regime
from kmargin.solvers.result import Ending, OuterRecord, Solution, Status, StepRecord
from kmargin.solvers.sd import SD
from kmargin.solvers.solver import Solver

SOLVERS: dict[str, type[Solver]] = {"exchange": Exchange, "mm": MM, "sd": SD}
DEFAULT = "exchange"

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
