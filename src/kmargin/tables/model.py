"""A fitted model together with the preparation of its table."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from kmargin import KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV
from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.labels import machine_names
from kmargin.core.units import UnitRequest
from kmargin.core.validation import InputError, count, listing
from kmargin.fitting.decisions import Kernel, KernelDecisions
from kmargin.fitting.spec import Decisions
from kmargin.model_selection.calibration import Calibration
from kmargin.tables.columns import Encoding, Scaling
from kmargin.tables.read import Table, to_table

MOST = 10_000  # digests of each kind
LEAST_DISTINCT = 0.95  # share of rows that differ in the used features, if these are to tell rows apart


@dataclass(frozen=True)
class SeenRows:
    """Digests of rows, ascending."""

    by_all: np.ndarray  # int64; of all features
    by_used: np.ndarray  # of the used ones; empty where these do not tell rows apart

    def find(self, X: Matrix, by_all: bool) -> tuple[Flags, Flags]:
        """Which rows are known to be seen, and of which it can be told."""
        kept = self.by_all if by_all else self.by_used
        digests = digest_rows(X)
        if len(kept) == 0:
            return np.zeros(len(X), np.bool_), np.zeros(len(X), np.bool_)
        can_be_told = np.ones(len(X), np.bool_) if len(kept) < MOST else digests <= kept[-1]
        return np.isin(digests, kept), can_be_told

    def share(self, X: Matrix, by_all: bool) -> float:
        """Of the rows of a new table: how many were seen, by those of which it can be told."""
        is_seen, can_be_told = self.find(X, by_all)
        return float(is_seen[can_be_told].mean()) if can_be_told.any() else 0.0


def note_rows(X: Matrix, used: np.ndarray) -> SeenRows:
    """What to keep of the rows of a table, of which some features are used."""
    by_used = digest_rows(X[:, used])
    is_telling = len(used) > 0 and len(np.unique(by_used)) >= LEAST_DISTINCT * len(X)
    return SeenRows(_smallest(digest_rows(X)), _smallest(by_used) if is_telling else np.empty(0, np.int64))


def _smallest(digests: np.ndarray) -> np.ndarray:
    return np.unique(digests)[:MOST]


def digest_rows(X: Matrix) -> np.ndarray:
    """A number for each row; the same for numbers that agree in single precision, as files may write them."""
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(X, dtype=np.float32) + np.float32(0)  # no minus zero
    rounded[np.isnan(rounded)] = np.nan  # of one kind
    raw = [blake2b(row.tobytes(), digest_size=8).digest() for row in rounded]
    return np.frombuffer(b"".join(raw), dtype="<i8").astype(np.int64)


Machine = SparseSVC | KernelSparseSVC


def make_machine(parameters: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Machine:
    """A fitted machine from its numbers: what `machine_numbers` takes apart."""
    common = {name: parameters[name] for name in ("k", "C", "multi_class", "shared")}
    classes, intercept = arrays["classes"], arrays["intercept"]
    if "kernel" not in parameters:
        linear = SparseSVC(**common, **{name: parameters[name] for name in UnitRequest._fields})
        linear.classes_, linear.intercept_, linear.coef_ = classes, intercept, arrays["coef"]
        linear.support_ = np.flatnonzero(linear.coef_.any(axis=0))
        linear.n_features_in_ = linear.coef_.shape[1]
        return linear
    numbers = {name: parameters[name] for name in ("gamma", "degree", "coef0")}
    machine = KernelSparseSVC(kernel=parameters["kernel"], **numbers, **common)
    machine.classes_, machine.intercept_, machine.dual_coef_ = classes, intercept, arrays["dual_coef"]
    machine.support_, machine.support_vectors_ = arrays["support"], arrays["support_vectors"]
    machine.n_features_in_ = machine.support_vectors_.shape[1]
    machine.kernel_ = Kernel(parameters["kernel"], **numbers)
    return machine


def assemble_machine(parameters: Mapping[str, Any], classes: np.ndarray, decisions: Decisions) -> Machine:
    """A fitted machine from what it decides by."""
    arrays = {"classes": classes, "intercept": decisions.intercept}
    if not isinstance(decisions, KernelDecisions):
        return make_machine(parameters, arrays | {"coef": decisions.coef})
    inputs = decisions.inputs
    assert inputs.kernel is not None, "tables hold features, not kernel values"
    arrays |= {"dual_coef": decisions.coef, "support": inputs.columns, "support_vectors": inputs.points}
    return make_machine({**parameters, "kernel": inputs.kernel.name, **inputs.kernel.numbers}, arrays)


def machine_numbers(machine: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The parameters and arrays that a fitted machine decides by.

    A cross-validated estimator counts as the machine that it chose.
    """
    parameters = {
        "C": float(machine.C_ if hasattr(machine, "C_") else machine.C),
        "multi_class": machine.multi_class,
        "shared": bool(machine.shared),
    }
    arrays = {"classes": np.asarray(machine.classes_), "intercept": np.asarray(machine.intercept_)}
    if hasattr(machine, "dual_coef_"):
        parameters |= {"kernel": machine.kernel, **machine.kernel_.numbers}
        arrays |= {
            name: _to_array(getattr(machine, f"{name}_"))
            for name in ("dual_coef", "support", "support_vectors")
        }
        most = len(arrays["support"])
    else:
        said = UnitRequest(machine.groups, machine.keep, machine.avoid, machine.signs)
        names = getattr(machine, "feature_names_in_", None)
        request = said.by_place(machine.n_features_in_, names)
        most = request.resolve(machine.n_features_in_).n_units
        parameters |= request._asdict()
        arrays["coef"] = np.asarray(machine.coef_)
    k = machine.k_ if hasattr(machine, "k_") else machine.k
    return parameters | {"k": most if isinstance(k, str) else int(k)}, arrays


def _to_array(values: Any) -> np.ndarray:
    """Points of sparse samples are sparse."""
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


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


ESTIMATORS = (SparseSVC, SparseSVCCV, KernelSparseSVC, KernelSparseSVCCV)


def to_table_model(model: Any, target: str) -> TableModel:
    """A model that finds its columns by name.

    Columns are called as those of the frame that the estimator was fitted to; where it had an array, x0, x1
    and so on. Raises InputError for what cannot be written as arrays.
    """
    if isinstance(model, TableModel):
        return model
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    steps = [step for step in steps if step not in (None, "passthrough")]
    machine = steps[-1] if steps else model
    if not isinstance(machine, ESTIMATORS):
        names = ", ".join(kind.__name__ for kind in ESTIMATORS)
        raise InputError(
            f"{type(machine).__name__} is not a model that kmargin can save. Give a fitted {names}, a "
            "pipeline that ends in one, or the result of load_model."
        )
    check_is_fitted(machine)
    if getattr(machine, "kernel", None) == "precomputed" or callable(getattr(machine, "kernel", None)):
        raise InputError(
            "A model with a custom kernel function cannot be saved. Use a kernel by name, such as "
            "kernel='rbf'."
        )
    parameters, arrays = machine_numbers(machine)
    scaling = _scaling(steps[:-1], int(machine.n_features_in_))
    of_kernel = getattr(getattr(machine, "kernel_", None), "scaling", None)
    if of_kernel is not None:
        centers, units = of_kernel[:2]
        arrays["support_vectors"] = (arrays["support_vectors"] - centers) / units
        scaling = Scaling(scaling.medians, scaling.mean + scaling.spread * centers, scaling.spread * units)
    kind = arrays["classes"].dtype.kind
    if kind not in "Uifb":
        arrays["classes"] = _plain_classes(arrays["classes"])
    given = getattr(steps[0], "feature_names_in_", None)
    n_features = int(machine.n_features_in_)
    columns = [f"x{j}" for j in range(n_features)] if given is None else [str(name) for name in given]
    calibration = getattr(machine, "calibration_", None)
    return TableModel(
        target, Encoding(tuple(columns)), scaling, make_machine(parameters, arrays), calibration
    )


def _plain_classes(classes: np.ndarray) -> np.ndarray:
    """Texts and numbers in an array of objects, or of few bits, as arrays of their own kind."""
    if all(isinstance(value, str) for value in classes):
        return classes.astype(str)
    if classes.dtype.kind == "u":
        return classes.astype(np.int64)
    raise InputError(f"Classes such as {classes[0]!r} cannot be saved. Use strings, numbers or booleans.")


def _scaling(steps: list[Any], n_features: int) -> Scaling:
    """What goes before the machine: gaps filled, then mean and spread taken out; nothing else."""
    kinds = [type(step) for step in steps]
    if kinds not in ([], [StandardScaler], [SimpleImputer], [SimpleImputer, StandardScaler]):
        raise InputError(
            f"A pipeline with {', '.join(kind.__name__ for kind in kinds)} before the estimator cannot be "
            "saved; kmargin saves only a SimpleImputer followed by a StandardScaler. Scale with "
            "standardize=True, or save the pipeline with joblib."
        )
    fills: Vector | None = None
    mean, spread = np.zeros(n_features), np.ones(n_features)
    for step in steps:
        if isinstance(step, SimpleImputer):
            fills = np.asarray(step.statistics_, dtype=object)
            if step.add_indicator or len(fills) != n_features or not all(map(_is_number, fills)):
                raise InputError(
                    "This SimpleImputer adds or drops columns, or does not fill in numbers. Use one with "
                    "strategy='median', without add_indicator."
                )
            fills = fills.astype(float)
        else:
            mean = mean if step.mean_ is None or not step.with_mean else np.asarray(step.mean_, dtype=float)
            spread = spread if step.scale_ is None else np.asarray(step.scale_, dtype=float)
    return Scaling(fills, mean, spread)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and bool(np.isfinite(value))
