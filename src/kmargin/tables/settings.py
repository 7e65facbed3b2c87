"""What was asked for: how machines are fitted and chosen, and the machines and scorer that this means."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.metrics import get_scorer, get_scorer_names

from kmargin.errors import InputError, nearest
from kmargin.fitting.grid_fit import Procedure
from kmargin.fitting.kernel_blueprint import KernelBlueprint
from kmargin.fitting.linear_blueprint import LinearBlueprint
from kmargin.kernels import KERNELS
from kmargin.selection import SELECTIONS
from kmargin.tables.column_request import NOTHING_SAID, ColumnRequest, CountedFeatures


@dataclass(frozen=True)
class Settings:
    """How machines are fitted and chosen."""

    k: int | None = None  # None: chosen by cross-validation
    ks: Any = None  # the values of k to try, see `SparseSVCCV`
    Cs: Sequence[float] | None = None  # None: from .01 to 10, and beyond if need be
    kernel: str | None = None
    gamma: float | str = "scale"
    cv: int = 5
    repeats: int | None = None  # at most so many rounds of folds; None: see `Trial.max_rounds`
    nested: bool = True
    permutations: int = 0
    pairs: int = 25  # of halves of the rows, on which features may come back
    proba: bool = False  # whether predictions come with probabilities
    seed: int = 0
    jobs: int | None = None
    scoring: str = "accuracy"
    select: str = "1se"
    tolerance: float = 0.01
    standardize: bool = True
    balanced: bool = False
    multi_class: str = "ovo"
    shared: bool = True
    columns: ColumnRequest = NOTHING_SAID
    verbose: int = 0

    def check(self) -> None:
        """Raises InputError for what makes no sense, whatever the table."""
        if self.select not in SELECTIONS:
            raise InputError(f"--select {self.select} is not known. Use best, 1se or tolerance.")
        if self.repeats is not None and self.repeats < 1:
            raise InputError(f"--repeats {self.repeats} is not a number of rounds. Use 1 or more.")
        if self.pairs < 0:
            raise InputError(f"--pairs {self.pairs} is not a number of pairs. Use 0 for none, or 25.")
        if self.permutations < 0:
            raise InputError(
                f"--permutations {self.permutations} is not a number of permutations. Use 0 for none, or 100."
            )
        if not 0 <= self.seed < 2**32:
            raise InputError(f"--seed {self.seed} is not a seed. Use 0 to {2**32 - 1}.")
        if self.jobs == 0:
            raise InputError("--jobs 0 is not a number of jobs. Use 1 or more, or -1 for all cores.")


def make_blueprint(settings: Settings, counted: CountedFeatures) -> LinearBlueprint | KernelBlueprint:
    """What machines are fitted. The trial itself scales, so these do not."""
    if settings.kernel is None:
        return LinearBlueprint(settings.multi_class, shared=settings.shared, request=counted.request)
    settings.columns.check_no_kernel()
    kernels = [name for name in KERNELS if name != "precomputed"]
    if settings.kernel not in kernels:
        raise InputError(f"--kernel {settings.kernel} is not known. Use one of {', '.join(kernels)}.")
    return KernelBlueprint(
        settings.multi_class,
        kernel=settings.kernel,
        gamma=settings.gamma,
        random_state=settings.seed,
        shared=settings.shared,
    )


def make_procedure(settings: Settings) -> Procedure:
    return Procedure(n_jobs=settings.jobs, random_state=settings.seed, verbose=settings.verbose)


def find_scorer(name: str) -> Any:
    if name not in get_scorer_names():
        raise InputError(f"--scoring {name} is not known. {nearest(name, get_scorer_names())}")
    return get_scorer(name)
