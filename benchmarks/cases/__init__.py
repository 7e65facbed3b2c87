"""What is compared with what. The docstring of each case, or of its file, opens with the claim it watches."""

from benchmarks.cases.costs import Cold, Cores, Dense, Growth
from benchmarks.cases.crossval import CrossValidation, Honest
from benchmarks.cases.distributed import Distributed
from benchmarks.cases.groups import Groups
from benchmarks.cases.kernels import KernelBlocks
from benchmarks.cases.optimum import GlobalOptimum
from benchmarks.cases.paths import News20, letters, optdigits, splice, tcga
from benchmarks.cases.probabilities import Probabilities
from benchmarks.cases.shared import SharedFeatures
from benchmarks.cases.simulation import Simulation, SyntheticPath
from benchmarks.cases.stability import Stability
from benchmarks.policies import Policies

CASES = {
    case.name: case
    for case in (
        letters,
        optdigits,
        splice,
        tcga,
        Simulation(),
        CrossValidation(),
        GlobalOptimum(),
        Policies(),
        SharedFeatures(),
        Groups(),
        Stability(),
        Honest(),
        Probabilities(),
        Dense(),
        SyntheticPath(),
        KernelBlocks(),
        News20(),
        Growth(),
        Cores(),
        Cold(),
        Distributed(),
    )
}
