"""Fitted estimators of a notebook as models of tables, for the command line and for files."""

from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from kmargin import KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV
from kmargin.errors import InputError
from kmargin.tables.features import Encoding, Scaling
from kmargin.tables.machine import machine_numbers, make_machine
from kmargin.tables.model import TableModel
from kmargin.types import Vector

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
