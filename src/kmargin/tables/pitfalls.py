"""Find what makes scores too high: row names, leaked labels, batches, several rows of a patient, copies."""

import re
import warnings
from collections.abc import Iterator
from shlex import quote

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import binom, chi2_contingency, rankdata
from scipy.stats.contingency import association
from sklearn.feature_selection import f_classif
from sklearn.metrics import balanced_accuracy_score
from sklearn.tree import DecisionTreeClassifier

from kmargin.core.arrays import Indices, Matrix
from kmargin.core.validation import count, listing
from kmargin.tables.columns import Encoding, column_medians, kind_of, to_numbers, to_texts

# Columns that name rows

MIN_ROWS = 5  # with fewer rows, values may be distinct by chance, so no column counts as names of rows
MIN_SORTED_ROWS = 8  # with fewer rows, measurements may be in ascending order by chance
MAX_DOUBTFUL = 3  # if more columns hold distinct whole numbers, these are counts, not names of rows
# Matches names of columns that identify rows, such as patient_id, PatientID, case no., id_2 or Patient, but
# not "number of nodes" or "body mass index".
ID_NAME = re.compile(
    r"(?i:(^|[\W_])(id|ids|nr|no|num|number|key|uid|uuid|guid|barcode|accession|mrn|pid|nummer)[\W_]*$)"
    r"|(?i:^(id|nr|no)[\W_])|(?<=[a-z])(ID|Id|Nr|No)$|(?i:nummer$)"
    r"|(?i:^(index|idx|patient|subject|sample|participant|case|record|row|name|code|fall|proband|column 1)$)"
)
# Matches a number, perhaps after a sign such as < or before a unit of measurement such as mg.
NUMBER_LIKE = re.compile(r"[<>≤≥~]?\s*[+-]?\d+([.,]\d+)*\s*\S{0,3}")


def find_row_names(features: pd.DataFrame, kept: set[str], notes: list[str]) -> tuple[list[str], list[str]]:
    """Return the columns that name the rows, and the columns that may do so; add notes on both.

    Columns of distinct texts name the rows, and so do columns of distinct whole numbers that number the rows,
    are sorted, or have a name such as `id`. Other columns of distinct whole numbers are doubtful: they may
    be counts. Columns in `kept` are features, whatever they hold.
    """
    found, doubtful, n_rows = [], [], len(features)
    for name in features.columns if n_rows >= MIN_ROWS else ():
        column = features[name]
        if name in kept or not _is_code(column) or column.nunique() < n_rows:
            continue
        if kind_of(column) == "text":
            if 2 * sum(NUMBER_LIKE.fullmatch(text) is not None for text in to_texts(column)) > n_rows:
                continue
            reason = "has a different text in each row"
        elif np.ptp(to_numbers(column)) == n_rows - 1:
            reason = "numbers the rows"
        elif n_rows >= MIN_SORTED_ROWS and (column.is_monotonic_increasing or column.is_monotonic_decreasing):
            reason = "has a different whole number in each row, in order"
        elif ID_NAME.search(name):
            reason = "has a different whole number in each row, and the name of an id"
        else:
            doubtful.append(name)
            continue
        found.append(name)
        left_out = f"Column {name!r} {reason}, so it is left out as a name of the rows"
        notes.append(f"{left_out}. Use --feature {quote(name)} to include it.")
    if len(doubtful) > MAX_DOUBTFUL:
        return found, []
    if doubtful:
        distinct = f"Each row has a different whole number in {listing(doubtful)}"
        notes.append(f"{distinct}. If these name the rows, leave them out with --drop {quote(doubtful[0])}.")
    return found, doubtful


def _is_code(column: pd.Series) -> bool:
    """Whether a column holds texts or only whole numbers, so that its values may be codes."""
    if (kind := kind_of(column)) != "number":
        return kind == "text"
    numbers = to_numbers(column)
    return bool((np.isnan(numbers) | (numbers == np.round(numbers))).all())


# Warnings about data that make scores too optimistic

# Matches names of columns that identify the person or animal that a row was measured on.
PERSON = re.compile(
    r"(?i)^(patient|subject|participant|proband|person|donor|animal|mouse|individual|family|household)s?"
    r"[\W_]*(id|nr|no|num|number|key|code|name|nummer)?[\W_]*$|^(pid|mrn)$"
)
# A column named as in PERSON identifies groups of rows if it has at least MIN_PERSONS distinct values. One
# named as in ID_NAME needs at least MIN_NAMES, and at most MAX_ROWS_PER_NAME rows per value on average.
MIN_PERSONS, MIN_NAMES, MAX_ROWS_PER_NAME = 5, 10, 20
# Matches names of columns that tell where, when or with which device a row was measured.
BATCH = re.compile(
    r"(?i)^(batch|centre|center|site|plate|run|hospital|clinic|scanner|device|lab|laboratory|cohort|study|"
    r"chip|lane|operator|zentrum|klinik|charge)(e?s|en)?[\W_]*(id|nr|no|num|number|key|code|name)?[\W_]*$"
)
MAX_BATCHES = 50  # a column with more distinct values does not mark batches
MIN_ASSOCIATION = 0.3  # no warning if Cramér's V between batch and label is smaller
MAX_P_VALUE = 1e-3  # no warning if the p-value (of an association, or of an accuracy) is larger
MIN_LONE_ACCURACY = 0.97  # warn of a feature that reaches this balanced accuracy by itself
MAX_LONE_FEATURES = 3  # no warning if more features reach that: then the classes are simply far apart
N_SCREENED, MAX_SCREENED_ROWS = 10, 5_000  # compute accuracies of so many features, on at most so many rows


def has_shared_values(column: pd.Series) -> bool:
    """Whether a column, by its name and its repeated values, seems to mark rows that belong together."""
    name = str(column.name)
    if not (PERSON.search(name) or ID_NAME.search(name)) or not _is_code(column):
        return False
    n_rows, n_distinct = int(column.notna().sum()), column.nunique()
    if PERSON.search(name):
        return MIN_PERSONS <= n_distinct < n_rows
    return MIN_NAMES <= n_distinct < n_rows <= MAX_ROWS_PER_NAME * n_distinct


def warn_of_shared_values(frame: pd.DataFrame, id: str | None, groups: Indices | None) -> Iterator[str]:
    """Yield a warning for each column, such as patients, if folds may separate rows with equal values."""
    groups = np.arange(len(frame)) if groups is None else groups
    for name in frame.columns:
        column = frame[name]
        if not has_shared_values(column) and not (name == id and column.duplicated().any()):
            continue
        if pd.Series(groups).groupby(column.to_numpy()).nunique().max() == 1:
            continue  # the groups already keep rows with equal values together in folds
        yield (
            f"The values of column {name!r} repeat ({column.nunique():,} different ones in {len(frame):,} "
            f"rows). If rows with the same {name!r} are in both the training and the test rows, the score is "
            f"too high: `--rows-grouped-by {quote(name)}` keeps them together and does not use the column "
            "as a feature."
        )


def warn_of_batches(frame: pd.DataFrame, y: np.ndarray) -> Iterator[str]:
    """Yield a warning for each column that seems to mark a batch or centre and is associated with y."""
    for name in frame.columns:
        if not BATCH.search(name) or not _is_code(frame[name]):
            continue
        table = pd.crosstab(frame[name].to_numpy(), y)
        if not 2 <= len(table) <= min(MAX_BATCHES, len(frame) // 2) or table.shape[1] < 2:
            continue
        strength = association(table.to_numpy(), method="cramer")
        if strength < MIN_ASSOCIATION or chi2_contingency(table).pvalue > MAX_P_VALUE:
            continue
        shares = table.div(table.sum(axis=1), axis=0)
        label = (shares.max() - shares.min()).iloc[::-1].idxmax()
        low, high = shares[label].idxmin(), shares[label].idxmax()
        yield (
            f"Column {name!r} seems to mark a batch or centre, and is associated with the label: "
            f"{str(label)!r} is {100 * shares.loc[low, label]:.0f} % of the rows with {str(low)!r} and "
            f"{100 * shares.loc[high, label]:.0f} % of those with {str(high)!r}. The model may recognise "
            "these instead of the classes, even if the column is not a feature. `--rows-grouped-by "
            f"{quote(name)}` shows how well it predicts rows with a new value of {name!r}."
        )


def find_repeated_rows(features: pd.DataFrame, X: Matrix) -> Indices | None:
    """Return the group of each row, equal rows in one; None if there are none, or chance may explain them.

    Chance may explain equal rows if one or more equal pairs are expected when columns are independent, or if
    every column has at most `MIN_NAMES` distinct values.
    """
    groups = pd.factorize(pd.util.hash_pandas_object(pd.DataFrame(X + 0.0), index=False))[0]  # -0.0 to 0.0
    if groups.max(initial=-1) + 1 == len(groups):
        return None
    distinct = features[~pd.Series(groups, index=features.index).duplicated()]
    n_expected, has_measurements = len(distinct) * (len(distinct) - 1) / 2, False
    for name in distinct.columns:
        shares = distinct[name].value_counts(normalize=True, dropna=False).to_numpy()
        n_expected *= float(shares @ shares)
        has_measurements = has_measurements or len(shares) > MIN_NAMES
        if n_expected < 1 and has_measurements:
            return groups
    return None


def warn_of_repeated_rows(groups: Indices | None, y: np.ndarray) -> Iterator[str]:
    """Yield a warning if `groups`, from `find_repeated_rows`, has groups of equal rows."""
    if groups is None:
        return
    n_labels = pd.Series(y).groupby(groups).nunique()
    n_extra, n_differing = len(groups) - len(n_labels), int((n_labels > 1).sum())
    more = f" Labels differ within {count(n_differing, 'set')} of equal rows." if n_differing else ""
    yield (
        f"{count(n_extra, 'row')} {'repeats' if n_extra == 1 else 'repeat'} another in every feature. "
        "Duplicate rows are kept together in folds and halves, because the score would be too high "
        f"otherwise; intervals count them once.{more} If they were copied by mistake, remove them."
    )


def join_groups(one: Indices | None, other: Indices | None) -> Indices | None:
    """Join two groupings of rows: rows in the same group of either are in the same group of the result."""
    if one is None or other is None:
        return other if one is None else one
    n_one = int(one.max()) + 1
    n_nodes = n_one + int(other.max()) + 1
    links = coo_array((np.ones(len(one)), (one, n_one + other)), shape=(n_nodes, n_nodes))
    components = connected_components(links, directed=False)[1]
    return np.unique(components[one], return_inverse=True)[1]


def warn_of_lone_features(X: Matrix, y: np.ndarray, encoding: Encoding) -> Iterator[str]:
    """Yield a warning if one to three features predict nearly all labels, each by itself.

    Candidates are the features with the highest F statistics of their ranks, in at most `MAX_SCREENED_ROWS`
    rows, evenly spaced in the table. A decision tree with a leaf per class predicts the label from one
    feature. Accuracies that the best of so many features may reach by chance do not count.
    """
    rows = np.unique(np.linspace(0, len(y) - 1, MAX_SCREENED_ROWS).astype(int))
    X, labels = X[rows], y[rows]
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        return
    ranks = rankdata(np.where(np.isnan(X), column_medians(X), X), axis=0)
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):  # no F if a feature is constant
        strength = np.nan_to_num(f_classif(ranks, labels)[0], nan=-1.0, posinf=np.inf)
    found = {}
    for feature in np.argsort(-strength, kind="stable")[:N_SCREENED]:
        column = ranks[:, [feature]]
        tree = DecisionTreeClassifier(max_leaf_nodes=len(classes), class_weight="balanced", random_state=0)
        predicted = tree.fit(column, labels).predict(column)
        accuracy, n_right = balanced_accuracy_score(labels, predicted), int((predicted == labels).sum())
        p_value = binom.sf(n_right - 1, len(rows), counts.max() / len(rows)) * X.shape[1] * len(rows)
        if accuracy >= MIN_LONE_ACCURACY and p_value < MAX_P_VALUE:
            found[feature] = accuracy
    if not 0 < len(found) <= MAX_LONE_FEATURES:
        return
    drops = " ".join(f"--drop {quote(name)}" for name in {encoding.sources[j]: 0 for j in sorted(found)})
    names, best = listing([encoding.feature_names[j] for j in found]), 100 * max(found.values())
    verb, it = ("predicts", "it is") if len(found) == 1 else ("each predict", "they are")
    yield (
        f"{names} alone {verb} the label almost perfectly (balanced accuracy {best:.1f} %). Such a feature "
        "may be a consequence of the label, such as a treatment that follows the diagnosis. If "
        f"{it} not known when predictions are to be made, fit again with `{drops}`."
    )
