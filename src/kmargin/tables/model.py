"""A fitted machine together with what its table went through: from a table to classes."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kmargin import KernelSparseSVC
from kmargin.calibration import Calibration
from kmargin.errors import InputError, count, listing
from kmargin.multiclass import machine_names
from kmargin.tables.features import Encoding, Scaling
from kmargin.tables.given import to_table
from kmargin.tables.machine import Machine
from kmargin.tables.read import Table
from kmargin.tables.seen import SeenRows
from kmargin.types import Indices, Matrix

FAR_OUTSIDE = 0.5  # beyond the training range by this share of its width
LEAST_ROWS = 5  # of a table, most of which are outside the training range


class Prediction(NamedTuple):
    """Classes and decision values of the rows of a table, and what there is to say about it."""

    classes: np.ndarray
    decisions: Matrix
    probabilities: Matrix | None  # of each class; None from models that know none
    notes: list[str]


@dataclass(frozen=True)
class TableModel:
    """Predicts the target of a table from its columns, which it finds by name."""

    target: str
    encoding: Encoding
    scaling: Scaling
    machine: Machine
    calibration: Calibration | None = None
    seen: SeenRows | None = None  # of the rows that it was fitted to
    ranges: Matrix | None = None  # smallest and largest training value of each feature, in two rows
    id: str | None = None  # the column that named the training rows

    def __repr__(self) -> str:
        """What it predicts, from what."""
        used = [name for name in self.encoding.columns if name in self.needed]
        points = f", {len(self.machine.support_)} points kept" if self.is_kernel else ""
        return f"<TableModel: {self.target!r} from {listing(used)}{points}>"

    @property
    def classes_(self) -> np.ndarray:
        return np.asarray(self.machine.classes_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The columns that it was fitted to, in their order."""
        return np.array(self.encoding.columns, dtype=object)

    @property
    def n_features_in_(self) -> int:
        return len(self.encoding.columns)

    @property
    def is_kernel(self) -> bool:
        return isinstance(self.machine, KernelSparseSVC)

    @property
    def machine_names(self) -> list[str]:
        return machine_names(self.machine.classes_, self.machine.multi_class)

    @property
    def needed(self) -> set[str]:
        """The columns that a new table must have: for a linear machine those with a weight."""
        if self.is_kernel:
            return set(self.encoding.columns)
        names = self.encoding.feature_names
        used = {names[j] for j in self.machine.support_}
        return {column for column in self.encoding.columns if used & set(self.encoding.names_of(column))}

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row.

        X is a frame (pandas, polars, arrow) or a mapping of columns by name, of which those in `needed` are
        looked at, numbers or texts of numbers; or an array of all columns that the model was fitted to, in
        the order of `feature_names_in_`. Raises InputError, a ValueError, in one sentence where it has not
        what the model needs.
        """
        return self.answer(self._read(X)).classes

    def decision_function(self, X: Any) -> Matrix:
        """A number for each row, above 0 for the second class; with more classes a column for each."""
        return self.answer(self._read(X)).decisions

    def predict_proba(self, X: Any) -> Matrix:
        """The probability of each class, in the order of `classes_`."""
        found = self.answer(self._read(X)).probabilities
        if found is None:
            raise InputError(
                "This model was saved without probabilities. Save a model fitted by `kmargin fit` or by a "
                "cross-validated estimator, or use decision_function."
            )
        return found

    def score(self, X: Any, y: Any) -> float:
        """The share of rows whose class is y."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def share_seen(self, X: Any) -> float:
        """The share of rows that the model was fitted to, as far as it can tell; see `tables.seen`."""
        table = self._read(X)
        if self.seen is None:
            return 0.0
        has_all = all(column in table.frame.columns for column in self.encoding.columns)
        wanted = set(self.encoding.columns) if has_all else self.needed
        try:
            X, _ = self.encoding.match(table, wanted, has_medians=True)
        except InputError:  # a column that is not used holds what it did not hold then
            return 0.0
        return self.seen.share(X if has_all else X[:, self.used_features], has_all)

    def _read(self, X: Any) -> Table:
        needed = [column for column in self.encoding.columns if column in self.needed]
        return to_table(X, self.encoding.columns, needed)

    @property
    def used_features(self) -> Indices:
        """The places of the features that come of the needed columns."""
        needed, places = self.needed, []
        for column in self.encoding.columns:
            places += [column in needed] * len(self.encoding.names_of(column))
        return np.flatnonzero(places)

    def answer(self, table: Table) -> Prediction:
        """All that the model says of a table. Raises InputError where that has not what it needs."""
        X, notes = self.encoding.match(table, self.needed, self.scaling.medians is not None)
        notes += self._note_extremes(X)
        scaled = self.scaling(X)
        decisions = self.machine.decision_function(scaled)
        return Prediction(self.machine.predict(scaled), decisions, self.probabilities(scaled), notes)

    def _note_extremes(self, X: Matrix) -> list[str]:
        """A note on each column that goes far beyond its training range, or is outside it in most rows."""
        if self.ranges is None:
            return []
        notes = []
        names = self.encoding.feature_names
        numeric = [j for j in self.used_features if names[j] in self.encoding.columns]
        for j in numeric:
            low, high = self.ranges[:, j]
            margin = FAR_OUTSIDE * (high - low)
            far = (X[:, j] < low - margin) | (X[:, j] > high + margin)
            outside = (X[:, j] < low) | (X[:, j] > high)
            if len(X) >= LEAST_ROWS and 2 * outside.sum() > len(X):
                far = outside
            if high > low and far.any():
                row = int(np.nanargmax(np.abs(X[:, j] - (low + high) / 2)))
                notes.append(
                    f"Column {names[j]!r} is far outside its training range ({low:.4g} to {high:.4g}) in "
                    f"{count(int(far.sum()), 'row')}, such as {X[row, j]:.4g} in row {row + 1}. Check its "
                    "unit; predictions there are extrapolations."
                )
        return notes

    def probabilities(self, X: Matrix) -> Matrix | None:
        """Those of each class, for features as they were scaled."""
        if self.calibration is None:
            return None
        scheme = len(self.machine.classes_), self.machine.multi_class
        return self.calibration.probabilities(self.machine.machine_decisions(X), *scheme)
