"""Results as data frames, and measures of how good predictions and probabilities are."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import confusion_matrix, log_loss, roc_curve

from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.labels import class_weights
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
    """The contents of `features.csv`: a row for each feature, largest weights first (`order_features`).

    `favours` is the class that higher values of the feature favour most. `frequency` and `halves` are the
    proportions of folds and of random halves of the rows in which the feature was chosen. `cost_without` is
    the relative rise of the objective if the feature (or its group) is left out and the model refitted,
    `stand_in_cost` the rise if the feature `stand_in` replaces it. `weight` is for features scaled to
    standard deviation 1, `weight_per_unit` for features in the units of the table. With more than two classes
    there is a column of weights for each class and for each binary classifier.
    """
    model, counted = analysis.model, analysis.dataset.counted
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
    columns |= drop_cost_columns(analysis, order, chosen)
    per_unit = coef / model.scaling.spread[order]
    if len(classes) == 2:
        return pd.DataFrame(columns | {"weight": coef[0], "weight_per_unit": per_unit[0]})
    columns |= {f"weight for {name}": by_class[c] for c, name in enumerate(classes)}
    columns |= {f"weight: {name}": coef[m] for m, name in enumerate(model.machine_names)}
    columns |= {f"weight_per_unit: {name}": per_unit[m] for m, name in enumerate(model.machine_names)}
    return pd.DataFrame(columns)


def drop_cost_columns(analysis: Analysis, order: Indices, chosen: Flags) -> dict[str, Any]:
    """Columns of `features.csv`: how far the objective rises without a feature, and the best replacement."""
    labels = analysis.dataset.counted.labels
    known = [
        analysis.worths.get(labels[j]) if is_in else None for j, is_in in zip(order, chosen, strict=True)
    ]
    best = [worth.stand_ins[0] if worth and worth.stand_ins else None for worth in known]
    return {
        "cost_without": [np.nan if worth is None else worth.cost for worth in known],
        "stand_in": ["" if other is None else str(labels[int(other.columns[0])]) for other in best],
        "stand_in_cost": [np.nan if other is None else other.cost for other in best],
    }


def _frequency(analysis: Analysis) -> Vector:
    """The proportion of folds that chose each feature; 0 for kernel models, which choose training points."""
    return np.zeros(len(analysis.dataset.counted.names)) if analysis.frequency is None else analysis.frequency


def order_features(analysis: Analysis) -> Indices:
    """Sort the features by absolute weight in descending order, group by group; return their indices.

    Groups are in the order of their largest weights. Ties: features that more folds chose come first.
    """
    heaviest = np.abs(analysis.model.machine.coef_).max(axis=0)
    frequency, labels = _frequency(analysis), pd.Series(analysis.dataset.counted.labels)
    group = pd.factorize(labels)[0]
    of_group = [pd.Series(v).groupby(group).transform("max").to_numpy() for v in (heaviest, frequency)]
    return np.lexsort((-frequency, -heaviest, group, -of_group[1], -of_group[0]))


def weights_by_class(analysis: Analysis) -> pd.DataFrame:
    """A data frame of weights: a row per feature that the model uses or must keep, a column per class."""
    machine, order = analysis.model.machine, order_features(analysis)
    shown = order[(machine.coef_[:, order] != 0).any(axis=0) | analysis.dataset.counted.always_in[order]]
    weights = class_weights(machine.coef_[:, shown], len(machine.classes_), machine.multi_class)
    return pd.DataFrame(weights.T, index=shown, columns=range(len(machine.classes_)))


def intercepts_per_unit(model: TableModel) -> np.ndarray:
    """The intercepts of the binary classifiers if features are not scaled, but in the units of the table."""
    coef = model.machine.coef_ / model.scaling.spread
    return model.machine.intercept_ - coef @ model.scaling.mean


def point_frame(analysis: Analysis) -> pd.DataFrame:
    """The contents of `points.csv`: a row for each training point that a kernel model keeps."""
    dataset, machine = analysis.dataset, analysis.model.machine
    kept = machine.support_
    frame = pd.DataFrame({"row": dataset.rows[kept]})
    if dataset.ids is not None:
        frame["id"] = dataset.ids[kept]
    frame["class"] = dataset.y[kept]
    for m, name in enumerate(analysis.model.machine_names):
        frame[f"weight: {name}"] = machine.coef_[m]
    features = pd.DataFrame(dataset.X[kept], columns=dataset.encoding.feature_names)
    return pd.concat([frame, features], axis=1)


def point_weights(analysis: Analysis) -> pd.DataFrame:
    """The weights of a kernel model: for each binary classifier, a row for each training point it keeps."""
    frame, names = point_frame(analysis), analysis.model.machine_names
    own = [name for name in ("row", "id", "class") if name in frame.columns[:3]]
    long = pd.concat(
        [frame[own].assign(machine=name, weight=frame[f"weight: {name}"].to_numpy()) for name in names]
    )
    return long[long["weight"] != 0].reset_index(drop=True)


def wrong_frame(analysis: Analysis) -> pd.DataFrame:
    """The misclassified rows of `predictions.csv`, in ascending order of their actual class's probability."""
    assessed, y = analysis.assessment, analysis.dataset.y
    wrong = np.flatnonzero(assessed.predicted != y)
    own = assessed.probabilities[wrong, np.searchsorted(analysis.model.classes_, y[wrong])]
    frame = prediction_frame(analysis).iloc[wrong]
    return frame.assign(**{"probability of its class": own}).iloc[np.argsort(own, kind="stable")]


def prediction_frame(analysis: Analysis) -> pd.DataFrame:
    """The contents of `predictions.csv`: the prediction for each row by a model fitted without it."""
    dataset, assessed = analysis.dataset, analysis.assessment
    return _predictions(
        {
            "row": dataset.rows,
            "id": dataset.ids,
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
    rows: Any,
    ids: Any = None,
    actual: Any = None,
    probabilities: Matrix | None = None,
) -> pd.DataFrame:
    """A data frame with the predictions for a new table, whose rows have the numbers `rows`."""
    columns = {"row": rows, "id": ids, "actual": actual, "predicted": classes}
    return _predictions(columns, decisions, model, probabilities)


def _predictions(
    columns: dict[str, Any], decisions: Matrix, model: TableModel, probabilities: Matrix | None
) -> pd.DataFrame:
    """A data frame of the `columns` that are not None, then decision values, then probabilities if given."""
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
    """The confusion matrix: the number of rows by actual class (down) and predicted class (across)."""
    assessed = analysis.assessment
    return confusion_matrix(analysis.dataset.y, assessed.predicted, labels=analysis.model.classes_)


def step_frame(steps: list[Step], scoring: str = "accuracy") -> pd.DataFrame:
    """For each k of a path, a row: the score, the features, and the features or groups that change."""
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
    """The weighted proportion of True in `holds`, with its 95 % interval; None if `holds` is empty.

    If `groups` are given, the interval is based on the number of groups instead of rows.
    """
    if not len(holds):
        return None
    value = float(np.average(holds, weights=weights))
    return Estimate(value, rate_interval(value, effective_number(weights, len(weights), groups)))


def share_among(analysis: Analysis, holds: Flags, rows: Flags) -> Estimate | None:
    """The weighted proportion of True in `holds` among the rows of the table for which `rows` is True."""
    groups = analysis.dataset.groups
    weights = analysis.assessment.weights
    return share_of(holds[rows], weights[rows], None if groups is None else groups[rows])


def recall(analysis: Analysis, code: int) -> Estimate | None:
    """The proportion of the rows of a class (given by its index) that are predicted as this class."""
    assessed = analysis.assessment
    of_class = analysis.dataset.y == analysis.model.classes_[code]
    return share_among(analysis, assessed.predicted == analysis.model.classes_[code], of_class)


def precision(analysis: Analysis, code: int) -> Estimate | None:
    """The proportion of the rows predicted as a class that belong to it; None if there are no such rows."""
    assessed = analysis.assessment
    as_class = assessed.predicted == analysis.model.classes_[code]
    return share_among(analysis, analysis.dataset.y == analysis.model.classes_[code], as_class)


def area_under_curve(analysis: Analysis, code: int) -> Estimate:
    """The area under the ROC curve of the class with index `code` against all others, averaged over folds."""
    assessed, dataset = analysis.assessment, analysis.dataset
    decisions = assessed.decisions
    if decisions.ndim == 2:
        decisions = decisions[:, code]
    elif code == 0:
        decisions = -decisions
    folds = [RankedRows(fold.test, decisions[fold.test]) for fold in assessed.folds]
    return area_under_roc(folds, dataset.y == analysis.model.classes_[code], assessed.weights, dataset.groups)


def roc_points(analysis: Analysis) -> tuple[Vector, Vector]:
    """Return false and true positive rates of the ROC curve for two classes, averaged over the folds.

    Each false positive rate appears twice: with the lower and with the upper end of the curve's step there.
    """
    assessed = analysis.assessment
    is_second, curves = analysis.dataset.y == analysis.model.classes_[1], []
    for _, test in assessed.folds:
        if is_second[test].any() and not is_second[test].all():
            weights = assessed.weights[test]
            curve = roc_curve(is_second[test], assessed.decisions[test], sample_weight=weights)
            curves.append((curve[0], curve[1]))
    false = np.unique(np.concatenate([rates[0] for rates in curves]))
    before, after = np.mean([_limits(*rates, false) for rates in curves], axis=0)
    return np.repeat(false, 2), np.column_stack([before, after]).ravel()


def _limits(false: Vector, true: Vector, at: Vector) -> tuple[Vector, Vector]:
    """The lowest and highest true positive rate of the ROC curve (`false`, `true`) at each rate in `at`."""
    first, last = np.searchsorted(false, at, side="left"), np.searchsorted(false, at, side="right") - 1
    is_vertex = first <= last
    width = np.where(is_vertex, 1.0, false[first] - false[last])
    between = true[last] + (at - false[last]) / width * (true[first] - true[last])
    return np.where(is_vertex, true[first], between), np.where(is_vertex, true[last], between)


class GroupResult(NamedTuple):
    """The results for one group of rows: the number of rows, and the proportion predicted correctly."""

    name: str
    n_rows: int
    correct: Estimate
    most_common: float  # the proportion of the group's rows that are of its most common class


def results_by_group(analysis: Analysis) -> list[GroupResult]:
    """For each group of rows, the accuracy of models fitted without it; empty if rows are not grouped."""
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
    """Rows with similar predicted probabilities of a class: their mean, and the class's actual frequency."""

    predicted: float
    observed: Estimate
    n_rows: int


def reliability(analysis: Analysis, n_bins: int = 10) -> list[Reliability]:
    """Predicted probabilities and observed frequencies, in bins of about equal numbers of rows.

    Probabilities are of the second of two classes, or with more classes of the most likely class of each row.
    """
    assessed, y = analysis.assessment, analysis.dataset.y
    P = assessed.probabilities
    if P.shape[1] == 2:
        predicted, came_true = P[:, 1], y == analysis.model.classes_[1]
    else:
        predicted, came_true = P.max(axis=1), y == analysis.model.classes_[P.argmax(axis=1)]
    order = np.argsort(predicted, kind="stable")
    bins = []
    for rows in np.array_split(order, min(n_bins, max(1, len(order) // 5))):
        observed = share_among(analysis, came_true, np.isin(np.arange(len(y)), rows))
        if observed is not None:
            mean = float(np.average(predicted[rows], weights=assessed.weights[rows]))
            bins.append(Reliability(mean, observed, len(rows)))
    return bins


def calibration_error(analysis: Analysis) -> float:
    """The mean absolute difference of predicted probabilities and observed frequencies, over bins of rows."""
    bins = reliability(analysis)
    errors = [abs(b.predicted - b.observed.value) for b in bins]
    return float(np.average(errors, weights=[b.n_rows for b in bins]))


def log_loss_of(analysis: Analysis) -> float:
    """The log loss of the probabilities that were predicted for held-out rows."""
    assessed, y = analysis.assessment, analysis.dataset.y
    return float(
        log_loss(y, assessed.probabilities, sample_weight=assessed.weights, labels=analysis.model.classes_)
    )


def stability_frame(stability: Stability) -> pd.DataFrame:
    """How often each feature was selected on random halves of the rows, the most frequent feature first."""
    selection, counted = stability.selection, stability.counted
    unit_of = selection.summary().set_index("feature")
    at = unit_of.index.astype(int)
    label = counted.unit_label.removesuffix("s")
    columns = {
        "feature": np.array(counted.names, dtype=object)[at],
        label: np.array(counted.labels, dtype=object)[at],
        "frequency": unit_of["frequency"].to_numpy(),
    }
    if counted.unit_label != "features":
        columns[f"frequency of its {label}"] = unit_of["group_frequency"].to_numpy()
    of_both = {name: unit_of[name].to_numpy() for name in ("always_in", "stable")}
    return pd.DataFrame(columns | of_both)
