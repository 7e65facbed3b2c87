"""How each competitor fits. None of them scores."""

from benchmarks.solvers.abess import Abess, AbessMultinomial
from benchmarks.solvers.fit import Competitor, Fit
from benchmarks.solvers.l0learn import L0Learn
from benchmarks.solvers.liblinear import LiblinearL1, LiblinearL2
from benchmarks.solvers.ours import HEADLINE, MM, SD, Exchange, OwnFeatures, Shared, SharedPerClass
from benchmarks.solvers.probable import (
    CalibratedSVC,
    Kmargin,
    KmarginPerClass,
    LogisticAbess,
    LogisticFTest,
    LogisticL1,
)
from benchmarks.solvers.selectors import RFE, FTest, UnionL1
from benchmarks.solvers.skglm import SkglmGroupLasso, SkglmL1, SkglmMCP, SkglmMultitask
from benchmarks.solvers.skscope import Skscope

__all__ = [
    "COMPETITORS",
    "GROUPED",
    "HEADLINE",
    "OURS",
    "PROBABLE",
    "SHARED",
    "Competitor",
    "Fit",
    "choose",
    "choose_of",
]

COMPETITORS: dict[str, type[Competitor]] = {
    competitor.name: competitor
    for competitor in (MM, SD, Exchange, LiblinearL1, LiblinearL2, Abess, L0Learn, Skscope, SkglmL1, SkglmMCP)
}
SHARED: tuple[type[Competitor], ...] = (  # models of several classes with a number of features in all
    Shared,
    SharedPerClass,
    OwnFeatures,
    RFE,
    FTest,
    UnionL1,
    AbessMultinomial,
    SkglmMultitask,
)
GROUPED: tuple[type[Competitor], ...] = (Shared, Abess, SkglmGroupLasso)
PROBABLE: tuple[type[Competitor], ...] = (
    Kmargin,
    KmarginPerClass,
    CalibratedSVC,
    LogisticFTest,
    LogisticL1,
    LogisticAbess,
)
OURS = {"exchange", "mm", "sd"}


def choose(*names: str) -> dict[str, Competitor]:
    """The competitors of these names, the headline one first."""
    return {name: COMPETITORS[name]() for name in dict.fromkeys((HEADLINE, *names))}


def choose_of(kinds: tuple[type[Competitor], ...]) -> dict[str, Competitor]:
    return {kind.name: kind() for kind in kinds}
