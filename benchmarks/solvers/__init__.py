"""How each competitor fits. None of them scores."""

from benchmarks.solvers.abess import Abess
from benchmarks.solvers.fit import Competitor, Fit
from benchmarks.solvers.l0learn import L0Learn
from benchmarks.solvers.liblinear import LiblinearL1, LiblinearL2
from benchmarks.solvers.ours import HEADLINE, MM, SD, Exchange
from benchmarks.solvers.skglm import SkglmL1, SkglmMCP
from benchmarks.solvers.skscope import Skscope

__all__ = ["COMPETITORS", "HEADLINE", "OURS", "Competitor", "Fit", "choose"]

COMPETITORS: dict[str, type[Competitor]] = {
    competitor.name: competitor
    for competitor in (MM, SD, Exchange, LiblinearL1, LiblinearL2, Abess, L0Learn, Skscope, SkglmL1, SkglmMCP)
}
OURS = {"exchange", "mm", "sd"}


def choose(*names: str) -> dict[str, Competitor]:
    """The competitors of these names, the headline one first."""
    return {name: COMPETITORS[name]() for name in dict.fromkeys((HEADLINE, *names))}
