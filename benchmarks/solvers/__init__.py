"""How each competitor fits. None of them scores."""

from benchmarks.solvers.liblinear import RFE, FTest, LiblinearL1, LiblinearL2, UnionL1
from benchmarks.solvers.ours import HEADLINE, MM, SD, Exchange, OwnFeatures, Shared, SharedPerClass
from benchmarks.solvers.probable import CalibratedSVC, LogisticAbess, LogisticFTest, LogisticL1
from benchmarks.solvers.skglm import SkglmGroupLasso, SkglmL1, SkglmMCP, SkglmMultitask
from benchmarks.solvers.splicing import Abess, AbessMultinomial, Skscope

COMPETITORS = {
    competitor.name: competitor
    for competitor in (MM, SD, Exchange, LiblinearL1, LiblinearL2, Abess, Skscope, SkglmL1, SkglmMCP)
}
# models of several classes with a given number of features in total
SHARED = (Shared, SharedPerClass, OwnFeatures, RFE, FTest, UnionL1, AbessMultinomial, SkglmMultitask)
OURS = {"exchange", "mm", "sd"}
GROUPED = (Shared, Abess, SkglmGroupLasso)
PROBABLE = (Shared, SharedPerClass, CalibratedSVC, LogisticFTest, LogisticL1, LogisticAbess)


def choose(*names):
    """The competitors of these names, the headline one first."""
    return {name: COMPETITORS[name]() for name in dict.fromkeys((HEADLINE, *names))}


def choose_of(kinds):
    return {kind.name: kind() for kind in kinds}
