"""Columns of a table: their types, their encoding as numeric features, and the units that k counts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cached_property
from numbers import Real
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.units import UnitRequest, Units
from kmargin.core.validation import InputError, blame_input, count, listing, nearest
from kmargin.tables.read import MISSING_MARKS, SWAP_MARKS, Table, check_unique, parse_numbers, read_table

NUMBER_TYPES = (Real, Decimal, np.bool_)
CENSORED = r"[<>≤≥]=?\s*\d+([.,]\d+)*"  # a value outside the range of measurement, such as <5 or > 100,5
MAX_CATEGORIES = 50  # refuse text columns with more distinct values than this and than half the rows
MAX_STRAYS = 0.1  # texts in at most this share of the rows are mistakes in a column of measured numbers
MAX_CODES = 25  # at most so many distinct values, and at most half the rows, may be codes, such as 1 to 22, X
LARGEST = 1e100  # larger numbers are refused, because sums of their squares could overflow


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
    """Return a column of numbers as floats, NaN where a value is missing."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def to_texts(column: pd.Series) -> np.ndarray:
    """Return the values of a column as texts, None where a value is missing."""
    return np.array([None if pd.isna(value) else to_text(value) for value in column], dtype=object)


def to_text(value: Any) -> str:
    """Return a value as text; a whole number is written the same whether it is an integer or a float."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def check_missing(frame: pd.DataFrame, advice: str) -> None:
    """Raises InputError, with `advice` at the end of its message, if values are missing."""
    missing = frame.isna().sum().sort_values(ascending=False, kind="stable")
    if missing.any():
        columns = listing(list(missing.index[missing > 0]))
        total = count(int(missing.sum()), "missing value")
        raise InputError(f"The table has {total}, in {columns}. {advice}")


def check_finite(frame: pd.DataFrame) -> None:
    """Raises InputError if numbers are infinite or above `LARGEST`."""
    numeric = [name for name in frame.columns if kind_of(frame[name]) == "number"]
    if found := [name for name in numeric if (np.abs(to_numbers(frame[name])) > LARGEST).any()]:
        raise InputError(
            f"Column {listing(found)} holds infinite values or numbers beyond {LARGEST:g}, perhaps a code "
            "for missing values. Replace them, or leave the column out with --drop."
        )


def least_numeric(column: pd.Series) -> pd.Series:
    """Return the texts of a column that are not numbers; if all are numbers, those with a decimal mark."""
    texts = pd.Series(to_texts(column.dropna()), dtype=object).str.strip()
    both = (texts, texts.str.translate(SWAP_MARKS))
    n_misread: Any = sum(pd.to_numeric(read, errors="coerce").isna() for read in both)
    n_misread = n_misread.mask(texts.isin(MISSING_MARKS), 0.5)
    return texts[n_misread == n_misread.max()]


def check_measured(column: pd.Series) -> None:
    """Raises InputError if a column of measurements holds a few texts, or values such as '<5'."""
    strays, n_distinct = least_numeric(column), column.nunique()
    rows = count(len(strays), "row")
    if strays.str.fullmatch(CENSORED).all():
        raise InputError(
            f"Column {column.name!r} holds laboratory values such as {strays.iloc[0]!r} ({rows})"
            ", which are no numbers. Replace each by one number, the same in every row and in new tables, "
            "such as the limit or half of it, or leave the column out."
        )
    if len(strays) <= MAX_STRAYS * len(column) and n_distinct > min(MAX_CODES, len(column) / 2):
        held = f"Column {column.name!r} holds {listing(strays.unique(), 3)} in {rows} among numbers"
        raise InputError(f"{held}. Correct such values, or leave them empty and fit with --impute median.")


def explain_transposed(frame: pd.DataFrame, wanted: Collection[str]) -> str:
    """Return advice on a table that seems to have its features in rows; an empty text for any other table.

    That is so if the first column holds the name of a wanted column. It is also so if the first column holds
    distinct texts, all other columns hold numbers, and the table has more rows than columns.
    """
    texts = {*to_texts(frame.iloc[:, 0])} if kind_of(frame.iloc[:, 0]) == "text" else set()
    is_matrix = all(map(pd.api.types.is_numeric_dtype, frame.dtypes.iloc[1:]))
    if not texts & set(wanted) and not (is_matrix and len(texts) == len(frame) > frame.shape[1] > 2):
        return ""
    found = listing(sorted(texts & set(wanted)), 3) or count(len(texts), "name")
    seems = f"With {found} in its first column the table seems to have its features in rows"
    return f"{seems}: add --transpose, and --labels FILE if the classes are in a separate file."


@dataclass(frozen=True)
class Encoding:
    """One-hot encoding of a table: a feature per numeric column, and one per value of each text column."""

    columns: tuple[str, ...]
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the values of each text column

    @property
    def parts(self) -> list[tuple[str, str | None]]:
        """For each feature, its column and, for a text column, the value that it encodes; else None."""
        return [(column, value) for column in self.columns for value in self.categories.get(column, (None,))]

    @property
    def feature_names(self) -> list[str]:
        return [column if value is None else f"{column}={value}" for column, value in self.parts]

    @property
    def sources(self) -> list[str]:
        """The column that each feature encodes."""
        return [column for column, _ in self.parts]

    def matrix(self, frame: pd.DataFrame) -> Matrix:
        """Return the matrix of features: NaN for missing numbers, all zeros for a missing or unknown text."""
        encoded = {name: to_texts(frame[name]) for name in self.categories}
        encoded |= {name: to_numbers(frame[name]) for name in self.columns if name not in self.categories}
        features = [encoded[name] if value is None else encoded[name] == value for name, value in self.parts]
        return np.column_stack(features).astype(np.float64, copy=False)

    def match(self, table: Table, needed: set[str], has_medians: bool) -> tuple[Matrix, list[str]]:
        """Return the matrix of features of a new table, whose columns are found by name, and notes.

        Features of columns that are not in `needed` are zero. Values of needed columns may only be missing if
        the model `has_medians` to impute them.
        """
        columns = [column for column in self.columns if column in needed]
        absent = [column for column in columns if column not in table.frame.columns]
        if absent and not table.absent_is_zero:
            others = [name for name in table.frame.columns if name not in self.columns]
            hint = explain_transposed(table.frame, absent) or nearest(absent[0], others)
            hint = nearest("", table.frame.columns) if hint.startswith("It has") else hint
            missing = f"{len(absent):,} of the {count(len(columns), 'column')}"
            raise InputError(f"The table lacks {missing} that the model needs: {listing(absent)}. {hint}")
        frame, notes = table.frame.reindex(columns=columns, fill_value=0.0), []
        for name in columns:
            if name not in self.categories:
                frame[name] = _numbers_of(frame[name])
            elif new := sorted({*to_texts(frame[name])} - {None, *self.categories[name]}):
                notes.append(f"Column {name!r} holds {listing(new)}, unknown to the model: taken as none.")
        if not has_medians:
            check_missing(frame, "Fill in values, or fit again with --impute median.")
        check_finite(frame)
        return self.matrix(frame.reindex(columns=list(self.columns), fill_value=0.0)), notes


def _numbers_of(column: pd.Series) -> Vector:
    """Return a column of numbers, or of texts that are numbers, as floats; refuse any other column."""
    kind = kind_of(column)
    numbers = parse_numbers(pd.Series(to_texts(column), dtype=object)) if kind == "text" else column
    if kind in ("number", "text") and numbers is not None:
        return to_numbers(numbers)
    if kind == "text":
        check_measured(column)
        kind = f"text, such as {least_numeric(column).iloc[0][:40]!r}"
    raise InputError(
        f"Column {column.name!r} holds {kind}, but the model was fitted to numbers. Give numbers."
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
    """Return the median of each column, ignoring missing values; 0 for a column without values."""
    return pd.DataFrame(X).median().fillna(0.0).to_numpy()


def learn_scaling(X: Matrix, weights: Vector, impute: bool, standardize: bool) -> Scaling:
    """Return medians and standard deviations of the training rows; for a constant column the latter is 1."""
    medians = column_medians(X) if impute else None
    mean, spread = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if standardize:  # not by matrix products, which may round equal columns differently
        X, weights = Scaling(medians, mean, spread)(X), weights / weights.max()
        mean = np.average(X, axis=0, weights=weights)
        spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
        spread[spread <= len(X) * np.finfo(float).eps * np.abs(mean)] = 1.0
    return Scaling(medians, mean, spread)


class Roles(NamedTuple):
    """The roles of columns, what k counts, and constraints on features.

    All columns without another role are features. `keep`, `avoid` and `signs` refer to columns, to values of
    text columns (hue=red) or to groups.
    """

    target: str | None = None
    id: str | None = None
    weights: str | None = None
    drop: Sequence[str] = ()
    encode: str | None = None
    impute: str | None = None
    grouped_by: str | None = None  # rows with the same value stay together in folds
    features: Sequence[str] = ()  # columns to use as features even if they seem to name the rows
    keep: Sequence[str] = ()
    avoid: Sequence[str] = ()
    signs: Sequence[str] = ()  # required signs of coefficients, such as age=+
    groups: Mapping[str, str] | None = None  # the group of each column that belongs to a group
    group_by: str | None = None  # a separator; columns with the same text before it form a group
    each_value: bool = False  # whether k counts every value of a text column, not the column once

    @property
    def mentioned(self) -> set[str]:
        """Columns that must be features, because --feature, --keep or --sign names them."""
        return {*self.features, *self.keep, *(text.rpartition("=")[0] for text in self.signs)}


def learn_encoding(features: pd.DataFrame, roles: Roles) -> Encoding:
    """Return the encoding of these columns; refuse columns that cannot be encoded as numbers."""
    kinds = {name: kind_of(features[name]) for name in features.columns}
    for name, kind in kinds.items():
        if kind == "text":
            check_measured(features[name])
        elif kind != "number":
            raise InputError(f"Column {name!r} holds {kind}, not numbers. Drop it with --drop {quote(name)}.")
    texts = [name for name, kind in kinds.items() if kind == "text"]
    if texts and roles.encode is None:
        raise InputError(
            f"The table has text instead of numbers in {listing(texts)}, such as "
            f"{least_numeric(features[texts[0]]).iloc[0][:40]!r}. Encode text with --encode onehot, or leave "
            "it out with --drop; if it names the patient of each row, say, use --rows-grouped-by."
        )
    for name in texts:
        n_distinct, n_rows = features[name].nunique(), len(features)
        if n_distinct > MAX_CATEGORIES and 2 * n_distinct > n_rows:
            raise InputError(
                f"Column {name!r} holds {n_distinct:,} different texts in {n_rows:,} rows, so it is a name "
                f"rather than a feature. Use --id {quote(name)} to copy it to the predictions, --drop "
                f"{quote(name)}, or --rows-grouped-by {quote(name)} if it names, for example, patients."
            )
    if roles.impute is None:
        check_missing(features, "Fill them with --impute median, or leave out the columns with --drop.")
    if empty := [name for name in features.columns if features[name].isna().all()]:
        raise InputError(f"Column {listing(empty)} has no values at all. Leave it out with --drop.")
    check_finite(features)
    categories = {name: tuple(sorted({*to_texts(features[name])} - {None})) for name in texts}
    encoding = Encoding(tuple(features.columns), categories)
    check_unique("--encode onehot", encoding.feature_names, "feature")
    return encoding


@dataclass(frozen=True)
class CountedFeatures:
    """The features of a data set, and the units that k counts."""

    names: tuple[str, ...]
    labels: tuple[str, ...]  # for each feature, the name of its unit
    unit_label: str  # features, variables (all features that encode one column) or groups (of columns)
    request: UnitRequest  # groups and constraints, with features given by their positions
    units: Units

    @cached_property
    def always_in(self) -> Flags:
        """Whether each feature is always in the model."""
        return self.units.chosen(np.zeros(len(self.names), np.bool_))

    @property
    def n_fixed(self) -> int:
        """The number of units that are always in the model."""
        return int(self.units.fixed.sum())

    def sign_of(self, feature: int) -> str:
        return {1: "+", -1: "-"}.get(int(self.units.signs[feature]), "")

    def labels_of(self, features: Iterable[int]) -> list[str]:
        """Return the names of the units that these features belong to, each once, in order."""
        return list(dict.fromkeys(self.labels[j] for j in features))


def count_features(encoding: Encoding, roles: Roles) -> CountedFeatures:
    """Return the features of a table with the units that k counts."""
    names, sources = encoding.feature_names, encoding.sources
    unit_label, labels = "features", names
    if roles.groups is not None or roles.group_by is not None:
        unit_label, labels = "groups", _group_labels(encoding, roles)
    elif encoding.categories and not roles.each_value and len(encoding.columns) > 1:
        unit_label, labels = "variables", sources
    # positions of features by name; a name with several meanings is a column, else a value, else a group
    places: dict[str, Indices] = {}
    for kind in (labels, names, sources):
        places |= pd.Series(kind).groupby(kind, sort=False).indices

    def find(wanted: Sequence[str], option: str) -> list[int]:
        for name in wanted:
            if name not in places:
                raise InputError(f"{option} names {name!r}, which is not a feature. {nearest(name, places)}")
        return [int(place) for name in wanted for place in places[name]]

    signs: dict[int, str] = {}
    for text in roles.signs:
        name, _, sign = text.rpartition("=")
        if sign not in ("+", "-"):
            raise InputError(f"--sign {text} is not of the form feature=sign. Write it as age=+ or age=-.")
        for place in find([name], "--sign"):
            if signs.setdefault(place, sign) != sign:
                raise InputError(f"--sign gives {name!r} both + and -. Use one of them, or neither.")
    groups = None if unit_label == "features" else labels
    request = UnitRequest(groups, find(roles.keep, "--keep"), find(roles.avoid, "--avoid"), signs)
    with blame_input():
        request = request.by_place(len(names), names)
        units = request.resolve(len(names), names)
    return CountedFeatures(tuple(names), tuple(labels), unit_label, request, units)


def _group_labels(encoding: Encoding, roles: Roles) -> list[str]:
    """Return the name of the group of each feature; a column in no group is a group of its own."""
    if roles.groups is not None and roles.group_by is not None:
        raise InputError("--groups and --group-by both define groups. Use one of them.")
    columns, group_of = encoding.columns, dict(roles.groups or {})
    if roles.group_by is not None:  # with "_", the columns site_a, site_b and site form the group site
        prefixes = {column: column.split(roles.group_by or "\0")[0] for column in columns}
        group_of = {column: prefix for column, prefix in prefixes.items() if prefix not in ("", column)}
        if not group_of:
            raise InputError(
                f"--group-by {roles.group_by!r}: no feature name contains it after a prefix. Give the "
                "separator between the group and the rest of the name, such as _ for site_a and site_b."
            )
        group_of |= {column: column for column in columns if column in set(group_of.values())}
    if unknown := [name for name in group_of if name not in columns]:
        hint = nearest(unknown[0], columns)
        raise InputError(f"--groups names {listing(unknown)}, which is not a feature. {hint}")
    groups, alone = set(group_of.values()), encoding.feature_names if roles.each_value else encoding.sources
    alone = [f"{name} (by itself)" if name in groups else name for name in alone]
    return [group_of.get(column, name) for column, name in zip(encoding.sources, alone, strict=True)]


def read_groups(path: Path) -> dict[str, str]:
    """Return the group of each feature from a file with columns feature and group."""
    frame = read_table(path).frame
    if sorted(frame.columns) != ["feature", "group"]:
        given = listing(list(frame.columns))
        raise InputError(f"--groups: {path.name} has columns {given}. It needs two: feature and group.")
    wrong = frame.isna().any(axis=1) | frame["feature"].duplicated()
    if wrong.any():
        raise InputError(
            f"--groups: row {wrong.idxmax() + 1} of {path.name} lacks a feature or a group, or repeats a "
            "feature. Put each feature into one group; one that is not in the file is a group of its own."
        )
    return dict(zip(to_texts(frame["feature"]), to_texts(frame["group"]), strict=True))
