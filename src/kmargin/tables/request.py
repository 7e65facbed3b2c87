"""What is asked of an analysis: settings, and which columns count, stay in, or stay out."""

from collections import Counter
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

GROUP_COLUMNS = ["feature", "group"]  # of the file with groups
SIGN_VALUES = {"+": 1, "-": -1}


class ColumnRequest(NamedTuple):
    """What was asked for. Names are those of columns, of single values (hue=red), or of groups."""

    keep: Sequence[str] = ()
    avoid: Sequence[str] = ()
    signs: Sequence[str] = ()  # such as age=+
    groups: Mapping[str, str] | None = None  # of columns, those of no group left out
    group_by: str | None = None  # a separator: columns are grouped by the text before it
    each_value: bool = False  # whether the values of a text column are counted one by one

    def check_no_kernel(self) -> None:
        """Raises InputError where something is said of features, and k counts training points."""
        said = {
            "--keep": self.keep,
            "--avoid": self.avoid,
            "--sign": self.signs,
            "--groups": self.groups,
            "--group-by": self.group_by,
            "--each-value": self.each_value,
        }
        for option, value in said.items():
            if value:
                raise InputError(
                    f"{option} applies to features, but with --kernel k counts training points. Leave out "
                    "one of the two options."
                )


NOTHING_SAID = ColumnRequest()


@dataclass(frozen=True)
class CountedFeatures:
    """The features that machines see, and what k counts of them."""

    names: tuple[str, ...]
    labels: tuple[str, ...]  # of each feature: the unit that it belongs to
    things: str  # features, variables or groups
    request: UnitRequest  # by places

    @cached_property
    def units(self) -> Units:
        return self.request.resolve(len(self.names))

    @cached_property
    def always_in(self) -> Flags:
        """Of each feature."""
        fixed = np.zeros(len(self.names), np.bool_)
        fixed[self.units.columns_of(np.flatnonzero(self.units.fixed))] = True
        return fixed

    @property
    def is_grouped(self) -> bool:
        return self.things != "features"

    @property
    def n_fixed(self) -> int:
        """How many of what k counts are always in."""
        return int(self.units.fixed.sum())

    def sign_of(self, feature: int) -> str:
        return {1: "+", -1: "-"}.get(int(self.units.signs[feature]), "")

    def labels_of(self, features: Iterable[int]) -> list[str]:
        """The units of these features, each once, in their order."""
        return list(dict.fromkeys(self.labels[j] for j in features))


def count_features(encoding: Encoding, asked: ColumnRequest) -> CountedFeatures:
    """What k counts of the features of a table. Raises InputError for names that it does not have."""
    names, things, labels = encoding.feature_names, "features", encoding.feature_names
    if asked.groups is not None or asked.group_by is not None:
        things, labels = "groups", _grouped(encoding, asked)
    elif encoding.categories and not asked.each_value:
        labels = [column for column in encoding.columns for _ in encoding.names_of(column)]
        # a single variable leaves nothing to choose but its values
        things, labels = ("variables", labels) if len(set(labels)) > 1 else ("features", names)
    find = Finder(encoding, labels)
    keep, avoid = find.all(asked.keep, "--keep"), find.all(asked.avoid, "--avoid")
    both = sorted({*keep} & {*avoid})
    if both:
        shown = listing([names[j] for j in both])
        raise InputError(f"--keep and --avoid both name {shown}. Remove it from one of them.")
    if len(avoid) == len(names):
        raise InputError(f"--avoid excludes all {len(names)} features. Exclude fewer.")
    signs = _read_signs(asked.signs, find, len(names))
    request = UnitRequest(
        groups=None if things == "features" else list(labels),
        keep=sorted(keep) or None,
        avoid=sorted(avoid) or None,
        signs=signs if any(signs) else None,
    )
    with blame_input():
        request.resolve(len(names))
    return CountedFeatures(tuple(names), tuple(labels), things, request)


class Finder:
    """Features by the names that people know them by."""

    def __init__(self, encoding: Encoding, labels: Sequence[str]) -> None:
        names = encoding.feature_names
        self.places: dict[str, list[int]] = {}
        for place, label in enumerate(labels):
            self.places.setdefault(label, []).append(place)
        self.places |= {name: [place] for place, name in enumerate(names)}
        place_of = {name: place for place, name in enumerate(names)}
        self.places |= {
            column: [place_of[name] for name in encoding.names_of(column)] for column in encoding.columns
        }

    def one(self, name: str, option: str) -> list[int]:
        """The features that a name stands for: a column before a value, a value before a group."""
        if name not in self.places:
            raise InputError(f"{option} names {name!r}, which is not a feature. {nearest(name, self.places)}")
        return self.places[name]

    def all(self, names: Sequence[str], option: str) -> list[int]:
        return list(dict.fromkeys(place for name in names for place in self.one(name, option)))


def _read_signs(asked: Sequence[str], find: Finder, n_features: int) -> list[int]:
    """Of each feature: 1 or -1 for the sign that its weights must have, 0 for either."""
    signs = [0] * n_features
    for text in asked:
        name, equals, sign = text.rpartition("=")
        if not equals or sign not in SIGN_VALUES:
            raise InputError(
                f"--sign {text} is not of the form feature=sign. Write it as --sign age=+ or --sign age=-."
            )
        for place in find.one(name, "--sign"):
            if signs[place] not in (0, SIGN_VALUES[sign]):
                raise InputError(
                    f"--sign gives {name!r} both + and -. Use one of them, or leave it out to allow either."
                )
            signs[place] = SIGN_VALUES[sign]
    return signs


def _grouped(encoding: Encoding, asked: ColumnRequest) -> list[str]:
    """The group of each feature, by file or by name."""
    if asked.groups is not None and asked.group_by is not None:
        raise InputError("--groups and --group-by both define groups. Use one of them.")
    columns = encoding.columns
    by_column = _by_prefix(columns, asked.group_by) if asked.groups is None else dict(asked.groups)
    unknown = [name for name in by_column if name not in columns]
    if unknown:
        raise InputError(
            f"--groups names {listing(unknown)}, which is not a feature. {nearest(unknown[0], columns)}"
        )
    taken = set(by_column.values())
    labels = []
    for column in columns:
        for feature in encoding.names_of(column):
            alone = feature if asked.each_value else column
            alone = f"{alone} (by itself)" if alone in taken else alone
            labels.append(by_column.get(column, alone))
    if len(set(labels)) == 1:
        option = "--group-by" if asked.groups is None else "--groups"
        raise InputError(
            f"{option} puts all features into one group, so there is nothing to choose. Define two or more."
        )
    return labels


def _by_prefix(columns: Sequence[str], separator: str | None) -> dict[str, str]:
    """The text before the first separator, of columns that have it; one called just that belongs to it."""
    prefixes = {column: column.partition(separator)[0] for column in columns} if separator else {}
    groups = {column: prefix for column, prefix in prefixes.items() if prefix not in ("", column)}
    if not groups:
        raise InputError(
            f"--group-by {separator!r}: no feature name contains it after a prefix. Give the separator "
            "between the group and the rest of the name, such as _ for site_a and site_b."
        )
    return groups | {column: column for column in columns if column in set(groups.values())}


def read_groups(path: Path) -> dict[str, str]:
    """The group of each feature that a file names. Raises InputError where it is not such a file."""
    frame = read_table(path).frame
    if sorted(frame.columns) != GROUP_COLUMNS:
        raise InputError(
            f"--groups: {path.name} has columns {listing(list(frame.columns))}. "
            "It needs two columns, called feature and group."
        )
    features, groups = (to_texts(frame[name]) for name in GROUP_COLUMNS)
    gaps = np.flatnonzero([None in pair for pair in zip(features, groups, strict=True)])
    if len(gaps):
        raise InputError(
            f"--groups: row {gaps[0] + 1} of {path.name} lacks a feature or a group. Fill it in, or remove "
            "the row: a feature that is not in the file is a group of its own."
        )
    twice = [name for name, times in Counter(features).items() if times > 1]
    if twice:
        raise InputError(
            f"--groups: {path.name} has {listing(twice)} more than once. Put each feature into one group."
        )
    return dict(zip(features, groups, strict=True))


@dataclass(frozen=True)
class Settings:
    """How machines are fitted and chosen."""

    k: int | None = None  # None: chosen by cross-validation
    ks: Any = None  # the values of k to try, see `SparseSVCCV`
    Cs: Sequence[float] | None = None  # None: from .01 to 10, and beyond if need be
    kernel: str | None = None
    gamma: float | str = "scale"
    cv: int = 5
    repeats: int | None = None  # at most so many rounds of folds; None: see `Trial.max_rounds`
    nested: bool = True
    permutations: int = 0
    pairs: int = 25  # of halves of the rows, on which features may come back
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
    columns: ColumnRequest = NOTHING_SAID
    verbose: int = 0

    def check(self) -> None:
        """Raises InputError for what makes no sense, whatever the table."""
        if self.select not in SELECTIONS:
            raise InputError(f"--select {self.select} is not known. Use best, 1se or tolerance.")
        if self.repeats is not None and self.repeats < 1:
            raise InputError(f"--repeats {self.repeats} is not a number of rounds. Use 1 or more.")
        if self.pairs < 0:
            raise InputError(f"--pairs {self.pairs} is not a number of pairs. Use 0 for none, or 25.")
        if self.permutations < 0:
            raise InputError(
                f"--permutations {self.permutations} is not a number of permutations. Use 0 for none, or 100."
            )
        if not 0 <= self.seed < 2**32:
            raise InputError(f"--seed {self.seed} is not a seed. Use 0 to {2**32 - 1}.")
        if self.jobs == 0:
            raise InputError("--jobs 0 is not a number of jobs. Use 1 or more, or -1 for all cores.")


def make_blueprint(settings: Settings, counted: CountedFeatures) -> LinearBlueprint | KernelBlueprint:
    """What machines are fitted. The trial itself scales, so these do not."""
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
