"""What the machines of a model are made of, and what becomes of their solutions."""

from collections.abc import Sequence
from typing import Any, Protocol

from kmargin.fitting.tasks import Sharing
from kmargin.path import SparsityPath
from kmargin.samples.protocol import Designs
from kmargin.solvers import Solution
from kmargin.solvers.solver import Solver
from kmargin.types import Indices, Matrix


class Decisions(Protocol):
    """The decision values of several machines, as a function of X."""

    coef: Matrix  # a row per machine
    intercept: Any

    def __call__(self, X: Any) -> Matrix:
        """A column per machine, of the dtype of X."""


class Blueprint(Protocol):
    """One kind of machines with all that has to be known to make them, before there are data."""

    @property
    def things(self) -> str:
        """What k counts."""

    @property
    def multi_class(self) -> str: ...

    @property
    def shared(self) -> bool:
        """Whether machines have what k counts in common."""

    def sharing(self, samples: Any, designs: Any, n_machines: int, solver: Solver) -> Sharing | None:
        """What k counts; None for single columns, each machine by itself."""

    def n_available(self, samples: Any) -> int:
        """How many things there are for k to count."""

    def n_always(self, samples: Any) -> int:
        """How many of these are always in."""

    def resolve_k(self, k: Any, samples: Any) -> int:
        """A k as users give it. Raises ValueError if it leaves no room for what is always in."""

    def resolve_ks(self, ks: Any, samples: Any, n_default: int | None = None) -> list[int]:
        """Several, descending; see `validate.resolve_ks`."""

    def check(self) -> None:
        """Raise ValueError for what makes no sense."""

    def largest_default(self, samples: Any) -> int:
        """The largest k tried where nobody says which."""

    def part(self, samples: Any, rows: Indices) -> Any:
        """Some of the samples, to be fitted to."""

    def inputs(self, samples: Any, rows: Indices, train: Indices) -> Any:
        """What to decide about, for some rows after a fit to others."""

    def designs(self, samples: Any, k: int = 0) -> Designs:
        """What machines are made of that keep at most k things."""

    def decisions(self, designs: Any, samples: Any, solutions: Sequence[Solution]) -> Any:
        """What the machines' solutions decide; these are `Decisions`."""

    def path(
        self, designs: Any, samples: Any, by_machine: Sequence[Sequence[Solution]], ks: Sequence[int]
    ) -> SparsityPath:
        """The machines' solutions for several k as a path."""
