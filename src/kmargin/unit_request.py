"""What users say about features: which form groups, are always or never in, have which sign.

`UnitRequest` holds it as given; `resolve` turns it into `Units` once it is known which features there are.
"""

import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kmargin.types import Flags, Indices, Vector
from kmargin.units import Units

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
