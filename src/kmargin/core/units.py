"""Units: which columns enter and leave together, which are always in, which signs are allowed.

`UnitRequest` is what users ask for, `Units` what the solvers get.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kmargin.core.arrays import Flags, Indices, Vector
from kmargin.core.validation import is_integer, nearest, shortly


@dataclass(frozen=True)
class Units:
    """Unit j is ``columns[starts[j]:starts[j + 1]]``."""

    starts: Indices
    columns: Indices  # of X, unit by unit
    fixed: Flags  # of each unit: always in
    signs: Vector  # of each column of X: 1 for coefficients >= 0, -1 for <= 0, 0 for either
    copies: Indices = field(default_factory=lambda: np.empty(0, np.int64))  # columns that repeat others

    @classmethod
    def of_columns(cls, n_features: int) -> "Units":
        """Units of one column each."""
        every = np.arange(n_features)
        return cls(np.arange(n_features + 1), every, np.zeros(n_features, np.bool_), np.zeros(n_features))

    @classmethod
    def of_groups(cls, groups: Sequence[Indices], n_features: int) -> "Units":
        """Units of several columns; each column of X is in one group at most."""
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
        """The number of columns of each unit."""
        return np.diff(self.starts)

    @cached_property
    def _columns_of_largest(self) -> Indices:
        """The number of columns of the largest unit, of the two largest, and so on."""
        return np.cumsum(np.sort(self.sizes)[::-1])

    def widest(self, size: int) -> int:
        """The largest number of columns that `size` units have together."""
        return int(self._columns_of_largest[min(size, self.n_units) - 1]) if size and self.n_units else 0

    @property
    def unit_of_each_column(self) -> Indices:
        """The unit of each column of X; -1 for those of no unit."""
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
        """The columns of some units, unit after unit."""
        if self.n_units == len(self.columns):  # single columns
            return self.columns[units]
        sizes = self.sizes[units]
        ends = np.cumsum(sizes)
        n_columns = int(ends[-1]) if len(ends) else 0
        return self.columns[np.arange(n_columns) + np.repeat(self.starts[units] - ends + sizes, sizes)]

    def without(self, columns: Indices) -> "Units":
        """Units that have lost these columns; those that have lost all of them are gone."""
        stays = ~np.isin(self.columns, columns)
        sizes = np.bincount(np.repeat(np.arange(self.n_units), self.sizes)[stays], minlength=self.n_units)
        starts = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        return replace(self, starts=starts, columns=self.columns[stays], fixed=self.fixed[sizes > 0])

    def without_copies(self, columns: Indices) -> "Units":
        """These units without some columns that repeat others; a model of all units uses them again."""
        return replace(self.without(columns), copies=columns)

    def chosen(self, in_use: Flags) -> Flags:
        """All columns of the units that have one in use, or are always in."""
        is_in = self.fixed | (self.total(in_use.astype(float)) > 0)
        return np.append(is_in, False)[self.unit_of_each_column]  # those of no unit are at -1

    def total(self, by_column: Vector) -> Vector:
        """The sum over the columns of each unit; `by_column` has an entry for each column of X."""
        if self.n_units == len(self.columns):
            return by_column[self.columns]
        return np.add.reduceat(by_column[self.columns], self.starts[:-1])


SIGNS = {"+": 1.0, "-": -1.0, 1: 1.0, -1: -1.0, 0: 0.0, "": 0.0, None: 0.0}

# Kinds of units that users ask for as ``groups="name"``: functions of the number of features and of their
# names (None if they have none) that return a group label for each feature.
UNIT_KINDS: dict[str, Callable[[int, list[str] | None], Sequence[Any]]] = {}


class UnitRequest(NamedTuple):
    """What users ask for; the fields are those of the estimators."""

    groups: Any = None
    keep: Any = None
    avoid: Any = None
    signs: Any = None

    @property
    def is_empty(self) -> bool:
        """Whether k counts single features, and nothing else is asked for."""
        return all(field is None for field in self)

    @property
    def things(self) -> str:
        """What k counts."""
        return "features" if self.groups is None else "groups"

    def resolve(self, n_features: int, names: Sequence[str] | None = None) -> Units:
        """Units of these features. Raises ValueError for what makes no sense."""
        if self.is_empty:
            return Units.of_columns(n_features)
        features = Features(n_features, names, self.groups)
        units = Units.of_groups(features.groups, n_features)
        avoided, kept = features.find_all(self.avoid, "avoid"), features.find_all(self.keep, "keep")
        both = np.flatnonzero(kept & avoided)
        if len(both):
            raise ValueError(
                f"{features.show(both)} {'is' if len(both) == 1 else 'are'} in `keep` and in `avoid`, which "
                "contradict each other. Remove it from one of them."
            )
        fixed = units.total(kept.astype(float)) > 0
        units = replace(units, fixed=fixed, signs=features.read_signs(self.signs))
        units = units.without(np.flatnonzero(avoided)) if avoided.any() else units
        if units.n_units == 0:
            raise ValueError(
                f"avoid={shortly(self.avoid)} excludes all {n_features} features. Exclude fewer."
            )
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
        features = Features(n_features, names, self.groups)
        texts = [str(label) for label in features.labels]
        if len(set(texts)) < len(texts):  # such as 1 and "1"
            texts = [f"{text} ({number})" for number, text in enumerate(texts)]
        label_of = {int(j): text for group, text in zip(features.groups, texts, strict=True) for j in group}
        signs = features.read_signs(self.signs).astype(int).tolist()
        return UnitRequest(
            groups=None if self.groups is None else [label_of[j] for j in range(n_features)],
            keep=np.flatnonzero(features.find_all(self.keep, "keep")).tolist() or None,
            avoid=np.flatnonzero(features.find_all(self.avoid, "avoid")).tolist() or None,
            signs=signs if any(signs) else None,
        )

    def label_units(self, units: Units, names: Sequence[str] | None = None) -> list[str]:
        """What each unit is called: by its group's label, or by its features."""
        features = Features(units.n_features, names, self.groups)
        label_of = {
            int(j): str(label)
            for group, label in zip(features.groups, features.labels, strict=True)
            for j in group
        }
        return [label_of[int(j)] for j in units.columns[units.starts[:-1]]]


class Features:
    """The features of X, by place and, if they have them, by name; and the groups that users form of them.

    `groups` are the columns of each group and `labels` what each is called; every feature is in one group.
    """

    def __init__(self, n_features: int, names: Sequence[str] | None, groups: Any) -> None:
        self.n_features = n_features
        self.names = None if names is None else [str(name) for name in names]
        self.places = {} if self.names is None else {name: j for j, name in enumerate(self.names)}
        self.groups, self.labels = self._read_groups(groups)
        if len(self.groups) == 1 and n_features > 1:
            raise ValueError(
                f"groups puts all {n_features} features into one group, so there is nothing to choose. "
                "Use at least two groups, or groups=None to count features."
            )

    def find(self, feature: Any, argument: str) -> int:
        """The place of a feature given by name or by place."""
        if isinstance(feature, str):
            if feature in self.places:
                return self.places[feature]
            if self.names is None:
                raise ValueError(
                    f"{argument} names {feature!r}, but X has no names for its columns. Use their places, or "
                    "give X as a data frame."
                )
            raise ValueError(
                f"{argument} names {feature!r}, which X does not have. {nearest(feature, self.names)}"
            )
        if not is_integer(feature):
            raise ValueError(
                f"{argument} names {feature!r}, which is neither a feature name nor an index. "
                "Use a string or an integer."
            )
        if not -self.n_features <= int(feature) < self.n_features:
            raise ValueError(
                f"{argument} names feature {feature}, but X has {self.n_features}. "
                f"Use indices from 0 to {self.n_features - 1}{'' if self.names is None else ', or names'}."
            )
        return int(feature) % self.n_features

    def find_all(self, entries: Any, argument: str) -> Flags:
        """The columns that a list of features and groups names."""
        chosen = np.zeros(self.n_features, np.bool_)
        if entries is None:
            return chosen
        if isinstance(entries, str) or is_integer(entries):
            entries = [entries]
        if not isinstance(entries, Iterable):
            raise ValueError(
                f"{argument}={shortly(entries)} is not a list of features. Use a list of names or indices, "
                "or a mask."
            )
        entries = _plain_list(entries)
        if entries and all(isinstance(entry, bool) for entry in entries):
            if len(entries) != len(chosen):
                raise ValueError(
                    f"{argument} is a mask of {len(entries)} entries, but X has {len(chosen)} features. "
                    "Use an entry for each feature, or a list of features."
                )
            return np.array(entries, np.bool_)
        of_group = {label: g for g, label in zip(self.groups, self.labels, strict=True) if len(g) > 1}
        for entry in entries:
            is_label = isinstance(entry, str) and entry in of_group  # an integer is always a place
            chosen[of_group[entry] if is_label else self.find(entry, argument)] = True
        return chosen

    def read_signs(self, signs: Any) -> Vector:
        """The sign of each coefficient, 0 where it may have either."""
        by_feature = np.zeros(self.n_features)
        if signs is None:
            return by_feature
        if isinstance(signs, Mapping):
            for feature, sign in signs.items():
                by_feature[self.find(feature, "signs")] = _read_sign(sign, feature)
            return by_feature
        is_list = isinstance(signs, Iterable) and not isinstance(signs, str)
        entries = _plain_list(signs) if is_list else []
        if len(entries) != self.n_features:
            what = f"has {len(entries)} entries" if is_list else "is not a list"
            raise ValueError(
                f"signs={shortly(signs)} {what}, but X has {self.n_features} features. "
                "Use 1, -1 or 0 for each feature, or a dict such as {'age': 1}."
            )
        return np.array([_read_sign(sign, self.label(j)) for j, sign in enumerate(entries)])

    def label(self, place: int) -> str:
        return str(place) if self.names is None else self.names[place]

    def show(self, places: Sequence[int] | Indices) -> str:
        shown = ", ".join(repr(self.label(j)) if self.names else f"feature {j}" for j in places[:5])
        return shown + (f" and {len(places) - 5} more" if len(places) > 5 else "")

    def _read_groups(self, groups: Any) -> tuple[list[Indices], list[Any]]:
        p = self.n_features
        if groups is None:
            return list(np.arange(p)[:, None]), [self.label(j) for j in range(p)]
        if isinstance(groups, str) and groups in UNIT_KINDS:
            groups = UNIT_KINDS[groups](p, self.names)
        if isinstance(groups, Mapping):
            return self._listed(list(groups.values()), list(groups))
        if isinstance(groups, str) or not isinstance(groups, Iterable):
            raise ValueError(
                f"groups={shortly(groups)} is not a group label for each feature. Use a list of {p} labels, "
                "or lists of features that belong together."
            )
        entries = _plain_list(groups)
        if entries and all(np.iterable(entry) and not isinstance(entry, str) for entry in entries):
            return self._listed(entries, None)
        return self._labelled(entries)

    def _labelled(self, labels: list[Any]) -> tuple[list[Indices], list[Any]]:
        """Groups from a label for each feature."""
        if len(labels) != self.n_features:
            raise ValueError(
                f"groups has {len(labels)} labels, but X has {self.n_features} features. Use one label for "
                "each feature, or lists of features that belong together."
            )
        missing = [j for j, label in enumerate(labels) if label is None or label != label]
        if missing:
            raise ValueError(
                f"groups has no label for {self.show(missing)}. Give a feature "
                "that belongs to no other a label of its own."
            )
        members: dict[Any, list[int]] = {}
        for j, label in enumerate(labels):
            members.setdefault(label, []).append(j)
        return [np.array(group) for group in members.values()], list(members)

    def _listed(self, lists: list[Any], labels: list[Any] | None) -> tuple[list[Indices], list[Any]]:
        """Groups from lists of features; a feature in no list is a group of its own."""
        groups = []
        for number, members in enumerate(lists):
            if isinstance(members, str) or not isinstance(members, Iterable) or len(list(members)) == 0:
                raise ValueError(
                    f"groups[{number if labels is None else labels[number]!r}] is {shortly(members)}. "
                    "Use a list of at least one feature."
                )
            groups.append(np.array([self.find(member, "groups") for member in members]))
        counts = Counter(int(j) for group in groups for j in group)
        twice = [j for j, count in counts.items() if count > 1]
        if twice:
            raise ValueError(
                f"{self.show(twice)} is in more than one group. Groups must not overlap: put each "
                "feature into one of them, or add a copy of its column to X."
            )
        names = labels or [" + ".join(self.label(j) for j in group) for group in groups]
        alone = [j for j in range(self.n_features) if j not in counts]
        return [*groups, *(np.array([j]) for j in alone)], [*names, *map(self.label, alone)]


def _plain_list(entries: Iterable[Any]) -> list[Any]:
    """A list whose numbers are those of Python, not of NumPy."""
    return [entry.item() if isinstance(entry, np.generic) else entry for entry in entries]


def _read_sign(sign: Any, feature: Any) -> float:
    try:
        return SIGNS[sign.item() if isinstance(sign, np.generic) else sign]
    except (KeyError, TypeError):
        raise ValueError(
            f"signs has {sign!r} for {feature!r}. Use 1 for coefficients that may not be negative, "
            "-1 for those that may not be positive, 0 for either."
        ) from None
