"""The choice of k and C for a table: in rounds, until it has settled."""

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from kmargin import validate
from kmargin.errors import InputError, blame_input, listing
from kmargin.progress import Bar, progress_bar
from kmargin.selection import ScoreTable
from kmargin.tables.trial import Trial

DEFAULT_CS = (0.01, 0.1, 1.0, 10.0)
SMALLEST_C, LARGEST_C = 1e-5, 1e4  # to which the default grid may grow
MOST_GROWTH = 3  # times
STEADY = 3  # rounds in a row that lead to the same choice settle it


@dataclass(frozen=True)
class Choice:
    """What was chosen, and the one table of scores that it was chosen by."""

    row: int
    column: int
    table: ScoreTable
    n_rounds: int
    has_settled: bool
    had_alternatives: bool

    @property
    def k(self) -> int:
        return self.table.ks[self.column]

    @property
    def C(self) -> float:
        return self.table.Cs[self.row]

    @property
    def Cs(self) -> list[float]:
        """Those walked on the way to the chosen one."""
        return list(self.table.Cs[: self.row + 1])

    @property
    def ks(self) -> list[int]:
        return list(self.table.ks)

    @property
    def score(self) -> float:
        return float(self.table.mean[self.row, self.column])


def choose(trial: Trial, n_rounds: int | None = None, bar: Bar | None = None) -> Choice:
    """Score all C and k in rounds of folds; in as many as asked for, or until the choice has settled."""
    Cs, ks = resolve_grid(trial)
    is_open = len(Cs) * (len(ks) if trial.settings.k is None else 1) > 1
    needs_rounds = is_open and trial.max_rounds > 1
    most = n_rounds or (trial.max_rounds if is_open else 1)
    if not is_open and (trial.settings.repeats or 1) > 1:
        trial.notes.append(
            f"--repeats {trial.settings.repeats} has no effect: k and C are given, so nothing is left to "
            "choose, and one round of folds is enough."
        )
    total = most * trial.n_solutions(Cs, ks)
    own_bar = progress_bar("choosing k and C", total, trial.settings.verbose)
    with own_bar if bar is None else nullcontext(bar) as bar:
        scores, Cs, ks, at = _first_round(trial, Cs, ks, most, bar)
        rounds, same = [scores], 1
        while len(rounds) < most and (n_rounds is not None or same < STEADY):
            rounds.append(trial.score(Cs, ks, len(rounds), bar))
            before, at = at, _choose(trial, rounds, Cs, ks)
            same = same + 1 if at == before else 1
        bar.extend((len(rounds) - most) * trial.n_solutions(Cs, ks))
    table = ScoreTable(np.concatenate(rounds), Cs, ks, *counts_of(trial))
    has_settled = not needs_rounds or same >= STEADY
    return Choice(*at, table, len(rounds), has_settled, had_alternatives=is_open)


def _first_round(
    trial: Trial, Cs: list[float], ks: list[int], most: int, bar: Bar
) -> tuple[np.ndarray, list[float], list[int], tuple[int, int]]:
    """Scores, the grid, and the choice. Where that lies at the edge of a grid that nobody asked for, the grid
    grows, and its scores are made anew: along a path each depends on its neighbours.
    """
    for n_grown in range(MOST_GROWTH + 1):
        scores = trial.score(Cs, ks, 0, bar)
        at = _choose(trial, [scores], Cs, ks)
        wider = _grow(trial, Cs, ks, at) if n_grown < MOST_GROWTH else (Cs, ks)
        if wider == (Cs, ks):
            break
        bar.extend(most * trial.n_solutions(*wider) - (most - 1) * trial.n_solutions(Cs, ks))
        Cs, ks = wider
    return scores, Cs, ks, at


def _choose(trial: Trial, rounds: list[np.ndarray], Cs: list[float], ks: list[int]) -> tuple[int, int]:
    """The positions of C and k; of a k that was asked for, only C is to be chosen."""
    settings, scores = trial.settings, np.concatenate(rounds)
    if settings.k is None:
        return ScoreTable(scores, Cs, ks, *counts_of(trial)).choose(settings.select, settings.tolerance)
    column = ks.index(settings.k)
    table = ScoreTable(scores[:, :, [column]], Cs, [settings.k], *counts_of(trial))
    return table.choose(settings.select, settings.tolerance)[0], column


def counts_of(trial: Trial) -> tuple[float, float]:
    """Rows that are scored, and test rows per training row."""
    return trial.dataset.n_independent, 1 / (trial.n_folds - 1)


def _grow(trial: Trial, Cs: list[float], ks: list[int], at: tuple[int, int]) -> tuple[list[float], list[int]]:
    """The grid with more beyond an edge that the choice lies at, unless the grid was asked for."""
    settings = trial.settings
    if settings.Cs is None:
        if at[0] == 0 and Cs[0] / 10 >= 0.99 * SMALLEST_C:
            Cs = [Cs[0] / 10, *Cs]
        elif at[0] == len(Cs) - 1 and Cs[-1] * 10 <= 1.01 * LARGEST_C:
            Cs = [*Cs, Cs[-1] * 10]
    if settings.ks is None and settings.k is None and at[1] == 0 and ks[0] < trial.n_available:
        ks = [min(2 * ks[0], trial.n_available), *ks]
    return Cs, ks


def resolve_grid(trial: Trial) -> tuple[list[float], list[int]]:
    """The values of C, ascending, and of k, descending; beside a k that is fixed, one more and one fewer."""
    settings, things = trial.settings, trial.things
    with blame_input():
        n_available = trial.n_available
    asked = [] if settings.k is None else [settings.k]
    given = settings.ks if isinstance(settings.ks, list) else []
    for k in (*asked, *given):
        if not 0 <= k <= n_available:
            raise InputError(f"k = {k} is not possible with {n_available} {things}. Use 0 to {n_available}.")
        if k < trial.least:
            kept = listing(trial.counted.labels_of(np.flatnonzero(trial.counted.always_in)))
            raise InputError(
                f"k = {k} is less than the {trial.least} {things} of --keep ({kept}), which count in k. Use "
                f"{trial.least} or more, or keep fewer."
            )
    with blame_input():
        largest = trial.blueprint.largest_default(trial.samples)
        ks = validate.resolve_ks(settings.ks, n_available, largest, things)
        if settings.k is not None and settings.ks is None:
            ks = [k for k in (settings.k - 1, settings.k + 1) if 1 <= k <= n_available]
        ks = [k for k in ks if k >= trial.least] or [trial.least]
        Cs = DEFAULT_CS if settings.Cs is None else settings.Cs
        return validate.resolve_Cs(list(Cs)), sorted({*ks, *asked}, reverse=True)
