"""Units: columns that enter and leave a model together, with the signs that their coefficients may have.

A unit is a feature or a group of features. `UnitRequest` holds what users write, `Units` what solvers get.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kmargin.core.arrays import Flags, Indices, Vector
from kmargin.core.validation import is_integer, nearest, shortly


@dataclass(frozen=True)
class Units:
    """The features or groups that k counts: unit j has the columns ``columns[starts[j]:starts[j + 1]]``."""

    starts: Indices
    columns: Indices
    fixed: Flags  # for each unit, whether it has to be in every model
    signs: Vector  # for each column of X: 1 for coefficients >= 0, -1 for <= 0, 0 for either
    copies: Indices | tuple[()] = ()  # columns that are in no unit because they equal earlier columns

    @classmethod
    def of_columns(cls, n_features: int) -> "Units":
        """Make each column of X a unit."""
        every = np.arange(n_features)
        return cls(np.arange(n_features + 1), every, np.zeros(n_features, np.bool_), np.zeros(n_features))

    @classmethod
    def of_groups(cls, groups: Sequence[Indices], n_features: int) -> "Units":
        """Make each group of column indices a unit; no column may be in more than one group."""
        sizes = [len(group) for group in groups]
        columns = np.concatenate([*groups, np.empty(0, np.int64)]).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        return cls(starts, columns, np.zeros(len(groups), np.bool_), np.zeros(n_features))

    @cached_property
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
        """Entry i is the total number of columns of the i + 1 units that have the most columns."""
        return np.cumsum(np.sort(self.sizes)[::-1])

    def widest(self, size: int) -> int:
        """The largest number of columns that any `size` units have in total."""
        size = min(size, self.n_units)
        if self.n_units == len(self.columns):  # each unit is one column
            return size
        return int(self._columns_of_largest[size - 1]) if size else 0

    def check_size(self, k: int) -> int:
        """Return min(k, n_units); raise ValueError if more than k units must be in every model."""
        n_fixed = int(np.count_nonzero(self.fixed))
        if k < n_fixed:
            raise ValueError(
                f"k={k} is less than the {n_fixed} units that are always in the model, which count in k. "
                f"Use k >= {n_fixed}, or keep fewer units."
            )
        return min(k, self.n_units)

    @property
    def unit_of_each_column(self) -> Indices:
        """The index of the unit of each column of X; -1 for columns that are in no unit."""
        units = np.full(self.n_features, -1)
        units[self.columns] = np.repeat(np.arange(self.n_units), self.sizes)
        return units

    @property
    def are_plain(self) -> bool:
        """Whether each column is a unit, no unit has to be in the model, and signs are not restricted."""
        every = np.arange(self.n_features)
        return (
            np.array_equal(self.columns, every)
            and self.n_units == self.n_features
            and not self.fixed.any()
            and not self.signs.any()
        )

    def columns_of(self, units: Indices) -> Indices:
        """Indices of the columns of the given units, one unit after the other, in the order of `units`."""
        return self.columns[self.positions_of(units)]

    def positions_of(self, units: Indices) -> Indices:
        """Positions in `self.columns` of the columns of the given units, in the order of `units`."""
        if self.n_units == len(self.columns):  # each unit is one column
            return units
        sizes = self.sizes[units]
        ends = np.cumsum(sizes)
        n_columns = int(ends[-1]) if len(ends) else 0
        return np.arange(n_columns) + np.repeat(self.starts[units] - ends + sizes, sizes)

    def without(self, columns: Indices) -> "Units":
        """Return the units without the given columns of X; units that have no column left are removed."""
        stays = ~np.isin(self.columns, columns)
        sizes = np.bincount(np.repeat(np.arange(self.n_units), self.sizes)[stays], minlength=self.n_units)
        starts = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        return replace(self, starts=starts, columns=self.columns[stays], fixed=self.fixed[sizes > 0])

    def without_copies(self, columns: Indices) -> "Units":
        """Return the units without `columns`, which equal earlier columns of X, and list these in `copies`.

        The swap search selects no copies, but if k is large enough for all columns, a model uses them too.
        """
        return replace(self.without(columns), copies=columns)

    def chosen(self, in_use: Flags) -> Flags:
        """Mark all columns of each unit that has to be in the model, or has a column marked in `in_use`."""
        is_in = self.fixed | (self.total(in_use.astype(float)) > 0)
        return np.append(is_in, False)[self.unit_of_each_column]  # columns in no unit: index -1, hence False

    def total(self, by_column: Vector) -> Vector:
        """Sum `by_column`, which has an entry for each column of X, over the columns of each unit."""
        if self.n_units == len(self.columns):
            return by_column[self.columns]
        return np.add.reduceat(by_column[self.columns], self.starts[:-1])


# The values that users may write in the parameter `signs`, and the entry of `Units.signs` that each becomes.
SIGNS = {"+": 1.0, "-": -1.0, 1: 1.0, -1: -1.0, 0: 0.0, "": 0.0, None: 0.0}

# An extension that offers the parameter ``groups="name"`` adds a function under this name here. It takes the
# number of features and their names (None if they have none), and returns a group label for each feature.
UNIT_KINDS: dict[str, Callable[[int, list[str] | None], Sequence[Any]]] = {}


class UnitRequest(NamedTuple):
    """The parameters `groups`, `keep`, `avoid` and `signs` of an estimator, as users write them."""

    groups: Any = None
    keep: Any = None
    avoid: Any = None
    signs: Any = None

    @property
    def is_empty(self) -> bool:
        """Whether all four parameters are None, so that k counts features without restrictions."""
        return self.groups is self.keep is self.avoid is self.signs is None

    def resolve(self, n_features: int, names: Sequence[str] | None = None) -> Units:
        """Return the requested units of an X with these features; raise ValueError for invalid requests."""
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

    def by_place(self, n_features: int, names: Sequence[str] | None = None) -> "UnitRequest":
        """Return the same request with column indices instead of names, in types that JSON can store.

        `groups` becomes a list with a text label for each feature, `keep` and `avoid` become lists of column
        indices, and `signs` becomes a list with a number for each feature.
        """
        features = Features(n_features, names, self.groups)
        texts = [str(label) for label in features.labels]
        if len(set(texts)) < len(texts):  # different labels, such as 1 and "1", have the same text
            texts = [f"{text} ({number})" for number, text in enumerate(texts)]
        signs = features.read_signs(self.signs).astype(int).tolist()
        return UnitRequest(
            groups=None if self.groups is None else features.by_feature(texts),
            keep=np.flatnonzero(features.find_all(self.keep, "keep")).tolist() or None,
            avoid=np.flatnonzero(features.find_all(self.avoid, "avoid")).tolist() or None,
            signs=signs if any(signs) else None,
        )

    def label_units(self, units: Units, names: Sequence[str] | None = None) -> list[str]:
        """Return the name of each unit: the label of its group or, if there are no groups, its feature."""
        features = Features(units.n_features, names, self.groups)
        label_of = features.by_feature([str(label) for label in features.labels])
        return [label_of[j] for j in units.columns[units.starts[:-1]]]


class Features:
    """Find features of X by column index or name, and read the parameters of a `UnitRequest` that name them.

    `groups` lists the column indices of each group, and `labels` the names of the groups. Every feature is in
    exactly one group.
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

    def by_feature(self, texts: Sequence[str]) -> list[str]:
        """Return for each feature the text that belongs to its group; `texts` has one text for each group."""
        text_of = {int(j): text for group, text in zip(self.groups, texts, strict=True) for j in group}
        return [text_of[j] for j in range(self.n_features)]

    def find(self, feature: Any, argument: str) -> int:
        """Return the index of a feature given by name or index; errors mention the parameter `argument`."""
        if isinstance(feature, str) and feature in self.places:
            return self.places[feature]
        if is_integer(feature) and -self.n_features <= int(feature) < self.n_features:
            return int(feature) % self.n_features
        advice = f"Use indices from 0 to {self.n_features - 1}, or give X as a data frame and use its names."
        if self.names is not None:
            advice = f"{nearest(str(feature), self.names)} Use such a name, or an index."
        raise ValueError(f"{argument} names {feature!r}, which is not a feature of X. {advice}")

    def find_all(self, entries: Any, argument: str) -> Flags:
        """Return a mask of the features in `entries`: features, groups or a mask. Errors name `argument`."""
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
            is_label = isinstance(entry, str) and entry in of_group  # integers are column indices, not labels
            chosen[of_group[entry] if is_label else self.find(entry, argument)] = True
        return chosen

    def read_signs(self, signs: Any) -> Vector:
        """Return the sign that is required of the coefficients of each feature: 1, -1, or 0 for either."""
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
        """Name the features at the column indices `places` in a text for a message, at most five of them."""
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
        """Return the column indices and the label of each group, from one group label for each feature."""
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
        """Return the column indices and the label of each group, from the list of its features.

        A feature that is in none of `lists` becomes a group of its own.
        """
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
    """Return `entries` as a list, with NumPy scalars converted to Python objects."""
    entries = entries.tolist() if isinstance(entries, np.ndarray) else entries
    return [entry.item() if isinstance(entry, np.generic) else entry for entry in entries]


def _read_sign(sign: Any, feature: Any) -> float:
    try:
        return SIGNS[sign.item() if isinstance(sign, np.generic) else sign]
    except (KeyError, TypeError):
        raise ValueError(
            f"signs has {sign!r} for {feature!r}. Use 1 for coefficients that may not be negative, "
            "-1 for those that may not be positive, 0 for either."
        ) from None
