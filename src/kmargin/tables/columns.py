"""Columns of a table: their types, their encoding as numeric features, and the units that k counts."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kmargin.core.arrays import Flags, Matrix, Vector
from kmargin.core.units import UnitRequest, Units
from kmargin.core.validation import InputError, blame_input, count, listing, nearest
from kmargin.tables.read import Table, parse_numbers, read_table

NUMBER_TYPES = (Real, Decimal, np.bool_)
# a laboratory value outside the range of measurement, such as <5 or > 100,5
CENSORED = re.compile(r"[<>≤≥]=?\s*\d+([.,]\d+)*")
LARGEST = 1e100  # larger numbers are refused, because sums of their squares could overflow
MAX_LISTED = 5  # number of names that a message lists
SIGN_VALUES = {"+": 1, "-": -1}


def kind_of(column: pd.Series) -> str:
    """Return "number" (also for booleans), "text", or a description of other values, such as "dates"."""
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype):
        return "number"
    types = {type(value): None for value in column.dropna()}
    for kind, allowed in (("number", NUMBER_TYPES), ("text", (str, *NUMBER_TYPES)), ("dates", date)):
        if all(issubclass(found, allowed) for found in types):
            return kind
    return f"values of type {next(iter(types)).__name__}"


def to_numbers(column: pd.Series) -> Vector:
    """Return a column of numbers as floats, NaN where a value is missing; huge integers are clipped."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    longest = 10**308
    clipped = [np.nan if pd.isna(value) else max(-longest, min(value, longest)) for value in column]
    return np.array(clipped, np.float64)


def to_texts(column: pd.Series) -> np.ndarray:
    """Return the values of a column as texts, None where a value is missing."""
    return np.array([None if pd.isna(value) else to_text(value) for value in column], dtype=object)


def to_text(value: Any) -> str:
    """Return a value as text; a whole number is written the same whether it is an integer or a float."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def join_some(words: Sequence[str]) -> str:
    """Return the first `MAX_LISTED` of these words as a list in a sentence, and how many more there are."""
    more = f" and {len(words) - MAX_LISTED:,} more" if len(words) > MAX_LISTED else ""
    return ", ".join(words[:MAX_LISTED]) + more


def check_missing(frame: pd.DataFrame, advice: str) -> None:
    """Raises InputError, with this advice, if values are missing."""
    missing = frame.isna().sum().sort_values(ascending=False, kind="stable")
    missing = missing[missing > 0]
    if len(missing):
        columns = join_some([f"{name!r} ({number})" for name, number in missing.items()])
        where = "column" if len(missing) == 1 else f"{len(missing)} columns:"
        total = int(missing.sum())
        raise InputError(
            f"{count(total, 'value')} {'is' if total == 1 else 'are'} missing, in {where} {columns}. {advice}"
        )


def check_finite(frame: pd.DataFrame) -> None:
    """Raises InputError if numbers are infinite or above `LARGEST`."""
    found = [name for name in frame.columns if (np.abs(to_numbers(frame[name])) > LARGEST).any()]
    if found:
        raise InputError(
            f"Column {listing(found)} holds infinite values or numbers beyond {LARGEST:g}, perhaps a code "
            "for missing values. Replace them, or leave the column out with --drop."
        )


def explain_censored(column: pd.Series, name: str) -> str | None:
    """Return advice on a column of numbers and values such as '<5'; None for any other column."""
    texts = pd.Series(to_texts(column.dropna()), dtype=object).str.strip()
    is_censored = texts.str.fullmatch(CENSORED).astype(bool)
    if not is_censored.any() or parse_numbers(texts[~is_censored], ",") is None:
        return None
    example, rows = texts[is_censored].iloc[0], count(int(is_censored.sum()), "row")
    limit = example.lstrip("<>≤≥= ")
    side, number = ("below", f"{limit} or half of it") if example[0] in "<≤" else ("above", limit)
    return (
        f"Column {name!r} holds laboratory values such as {example!r} ({rows}), {side} what "
        "was measured, not numbers. Replace each by one number, the same in every row and in new tables "
        f"(for {example!r} {number})."
    )


def first_text(column: pd.Series) -> str:
    """Return the first value that is not a number, such as a stray '?'; if there is none, the first value."""
    texts = column.dropna().astype(str)
    strays = texts[pd.to_numeric(texts, errors="coerce").isna()]
    return str((strays if len(strays) else texts).iloc[0])[:40]


def explain_transposed(frame: pd.DataFrame, wanted: Collection[str]) -> str:
    """Return advice on a table that seems to have its features in rows; an empty text for any other table.

    A table seems so if the name of a wanted column is in its first column. It also seems so if its first
    column holds distinct texts, all others hold numbers, and it has more rows than columns.
    """
    if kind_of(frame.iloc[:, 0]) != "text":
        return ""
    texts, dtypes = set(to_texts(frame.iloc[:, 0])), frame.dtypes.iloc[1:]
    is_matrix = len(dtypes) >= 2 and all(map(pd.api.types.is_numeric_dtype, dtypes))
    if not texts & set(wanted) and not (is_matrix and len(texts) == len(frame) > frame.shape[1]):
        return ""
    found = listing(sorted(texts & set(wanted)), 3) or count(len(texts), "name")
    return (
        f"With {found} in its first column the table seems to have its features in rows: add --transpose, "
        "and --labels FILE if the classes are in a separate file."
    )


# Features as numbers


@dataclass(frozen=True)
class Encoding:
    """One-hot encoding of a table: a feature for each numeric column, and for each value of a text column."""

    columns: tuple[str, ...]
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the values of each text column

    @property
    def feature_names(self) -> list[str]:
        return [name for column in self.columns for name in self.names_of(column)]

    @property
    def sources(self) -> list[str]:
        """The column that each feature encodes."""
        return [column for column in self.columns for _ in self.names_of(column)]

    def names_of(self, column: str) -> list[str]:
        """Return the names of the features that a column is encoded as."""
        values = self.categories.get(column)
        return [column] if values is None else [f"{column}={value}" for value in values]

    def matrix(self, frame: pd.DataFrame) -> Matrix:
        """Return the matrix of features: NaN for missing numbers, all zeros for a missing or unknown text."""
        blocks = []
        for column in self.columns:
            if column in self.categories:
                texts = to_texts(frame[column])
                blocks += [(texts == value).astype(np.float64) for value in self.categories[column]]
            else:
                blocks.append(to_numbers(frame[column]))
        return np.column_stack(blocks) if blocks else np.empty((len(frame), 0))

    def match(self, table: Table, needed: set[str], has_medians: bool) -> tuple[Matrix, list[str]]:
        """Return the matrix of features of a new table, whose columns are found by name, and notes.

        Features of columns that are not in `needed` are zero. Raises InputError if needed columns are missing
        or not numeric, and if needed values are missing unless the model `has_medians` to impute them.
        """
        columns = [column for column in self.columns if column in needed]
        absent = [column for column in columns if column not in table.frame.columns]
        if absent and not table.absent_is_zero:
            raise InputError(_explain_absent(table.frame, absent, len(columns), set(self.columns)))
        frame, notes = table.frame.reindex(columns=columns, fill_value=0.0), []
        for name in columns:
            if name not in self.categories:
                frame[name] = _numbers_of(frame[name])
            elif new := sorted({*to_texts(frame[name])} - {None, *self.categories[name]}):
                notes.append(f"Column {name!r} holds {listing(new)}, unknown to the model: taken as none.")
        if not has_medians:
            check_missing(frame, "Fill them in, or fit again with --impute median.")
        check_finite(frame.drop(columns=list(self.categories), errors="ignore"))
        return self.matrix(frame.reindex(columns=list(self.columns), fill_value=0.0)), notes


def _numbers_of(column: pd.Series) -> Vector:
    """Return numbers, or texts of numbers, as numbers. Raises InputError for a column of anything else."""
    kind, example = kind_of(column), ""
    if kind == "text":
        numbers = parse_numbers(pd.Series(to_texts(column), dtype=object))
        if numbers is not None:
            return to_numbers(numbers)
        if (advice := explain_censored(column, str(column.name))) is not None:
            raise InputError(advice)
        example = f", such as {first_text(column)!r}"
    elif kind == "number":
        return to_numbers(column)
    raise InputError(
        f"Column {column.name!r} holds {kind}{example}, but the model was fitted to numbers. Give numbers."
    )


def _explain_absent(frame: pd.DataFrame, absent: list[str], n_needed: int, known: set[str]) -> str:
    """Return a sentence with the columns that a table lacks, and columns of similar names that it has."""
    others = {str(name).casefold(): str(name) for name in frame.columns if name not in known}
    close = {name: get_close_matches(name.casefold(), others, n=1) for name in absent[:MAX_LISTED]}
    meant = ", ".join(f"{others[names[0]]!r} for {name!r}" for name, names in close.items() if names)
    hint = f"Did you mean {meant}?" if meant else explain_transposed(frame, absent)
    which = "" if n_needed == len(absent) == 1 else f" of the {n_needed:,} it needs"
    return (
        f"The table lacks {count(len(absent), 'column')}{which}: {listing(absent)}. "
        f"{hint or 'It has none with a similar name: is it the right table?'}"
    )


@dataclass(frozen=True)
class Scaling:
    """Imputation by medians and standardisation of features, learned from training rows."""

    medians: Vector | None  # None if missing values are not imputed
    mean: Vector
    spread: Vector  # the standard deviations

    def __call__(self, X: Matrix) -> Matrix:
        if self.medians is not None:
            X = np.where(np.isnan(X), self.medians, X)
        return (X - self.mean) / self.spread


def column_medians(X: Matrix) -> Vector:
    """Return the median of the known values in each column, 0 where there are none."""
    return pd.DataFrame(X).median().fillna(0.0).to_numpy()


# What k counts


class ColumnRequest(NamedTuple):
    """What k counts, and constraints on features, by the names of columns, values (hue=red) or groups."""

    keep: Sequence[str] = ()
    avoid: Sequence[str] = ()
    signs: Sequence[str] = ()  # required signs of coefficients, such as age=+
    groups: Mapping[str, str] | None = None  # the group of each column that is in one
    group_by: str | None = None  # a separator: columns are grouped by the text before it
    each_value: bool = False  # whether k counts each value of a text column, not the column as one


NO_REQUEST = ColumnRequest()


@dataclass(frozen=True)
class CountedFeatures:
    """The features of a data set, and the units that k counts.

    These are features, variables (the features that encode one column of the table), or groups of columns.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]  # for each feature, the name of its unit
    things: str  # what the units are called: features, variables or groups
    request: UnitRequest  # the constraints, with features given by their positions

    @cached_property
    def units(self) -> Units:
        return self.request.resolve(len(self.names))

    @cached_property
    def always_in(self) -> Flags:
        """Whether each feature is always in the model."""
        return self.units.chosen(np.zeros(len(self.names), np.bool_))

    @property
    def is_grouped(self) -> bool:
        return self.things != "features"

    @property
    def n_fixed(self) -> int:
        """The number of units that are always in the model."""
        return int(self.units.fixed.sum())

    def sign_of(self, feature: int) -> str:
        return {1: "+", -1: "-"}.get(int(self.units.signs[feature]), "")

    def labels_of(self, features: Iterable[int]) -> list[str]:
        """Return the names of the units that these features belong to, each once, in order."""
        return list(dict.fromkeys(self.labels[j] for j in features))


def count_features(encoding: Encoding, asked: ColumnRequest) -> CountedFeatures:
    """Return the features of a table with the units that k counts. Raises InputError for unknown names."""
    names, sources = encoding.feature_names, encoding.sources
    things, labels = "features", names
    if asked.groups is not None or asked.group_by is not None:
        things, labels = "groups", _group_labels(encoding, asked)
    elif encoding.categories and not asked.each_value and len(encoding.columns) > 1:
        things, labels = "variables", sources
    # positions of features by name; a name may be that of a column, of a value or of a group, in this order
    places: dict[str, list[int]] = {}
    for kind in (labels, names, sources):
        places |= {name: [] for name in kind}
        for place, name in enumerate(kind):
            places[name].append(place)

    def find(name: str, option: str) -> list[int]:
        if name not in places:
            raise InputError(f"{option} names {name!r}, which is not a feature. {nearest(name, places)}")
        return places[name]

    signs = [0] * len(names)
    for text in asked.signs:
        name, equals, sign = text.rpartition("=")
        if not equals or sign not in SIGN_VALUES:
            raise InputError(
                f"--sign {text} is not of the form feature=sign. Write it as --sign age=+ or --sign age=-."
            )
        for place in find(name, "--sign"):
            if signs[place] == -SIGN_VALUES[sign]:
                raise InputError(
                    f"--sign gives {name!r} both + and -. Use one of them, or leave it out to allow either."
                )
            signs[place] = SIGN_VALUES[sign]
    request = UnitRequest(
        groups=None if things == "features" else list(labels),
        keep=sorted({place for name in asked.keep for place in find(name, "--keep")}) or None,
        avoid=sorted({place for name in asked.avoid for place in find(name, "--avoid")}) or None,
        signs=signs if any(signs) else None,
    )
    if request.avoid == list(range(len(names))):
        raise InputError(f"--avoid excludes all {len(names)} features. Exclude fewer.")
    with blame_input():
        request.resolve(len(names), names)
    return CountedFeatures(tuple(names), tuple(labels), things, request)


def _group_labels(encoding: Encoding, asked: ColumnRequest) -> list[str]:
    """Return the name of the group of each feature; a column in no group is a group of its own."""
    if asked.groups is not None and asked.group_by is not None:
        raise InputError("--groups and --group-by both define groups. Use one of them.")
    columns = encoding.columns
    group_of = _prefixes(columns, asked.group_by or "") if asked.groups is None else dict(asked.groups)
    unknown = [name for name in group_of if name not in columns]
    if unknown:
        raise InputError(
            f"--groups names {listing(unknown)}, which is not a feature. {nearest(unknown[0], columns)}"
        )
    labels, groups = [], set(group_of.values())
    for column, feature in zip(encoding.sources, encoding.feature_names, strict=True):
        alone = feature if asked.each_value else column
        labels.append(group_of.get(column, f"{alone} (by itself)" if alone in groups else alone))
    if len(set(labels)) == 1:
        option = "--group-by" if asked.groups is None else "--groups"
        raise InputError(f"{option} puts all features into one group. Define two or more to choose from.")
    return labels


def _prefixes(columns: Sequence[str], separator: str) -> dict[str, str]:
    """Return the group of each column: the text before the separator in its name.

    A column whose whole name is the name of a group belongs to that group.
    """
    prefixes = {column: column.partition(separator)[0] for column in columns} if separator else {}
    groups = {column: prefix for column, prefix in prefixes.items() if prefix not in ("", column)}
    if not groups:
        raise InputError(
            f"--group-by {separator!r}: no feature name contains it after a prefix. Give the separator "
            "between the group and the rest of the name, such as _ for site_a and site_b."
        )
    return groups | {column: column for column in columns if column in set(groups.values())}


def read_groups(path: Path) -> dict[str, str]:
    """Return the group of each feature from a file with columns feature and group. Raises InputError for
    any other file.
    """
    frame = read_table(path).frame
    if sorted(frame.columns) != ["feature", "group"]:
        raise InputError(
            f"--groups: {path.name} has columns {listing(list(frame.columns))}. "
            "It needs two columns, called feature and group."
        )
    features, groups = (to_texts(frame[name]) for name in ("feature", "group"))
    wrong = frame.isna().any(axis=1) | frame["feature"].duplicated()
    if wrong.any():
        raise InputError(
            f"--groups: row {wrong.argmax() + 1} of {path.name} lacks a feature or a group, or repeats a "
            "feature. Put each feature into one group; one that is not in the file is a group of its own."
        )
    return dict(zip(features, groups, strict=True))
