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

# Find columns that name the rows, such as patient numbers, which are not features

MIN_ROWS = 5  # with fewer rows, values may all differ by chance, so no column is taken for row names
MIN_SORTED_ROWS = 8  # with fewer rows, numbers may be sorted by chance, so this does not make them row names
MAX_DOUBTFUL = 3  # if more columns have a different whole number in each row, these are counts, not row names
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
    """Return the columns that only name or number the rows, then those that may do so; add notes on both.

    A column names the rows if each row has a different text, mostly unlike numbers, or if each row has a
    different whole number and these are sorted, number the rows, or the column is called `id`, say. Up to
    `MAX_DOUBTFUL` other columns of distinct whole numbers are doubtful. Columns in `kept` are not returned.
    """
    found, doubtful, n_rows = [], [], len(features)
    for name, column in features.items() if n_rows >= MIN_ROWS else ():
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
    """Whether a column holds texts, or whole numbers alone, which may be codes of patients or sites."""
    if (kind := kind_of(column)) != "number":
        return kind == "text"
    numbers = to_numbers(column)
    return bool((np.isnan(numbers) | (numbers == np.round(numbers))).all())


# Warn of properties of the data that make scores too optimistic

# Matches names of columns that identify the person or animal that a row was measured on.
PERSON = re.compile(
    r"(?i)^(patient|subject|participant|proband|person|donor|animal|mouse|individual|family|household)s?"
    r"[\W_]*(id|nr|no|num|number|key|code|name|nummer)?[\W_]*$|^(pid|mrn)$"
)
# A column whose name matches PERSON groups the rows if it has at least MIN_PERSONS distinct values. If its
# name matches only ID_NAME, it needs MIN_NAMES, with at most MAX_ROWS_PER_NAME rows for each on average.
MIN_PERSONS, MIN_NAMES, MAX_ROWS_PER_NAME = 5, 10, 20
# Matches names of columns that tell where, when or with which device a row was measured.
BATCH = re.compile(
    r"(?i)^(batch|centre|center|site|plate|run|hospital|clinic|scanner|device|lab|laboratory|cohort|study|"
    r"chip|lane|operator|zentrum|klinik|charge)(e?s|en)?[\W_]*(id|nr|no|num|number|key|code|name)?[\W_]*$"
)
MAX_BATCHES = 50  # a column with more distinct values does not mark batches
MIN_ASSOCIATION = 0.3  # no warning of batches whose association with the label, Cramér's V, is smaller
MAX_P_VALUE = 1e-3  # warn of a batch column or a feature if the p-value of its link with labels is below this
MIN_LONE_ACCURACY = 0.97  # warn if one feature alone predicts the label with at least this balanced accuracy
MAX_LONE_FEATURES = 3  # if more features reach MIN_LONE_ACCURACY, classes are easy to tell apart: no warning
N_SCREENED, MAX_SCREENED_ROWS = 10, 5_000  # limits on the features and rows that warn_of_lone_features uses


def has_shared_values(column: pd.Series) -> bool:
    """Whether the name and the repeated values of a column suggest that it groups rows, as by patient."""
    name = str(column.name)
    if not (PERSON.search(name) or ID_NAME.search(name)) or not _is_code(column):
        return False
    n_rows, n_distinct = int(column.notna().sum()), column.nunique()
    if PERSON.search(name):
        return MIN_PERSONS <= n_distinct < n_rows
    return MIN_NAMES <= n_distinct < n_rows <= MAX_ROWS_PER_NAME * n_distinct


def warn_of_shared_values(frame: pd.DataFrame, id: str | None, groups: Indices | None) -> Iterator[str]:
    """Yield a warning for each column, such as the patient, whose equal values are in different `groups`."""
    groups = np.arange(len(frame)) if groups is None else groups
    for name, column in frame.items():
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
    """Yield a warning for each column that seems to mark a batch or centre and is associated with label y."""
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
    """Return a group number for each row, shared by equal rows; None if none are equal beyond chance.

    Chance may explain equal rows of X if one or more equal pairs would be expected if the columns were
    independent, or if every column of `features`, X before encoding, has at most `MIN_NAMES` distinct values.
    """
    # Adding 0.0 turns -0.0 into 0.0, so that both get the same hash value.
    groups = pd.factorize(pd.util.hash_pandas_object(pd.DataFrame(X + 0.0), index=False))[0]
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
    """Yield a warning of equal rows, unless `groups`, the result of `find_repeated_rows`, is None."""
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
    """Merge two groupings (group numbers of rows): rows grouped by either are grouped in the result."""
    if one is None or other is None:
        return other if one is None else one
    n_one = int(one.max()) + 1
    n_nodes = n_one + int(other.max()) + 1
    links = coo_array((np.ones(len(one)), (one, n_one + other)), shape=(n_nodes, n_nodes))
    components = connected_components(links, directed=False)[1]
    return np.unique(components[one], return_inverse=True)[1]


def warn_of_lone_features(X: Matrix, y: np.ndarray, encoding: Encoding) -> Iterator[str]:
    """Yield a warning if one to three features predict nearly all labels, each by itself.

    Candidates are the `N_SCREENED` features whose ranks have the highest F statistics, in at most
    `MAX_SCREENED_ROWS` rows, evenly spaced in the table. For each, a decision tree with one leaf per class
    predicts the label from this feature. Accuracies that chance may explain do not count.
    """
    rows = np.unique(np.linspace(0, len(y) - 1, MAX_SCREENED_ROWS).astype(int))
    X, labels = X[rows], y[rows]
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        return
    ranks = rankdata(np.where(np.isnan(X), column_medians(X), X), axis=0)
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):  # F of constant features is 0/0
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
