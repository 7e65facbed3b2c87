"""The list of mutants, kept as data: one TOML file for each area of the source."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
SOURCE = Path("src") / "kmargin"


@dataclass(frozen=True)
class Mutant:
    """One deliberate mistake."""

    area: str  # the file of the list it is in
    name: str
    file: str  # below src/kmargin
    original: str  # what it replaces; there once in the file
    mutated: str
    tests: tuple[str, ...]  # below tests; those expected to notice
    reason: str = ""  # why it may survive
    path: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", SOURCE / self.file)

    def applied_to(self, source: str) -> str | None:
        """The source with the mistake in it; None if it does not hold the original exactly once."""
        return source.replace(self.original, self.mutated) if source.count(self.original) == 1 else None


def read_catalogue(folder: Path = HERE) -> list[Mutant]:
    """All mutants, area by area."""
    return [
        _read(path.stem, entry)
        for path in sorted(folder.glob("*.toml"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    ]


def _read(area: str, entry: dict[str, Any]) -> Mutant:
    return Mutant(area, **{**entry, "tests": tuple(entry["tests"])})


def matching(mutants: list[Mutant], wanted: list[str]) -> list[Mutant]:
    """Those with one of these names, areas or files, or with a name that begins so."""
    if not wanted:
        return mutants
    return [m for m in mutants if any(w in (m.area, m.file) or m.name.startswith(w) for w in wanted)]
