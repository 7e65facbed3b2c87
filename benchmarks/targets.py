"""What the benchmarks have to reach: all bounds in one place, as data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A bound on a number that a case reports. It holds if it holds for every part of the claim."""

    case: str
    claim: str  # a key of the case's `reached`
    text: str
    bound: float | None = None  # None: reported, not judged
    at_most: bool = False
    strictly: bool = False

    def holds(self, value: float) -> bool:
        if value == self.bound:
            return not self.strictly
        return (value < self.bound) == self.at_most

    def describe(self) -> str:
        if self.bound is None:
            return "no target"
        relation = {
            (False, False): "at least",
            (False, True): "more than",
            (True, False): "at most",
            (True, True): "less than",
        }[self.at_most, self.strictly]
        return f"{relation} {self.bound:g}"


def path_targets(case: str, over_l1: float, over_l2: float | None, accuracy: bool = True) -> list[Target]:
    """Bounds of a path case; those without a bound are reported all the same."""
    return [
        Target(case, "times faster than L1", "path over k, times faster than L1 over C", over_l1),
        Target(case, "times faster than L2", "path over k, times faster than L2 over C", over_l2),
        Target(
            case,
            "accuracy above L1",
            "test accuracy above the densest L1 model with no more features",
            0.0 if accuracy else None,
        ),
    ]


def shared_targets(scheme: str) -> list[Target]:
    """Bounds of `shared`, for a machine per pair of classes or one per class."""
    machine = {"pairs": "a machine per pair", "per class": "a machine per class"}[scheme]
    return [
        Target(
            "shared",
            f"accuracy above the best peer, {scheme}",
            f"{machine}: mean accuracy above the best peer's",
            0,
            strictly=True,
        ),
        Target(
            "shared",
            f"times faster than rfe, {scheme}",
            "the same, path over five sizes, times faster than recursive elimination",
            1,
            strictly=True,
        ),
        Target(
            "shared",
            f"times faster than abess, {scheme}",
            "the same, times faster than abess",
            1,
            strictly=True,
        ),
        Target("shared", f"share found, {scheme}", "the same, share of 20 causal features found", 1),
        Target(
            "shared",
            f"share found above the best peer, {scheme}",
            "the same, share found above the best peer",
            0,
            strictly=True,
        ),
    ]


def probability_targets(scheme: str) -> list[Target]:
    """Bounds of `probabilities`, for a machine per pair of classes or one per class."""
    machine = {"kmargin": "a machine per pair", "kmargin_ovr": "a machine per class"}[scheme]
    return [
        Target(
            "probabilities",
            f"{metric} above the best peer's, {scheme}",
            f"{machine}: mean {metric} above the best peer's with no more features",
            0,
            at_most=True,
        )
        for metric in ("log loss", "Brier score")
    ] + [
        Target(
            "probabilities",
            f"calibration error, {scheme}",
            "the same, calibration error on 10,000 simulated rows, worst draw",
            0.03,
            at_most=True,
        )
    ]


def policy_targets(way: str, text: str, judged: bool) -> list[Target]:
    """Bounds of `policies`, for one way to fit."""
    return [
        Target(
            "policies",
            f"{way}: within 1 %",
            f"{text}: share within 1 % of the lowest objective known",
            0.93 if judged else None,
        ),
        Target("policies", f"{way}: within .1 %", "the same, within .1 %"),
        Target(
            "policies",
            f"{way}: mean excess",
            "the same, mean excess over the lowest objective known",
            0.01 if judged else None,
            at_most=True,
        ),
        Target("policies", f"{way}: time over the reference", "the same, time over that of commit fb738a6"),
    ]


TARGETS: tuple[Target, ...] = (
    *path_targets("letters", 40, 6),
    *path_targets("optdigits", 15, None),
    *path_targets("splice", 15, None),
    *path_targets("tcga", 10, None, accuracy=False),
    Target(
        "simulation",
        "objective above the best peer's",
        "objective above the best peer's (relative, worst seed)",
        0,
        at_most=True,
    ),
    Target(
        "simulation",
        "objective above the truth's",
        "objective above the true support's (relative, worst seed)",
        0,
        at_most=True,
    ),
    Target(
        "simulation", "share found above the best peer", "share of causal features above the best peer", 0
    ),
    Target("simulation", "accuracy above the best peer", "test accuracy above the best peer", 0),
    Target("simulation", "times faster than abess", "one fit, times faster than abess", 1),
    Target("simulation", "fewest causal features found", "causal features found at 2000 x 500, of 50", 50),
    Target(
        "crossval", "times faster than abess", "times faster than abess's cross-validation", 1, strictly=True
    ),
    Target(
        "crossval",
        "times faster than L1",
        "times faster than GridSearchCV over ten Cs of L1",
        1,
        strictly=True,
    ),
    Target("crossval", "F1 above the best peer", "F1 of the chosen features above the best peer", 0),
    Target("crossval", "accuracy above the best peer", "test accuracy above the best peer", 0),
    Target("global_optimum", "share at the optimum", "share of letter pairs at the global optimum", 0.98),
    Target(
        "global_optimum",
        "share at the optimum, fits of one k",
        "the same, each k fitted by itself instead of along a path",
    ),
    Target(
        "global_optimum",
        "small tables at the optimum",
        "small tables, share of default fits of one k at the optimum",
        0.995,
    ),
    Target(
        "global_optimum",
        "small tables, above the optimum",
        "the same, objective above the optimum (relative, worst fit)",
        0.005,
        at_most=True,
    ),
    Target(
        "global_optimum",
        "small tables, paths worse",
        "share of fits where the path is worse than the fit of one k by more than 0.1 %",
        0,
        at_most=True,
    ),
    Target(
        "global_optimum",
        "small tables, fits of one k worse",
        "share of fits where the fit of one k is worse than the path by more than 0.1 %",
        0,
        at_most=True,
    ),
    Target("global_optimum", "small tables, paths at the optimum", "share of fits on a path at the optimum"),
    Target(
        "global_optimum",
        "small tables, paths above the optimum",
        "the same, objective above the optimum (relative, worst fit)",
    ),
    Target(
        "global_optimum",
        "small tables, all swaps at the optimum",
        "share at the optimum if all swaps are tried",
    ),
    *policy_targets("single", "single fits", True),
    *policy_targets("groups", "single fits with groups of one feature", True),
    *policy_targets("path", "paths", False),
    *policy_targets("path, groups", "paths with groups of one feature", False),
    Target(
        "policies",
        "groups of one feature differ",
        "share of single fits whose objective groups of one feature change",
        0,
        at_most=True,
    ),
    *shared_targets("pairs"),
    *shared_targets("per class"),
    Target(
        "shared",
        "accuracy of pairs above the best peer",
        "everybody's features with a LinearSVC per pair: mean accuracy of ours above the best peer's",
    ),
    *probability_targets("kmargin"),
    *probability_targets("kmargin_ovr"),
    Target("groups", "share found above abess", "share of the causal groups above abess", 0),
    Target(
        "groups",
        "objective above the best peer's",
        "objective above the best peer's (relative, worst seed)",
        0,
        at_most=True,
    ),
    Target("groups", "times faster than abess", "one fit, times faster than abess", 1),
    Target("groups", "small tables at the optimum", "small tables of 4 classes, share at the optimum", 0.99),
    Target(
        "groups",
        "small tables, above the optimum",
        "the same, objective above the optimum (relative, worst table)",
    ),
    Target(
        "honest",
        "share of the time of an L1 grid search",
        "nested cross-validation, share of the time of one grid search over ten Cs of L1",
        1,
        at_most=True,
    ),
    Target("honest", "nested above guessing", "labels that say nothing: nested accuracy above guessing"),
    Target("honest", "chosen by above guessing", "the same, accuracy that k and C were chosen by"),
    Target(
        "honest", "called better than guessing", "the same, share called better than guessing", 0.05, True
    ),
    Target(
        "stability",
        "false found",
        "false features found where a bound of 1 is kept (mean over the draws, worst bound)",
        1,
        at_most=True,
    ),
    Target(
        "stability",
        "true found above L1",
        "true features found above those of L1 at the same bound (mean over the draws)",
        0,
        strictly=True,
    ),
    Target(
        "stability",
        "time over 20 L1 fits",
        "50 pairs of 200 x 10,000, k = 20, over the time of 20 L1 fits",
        1,
        at_most=True,
    ),
    Target("dense_100k", "times faster than LinearSVC", "k = 20, times faster than one dense LinearSVC", 1),
    Target("dense_100k", "memory over X", "peak memory as a multiple of X", 1.3, at_most=True),
    Target("news20", "times faster than L1", "four sizes, times faster than L1 over four C", 1),
    Target("news20", "accuracy above L1", "test accuracy above the best L1 model with no more features", 0),
    Target("news20", "memory over X", "peak memory as a multiple of the CSR matrix", 3, at_most=True),
    Target("a9a", "difference", "largest difference of a coefficient, sparse and dense", 1e-8, at_most=True),
    Target("a9a", "times faster than dense", "times faster than the same data as an array"),
    Target("synthetic_path", "times faster than mm", "path, times faster than compiled mm", 30),
    Target("synthetic_path", "times faster than mm, with a ridge", "the same with a ridge"),
    Target(
        "synthetic_path",
        "objective above mm's",
        "objective above mm's (relative, worst k)",
        0,
        at_most=True,
    ),
    Target("synthetic_path", "objective above mm's, with a ridge", "the same with a ridge"),
    Target("spiral", "accuracy above SVC", "4 points per pair of classes, test accuracy above SVC"),
    Target("spiral", "times fewer points", "times fewer training points kept than SVC"),
    Target("kernel_blocks", "accuracy above SVC", "20,000 rows, test accuracy above SVC", -0.005),
    Target("kernel_blocks", "times fewer points", "the same, times fewer training points kept", 20),
    Target("kernel_blocks", "times faster prediction", "the same, times faster prediction", 20),
    Target("kernel_blocks", "times faster fit", "the same, times faster fit"),
    Target(
        "kernel_blocks", "GB beyond X", "50,000 x 50, k = 100: peak memory beyond X in GB", 2, at_most=True
    ),
    Target("kernel_blocks", "times the matrix", "the same as a share of the kernel matrix"),
    Target(
        "growth",
        "exponent of time in rows and columns",
        "exponent of time in n and in p, k fixed",
        1.05,
        at_most=True,
    ),
    Target(
        "growth",
        "exponent of memory in rows and columns",
        "exponent of peak memory above X in n and in p, k fixed",
        1.05,
        at_most=True,
    ),
    Target("growth", "exponent of time in k", "exponent of time in k"),
    Target("growth", "exponent of memory in k", "exponent of peak memory above X in k"),
    Target(
        "cores",
        "time over one core's",
        "all pairs of letters with two cores, share of the time of one",
        0.6,
        at_most=True,
    ),
    Target("cores", "time over one core's, processes", "the same by processes (loky) instead of threads"),
    Target("cores", "same coefficients", "the same coefficients to the bit (1: yes)", 1),
    Target(
        "cold",
        "processor time, cold",
        "first fit on a machine, seconds of processor time, compilation included",
        12,
        at_most=True,
    ),
    Target("cold", "processor time, warm", "the same fit in the next process"),
    Target(
        "distributed",
        "bytes over predicted",
        "bytes of a block's answer over those predicted, worst shape",
        1.1,
        at_most=True,
    ),
    Target(
        "distributed", "memory over predicted", "memory of a worker over that predicted", 1.2, at_most=True
    ),
    Target(
        "distributed",
        "bytes sent over answers",
        "all that workers sent, over the answers of their blocks",
        2,
        at_most=True,
    ),
    Target("distributed", "bytes sent over X", "the same as a share of X"),
    Target(
        "distributed", "difference", "largest difference of a coefficient from memory's", 1e-8, at_most=True
    ),
    Target("loops", "compiled step", "compiled step, times faster than its NumPy twin", 10),
    Target("loops", "BLAS calls", "BLAS calls of a step over the compiled step", 0.97),
    Target("loops", "selection", "selection, times faster than sorting", 3),
)
