"""What a machine is fed: columns made features, gaps filled, scales taken out, and the same again later."""

from dataclasses import dataclass, field
from difflib import get_close_matches

import numpy as np
import pandas as pd

from kmargin.errors import InputError, count, listing
from kmargin.tables.columns import (
    check_finite,
    check_missing,
    explain_censored,
    first_text,
    kind_of,
    texts_to_numbers,
    to_numbers,
    to_texts,
)
from kmargin.tables.read import Table
from kmargin.tables.row_names import explain_lying
from kmargin.types import Matrix, Vector

SMALLEST = 1e-150  # spreads below are none; `columns.LARGEST` is the other end
MOST_NAMED = 8  # of the columns that a table lacks
FARTHEST = 1e50  # in spreads: a number farther out counts as this far, so that powers of it are numbers


@dataclass(frozen=True)
class Encoding:
    """Which columns are features, and which values of a text column are features of their own."""

    columns: tuple[str, ...]
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def feature_names(self) -> list[str]:
        return [name for column in self.columns for name in self.names_of(column)]

    def names_of(self, column: str) -> list[str]:
        """The features that a column becomes."""
        values = self.categories.get(column)
        return [column] if values is None else [f"{column}={value}" for value in values]

    def matrix(self, frame: pd.DataFrame) -> Matrix:
        """The features, NaN where a number is missing; a missing text, or a new one, is all zeros."""
        blocks = []
        for column in self.columns:
            if column in self.categories:
                texts = to_texts(frame[column])
                blocks += [(texts == value).astype(np.float64) for value in self.categories[column]]
            else:
                blocks.append(to_numbers(frame[column]))
        return np.column_stack(blocks) if blocks else np.empty((len(frame), 0))

    def match(self, table: Table, needed: set[str], has_medians: bool) -> tuple[Matrix, list[str]]:
        """The features of a new table, found by name, and what there is to say about it.

        Features of columns that are not needed are zero, whatever the table holds. Raises InputError
        where needed columns or values are missing, or are no numbers.
        """
        frame = table.frame
        columns = [column for column in self.columns if column in needed]
        absent = [column for column in columns if column not in frame.columns]
        if absent and table.absent_is_zero:
            zeros = pd.DataFrame(0.0, columns=absent, index=frame.index)
            frame = pd.concat([frame, zeros], axis=1)
        elif absent:
            raise InputError(_explain_absent(frame, absent, len(columns), set(self.columns)))
        frame = frame[columns].copy()
        numeric = [column for column in columns if column not in self.categories]
        for name in numeric:
            if (kind := kind_of(frame[name])) == "number":
                continue
            numbers = texts_to_numbers(frame[name]) if kind == "text" else None
            if numbers is None:
                example = f", such as {first_text(frame[name])!r}" if kind == "text" else ""
                if kind == "text" and (advice := explain_censored(frame[name], name)) is not None:
                    raise InputError(advice)
                raise InputError(
                    f"Column {name!r} holds {kind}{example}, but the model was fitted to numbers. Give "
                    "numbers."
                )
            frame[name] = numbers
        if not has_medians:
            check_missing(frame, "Fill them in, or fit again with --impute median.")
        check_finite(frame[numeric])
        others = [column for column in self.columns if column not in needed]
        nothing = pd.DataFrame(0.0, columns=others, index=frame.index)
        return self.matrix(pd.concat([frame, nothing], axis=1)), self._notes(frame)

    def _notes(self, frame: pd.DataFrame) -> list[str]:
        notes = []
        for column in [column for column in frame.columns if column in self.categories]:
            known = self.categories[column]
            new = sorted({text for text in to_texts(frame[column]) if text is not None} - set(known))
            if new:
                notes.append(f"Column {column!r} holds {listing(new)}, unknown to the model: taken as none.")
        return notes


def _explain_absent(frame: pd.DataFrame, absent: list[str], n_needed: int, known: set[str]) -> str:
    """Which columns a table lacks, and what it may call them."""
    free = [name for name in frame.columns if name not in known]
    folded = {str(name).casefold(): str(name) for name in free}
    near = {}
    for name in absent[:MOST_NAMED]:
        close = get_close_matches(name.casefold(), folded, n=1)
        if close:
            near[name] = folded[close[0]]
    which = "" if n_needed == len(absent) == 1 else f" of the {n_needed:,} it needs"
    hint = explain_lying(frame, absent)
    if near:
        meant = ", ".join(f"{there!r} for {name!r}" for name, there in near.items())
        hint = f"Did you mean {meant}?"
    return (
        f"The table lacks {count(len(absent), 'column')}{which}: {listing(absent, MOST_NAMED)}. "
        f"{hint or 'It has none that is called alike: is it the right table?'}"
    )


@dataclass(frozen=True)
class Scaling:
    """Missing numbers filled in, then mean and spread taken out; all learned from some rows."""

    medians: Vector | None
    mean: Vector
    spread: Vector

    @classmethod
    def learn(cls, X: Matrix, repeats: Vector, impute: bool, standardize: bool) -> "Scaling":
        """From these rows, mean and spread counting each as often as its weight says."""
        n_features = X.shape[1]
        medians = None
        if impute:
            medians = np.zeros(n_features)
            known = ~np.isnan(X).all(axis=0)
            medians[known] = np.nanmedian(X[:, known], axis=0)
            X = np.where(np.isnan(X), medians, X)
        if not standardize:
            return cls(medians, np.zeros(n_features), np.ones(n_features))
        return cls(medians, *measure(X, repeats))

    def __call__(self, X: Matrix) -> Matrix:
        if self.medians is not None:
            X = np.where(np.isnan(X), self.medians, X)
        if self.is_plain:
            return X
        return np.clip((X - self.mean) / self.spread, -FARTHEST, FARTHEST)

    @property
    def is_plain(self) -> bool:
        """Whether numbers stay as they are."""
        return not self.mean.any() and bool((self.spread == 1).all())


def measure(X: Matrix, repeats: Vector) -> tuple[Vector, Vector]:
    """Mean and spread of each column; the spread of one that does not vary is 1.

    Numbers up to `columns.LARGEST` can be squared, and added if their weights are of the order of one.
    """
    weights = repeats / repeats.max()
    mean = np.average(X, axis=0, weights=weights)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    varies = (spread > 1e-12 * np.abs(mean)) & (spread > SMALLEST)
    return mean, np.where(varies, spread, 1.0)
