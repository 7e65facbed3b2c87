"""Fitted machines from their numbers, and their numbers from fitted machines."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kmargin import KernelSparseSVC, SparseSVC
from kmargin.fitting.blueprint import Decisions
from kmargin.kernels import Kernel, KernelDecisions
from kmargin.unit_request import UnitRequest

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
