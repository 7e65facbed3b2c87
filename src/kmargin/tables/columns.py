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
CENSORED = r"[<>≤≥]=?\s*\d+([.,]\d+)*"  # matches a value beyond a limit of measurement, such as <5 or > 100,5
MAX_CATEGORIES = 50  # text columns with more than max(MAX_CATEGORIES, rows / 2) distinct values are refused
MAX_STRAYS = 0.1  # in a column of numbers, texts in at most this share of the rows are taken for mistakes
MAX_CODES = 25  # a column of at most min(MAX_CODES, rows / 2) distinct values may hold codes, as 1 to 22, X
LARGEST = 1e100  # larger numbers are refused, because sums of their squares could overflow


def kind_of(column: pd.Series) -> str:
    """Return the kind of values: "number" (also booleans), "text", or a name of others such as "dates"."""
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
    """Return a value as text; whole numbers have no decimal point, so 2 and 2.0 both become "2"."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def check_missing(frame: pd.DataFrame, advice: str) -> None:
    """Raises InputError if values are missing; its message ends with the sentence `advice`."""
    missing = frame.isna().sum().sort_values(ascending=False, kind="stable")
    if missing.any():
        total = count(int(missing.sum()), "missing value")
        raise InputError(f"The table has {total}, in {listing(missing.index[missing > 0])}. {advice}")


def check_finite(frame: pd.DataFrame) -> None:
    """Raises InputError if numbers are infinite or larger than `LARGEST` in absolute value."""
    numeric = [name for name in frame.columns if kind_of(frame[name]) == "number"]
    if found := [name for name in numeric if (np.abs(to_numbers(frame[name])) > LARGEST).any()]:
        raise InputError(
            f"Column {listing(found)} holds infinite values or numbers beyond {LARGEST:g}, perhaps a code "
            "for missing values. Replace them, or leave the column out with --drop."
        )


def least_numeric(column: pd.Series) -> pd.Series:
    """Return the texts in a column that are not numbers; if all are, those with a decimal point or comma."""
    texts = pd.Series(to_texts(column.dropna()), dtype=object).str.strip()
    both = (texts, texts.str.translate(SWAP_MARKS))
    n_misread: Any = sum(pd.to_numeric(read, errors="coerce").isna() for read in both)
    n_misread = n_misread.mask(texts.isin(MISSING_MARKS), 0.5)
    return texts[n_misread == n_misread.max()]


def check_measured(column: pd.Series) -> None:
    """Raises InputError if a text column seems to hold numbers with a few mistakes or values such as '<5'."""
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
    """Return advice on a table that seems transposed, with features in rows; "" for any other table.

    A table seems transposed if its first column holds the name of a column in `wanted`. It also does if its
    first column holds distinct texts, all other columns hold numbers, and it has more rows than columns.
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
        """For each feature, the name of its column, and the text that it encodes (None if it is numeric)."""
        return [(column, value) for column in self.columns for value in self.categories.get(column, (None,))]

    @property
    def feature_names(self) -> list[str]:
        return [column if value is None else f"{column}={value}" for column, value in self.parts]

    @property
    def sources(self) -> list[str]:
        """For each feature, the name of the table column that it encodes."""
        return [column for column, _ in self.parts]

    def matrix(self, frame: pd.DataFrame) -> Matrix:
        """Encode a table as the feature matrix: missing numbers are NaN, missing or unknown texts all 0."""
        encoded = {name: to_texts(frame[name]) for name in self.categories}
        encoded |= {name: to_numbers(frame[name]) for name in self.columns if name not in self.categories}
        features = [encoded[name] if value is None else encoded[name] == value for name, value in self.parts]
        return np.column_stack(features).astype(np.float64, copy=False)

    def match(self, table: Table, needed: set[str], has_medians: bool) -> tuple[Matrix, list[str]]:
        """Encode a new table, whose columns are found by name; return the matrix of features, and notes.

        Only the columns in `needed` are read; the features of other columns are 0. Missing values in `needed`
        columns raise InputError, unless the model `has_medians` to replace them.
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
            if name in self.categories and (n_gaps := int(frame[name].isna().sum())):
                notes.append(f"{name!r} is missing in {n_gaps} of {count(len(frame), 'row')}: taken as none.")
        if not has_medians:
            check_missing(frame, "Fill in values, or fit again with --impute median.")
        check_finite(frame)
        return self.matrix(frame.reindex(columns=list(self.columns), fill_value=0.0)), notes


def _numbers_of(column: pd.Series) -> Vector:
    """Convert a column of numbers, or of texts such as '1.5', to floats; raise InputError for any other."""
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
    """Replaces missing values by medians, then standardises features; both are learned from training rows."""

    medians: Vector | None  # None if missing values are not replaced
    mean: Vector
    spread: Vector  # the standard deviation of each feature; 1 if it is constant or not standardised

    def __call__(self, X: Matrix) -> Matrix:
        if self.medians is not None:
            X = np.where(np.isnan(X), self.medians, X)
        return (X - self.mean) / self.spread


def column_medians(X: Matrix) -> Vector:
    """Return the median of each column, ignoring missing values; 0 for a column without values."""
    return pd.DataFrame(X).median().fillna(0.0).to_numpy()


def learn_scaling(X: Matrix, weights: Vector, impute: bool, standardize: bool) -> Scaling:
    """Learn medians (if `impute`), weighted means and standard deviations (if `standardize`) of rows X."""
    medians = column_medians(X) if impute else None
    mean, spread = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if standardize:  # without matrix products, which may round equal columns differently
        X, weights = Scaling(medians, mean, spread)(X), weights / weights.max()
        mean = np.average(X, axis=0, weights=weights)
        spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
        spread[spread <= len(X) * np.finfo(float).eps * np.abs(mean)] = 1.0
    return Scaling(medians, mean, spread)


class Roles(NamedTuple):
    """The roles of columns, what k counts, and constraints on features.

    All columns without another role are features. `keep`, `avoid` and `signs` name columns, encoded values of
    text columns (such as hue=red) or groups of columns.
    """

    target: str | None = None
    id: str | None = None
    weights: str | None = None
    drop: Sequence[str] = ()
    encode: str | None = None
    impute: str | None = None
    grouped_by: str | None = None  # a column; folds do not separate rows with the same value in it
    features: Sequence[str] = ()  # columns to use as features even if they seem to name the rows
    keep: Sequence[str] = ()
    avoid: Sequence[str] = ()
    signs: Sequence[str] = ()  # required signs of coefficients, such as age=+
    groups: Mapping[str, str] | None = None  # from column name to group name; other columns are groups of one
    group_by: str | None = None  # a separator such as _: columns whose names agree before it form a group
    each_value: bool = False  # whether k counts each value of a text column, not the whole column as one

    @property
    def mentioned(self) -> set[str]:
        """Names of columns that must be features, because --feature, --keep or --sign names them."""
        return {*self.features, *self.keep, *(text.rpartition("=")[0] for text in self.signs)}


def learn_encoding(features: pd.DataFrame, roles: Roles) -> Encoding:
    """Return the encoding of all columns of `features`; raise InputError if one cannot be encoded."""
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
    """The features of a data set, and the units that k counts: features, table columns or groups."""

    names: tuple[str, ...]
    labels: tuple[str, ...]  # for each feature, the name of the unit that it is in
    unit_label: str  # what the units are: "features", "variables" (table columns) or "groups" (of columns)
    request: UnitRequest  # groups, features to keep or avoid, and signs; features by index
    units: Units

    @cached_property
    def always_in(self) -> Flags:
        """Whether each feature is in every model, because --keep names it, its column or its group."""
        return self.units.chosen(np.zeros(len(self.names), np.bool_))

    @property
    def n_fixed(self) -> int:
        """The number of units that are in every model because of --keep."""
        return int(self.units.fixed.sum())

    def sign_of(self, feature: int) -> str:
        return {1: "+", -1: "-"}.get(int(self.units.signs[feature]), "")

    def labels_of(self, features: Iterable[int]) -> list[str]:
        """Return the names of the units of these features, each once, in the order of the features."""
        return list(dict.fromkeys(self.labels[j] for j in features))


def count_features(encoding: Encoding, roles: Roles) -> CountedFeatures:
    """Assign features to units that k counts (features or groups); `roles` says which are kept or avoided."""
    names, sources = encoding.feature_names, encoding.sources
    unit_label, labels = "features", names
    if roles.groups is not None or roles.group_by is not None:
        unit_label, labels = "groups", _group_labels(encoding, roles)
    elif encoding.categories and not roles.each_value and len(encoding.columns) > 1:
        unit_label, labels = "variables", sources
    # the features that a name stands for: those of a column, else of a value (hue=red), else of a group
    places: dict[str, Indices] = {}
    for kind in (labels, names, sources):
        places |= pd.Series(kind).groupby(kind, sort=False).indices

    def find(wanted: Sequence[str], option: str) -> list[int]:
        for name in wanted:
            if name not in places:
                hint = "Do not --drop it." if name in roles.drop else nearest(name, places)
                raise InputError(f"{option} names {name!r}, which is not a feature. {hint}")
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
    """For each feature, return the name of its group; a column in no group is a group of its own."""
    if roles.groups is not None and roles.group_by is not None:
        raise InputError("--groups and --group-by both define groups. Use one of them.")
    columns, group_of = encoding.columns, dict(roles.groups or {})
    if roles.group_by is not None:  # if it is "_", columns site_a, site_b and site form group site
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
    """Read a file with the columns feature and group as a mapping from feature names to group names."""
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
