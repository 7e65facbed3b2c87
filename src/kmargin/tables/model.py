"""A fitted estimator together with the encoding and scaling of its table, for predictions from new tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from kmargin import KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV
from kmargin.core.arrays import Indices, Matrix
from kmargin.core.labels import machine_names
from kmargin.core.units import UnitRequest
from kmargin.core.validation import InputError, count, listing
from kmargin.fitting.decisions import Kernel, KernelDecisions
from kmargin.fitting.spec import Decisions
from kmargin.model_selection.calibration import Calibration
from kmargin.tables.columns import Encoding, Scaling
from kmargin.tables.read import Table, check_unique

MAX_DIGESTS = 10_000  # maximum number of digests of training rows that a model keeps
MIN_DISTINCT = 0.95  # used features identify rows if at least this share of the rows is distinct in them
FAR_OUTSIDE = 0.5  # values further outside the training range than this share of its width are reported
MIN_ROWS = 5  # with fewer rows, no note says that most rows are outside the training range
ESTIMATORS = (SparseSVC, SparseSVCCV, KernelSparseSVC, KernelSparseSVCCV)


@dataclass(frozen=True)
class SeenRows:
    """Digests (hash values) of the training rows, by which a new table is searched for training rows.

    They are in ascending order, and only the `MAX_DIGESTS` smallest are kept.
    """

    by_all: np.ndarray  # int64; the digest of each row, of all features
    by_used: np.ndarray  # of the used features; empty if they do not tell rows apart

    def share(self, X: Matrix, by_all: bool) -> float:
        """The share of the rows of X that are training rows, estimated from those with small digests.

        X has all features, or if not `by_all` the used ones.
        """
        kept, digests = self.by_all if by_all else self.by_used, digest_rows(X)
        if len(kept) == 0:
            return 0.0
        is_known = np.isin(digests, kept)
        in_range = is_known if len(kept) < MAX_DIGESTS else is_known[digests <= kept[-1]]
        return float(in_range.mean()) if len(in_range) else 0.0


def note_rows(X: Matrix, used: np.ndarray) -> SeenRows:
    """Compute the digests of training rows, by all features and by those at the positions `used`."""
    by_all, by_used = (np.unique(digest_rows(features)) for features in (X, X[:, used]))
    identifies = len(used) > 0 and len(by_used) >= MIN_DISTINCT * len(X)
    return SeenRows(by_all[:MAX_DIGESTS], by_used[:MAX_DIGESTS] if identifies else np.empty(0, np.int64))


def digest_rows(X: Matrix) -> np.ndarray:
    """A hash value for each row of X in single precision, because files may round the last digits."""
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(X, dtype=np.float32) + np.float32(0)  # -0.0 becomes 0.0
    rounded[np.isnan(rounded)] = np.nan  # there are several bit patterns of NaN
    raw = [blake2b(row.tobytes(), digest_size=8).digest() for row in rounded]
    return np.frombuffer(b"".join(raw), dtype="<i8").astype(np.int64)


Estimator = SparseSVC | KernelSparseSVC
KERNEL_PARAMETERS = ("kernel", "gamma", "degree", "coef0")
FITTED_ARRAYS = {
    "linear": ("intercept", "coef"),
    "kernel": ("intercept", "dual_coef", "support", "support_vectors"),
}


def make_estimator(parameters: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Estimator:
    """Make a fitted estimator from its parameters and arrays: the inverse of `estimator_numbers`."""
    kind: Any = KernelSparseSVC if "kernel" in parameters else SparseSVC
    machine = kind(**parameters)
    for name, array in arrays.items():
        setattr(machine, f"{name}_", array)
    if "kernel" in parameters:
        machine.kernel_ = Kernel(*(parameters[name] for name in KERNEL_PARAMETERS))
    else:
        machine.support_ = np.flatnonzero(machine.coef_.any(axis=0))
    machine.n_features_in_ = arrays["support_vectors" if "kernel" in parameters else "coef"].shape[1]
    return machine


def assemble_estimator(parameters: Mapping[str, Any], classes: np.ndarray, decisions: Decisions) -> Estimator:
    """Make a fitted estimator from its parameters, its classes and its decision function."""
    arrays = {"classes": classes, "intercept": decisions.intercept}
    if not isinstance(decisions, KernelDecisions):
        return make_estimator(parameters, arrays | {"coef": decisions.coef})
    kernel, inputs = decisions.inputs.kernel, decisions.inputs
    assert kernel is not None, "tables hold features, not kernel values"
    arrays |= {"dual_coef": decisions.coef, "support": inputs.columns, "support_vectors": inputs.points}
    return make_estimator({**parameters, "kernel": kernel.name, **kernel.numbers}, arrays)


def estimator_numbers(machine: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The parameters and arrays of a fitted estimator; if it chose k and C, with the chosen values."""
    k, C = (getattr(machine, f"{name}_", None) for name in ("k", "C"))
    parameters = {"C": float(C or machine.C), "multi_class": machine.multi_class, "shared": machine.shared}
    is_kernel = hasattr(machine, "dual_coef_")
    if is_kernel:
        parameters |= {"kernel": machine.kernel, **machine.kernel_.numbers}
        n_units = len(machine.support_)
    else:
        request = UnitRequest(machine.groups, machine.keep, machine.avoid, machine.signs)
        request = request.by_place(machine.n_features_in_, getattr(machine, "feature_names_in_", None))
        parameters |= request._asdict()
        n_units = request.resolve(machine.n_features_in_).n_units
    k = machine.k if k is None else k
    names = ("classes", *FITTED_ARRAYS["kernel" if is_kernel else "linear"])
    arrays = {name: getattr(machine, f"{name}_") for name in names}
    for name, values in arrays.items():  # support vectors may be a sparse matrix
        arrays[name] = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    return parameters | {"k": n_units if k == "all" else int(k)}, arrays


class Prediction(NamedTuple):
    """Classes, decision values and probabilities of the rows of a table, and notes on the table."""

    classes: np.ndarray
    decisions: Matrix
    probabilities: Matrix | None  # of each class; None if the model was saved without calibration
    notes: list[str]


@dataclass(frozen=True)
class TableModel:
    """Predicts the target of a table from its columns, which it finds by name."""

    target: str
    encoding: Encoding
    scaling: Scaling
    machine: Estimator  # predicts from the encoded and scaled features
    calibration: Calibration | None = None
    seen: SeenRows | None = None  # digests of the training rows
    ranges: Matrix | None = None  # smallest and largest training value of each feature, in two rows
    id: str | None = None  # the column that named the training rows

    def __repr__(self) -> str:
        """The target and the columns that it is predicted from."""
        used = [name for name in self.encoding.columns if name in self.needed]
        points = f", {len(self.machine.support_)} points kept" if self.is_kernel else ""
        return f"<TableModel: {self.target!r} from {listing(used)}{points}>"

    @property
    def classes_(self) -> np.ndarray:
        return np.asarray(self.machine.classes_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The columns of the training table that are features, in their order."""
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
        """The columns that a new table must have: for a linear model those with nonzero coefficients."""
        if self.is_kernel:
            return set(self.encoding.columns)
        sources = self.encoding.sources
        return {sources[j] for j in self.machine.support_}

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row.

        X is a data frame (pandas, polars, arrow) or a mapping of columns by name, of which those in `needed`
        are used, as numbers or as texts of numbers; or an array of all columns that the model was fitted to,
        in the order of `feature_names_in_`. Raises InputError, a ValueError, if needed columns or values are
        missing.
        """
        return self.predict_table(self._read(X)).classes

    def decision_function(self, X: Any) -> Matrix:
        """The decision value of each row, above 0 for the second of two classes; else a column per class."""
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
        """The accuracy: the share of rows whose predicted class is that in y."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def share_seen(self, X: Any) -> float:
        """The share of the rows of X that are training rows, estimated by `SeenRows`; 0 if it is unknown."""
        table = self._read(X)
        if self.seen is None:
            return 0.0
        has_all = all(column in table.frame.columns for column in self.encoding.columns)
        wanted = set(self.encoding.columns) if has_all else self.needed
        try:
            X, _ = self.encoding.match(table, wanted, has_medians=True)
        except InputError:  # a column that the model does not use now holds other values than numbers
            return 0.0
        return self.seen.share(X if has_all else X[:, self.used_features], has_all)

    def _read(self, X: Any) -> Table:
        """Return a data frame, a mapping, records or an array as a table.

        The columns of an array get the names of all columns of the training table, in their order. Raises
        InputError if an array has another number of columns, or if X is not a table.
        """
        if isinstance(X, Table):
            return X
        columns, needed = self.encoding.columns, self.needed
        used = [column for column in columns if column in needed]
        X = X.to_pandas() if hasattr(X, "to_pandas") else X  # polars, arrow
        X = X.toarray() if hasattr(X, "toarray") else X  # sparse matrices
        try:
            frame = pd.DataFrame(X)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"X is not a table ({str(error).rstrip('.')}). Give a data frame with the columns "
                f"{listing(used)}, or a two-dimensional array."
            ) from error
        if isinstance(frame.columns, pd.RangeIndex):
            if frame.shape[1] != len(columns):
                raise InputError(
                    f"X has {count(frame.shape[1], 'column')}, but without names the model expects the "
                    f"{len(columns):,} that it was fitted to, in this order: {listing(columns, 8)}; a single "
                    f"row is [row]. A data frame needs only {listing(used, 8)}."
                )
            frame.columns = list(columns)
        frame.columns = [str(name) for name in frame.columns]
        check_unique("X", list(frame.columns))
        return Table(frame)

    @property
    def used_features(self) -> Indices:
        """The positions of the features that encode the needed columns."""
        needed = self.needed
        return np.flatnonzero([column in needed for column in self.encoding.sources])

    def predict_table(self, table: Table) -> Prediction:
        """Predict the rows of a table. Raises InputError if needed columns or values are missing."""
        X, notes = self.encoding.match(table, self.needed, self.scaling.medians is not None)
        notes += self._note_extremes(X)
        scaled, probabilities = self.scaling(X), None
        if self.calibration is not None:
            scheme = len(self.machine.classes_), self.machine.multi_class
            probabilities = self.calibration.probabilities(self.machine.machine_decisions(scaled), *scheme)
        return Prediction(
            self.machine.predict(scaled), self.machine.decision_function(scaled), probabilities, notes
        )

    def _note_extremes(self, X: Matrix) -> list[str]:
        """Notes on columns with values far outside their training range, or outside it in most rows."""
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
            if len(X) >= MIN_ROWS and 2 * outside.sum() > len(X):
                far = outside
            if high > low and far.any():
                row = int(np.nanargmax(np.abs(X[:, j] - (low + high) / 2)))
                notes.append(
                    f"Column {names[j]!r} is far outside its training range ({low:.4g} to {high:.4g}) in "
                    f"{count(int(far.sum()), 'row')}, such as {X[row, j]:.4g} in row {row + 1}. Check its "
                    "unit; predictions there are extrapolations."
                )
        return notes


def to_table_model(model: Any, target: str) -> TableModel:
    """Convert a fitted estimator, or a pipeline that ends in one, to a model that finds its columns by name.

    The names are those of the data frame that it was fitted to; for an array they are x0, x1 and so on.
    Raises InputError for models that cannot be saved.
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
    parameters, arrays = estimator_numbers(machine)
    scaling = _scaling(steps[:-1], int(machine.n_features_in_))
    of_kernel = getattr(getattr(machine, "kernel_", None), "scaling", None)
    if of_kernel is not None:
        centers, scales = of_kernel[:2]
        arrays["support_vectors"] = (arrays["support_vectors"] - centers) / scales
        scaling = Scaling(scaling.medians, scaling.mean + scaling.spread * centers, scaling.spread * scales)
    classes = arrays["classes"]
    if all(isinstance(value, str) for value in classes):
        arrays["classes"] = classes.astype(str)
    elif classes.dtype.kind == "u":
        arrays["classes"] = classes.astype(np.int64)
    elif classes.dtype.kind not in "ifb":
        raise InputError(f"Classes such as {classes[0]!r} cannot be saved. Use strings, numbers or booleans.")
    columns = getattr(steps[0], "feature_names_in_", [f"x{j}" for j in range(machine.n_features_in_)])
    encoding, calibration = Encoding(tuple(map(str, columns))), getattr(machine, "calibration_", None)
    return TableModel(target, encoding, scaling, make_estimator(parameters, arrays), calibration)


def _scaling(steps: list[Any], n_features: int) -> Scaling:
    """Convert the steps of a pipeline before its estimator to one imputation and standardisation."""
    kinds = [type(step) for step in steps]
    if kinds not in ([], [StandardScaler], [SimpleImputer], [SimpleImputer, StandardScaler]):
        raise InputError(
            f"A pipeline with {', '.join(kind.__name__ for kind in kinds)} before the estimator cannot be "
            "saved; kmargin saves only a SimpleImputer followed by a StandardScaler. Scale with "
            "standardize=True, or save the pipeline with joblib."
        )
    medians, mean, spread = None, np.zeros(n_features), np.ones(n_features)
    for step in steps:
        if isinstance(step, SimpleImputer):
            values = step.statistics_.tolist()
            are_numbers = all(isinstance(value, int | float) and np.isfinite(value) for value in values)
            if step.add_indicator or len(values) != n_features or not are_numbers:
                raise InputError(
                    "This SimpleImputer adds or drops columns, or does not fill in numbers. Use one with "
                    "strategy='median', without add_indicator."
                )
            medians = np.array(values, dtype=float)
        else:
            mean = step.mean_ if step.with_mean else mean
            spread = step.scale_ if step.with_std else spread
    return Scaling(medians, mean, spread)
