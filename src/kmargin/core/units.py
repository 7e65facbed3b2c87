"""Units: which columns enter and leave together, which are always in, which signs are allowed.

`UnitRequest` is what users ask for, `Units` what the solvers get.
"""

import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kmargin.core.arrays import Flags, Indices, Vector


@dataclass(frozen=True)
class Units:
    """Unit j is ``columns[starts[j]:starts[j + 1]]``."""

    starts: Indices
    columns: Indices  # of X, unit by unit
    fixed: Flags  # of each unit: always in
    signs: Vector  # of each column of X: 1 for coefficients >= 0, -1 for <= 0, 0 for either
    machine_weights: Vector | None = None  # of each machine's objective in the joint one; None for ones
    copies: Indices = field(default_factory=lambda: np.empty(0, np.int64))  # columns that say what others say

    @classmethod
    def of_columns(cls, n_features: int) -> "Units":
        """Each column by itself."""
        every = np.arange(n_features)
        return cls(np.arange(n_features + 1), every, np.zeros(n_features, np.bool_), np.zeros(n_features))

    @classmethod
    def of_groups(cls, groups: Sequence[Indices], n_features: int) -> "Units":
        """These columns of X together, each in one group at most."""
        sizes = [len(group) for group in groups]
        columns = np.concatenate([*groups, np.empty(0, np.int64)]).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        return cls(starts, columns, np.zeros(len(groups), np.bool_), np.zeros(n_features))

    @property
    def n_units(self) -> int:
        return len(self.starts) - 1

    @property
    def n_features(self) -> int:
        return len(self.signs)

    @cached_property
    def sizes(self) -> Indices:
        """How many columns each has."""
        return np.diff(self.starts)

    @cached_property
    def _columns_of_largest(self) -> Indices:
        """Of the largest unit, of the two largest, ..."""
        return np.cumsum(np.sort(self.sizes)[::-1])

    def widest(self, size: int) -> int:
        """How many columns so many units have at most."""
        return int(self._columns_of_largest[min(size, self.n_units) - 1]) if size and self.n_units else 0

    @cached_property
    def _by_row(self) -> Indices | None:
        """The columns, a row for each unit, where all units have as many."""
        size = int(self.sizes[0]) if self.n_units else 0
        return self.columns.reshape(-1, size) if size and (self.sizes == size).all() else None

    @property
    def unit_of_each_column(self) -> Indices:
        """Of each column of X; -1 for those of no unit."""
        units = np.full(self.n_features, -1)
        units[self.columns] = np.repeat(np.arange(self.n_units), self.sizes)
        return units

    @property
    def are_plain(self) -> bool:
        """Whether each column is a unit by itself, and may come and go with any coefficient."""
        every = np.arange(self.n_features)
        return (
            np.array_equal(self.columns, every)
            and self.n_units == self.n_features
            and not self.fixed.any()
            and not self.signs.any()
        )

    def columns_of(self, units: Indices) -> Indices:
        """Unit after unit."""
        if self.n_units == len(self.columns):  # single columns
            return self.columns[units]
        if self._by_row is not None:
            return self._by_row[units].ravel()
        sizes = self.sizes[units]
        ends = np.cumsum(sizes)
        n_columns = int(ends[-1]) if len(ends) else 0
        return self.columns[np.arange(n_columns) + np.repeat(self.starts[units] - ends + sizes, sizes)]

    def without(self, columns: Indices) -> "Units":
        """Units that have lost these columns; those that have lost all of them are gone."""
        if self.n_units == len(self.columns):  # single columns
            stays = ~np.isin(self.columns, columns)
            left = self.columns[stays]
            return replace(self, starts=np.arange(len(left) + 1), columns=left, fixed=self.fixed[stays])
        groups = [
            np.setdiff1d(self.columns[self.starts[j] : self.starts[j + 1]], columns, assume_unique=True)
            for j in range(self.n_units)
        ]
        stays = np.array([len(group) > 0 for group in groups], np.bool_)
        rest = Units.of_groups([group for group in groups if len(group)], self.n_features)
        return replace(self, starts=rest.starts, columns=rest.columns, fixed=self.fixed[stays])

    def without_copies(self, columns: Indices) -> "Units":
        """The same; but where all units are in, these columns are in, too."""
        return replace(self.without(columns), copies=columns)

    def chosen(self, in_use: Flags) -> Flags:
        """All columns of the units that have one in use, or are always in."""
        is_in = self.fixed | (self.total(in_use.astype(float)) > 0)
        return np.append(is_in, False)[self.unit_of_each_column]  # those of no unit are at -1

    def total(self, by_column: Vector) -> Vector:
        """The sum over the columns of each unit; `by_column` has an entry for each column of X."""
        if self.n_units == len(self.columns):
            return by_column[self.columns]
        sums = np.concatenate([[0.0], np.cumsum(by_column[self.columns])])
        return sums[self.starts[1:]] - sums[self.starts[:-1]]


SIGNS = {"+": 1.0, "-": -1.0, 1: 1.0, -1: -1.0, 0: 0.0, "": 0.0, None: 0.0}


class UnitRequest(NamedTuple):
    """The fields are those of the estimators."""

    groups: Any = None
    keep: Any = None
    avoid: Any = None
    signs: Any = None

    @property
    def is_empty(self) -> bool:
        """Whether k counts single features, and nothing else is said."""
        return all(field is None for field in self)

    @property
    def things(self) -> str:
        """What k counts."""
        return "features" if self.groups is None else "groups"

    def resolve(self, n_features: int, names: Sequence[str] | None = None) -> Units:
        """Units of these features. Raises ValueError for what makes no sense."""
        if self.is_empty:
            return Units.of_columns(n_features)
        features = Features(n_features, names)
        groups, labels = read_groups(self.groups, features)
        units = Units.of_groups(groups, n_features)
        avoided = _columns(self.avoid, "avoid", features, groups, labels)
        kept = _columns(self.keep, "keep", features, groups, labels)
        both = np.flatnonzero(kept & avoided)
        if len(both):
            raise ValueError(
                f"{features.show(both)} {'is' if len(both) == 1 else 'are'} in `keep` and in `avoid`, which "
                "contradict each other. Remove it from one of them."
            )
        fixed = units.total(kept.astype(float)) > 0
        units = replace(units, fixed=fixed, signs=read_signs(self.signs, features))
        units = units.without(np.flatnonzero(avoided)) if avoided.any() else units
        if units.n_units == 0:
            raise ValueError(f"avoid={_short(self.avoid)} excludes all {n_features} features. Exclude fewer.")
        return units

    def check_k(self, k: int, units: Units) -> None:
        """Raise ValueError if k is too small for what is always in."""
        n_fixed = int(units.fixed.sum())
        if k < n_fixed:
            raise ValueError(
                f"k={k} is less than the {n_fixed} {self.things} in `keep`, which count in k. "
                f"Use k >= {n_fixed}, or keep fewer."
            )

    def by_place(self, n_features: int, names: Sequence[str] | None = None) -> "UnitRequest":
        """The same in numbers and texts, as a file can hold it: a label for each feature, places, signs."""
        features = Features(n_features, names)
        groups, labels = read_groups(self.groups, features)
        texts = [str(label) for label in labels]
        if len(set(texts)) < len(texts):  # such as 1 and "1"
            texts = [f"{text} ({number})" for number, text in enumerate(texts)]
        label_of = {int(j): text for group, text in zip(groups, texts, strict=True) for j in group}

        def places(entries: Any, argument: str) -> list[int] | None:
            found = np.flatnonzero(_columns(entries, argument, features, groups, labels)).tolist()
            return found or None

        signs = read_signs(self.signs, features).astype(int).tolist()
        return UnitRequest(
            groups=None if self.groups is None else [label_of[j] for j in range(n_features)],
            keep=places(self.keep, "keep"),
            avoid=places(self.avoid, "avoid"),
            signs=signs if any(signs) else None,
        )

    def label_units(self, units: Units, names: Sequence[str] | None = None) -> list[str]:
        """What each unit is called: by its group's label, or by its features."""
        features = Features(units.n_features, names)
        groups, labels = read_groups(self.groups, features)
        by_column = {int(j): label for group, label in zip(groups, labels, strict=True) for j in group}
        firsts = units.columns[units.starts[:-1]]
        return [str(by_column[int(j)]) for j in firsts]


class Features:
    """The features of X, by place and, if they have them, by name."""

    def __init__(self, n_features: int, names: Sequence[str] | None) -> None:
        self.n_features = n_features
        self.names = None if names is None else [str(name) for name in names]
        self.places = {} if self.names is None else {name: j for j, name in enumerate(self.names)}

    def find(self, feature: Any, argument: str) -> int:
        """The place of a feature given by name or by place."""
        if isinstance(feature, str):
            if feature in self.places:
                return self.places[feature]
            raise ValueError(f"{argument} names {feature!r}, {self._what_is_there(feature)}")
        if isinstance(feature, numbers.Integral) and not isinstance(feature, bool):
            if -self.n_features <= int(feature) < self.n_features:
                return int(feature) % self.n_features
            raise ValueError(
                f"{argument} names feature {feature}, but X has {self.n_features}. "
                f"Use indices from 0 to {self.n_features - 1}{'' if self.names is None else ', or names'}."
            )
        raise ValueError(
            f"{argument} names {feature!r}, which is neither a feature name nor an index. "
            "Use a string or an integer."
        )

    def _what_is_there(self, name: str) -> str:
        if self.names is None:
            return "but X has no names for its columns. Use their places, or give X as a data frame."
        near = get_close_matches(name, self.names, n=3)
        if near:
            return f"which X does not have. Did you mean {' or '.join(map(repr, near))}?"
        return f"which X does not have. Its first features are {', '.join(map(repr, self.names[:5]))}."

    def label(self, place: int) -> str:
        return str(place) if self.names is None else self.names[place]

    def show(self, places: Indices) -> str:
        shown = ", ".join(repr(self.label(j)) if self.names else f"feature {j}" for j in places[:5])
        return shown + (f" and {len(places) - 5} more" if len(places) > 5 else "")


def read_groups(groups: Any, features: Features) -> tuple[list[Indices], list[Any]]:
    """The columns of each group, and what it is called; every feature is in one."""
    p = features.n_features
    if groups is None:
        return list(np.arange(p)[:, None]), [features.label(j) for j in range(p)]
    if isinstance(groups, Mapping):
        return _listed(list(groups.values()), list(groups), features)
    is_iterable = isinstance(groups, Iterable) and not isinstance(groups, str)
    as_list: Any = getattr(groups, "tolist", partial(list, groups))  # of an array: numbers of Python
    entries = as_list() if is_iterable else None
    if entries is None:
        raise ValueError(
            f"groups={_short(groups)} is not a group label for each feature. Use a list of {p} labels, "
            "or lists of features that belong together."
        )
    if entries and all(np.iterable(entry) and not isinstance(entry, str) for entry in entries):
        return _listed(entries, None, features)
    return _labelled(entries, features)


def _labelled(labels: list[Any], features: Features) -> tuple[list[Indices], list[Any]]:
    """A label for each feature."""
    p = features.n_features
    if len(labels) != p:
        raise ValueError(
            f"groups has {len(labels)} labels, but X has {p} features. Use one label for each feature, "
            "or lists of features that belong together."
        )
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    missing = [j for j, label in enumerate(labels) if label is None or label != label]
    if missing:
        raise ValueError(
            f"groups has no label for {features.show(np.array(missing))}. Give a feature "
            "that belongs to no other a label of its own."
        )
    number_of = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    _refuse_one_group(len(number_of), p)
    numbers = np.array([number_of[label] for label in labels])
    columns, ends = np.argsort(numbers, kind="stable"), [0, *np.cumsum(np.bincount(numbers)).tolist()]
    return [columns[first:last] for first, last in pairwise(ends)], list(number_of)


def _listed(
    lists: list[Any], labels: list[Any] | None, features: Features
) -> tuple[list[Indices], list[Any]]:
    """Lists of features; those in no list are by themselves."""
    groups = []
    for number, members in enumerate(lists):
        if isinstance(members, str) or not isinstance(members, Iterable) or len(list(members)) == 0:
            raise ValueError(
                f"groups[{number if labels is None else labels[number]!r}] is {_short(members)}. "
                "Use a list of at least one feature."
            )
        groups.append(np.array([features.find(member, "groups") for member in members]))
    counts = Counter(int(j) for group in groups for j in group)
    twice = [j for j, count in counts.items() if count > 1]
    if twice:
        raise ValueError(
            f"{features.show(np.array(twice))} is in more than one group. Groups must not overlap: put each "
            "feature into one of them, or add a copy of its column to X."
        )
    names = [" + ".join(features.label(j) for j in group) for group in groups] if labels is None else labels
    alone = [j for j in range(features.n_features) if j not in counts]
    _refuse_one_group(len(groups) + len(alone), features.n_features)
    return [*groups, *(np.array([j]) for j in alone)], [*names, *map(features.label, alone)]


def _refuse_one_group(n_groups: int, n_features: int) -> None:
    if n_groups == 1 and n_features > 1:
        raise ValueError(
            f"groups puts all {n_features} features into one group, so there is nothing to choose. "
            "Use at least two groups, or groups=None to count features."
        )


def _columns(
    entries: Any, argument: str, features: Features, groups: list[Indices], labels: list[Any]
) -> Flags:
    """The columns that a list of features and groups names."""
    chosen = np.zeros(features.n_features, np.bool_)
    if entries is None:
        return chosen
    if not isinstance(entries, (str, numbers.Integral, Iterable)):
        raise ValueError(
            f"{argument}={_short(entries)} is not a list of features. Use a list of names or indices, or a "
            "mask."
        )
    entries = [entries] if isinstance(entries, (str, numbers.Integral)) else list(entries)
    if entries and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        if len(entries) != len(chosen):
            raise ValueError(
                f"{argument} is a mask of {len(entries)} entries, but X has {len(chosen)} features. "
                "Use an entry for each feature, or a list of features."
            )
        return np.array(entries, np.bool_)
    of_group = {label: group for group, label in zip(groups, labels, strict=True) if len(group) > 1}
    for entry in entries:
        entry = entry.item() if isinstance(entry, np.generic) else entry
        is_label = isinstance(entry, str) and entry in of_group  # an integer is always a place
        chosen[of_group[entry] if is_label else features.find(entry, argument)] = True
    return chosen


def read_signs(signs: Any, features: Features) -> Vector:
    """The sign of each coefficient, 0 where it may have either."""
    by_feature = np.zeros(features.n_features)
    if signs is None:
        return by_feature
    if isinstance(signs, Mapping):
        for feature, sign in signs.items():
            by_feature[features.find(feature, "signs")] = _read_sign(sign, feature)
        return by_feature
    entries = list(signs) if isinstance(signs, Iterable) and not isinstance(signs, str) else None
    if entries is None or len(entries) != features.n_features:
        what = "is not a list" if entries is None else f"has {len(entries)} entries"
        raise ValueError(
            f"signs={_short(signs)} {what}, but X has {features.n_features} features. "
            "Use 1, -1 or 0 for each feature, or a dict such as {'age': 1}."
        )
    return np.array([_read_sign(sign, features.label(j)) for j, sign in enumerate(entries)])


def _read_sign(sign: Any, feature: Any) -> float:
    sign = sign.item() if isinstance(sign, np.generic) else sign
    try:
        return SIGNS[sign]
    except (KeyError, TypeError):
        raise ValueError(
            f"signs has {sign!r} for {feature!r}. Use 1 for coefficients that may not be negative, "
            "-1 for those that may not be positive, 0 for either."
        ) from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
