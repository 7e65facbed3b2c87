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

MAX_DIGESTS = 10_000  # a model keeps at most this many hash values of training rows, the smallest
MIN_DISTINCT = 0.95  # keep hash values of the used features if at least this share of rows have distinct ones
FAR_OUTSIDE = 0.5  # notes report values outside the training range by more than this times its width
MIN_ROWS = 5  # if most of at least this many rows are outside the training range, notes report all of them


class SeenRows(NamedTuple):
    """The `MAX_DIGESTS` smallest hash values of training rows, sorted, to recognise them in new tables."""

    by_all: np.ndarray  # int64 hash values of the training rows, computed from all features
    by_used: np.ndarray  # hash values of the features that the model uses; empty if many rows agree in them

    def share(self, X: Matrix, by_all: bool) -> float:
        """Estimate the share of training rows in X, which has all features if `by_all`, else those used."""
        kept, digests = self.by_all if by_all else self.by_used, digest_rows(X)
        if len(kept) == MAX_DIGESTS:
            digests = digests[digests <= kept[-1]]
        return float(np.isin(digests, kept).mean()) if len(digests) else 0.0


def note_rows(X: Matrix, used: np.ndarray) -> SeenRows:
    """Hash each training row, from all features and from those that the model uses (indices `used`)."""
    by_all, by_used = (np.unique(digest_rows(features)) for features in (X, X[:, used]))
    identifies = len(used) > 0 and len(by_used) >= MIN_DISTINCT * len(X)
    return SeenRows(by_all[:MAX_DIGESTS], by_used[:MAX_DIGESTS] if identifies else np.empty(0, np.int64))


def digest_rows(X: Matrix) -> np.ndarray:
    """Return a hash value of each row of X, rounded to float32 because files may round the last digits."""
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(X, dtype=np.float32) + np.float32(0)  # adding 0 turns -0.0 into 0.0
    rounded[np.isnan(rounded)] = np.nan  # NaN has several bit patterns, which must get the same hash value
    raw = [blake2b(row.tobytes(), digest_size=8).digest() for row in rounded]
    return np.frombuffer(b"".join(raw), dtype="<i8").astype(np.int64)


class Prediction(NamedTuple):
    """Predicted classes, decision values and probabilities of the rows of a table, and notes for the user."""

    classes: np.ndarray
    decisions: Matrix
    probabilities: Matrix | None  # one column per class; None if the model has no probabilities
    notes: list[str]


@dataclass(frozen=True)
class TableModel:
    """A fitted classifier that predicts the target column of a table from columns that it finds by name."""

    target: str
    encoding: Encoding
    scaling: Scaling
    machine: FoldModel  # the classifier; its inputs are the encoded and scaled features
    parameters: Mapping[str, Any]  # k, C and other parameters of the fit, for information only
    calibration: Calibration | None = None
    seen: SeenRows | None = None  # hash values, to recognise training rows in new tables
    ranges: Matrix | None = None  # two rows: the smallest and largest training value of each feature
    id: str | None = None  # name of the column that identified the training rows, if one did

    def __repr__(self) -> str:
        """Return a text that names the target and the columns needed to predict it, for interactive use."""
        used = [name for name in self.encoding.columns if name in self.needed]
        points = f", {len(self.machine.support_)} points kept" if self.is_kernel else ""
        return f"<TableModel: {self.target!r} from {listing(used)}{points}>"

    @property
    def classes_(self) -> np.ndarray:
        return np.asarray(self.machine.classes_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the feature columns of the training table, in its order, before one-hot encoding."""
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
        """Names of the columns that predictions need: those with nonzero coefficients; all with a kernel."""
        if self.is_kernel:
            return set(self.encoding.columns)
        sources = self.encoding.sources
        return {sources[j] for j in self.machine.support_}

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row.

        X is a data frame (pandas, polars, arrow) or a mapping from names to columns. It needs only the
        columns in `needed`; numbers may be given as texts. If X is an array, which has no names, it must have
        one column for each name in `feature_names_in_`, in that order.
        """
        return self.predict_table(self._read(X)).classes

    def decision_function(self, X: Any) -> Matrix:
        """For two classes return a value per row, above 0 for `classes_[1]`; else a column per class."""
        return self.predict_table(self._read(X)).decisions

    def predict_proba(self, X: Any) -> Matrix:
        """Return the probabilities: a row per row of X, a column per class in the order of `classes_`."""
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
        """Estimate the share of rows of X that are training rows, from hash values; 0 if it is unknown."""
        table, columns = self._read(X), set(self.encoding.columns)
        has_all = columns <= {*table.frame.columns}
        try:
            X, _ = self.encoding.match(table, columns if has_all else self.needed, has_medians=True)
        except InputError:  # for example, a column that predictions do not need holds text instead of numbers
            return 0.0
        return self.seen.share(X if has_all else X[:, self.used_features], has_all) if self.seen else 0.0

    def _read(self, X: Any) -> Table:
        """Convert X (data frame, mapping, list of records, or array of all feature columns) to a `Table`."""
        if isinstance(X, Table):
            return X
        columns, needed = self.encoding.columns, self.needed
        X = X.to_pandas() if hasattr(X, "to_pandas") else X  # a polars or arrow table
        X = X.toarray() if hasattr(X, "toarray") else X  # a sparse matrix
        try:
            frame = pd.DataFrame(X)
        except (TypeError, ValueError):  # X is not two-dimensional; the error below says what to give
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
        """Indices of the encoded features that come from `needed`, the columns that predictions need."""
        needed = self.needed
        return np.flatnonzero([column in needed for column in self.encoding.sources])

    def predict_table(self, table: Table) -> Prediction:
        """Predict each row of a table; add notes on missing, unknown and unusually large or small values."""
        X, notes = self.encoding.match(table, self.needed, self.scaling.medians is not None)
        notes += self._note_values(X, table.frame.index + 1)
        scaled, probabilities = self.scaling(X), None
        if self.calibration is not None:
            scheme = len(self.classes_), self.machine.multi_class
            probabilities = self.calibration.probabilities(self.machine.decisions(scaled), *scheme)
        decisions = self.machine.decision_function(scaled)
        return Prediction(self.machine.predict(scaled), decisions, probabilities, notes)

    def _note_values(self, X: Matrix, rows: pd.Index) -> Iterator[str]:
        """Yield notes on values that are missing or outside the training range; `rows` are row numbers."""
        names = self.encoding.feature_names
        for j in self.used_features:
            if n_missing := int(np.isnan(X[:, j]).sum()):
                of_all = f"{n_missing} of {count(len(X), 'row')}"
                yield f"{names[j]!r} is missing in {of_all}; the training median is used there."
            if self.ranges is None:
                continue
            low, high = self.ranges[:, j]
            distance = np.maximum(low - X[:, j], X[:, j] - high)  # positive if outside the range
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
