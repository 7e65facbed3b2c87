"""A fitted model with the encoding and scaling of its table, for predictions from new tables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kmargin.core.arrays import Indices, Matrix
from kmargin.core.labels import machine_names
from kmargin.core.validation import InputError, count, listing
from kmargin.estimators.cv import FoldModel
from kmargin.fitting.decisions import KernelDecisions
from kmargin.model_selection.calibration import Calibration
from kmargin.tables.columns import Encoding, Scaling
from kmargin.tables.read import Table, to_table

MAX_DIGESTS = 10_000  # maximum number of digests of training rows that a model keeps
MIN_DISTINCT = 0.95  # the used features identify rows if at least this share of rows differ in them
FAR_OUTSIDE = 0.5  # values further outside the training range than this share of its width are reported
MIN_ROWS = 5  # with fewer rows, no note says that most rows are outside the training range


class SeenRows(NamedTuple):
    """Digests (hash values) of the training rows, in ascending order; only the `MAX_DIGESTS` smallest."""

    by_all: np.ndarray  # int64; digests of the values of all features
    by_used: np.ndarray  # digests of the values of the used features; empty if many rows share them

    def share(self, X: Matrix, by_all: bool) -> float:
        """Estimate the share of rows of X that are training rows; X has all features, or the used ones."""
        kept, digests = self.by_all if by_all else self.by_used, digest_rows(X)
        if len(kept) == MAX_DIGESTS:
            digests = digests[digests <= kept[-1]]
        return float(np.isin(digests, kept).mean()) if len(digests) else 0.0


def note_rows(X: Matrix, used: np.ndarray) -> SeenRows:
    """Compute the digests of training rows from all features, and from those at the positions `used`."""
    by_all, by_used = (np.unique(digest_rows(features)) for features in (X, X[:, used]))
    identifies = len(used) > 0 and len(by_used) >= MIN_DISTINCT * len(X)
    return SeenRows(by_all[:MAX_DIGESTS], by_used[:MAX_DIGESTS] if identifies else np.empty(0, np.int64))


def digest_rows(X: Matrix) -> np.ndarray:
    """Hash each row of X, in single precision because files may round the last digits of numbers."""
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(X, dtype=np.float32) + np.float32(0)  # -0.0 becomes 0.0
    rounded[np.isnan(rounded)] = np.nan  # there are several bit patterns of NaN
    raw = [blake2b(row.tobytes(), digest_size=8).digest() for row in rounded]
    return np.frombuffer(b"".join(raw), dtype="<i8").astype(np.int64)


class Prediction(NamedTuple):
    """Classes, decision values and probabilities of the rows of a table, and notes on the table."""

    classes: np.ndarray
    decisions: Matrix
    probabilities: Matrix | None  # a column per class; None if the model was saved without calibration
    notes: list[str]


@dataclass(frozen=True)
class TableModel:
    """A model that predicts the target of a table from the other columns, found by name."""

    target: str
    encoding: Encoding
    scaling: Scaling
    machine: FoldModel  # predicts from the encoded and scaled features
    parameters: Mapping[str, Any]  # k, C and other parameters of the fit; predictions do not need them
    calibration: Calibration | None = None
    seen: SeenRows | None = None  # digests of the training rows
    ranges: Matrix | None = None  # smallest and largest training value of each feature, in two rows
    id: str | None = None  # the column that named the training rows

    def __repr__(self) -> str:
        """The name of the target and of the columns from which it is predicted."""
        used = [name for name in self.encoding.columns if name in self.needed]
        points = f", {len(self.machine.support_)} points kept" if self.is_kernel else ""
        return f"<TableModel: {self.target!r} from {listing(used)}{points}>"

    @property
    def classes_(self) -> np.ndarray:
        return np.asarray(self.machine.classes_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The columns of the training table that are features, in the order of that table."""
        return np.array(self.encoding.columns, dtype=object)

    @property
    def n_features_in_(self) -> int:
        return len(self.encoding.columns)

    @property
    def is_kernel(self) -> bool:
        return isinstance(self.machine.decisions, KernelDecisions)

    @property
    def machine_names(self) -> list[str]:
        return machine_names(self.machine.classes_, self.machine.multi_class)

    @property
    def needed(self) -> set[str]:
        """The columns that a new table must have: for a linear model those with nonzero coefficients."""
        if self.is_kernel:
            return set(self.encoding.columns)
        sources = self.encoding.sources
        return {sources[j] for j in self.machine.support_}

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row.

        X is a data frame (pandas, polars, arrow) or a mapping from names to columns, which needs only the
        columns in `needed`, and whose numbers may be texts. Or X is an array of all columns that the model
        was fitted to, in the order of `feature_names_in_`.
        """
        return self.predict_table(self._read(X)).classes

    def decision_function(self, X: Any) -> Matrix:
        """With two classes, one value per row, above 0 for the second class; else one column per class."""
        return self.predict_table(self._read(X)).decisions

    def predict_proba(self, X: Any) -> Matrix:
        """The probability of each class, in the order of `classes_`."""
        found = self.predict_table(self._read(X)).probabilities
        if found is None:
            raise InputError(
                "This model was saved without probabilities. Save a model fitted by `kmargin fit` or by a "
                "cross-validated estimator, or use decision_function."
            )
        return found

    def score(self, X: Any, y: Any) -> float:
        """The accuracy: the share of rows whose predicted class equals the class in y."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def share_seen(self, X: Any) -> float:
        """Estimate the share of rows of X that are training rows, see `SeenRows`; 0 if this is unknown."""
        table, columns = self._read(X), set(self.encoding.columns)
        has_all = columns <= {*table.frame.columns}
        try:
            X, _ = self.encoding.match(table, columns if has_all else self.needed, has_medians=True)
        except InputError:  # a column that the model does not use may not hold numbers
            return 0.0
        return self.seen.share(X if has_all else X[:, self.used_features], has_all) if self.seen else 0.0

    def _read(self, X: Any) -> Table:
        """Return a data frame, a mapping, records or an array of all columns as a table."""
        if isinstance(X, Table):
            return X
        columns, needed = self.encoding.columns, self.needed
        X = X.to_pandas() if hasattr(X, "to_pandas") else X  # polars, arrow
        X = X.toarray() if hasattr(X, "toarray") else X  # sparse matrices
        try:
            frame = pd.DataFrame(X)
        except (TypeError, ValueError):  # X is not two-dimensional
            frame = pd.DataFrame()
        if isinstance(frame.columns, pd.RangeIndex):
            if frame.shape[1] != len(columns):
                used = listing([column for column in columns if column in needed], 8)
                raise InputError(
                    f"X is not a table with the {len(columns):,} columns that the model was fitted to, in "
                    f"this order: {listing(columns, 8)}. Give all of them; a single row is [row]. A data "
                    f"frame needs only {used}."
                )
            frame.columns = list(columns)
        return to_table("X", frame)

    @property
    def used_features(self) -> Indices:
        """The positions of the features that encode the needed columns."""
        needed = self.needed
        return np.flatnonzero([column in needed for column in self.encoding.sources])

    def predict_table(self, table: Table) -> Prediction:
        """Predict the rows of a table."""
        X, notes = self.encoding.match(table, self.needed, self.scaling.medians is not None)
        notes += self._note_values(X, table.frame.index + 1)
        scaled, probabilities = self.scaling(X), None
        if self.calibration is not None:
            scheme = len(self.classes_), self.machine.multi_class
            probabilities = self.calibration.probabilities(self.machine.decisions(scaled), *scheme)
        decisions = self.machine.decision_function(scaled)
        return Prediction(self.machine.predict(scaled), decisions, probabilities, notes)

    def _note_values(self, X: Matrix, rows: pd.Index) -> Iterator[str]:
        """Yield notes on missing values, on values far outside the training range, or if most are outside."""
        names = self.encoding.feature_names
        for j in self.used_features:
            if n_missing := int(np.isnan(X[:, j]).sum()):
                of_all = f"{n_missing} of {count(len(X), 'row')}"
                yield f"{names[j]!r} is missing in {of_all}; the training median is used there."
            if self.ranges is None:
                continue
            low, high = self.ranges[:, j]
            distance = np.maximum(low - X[:, j], X[:, j] - high)  # above 0 for values outside the range
            far = distance > FAR_OUTSIDE * (high - low)
            if len(X) >= MIN_ROWS and 2 * (distance > 0).sum() > len(X):
                far = distance > 0
            if names[j] in self.encoding.columns and high > low and far.any():
                row = int(np.nanargmax(distance))
                yield (
                    f"Column {names[j]!r} is far outside its training range ({low:.4g} to {high:.4g}) in "
                    f"{count(int(far.sum()), 'row')}, such as {X[row, j]:.4g} in row {rows[row]}. Check its "
                    "unit; predictions there are extrapolations."
                )
