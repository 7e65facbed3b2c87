"""Settings of an analysis: what k counts, which columns are fixed in or excluded, how models are chosen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import get_scorer, get_scorer_names

from kmargin.core.arrays import Flags
from kmargin.core.units import UnitRequest, Units
from kmargin.core.validation import InputError, blame_input, listing, nearest
from kmargin.fitting.decisions import KERNELS
from kmargin.fitting.fit import Procedure
from kmargin.fitting.spec import KernelBlueprint, LinearBlueprint
from kmargin.model_selection.scores import SELECTIONS
from kmargin.tables.columns import Encoding, to_texts
from kmargin.tables.read import read_table

GROUP_COLUMNS = ["feature", "group"]  # of a file of groups
SIGN_VALUES = {"+": 1, "-": -1}


class ColumnRequest(NamedTuple):
    """Constraints on features. Names are those of columns, of single values (hue=red), or of groups."""

    keep: Sequence[str] = ()
    avoid: Sequence[str] = ()
    signs: Sequence[str] = ()  # such as age=+
    groups: Mapping[str, str] | None = None  # the group of each column that is in one
    group_by: str | None = None  # a separator: columns are grouped by the text before it
    each_value: bool = False  # whether k counts the values of text columns, not these columns

    def check_no_kernel(self) -> None:
        """Raises InputError if there is any constraint, for models in which k counts training points."""
        options = ("--keep", "--avoid", "--sign", "--groups", "--group-by", "--each-value")
        for option, value in zip(options, self, strict=True):
            if value:
                raise InputError(
                    f"{option} applies to features, but with --kernel k counts training points. Leave out "
                    "one of the two options."
                )


NO_REQUEST = ColumnRequest()


@dataclass(frozen=True)
class CountedFeatures:
    """The features of a data set, and the units that k counts."""

    names: tuple[str, ...]
    labels: tuple[str, ...]  # for each feature, the name of its unit
    things: str  # what the units are called: features, variables or groups
    request: UnitRequest  # with features by number

    @cached_property
    def units(self) -> Units:
        return self.request.resolve(len(self.names))

    @cached_property
    def always_in(self) -> Flags:
        """Whether each feature is always in the model."""
        fixed = np.zeros(len(self.names), np.bool_)
        fixed[self.units.columns_of(np.flatnonzero(self.units.fixed))] = True
        return fixed

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
        """Return the names of the units of these features, each once, in order."""
        return list(dict.fromkeys(self.labels[j] for j in features))


def count_features(encoding: Encoding, asked: ColumnRequest) -> CountedFeatures:
    """Return what k counts of the features of a table. Raises InputError for names that it does not have."""
    names = labels = encoding.feature_names
    things = "features"
    if asked.groups is not None or asked.group_by is not None:
        things, labels = "groups", _group_labels(encoding, asked)
    elif encoding.categories and not asked.each_value and len(encoding.columns) > 1:
        things, labels = "variables", [c for c in encoding.columns for _ in encoding.names_of(c)]
    places = _places_by_name(encoding, labels)
    keep = {place for name in asked.keep for place in _find(places, name, "--keep")}
    avoid = {place for name in asked.avoid for place in _find(places, name, "--avoid")}
    if keep & avoid:
        both = listing([names[j] for j in sorted(keep & avoid)])
        raise InputError(f"--keep and --avoid both name {both}. Remove it from one of them.")
    if len(avoid) == len(names):
        raise InputError(f"--avoid excludes all {len(names)} features. Exclude fewer.")
    signs = [0] * len(names)
    for text in asked.signs:
        name, equals, sign = text.rpartition("=")
        if not equals or sign not in SIGN_VALUES:
            raise InputError(
                f"--sign {text} is not of the form feature=sign. Write it as --sign age=+ or --sign age=-."
            )
        for place in _find(places, name, "--sign"):
            if signs[place] not in (0, SIGN_VALUES[sign]):
                raise InputError(
                    f"--sign gives {name!r} both + and -. Use one of them, or leave it out to allow either."
                )
            signs[place] = SIGN_VALUES[sign]
    request = UnitRequest(
        groups=None if things == "features" else list(labels),
        keep=sorted(keep) or None,
        avoid=sorted(avoid) or None,
        signs=signs if any(signs) else None,
    )
    with blame_input():
        request.resolve(len(names))
    return CountedFeatures(tuple(names), tuple(labels), things, request)


def _places_by_name(encoding: Encoding, labels: Sequence[str]) -> dict[str, list[int]]:
    """Return the features of each name, which is that of a column, else of a value, else of a group."""
    places: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        places.setdefault(label, []).append(place)
    place_of = {name: place for place, name in enumerate(encoding.feature_names)}
    places |= {name: [place] for name, place in place_of.items()}
    return places | {c: [place_of[name] for name in encoding.names_of(c)] for c in encoding.columns}


def _find(places: Mapping[str, list[int]], name: str, option: str) -> list[int]:
    if name not in places:
        raise InputError(f"{option} names {name!r}, which is not a feature. {nearest(name, places)}")
    return places[name]


def _group_labels(encoding: Encoding, asked: ColumnRequest) -> list[str]:
    """Return the group of each feature; columns in no group are groups of their own."""
    if asked.groups is not None and asked.group_by is not None:
        raise InputError("--groups and --group-by both define groups. Use one of them.")
    columns = encoding.columns
    group_of = _prefixes(columns, asked.group_by or "") if asked.groups is None else dict(asked.groups)
    unknown = [name for name in group_of if name not in columns]
    if unknown:
        raise InputError(
            f"--groups names {listing(unknown)}, which is not a feature. {nearest(unknown[0], columns)}"
        )
    labels = []
    for column in columns:
        for feature in encoding.names_of(column):
            alone = feature if asked.each_value else column
            alone = f"{alone} (by itself)" if alone in group_of.values() else alone
            labels.append(group_of.get(column, alone))
    if len(set(labels)) == 1:
        option = "--group-by" if asked.groups is None else "--groups"
        raise InputError(
            f"{option} puts all features into one group, so there is nothing to choose. Define two or more."
        )
    return labels


def _prefixes(columns: Sequence[str], separator: str) -> dict[str, str]:
    """Return the text before the first separator; a column whose whole name is such a text belongs to it."""
    prefixes = {column: column.partition(separator)[0] for column in columns} if separator else {}
    groups = {column: prefix for column, prefix in prefixes.items() if prefix not in ("", column)}
    if not groups:
        raise InputError(
            f"--group-by {separator!r}: no feature name contains it after a prefix. Give the separator "
            "between the group and the rest of the name, such as _ for site_a and site_b."
        )
    return groups | {column: column for column in columns if column in set(groups.values())}


def read_groups(path: Path) -> dict[str, str]:
    """Return the group of each feature in a file of groups. Raises InputError where it is not such a file."""
    frame = read_table(path).frame
    if sorted(frame.columns) != GROUP_COLUMNS:
        raise InputError(
            f"--groups: {path.name} has columns {listing(list(frame.columns))}. "
            "It needs two columns, called feature and group."
        )
    missing = frame.isna().any(axis=1).to_numpy()
    if missing.any():
        raise InputError(
            f"--groups: row {missing.argmax() + 1} of {path.name} lacks a feature or a group. Fill it in, or "
            "remove the row: a feature that is not in the file is a group of its own."
        )
    repeated = frame["feature"][frame["feature"].duplicated()].unique()
    if len(repeated):
        raise InputError(
            f"--groups: {path.name} has {listing(list(repeated))} more than once. Put each feature into one "
            "group."
        )
    features, groups = (to_texts(frame[name]) for name in GROUP_COLUMNS)
    return dict(zip(features, groups, strict=True))


@dataclass(frozen=True)
class Settings:
    """How models are fitted and chosen."""

    k: int | None = None  # None: chosen by cross-validation
    ks: Any = None  # the values of k to try, see `SparseSVCCV`
    Cs: Sequence[float] | None = None  # None: from .01 to 10, and beyond if need be
    kernel: str | None = None
    gamma: float | str = "scale"
    cv: int = 5
    repeats: int | None = None  # the maximum number of rounds of folds; None: see `Trial.max_rounds`
    nested: bool = True
    permutations: int = 0
    pairs: int = 25  # pairs of random halves of the rows, for selection frequencies
    proba: bool = False  # whether predictions come with probabilities
    seed: int = 0
    jobs: int | None = None
    scoring: str = "accuracy"
    select: str = "1se"
    tolerance: float = 0.01
    standardize: bool = True
    balanced: bool = False
    multi_class: str = "ovo"
    shared: bool = True
    columns: ColumnRequest = NO_REQUEST
    verbose: int = 0

    def check(self) -> None:
        """Raises InputError for values that are invalid for every table."""
        if self.select not in SELECTIONS:
            raise InputError(f"--select {self.select} is not known. Use best, 1se or tolerance.")
        valid = {  # for each option: whether its value is valid, what it is, and what to use instead
            "repeats": (self.repeats is None or self.repeats >= 1, "number of rounds. Use 1 or more"),
            "pairs": (self.pairs >= 0, "number of pairs. Use 0 for none, or 25"),
            "permutations": (self.permutations >= 0, "number of permutations. Use 0 for none, or 100"),
            "seed": (0 <= self.seed < 2**32, f"seed. Use 0 to {2**32 - 1}"),
            "jobs": (self.jobs != 0, "number of jobs. Use 1 or more, or -1 for all cores"),
        }
        for option, (is_valid, words) in valid.items():
            if not is_valid:
                raise InputError(f"--{option} {getattr(self, option)} is not a {words}.")


def make_blueprint(settings: Settings, counted: CountedFeatures) -> LinearBlueprint | KernelBlueprint:
    """Return the specification of the models to fit. Folds scale their rows, so the models do not."""
    if settings.kernel is None:
        return LinearBlueprint(settings.multi_class, shared=settings.shared, request=counted.request)
    settings.columns.check_no_kernel()
    kernels = [name for name in KERNELS if name != "precomputed"]
    if settings.kernel not in kernels:
        raise InputError(f"--kernel {settings.kernel} is not known. Use one of {', '.join(kernels)}.")
    return KernelBlueprint(
        settings.multi_class,
        kernel=settings.kernel,
        gamma=settings.gamma,
        random_state=settings.seed,
        shared=settings.shared,
    )


def make_procedure(settings: Settings) -> Procedure:
    return Procedure(n_jobs=settings.jobs, random_state=settings.seed, verbose=settings.verbose)


def find_scorer(name: str) -> Any:
    if name not in get_scorer_names():
        raise InputError(f"--scoring {name} is not known. {nearest(name, get_scorer_names())}")
    return get_scorer(name)
