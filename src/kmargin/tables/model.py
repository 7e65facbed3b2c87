"""A fitted machine together with what its table went through: from a table to classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kmargin import KernelSparseSVC, SparseSVC
from kmargin.calibration import Calibration
from kmargin.fitting.blueprint import Decisions
from kmargin.kernels import Kernel, KernelDecisions
from kmargin.multiclass import machine_names
from kmargin.tables.features import Encoding, Scaling
from kmargin.tables.read import Table
from kmargin.types import Matrix
from kmargin.unit_request import UnitRequest

Machine = SparseSVC | KernelSparseSVC


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

    def predict(self, table: Table) -> Prediction:
        """Raises InputError where the table has not what the model needs."""
        X, notes = self.encoding.match(table, self.needed, self.scaling.medians is not None)
        scaled = self.scaling(X)
        decisions = self.machine.decision_function(scaled)
        return Prediction(self.machine.predict(scaled), decisions, self.probabilities(scaled), notes)

    def probabilities(self, X: Matrix) -> Matrix | None:
        """Those of each class, for features as they were scaled."""
        if self.calibration is None:
            return None
        scheme = len(self.machine.classes_), self.machine.multi_class
        return self.calibration.probabilities(self.machine.machine_decisions(X), *scheme)


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
        "k": int(machine.k_ if hasattr(machine, "k_") else machine.k),
        "C": float(machine.C_ if hasattr(machine, "C_") else machine.C),
        "multi_class": machine.multi_class,
        "shared": bool(machine.shared),
    }
    arrays = {"classes": machine.classes_, "intercept": machine.intercept_}
    if hasattr(machine, "dual_coef_"):
        parameters |= {"kernel": machine.kernel, **machine.kernel_.numbers}
        arrays |= {name: getattr(machine, f"{name}_") for name in ("dual_coef", "support", "support_vectors")}
    else:
        said = UnitRequest(machine.groups, machine.keep, machine.avoid, machine.signs)
        names = getattr(machine, "feature_names_in_", None)
        parameters |= said.by_place(machine.n_features_in_, names)._asdict()
        arrays["coef"] = machine.coef_
    return parameters, arrays
