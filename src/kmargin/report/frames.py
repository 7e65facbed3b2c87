"""Results as data frames: features, predictions, errors, quality by class."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import roc_curve

from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.labels import class_weights
from kmargin.fitting.drop_costs import StandIn
from kmargin.model_selection.scores import (
    Estimate,
    RankedRows,
    area_under_roc,
    effective_number,
    rate_interval,
)
from kmargin.tables.analysis import Analysis, Stability, Step
from kmargin.tables.model import TableModel


def feature_frame(analysis: Analysis) -> pd.DataFrame:
    """A row per feature, those in use first, the heaviest on top, features of a group one after the other.

    `favours` is the class that more of the feature speaks for, the strongest of several. `frequency` is the
    share of the folds whose machines use the feature, `halves` that of random halves of the rows.
    `cost_without` is the share by which the objective rises without the feature (or its group),
    `stand_in_cost` with `stand_in` in its place, all else fitted anew. `weight` is for features scaled to
    spread 1, `weight_per_unit` for the table as it was given. With more than two classes there are columns
    for each class (`weight for`, see `multiclass.class_weights`) and for each machine.
    """
    model, counted = analysis.model, analysis.counted
    order, frequency = order_features(analysis), _frequency(analysis)
    coef = model.machine.coef_[:, order]
    by_class = class_weights(coef, len(model.machine.classes_), model.machine.multi_class)
    classes = np.array([str(name) for name in model.machine.classes_], dtype=object)
    chosen: Flags = np.asarray(coef.any(axis=0))
    columns: dict[str, Any] = {
        "feature": [counted.names[j] for j in order],
        "group": [counted.labels[j] for j in order],
        "chosen": chosen,
        "always_in": counted.always_in[order],
        "sign": [counted.sign_of(j) for j in order],
        "frequency": frequency[order],
        **({} if analysis.halves is None else {"halves": analysis.halves[order]}),
        "favours": np.where(chosen, classes[by_class.argmax(axis=0)], ""),
    }
    columns |= worth_columns(analysis, order, chosen)
    per_unit = coef / model.scaling.spread[order]
    if len(classes) == 2:
        return pd.DataFrame(columns | {"weight": coef[0], "weight_per_unit": per_unit[0]})
    columns |= {f"weight for {name}": by_class[c] for c, name in enumerate(classes)}
    columns |= {f"weight: {name}": coef[m] for m, name in enumerate(model.machine_names)}
    columns |= {f"weight_per_unit: {name}": per_unit[m] for m, name in enumerate(model.machine_names)}
    return pd.DataFrame(columns)


def worth_columns(analysis: Analysis, order: Indices, chosen: Flags) -> dict[str, Any]:
    """What the objective rises by without a feature (or its group), and with the best stand-in for it."""
    worths = [
        analysis.worths.get(analysis.counted.labels[j]) if is_in else None
        for j, is_in in zip(order, chosen, strict=True)
    ]
    firsts = [worth.stand_ins[0] if worth and worth.stand_ins else None for worth in worths]
    return {
        "cost_without": [np.nan if worth is None else worth.cost for worth in worths],
        "stand_in": ["" if first is None else stand_in_name(analysis, first) for first in firsts],
        "stand_in_cost": [np.nan if first is None else first.cost for first in firsts],
    }


def stand_in_name(analysis: Analysis, stand_in: StandIn) -> str:
    return str(analysis.counted.labels[int(stand_in.columns[0])])


def _frequency(analysis: Analysis) -> Vector:
    return np.zeros(len(analysis.counted.names)) if analysis.frequency is None else analysis.frequency


def order_features(analysis: Analysis) -> Indices:
    """By the weight of the heaviest of their group, then of their own."""
    heaviest = np.abs(analysis.model.machine.coef_).max(axis=0)
    frequency, labels = _frequency(analysis), pd.Series(analysis.counted.labels)
    group = pd.factorize(labels)[0]
    of_group = [pd.Series(v).groupby(group).transform("max").to_numpy() for v in (heaviest, frequency)]
    return np.lexsort((-frequency, -heaviest, group, -of_group[1], -of_group[0]))


def weights_by_class(analysis: Analysis) -> pd.DataFrame:
    """A row per feature in use, or always in, in the order of `feature_frame`; a column per class."""
    machine, order = analysis.model.machine, order_features(analysis)
    shown = order[(machine.coef_[:, order] != 0).any(axis=0) | analysis.counted.always_in[order]]
    weights = class_weights(machine.coef_[:, shown], len(machine.classes_), machine.multi_class)
    return pd.DataFrame(weights.T, index=shown, columns=range(len(machine.classes_)))


def intercepts_per_unit(model: TableModel) -> np.ndarray:
    """The intercepts that go with `weight_per_unit`."""
    coef = model.machine.coef_ / model.scaling.spread
    return model.machine.intercept_ - coef @ model.scaling.mean


def point_frame(analysis: Analysis) -> pd.DataFrame:
    """A row per training point that a kernel machine keeps: where it lies in the file, its weights."""
    dataset, machine = analysis.dataset, analysis.model.machine
    kept = machine.support_
    frame = pd.DataFrame({"row": dataset.rows[kept]})
    if dataset.ids is not None:
        frame["id"] = dataset.ids.to_numpy()[kept]
    frame["class"] = dataset.y[kept]
    for m, name in enumerate(analysis.model.machine_names):
        frame[f"weight: {name}"] = machine.dual_coef_[m]
    features = pd.DataFrame(dataset.X[kept], columns=dataset.encoding.feature_names)
    return pd.concat([frame, features], axis=1)


def point_weights(analysis: Analysis) -> pd.DataFrame:
    """A row per point and machine that keeps it."""
    frame, names = point_frame(analysis), analysis.model.machine_names
    own = [name for name in ("row", "id", "class") if name in frame.columns[:3]]
    long = pd.concat(
        [frame[own].assign(machine=name, weight=frame[f"weight: {name}"].to_numpy()) for name in names]
    )
    return long[long["weight"] != 0].reset_index(drop=True)


def wrong_frame(analysis: Analysis) -> pd.DataFrame:
    """The rows of `prediction_frame` that went wrong, the least probable class first."""
    assessed, y = analysis.assessment, analysis.dataset.y
    wrong = np.flatnonzero(assessed.predicted != y)
    own = assessed.probabilities[wrong, np.searchsorted(assessed.classes, y[wrong])]
    frame = prediction_frame(analysis).iloc[wrong]
    return frame.assign(**{"probability of its class": own}).iloc[np.argsort(own, kind="stable")]


def prediction_frame(analysis: Analysis) -> pd.DataFrame:
    """A row per row of the table: what machines that had not seen it said."""
    dataset, assessed = analysis.dataset, analysis.assessment
    return _predictions(
        {
            "row": dataset.rows,
            "id": None if dataset.ids is None else dataset.ids.to_numpy(),
            "actual": dataset.y,
            "predicted": assessed.predicted,
            "fold": assessed.fold + 1,
            "weight": dataset.weights,
        },
        assessed.decisions,
        analysis.model,
        assessed.probabilities if analysis.settings.proba else None,
    )


def new_prediction_frame(
    model: TableModel,
    classes: np.ndarray,
    decisions: Matrix,
    ids: Any = None,
    actual: Any = None,
    probabilities: Matrix | None = None,
) -> pd.DataFrame:
    """A row per row of a new table."""
    columns = {"row": np.arange(1, len(classes) + 1), "id": ids, "actual": actual, "predicted": classes}
    return _predictions(columns, decisions, model, probabilities)


def _predictions(
    columns: dict[str, Any], decisions: Matrix, model: TableModel, probabilities: Matrix | None
) -> pd.DataFrame:
    frame = pd.DataFrame({name: values for name, values in columns.items() if values is not None})
    names = [str(name) for name in model.machine.classes_]
    parts = [frame]
    if decisions.ndim == 1:
        parts.append(pd.DataFrame({"decision": decisions}))
    else:
        parts.append(pd.DataFrame(decisions, columns=[f"decision: {name}" for name in names]))
    if probabilities is not None:
        parts.append(pd.DataFrame(probabilities.round(3), columns=[f"probability: {name}" for name in names]))
    return pd.concat(parts, axis=1)


def confusion(analysis: Analysis) -> np.ndarray:
    """Rows by their class (down) and by what they were taken for (across)."""
    classes = analysis.model.machine.classes_
    actual = np.searchsorted(classes, analysis.dataset.y)
    predicted = np.searchsorted(classes, analysis.assessment.predicted)
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (actual, predicted), 1)
    return counts


def step_frame(steps: list[Step], scoring: str = "accuracy") -> pd.DataFrame:
    """A row per k of a path."""
    frame = pd.DataFrame([step._asdict() for step in steps])
    for name in ("features", "enters", "leaves"):
        frame[name] = frame[name].map("; ".join)
    frame.insert(1, "n_features", [len(step.features) for step in steps])
    if any(step.units != step.features for step in steps):
        frame["units"] = frame["units"].map("; ".join)
        frame.insert(1, "n_units", [len(step.units) for step in steps])
    else:
        frame = frame.drop(columns="units")
    names = {"score": f"cv_{scoring}", "error": "cv_standard_error"}
    return frame.rename(columns=names).dropna(axis=1, how="all")


def share_of(holds: Flags, weights: Vector, groups: Indices | None = None) -> Estimate | None:
    """The share of rows, by weight, for which something holds; None if there are no rows.

    Its interval counts groups where rows belong to such.
    """
    if not len(holds):
        return None
    value = float(np.average(holds, weights=weights))
    return Estimate(value, rate_interval(value, effective_number(weights, len(weights), groups)))


def share_among(analysis: Analysis, holds: Flags, rows: Flags) -> Estimate | None:
    """The share of some rows of the table for which something holds."""
    groups = analysis.dataset.groups
    weights = analysis.assessment.weights
    return share_of(holds[rows], weights[rows], None if groups is None else groups[rows])


def recall(analysis: Analysis, code: int) -> Estimate | None:
    """Of the rows of a class: how many were told as such."""
    assessed = analysis.assessment
    of_class = analysis.dataset.y == assessed.classes[code]
    return share_among(analysis, assessed.predicted == assessed.classes[code], of_class)


def precision(analysis: Analysis, code: int) -> Estimate | None:
    """Of the rows told as a class: how many are of it."""
    assessed = analysis.assessment
    told = assessed.predicted == assessed.classes[code]
    return share_among(analysis, analysis.dataset.y == assessed.classes[code], told)


def area_under_curve(analysis: Analysis, code: int) -> Estimate:
    """How often a row of a class is ranked above one of another, on average over the folds."""
    assessed, dataset = analysis.assessment, analysis.dataset
    decisions = assessed.decisions
    if decisions.ndim == 2:
        decisions = decisions[:, code]
    elif code == 0:
        decisions = -decisions
    folds = [RankedRows(fold.test, decisions[fold.test]) for fold in assessed.folds]
    return area_under_roc(folds, dataset.y == assessed.classes[code], assessed.weights, dataset.groups)


def roc_points(analysis: Analysis) -> tuple[Vector, Vector]:
    """Two classes: the mean of the ROC curves of the folds, whose area is `area_under_curve`.

    At each share of the first class that is taken for the second, the mean share of the second class that is
    recognised; twice where a curve rises there, before and after.
    """
    assessed = analysis.assessment
    is_second, curves = analysis.dataset.y == assessed.classes[1], []
    for _, test in assessed.folds:
        if is_second[test].any() and not is_second[test].all():
            weights = assessed.weights[test]
            curve = roc_curve(is_second[test], assessed.decisions[test], sample_weight=weights)
            curves.append((curve[0], curve[1]))
    false = np.unique(np.concatenate([rates[0] for rates in curves]))
    before, after = np.mean([_limits(*rates, false) for rates in curves], axis=0)
    return np.repeat(false, 2), np.column_stack([before, after]).ravel()


def _limits(false: Vector, true: Vector, at: Vector) -> tuple[Vector, Vector]:
    """The heights of a ROC curve just before and just after each place."""
    first, last = np.searchsorted(false, at, side="left"), np.searchsorted(false, at, side="right") - 1
    is_vertex = first <= last
    width = np.where(is_vertex, 1.0, false[first] - false[last])
    between = true[last] + (at - false[last]) / width * (true[first] - true[last])
    return np.where(is_vertex, true[first], between), np.where(is_vertex, true[last], between)


class GroupResult(NamedTuple):
    """The rows of one group: how many there are, and which share of them was predicted correctly."""

    name: str
    n_rows: int
    correct: Estimate
    most_common: float  # the share of the largest class among them


def results_by_group(analysis: Analysis) -> list[GroupResult]:
    """The accuracy within each group of rows that stay together, each by models fitted without the group."""
    dataset, assessed = analysis.dataset, analysis.assessment
    if dataset.group_labels is None:
        return []
    found = []
    for name in np.unique(dataset.group_labels):
        rows = np.flatnonzero(dataset.group_labels == name)
        weights = assessed.weights[rows]
        correct = share_of((assessed.predicted == dataset.y)[rows], weights)
        classes = np.unique(dataset.y[rows], return_inverse=True)[1]
        largest = float(np.bincount(classes, weights=weights).max() / weights.sum())
        if correct is not None:
            found.append(GroupResult(str(name), len(rows), correct, largest))
    return found


class Reliability(NamedTuple):
    """Rows with about the same probability, and how often it came true."""

    told: float  # the mean probability
    true: Estimate
    n_rows: int


def reliability(analysis: Analysis, n_bins: int = 10) -> list[Reliability]:
    """Two classes: by the probability of the second. More: by the probability of the class that has the most.

    Bins have about the same number of rows, so that each says as much.
    """
    assessed, y = analysis.assessment, analysis.dataset.y
    P = assessed.probabilities
    if P.shape[1] == 2:
        told, came_true = P[:, 1], y == assessed.classes[1]
    else:
        told, came_true = P.max(axis=1), y == assessed.classes[P.argmax(axis=1)]
    order = np.argsort(told, kind="stable")
    bins = []
    for rows in np.array_split(order, min(n_bins, max(1, len(order) // 5))):
        is_in = np.isin(np.arange(len(y)), rows)
        true = share_among(analysis, came_true, is_in)
        if true is not None:
            mean = float(np.average(told[rows], weights=assessed.weights[rows]))
            bins.append(Reliability(mean, true, len(rows)))
    return bins


def calibration_error(analysis: Analysis) -> float:
    """By how much probabilities are off, on average over the rows."""
    bins = reliability(analysis)
    sizes = np.array([b.n_rows for b in bins])
    return float(np.average([abs(b.told - b.true.value) for b in bins], weights=sizes))


def log_loss_of(analysis: Analysis) -> float:
    """Of the probabilities told of rows not seen."""
    assessed = analysis.assessment
    own = assessed.probabilities[
        np.arange(len(assessed.fold)), np.searchsorted(assessed.classes, analysis.dataset.y)
    ]
    return float(-np.average(np.log(own), weights=assessed.weights))


def stability_frame(stability: Stability) -> pd.DataFrame:
    """A row for each feature, the most frequent first."""
    selection, counted = stability.selection, stability.counted
    unit_of = selection.summary().set_index("feature")
    at = unit_of.index.astype(int)
    thing = counted.things.removesuffix("s")
    columns = {
        "feature": np.array(counted.names, dtype=object)[at],
        thing: np.array(counted.labels, dtype=object)[at],
        "frequency": unit_of["frequency"].to_numpy(),
    }
    if counted.is_grouped:
        columns[f"frequency of its {thing}"] = unit_of["group_frequency"].to_numpy()
    of_both = {name: unit_of[name].to_numpy() for name in ("always_in", "stable")}
    return pd.DataFrame(columns | of_both)
