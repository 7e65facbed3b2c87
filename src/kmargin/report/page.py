"""Render the report as an HTML page, and write all results to a folder."""

import csv
import io
import os
import platform
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn

from kmargin import __version__
from kmargin.core.validation import InputError, count, listing
from kmargin.displays import CVScoreDisplay
from kmargin.displays.common import plain, shorten
from kmargin.displays.palette import CURVE, REFERENCE
from kmargin.report import html, text
from kmargin.report.frames import (
    area_under_curve,
    calibration_error,
    confusion,
    feature_frame,
    intercepts_per_unit,
    log_loss_of,
    order_features,
    point_frame,
    precision,
    prediction_frame,
    recall,
    reliability,
    results_by_group,
    roc_points,
    weights_by_class,
    wrong_frame,
)
from kmargin.report.text import PERCENT, change_text, error_text, headline, score_name, score_text
from kmargin.tables import model_file
from kmargin.tables.analysis import Analysis, Neighbour, Step
from kmargin.tables.dataset import Dataset
from kmargin.tables.model_file import PART, replace_file, replace_folder

MAX_ROWS = 60  # maximum number of rows of a table on the page; the CSV files have all rows
MAX_TERMS = 12  # a model with more features is not shown as a formula
MAX_REPLACEMENTS = 3  # maximum number of features listed as possible replacements of a feature
MAX_BOXES = 9  # maximum number of features that have box plots on the page
MAX_BOX_CLASSES = 12  # with more classes, no box plots are shown
BOX_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # the ends of the whiskers and of the box, and the median
N_WORST = 10  # maximum number of rows in the table of misclassified rows
LABEL_SHARE = 0.15  # proportion of the score plot's height kept free at its bottom to label the chosen k


def render(analysis: Analysis, source: str, folder: str) -> str:
    """Render the report as HTML; `source` names the file of the table, `folder` the folder of results."""
    is_kernel = analysis.model.is_kernel
    scoring, assessed = analysis.settings.scoring, analysis.assessment
    wrong = wrong_frame(analysis)
    has_two_classes = len(analysis.model.classes_) == 2
    values: dict[str, Any] = {
        "analysis": analysis,
        "text": text,
        "title": f"{analysis.dataset.target} from {source}",
        "source": source,
        "folder": shlex.quote(folder),
        "classes": text.class_list(analysis),
        "max_rows": MAX_ROWS,
        "headline": headline(analysis),
        "score_shown": score_text(scoring, assessed.score),
        "interval_shown": text.interval_text(scoring, assessed.interval),
        "guessing_shown": score_text(scoring, assessed.guessing),
        "strip": score_strip(analysis),
        "n_features": len(analysis.model.machine.support_),
        "curve_image": curve_image(analysis),
        "neighbour_rows": neighbour_rows(analysis),
        "boxes": [] if is_kernel else feature_boxes(analysis),
        "n_wrong": len(wrong),
        "worst": worst_rows(wrong),
        "confusion": confusion(analysis),
        "class_rows": [
            {
                "name": name,
                "recall": recall(analysis, code),
                "precision": precision(analysis, code),
                "area": area_under_curve(analysis, code),
            }
            for code, name in enumerate(text.class_list(analysis))
        ],
        "group_results": results_by_group(analysis),
        "roc_image": roc_image(analysis) if has_two_classes else "",
        "roc_area": area_under_curve(analysis, 1),
        "reliability_image": reliability_image(analysis),
        "calibration_error": calibration_error(analysis),
        "log_loss": log_loss_of(analysis),
        "settings": settings_rows(analysis, source),
        "versions": f"kmargin {__version__} (Python {platform.python_version()}, NumPy {np.__version__}, "
        f"scikit-learn {sklearn.__version__})",
    }
    values |= point_values(analysis) if is_kernel else feature_values(analysis)
    return html.render("report.html.j2", **values)


def score_strip(analysis: Analysis) -> dict[str, Any] | None:
    """Positions in % of the score, its interval and guessing on a bar from 0 to 1; None if off the bar."""
    assessed, scoring = analysis.assessment, analysis.settings.scoring
    if scoring.startswith("neg_") or not 0 <= assessed.score <= 1:
        return None
    low, high = (min(max(end, 0.0), 1.0) for end in assessed.interval)
    places = {"low": low, "width": high - low, "guessing": assessed.guessing, "score": assessed.score}
    return {
        **{name: f"{100 * place:.1f}" for name, place in places.items()},
        "ends": ("0 %", "100 %") if scoring in PERCENT else ("0", "1"),
    }


def curve_image(analysis: Analysis) -> str:
    """Plot the score by k as SVG, with a line at the score of guessing unless that is far below the curve."""
    import matplotlib as mpl
    from matplotlib.ticker import PercentFormatter

    table, row, scoring = analysis.choice.table, analysis.choice.row, analysis.settings.scoring
    with mpl.rc_context(html.FONT):
        figure = html.new_figure(5.2, 3.1)
        mean, error = table.mean[row], table.error[row]
        display = CVScoreDisplay(table.ks, mean, error, analysis.choice.k, score_name(scoring))
        axes = display.plot(figure.subplots()).ax_
        low, high = axes.get_ylim()
        if low - (high - low) / 3 < analysis.assessment.guessing:
            draw_guessing(axes, analysis.assessment.guessing)
            axes.legend(frameon=False, loc="best")
        axes.set_xlabel(text.axis_text(analysis.unit_label, analysis.is_shared))
        if scoring in PERCENT:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        return html.svg(figure, "scores")


def draw_guessing(axes: Any, score: float) -> None:
    """Draw a line at the score of guessing; extend the axis so that the label of the chosen k fits below."""
    axes.axhline(score, label="guessing", **REFERENCE)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, (score - LABEL_SHARE * high) / (1 - LABEL_SHARE)), high)


def neighbour_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Table rows with the scores of the next smaller k, the chosen k and the next larger k."""
    scoring = analysis.settings.scoring
    own = {"k": analysis.choice.k, "score": score_text(scoring, analysis.choice.score), "swaps": ""}
    rows: list[dict[str, Any]] = [own]
    for near in analysis.neighbours:
        change = near.change
        kind = "good" if change.value > change.error else "bad" if change.value < -change.error else ""
        rows.append(
            {
                "k": near.k,
                "score": score_text(scoring, near.score),
                "change": change_text(scoring, change.value),
                "error": error_text(scoring, change.error),
                "kind": kind,
                "swaps": swap_text(near),
            }
        )
    return sorted(rows, key=lambda row: row["k"])


def swap_text(near: Neighbour, most: int = 4) -> str:
    """Name up to `most` features that enter (+) and that leave (−) at a neighbouring k; count the others."""
    parts = []
    for sign, names in (("+", near.enters), ("−", near.leaves)):
        more = f" and {len(names) - most} more" if len(names) > most else ""
        if names:
            parts.append(f"{sign}\u00a0{', '.join(map(shorten, names[:most]))}{more}")
    return "; ".join(parts)


def feature_values(analysis: Analysis) -> dict[str, Any]:
    """Template values for the section on features: rows of its tables, and the model as a formula."""
    frame = feature_frame(analysis)
    is_shown = frame["chosen"] | frame["always_in"]
    others = frame[~is_shown & (frame["frequency"] > 0)]
    others = others.sort_values("frequency", ascending=False, kind="stable")
    weights = weights_by_class(analysis)
    shown = weights.index  # indices of the features that the model uses or must keep
    largest = max(float(weights.abs().to_numpy().max(initial=0.0)), 1e-300)
    costs = drop_costs(analysis, shown)
    cost_of, rows = {row["name"]: row for row in costs}, []
    for row, place in zip(frame[is_shown].head(MAX_ROWS).to_dict("records"), shown, strict=False):
        of_classes = weights.loc[place].to_numpy()
        rows.append(
            {
                "name": row["feature"],
                "marks": text.marks(analysis, place),
                "group": row["group"],
                "weights": of_classes,
                "shares": of_classes / largest,
                "weight": row.get("weight", 0.0),
                "per_unit": row.get("weight_per_unit", 0.0),
                "side": "positive" if row.get("weight", 0.0) > 0 else "negative",
                "favours": row["favours"],
                "drop_cost": cost_of.pop(row["group"], None),  # a group's cost is shown at its first feature
                "folds": text.frequency_text(analysis, row["frequency"]),
                "halves": text.halves_text(analysis, place),
            }
        )
    has_formula = len(weights.columns) == 2 and 0 < len(shown) <= MAX_TERMS
    return {
        "feature_rows": rows,
        "n_shown_features": len(shown),
        "both_signs": any(row["weight"] < 0 for row in rows),
        "drop_costs": costs,
        "almost_chosen": list(zip(others["feature"], others["frequency"], strict=True)),
        "formula": formula(analysis, frame) if has_formula else [],
    }


def drop_costs(analysis: Analysis, features: Sequence[int]) -> list[dict[str, Any]]:
    """Table rows: how far the objective rises without each feature (or group), and its best replacements."""
    known = [
        (label, analysis.worths[label])
        for label in analysis.dataset.counted.labels_of(features)
        if label in analysis.worths
    ]
    largest = max((worth.cost for _, worth in known), default=0.0) or 1.0
    labels, rows = analysis.dataset.counted.labels, []
    for label, worth in known:
        replacements = ", ".join(
            f"{shorten(str(labels[int(other.columns[0])]))} ({text.relative_change_text(other.cost)})"
            for other in worth.stand_ins[:MAX_REPLACEMENTS]
            if other.cost < worth.cost
        )
        shown = text.relative_change_text(worth.cost)
        share = worth.cost / largest
        rows.append({"name": label, "shown": shown, "share": share, "replacements": replacements or "none"})
    return rows


def formula(analysis: Analysis, frame: pd.DataFrame) -> list[str]:
    """The terms of the decision function of a model for two classes, for features in the table's units."""
    terms = [text.signed(intercepts_per_unit(analysis.model)[0], "+.5g")]
    used = frame[frame["chosen"]]
    for name, weight in zip(used["feature"], used["weight_per_unit"], strict=True):
        terms.append(f"{text.signed(weight, '+.5g')} × {name}")
    return terms


def feature_boxes(analysis: Analysis) -> list[dict[str, Any]]:
    """Box plots of the main features by class; `at` has the BOX_QUANTILES in % of the plot's width."""
    names, y = text.class_list(analysis), analysis.dataset.y
    used = [int(j) for j in order_features(analysis) if analysis.model.machine.coef_[:, j].any()]
    if len(names) > MAX_BOX_CLASSES:
        return []
    colours = ("negative", "positive") if len(names) == 2 else ("soft",) * len(names)
    boxes = []
    for feature in used[:MAX_BOXES]:
        values = analysis.dataset.X[:, feature]
        of_class = [values[(y == name) & ~np.isnan(values)] for name in analysis.model.classes_]
        quantiles = [np.quantile(own, BOX_QUANTILES) if len(own) else None for own in of_class]
        known = np.concatenate([q for q in quantiles if q is not None])
        low, high = float(known.min()), float(known.max())
        lines = []
        for name, colour, q in zip(names, colours, quantiles, strict=True):
            line: dict[str, Any] = {"name": name, "colour": colour, "at": None}
            if q is not None:
                at = 100 * (q - low) / (high - low) if high > low else np.full(5, 50.0)
                line |= {"at": at, "low": q[1], "median": q[2], "high": q[3]}
            lines.append(line)
        boxes.append(
            {"name": analysis.dataset.counted.names[feature], "lines": lines, "low": low, "high": high}
        )
    return boxes


def point_values(analysis: Analysis) -> dict[str, Any]:
    """Template values for the section on a kernel model: a table of the training points that it keeps."""
    frame = point_frame(analysis)
    columns = [name for name in ("row", "id", "class") if name in frame.columns[:3]]
    weights = frame[[f"weight: {name}" for name in analysis.model.machine_names]].to_numpy()
    largest = max(float(np.abs(weights).max(initial=0.0)), 1e-300)
    rows = [
        {"values": own, "weights": of_point, "shares": of_point / largest}
        for own, of_point in zip(frame[columns].itertuples(index=False), weights, strict=True)
    ]
    return {"points": rows, "point_columns": columns}


def worst_rows(wrong: pd.DataFrame) -> pd.DataFrame:
    """The first N_WORST of the misclassified rows `wrong`, with the columns that the page shows."""
    columns = ("row", "id", "actual", "predicted", "probability of its class")
    return wrong[[name for name in columns if name in wrong.columns]].head(N_WORST)


def roc_image(analysis: Analysis) -> str:
    """Plot the ROC curve of a model for two classes, averaged over the folds, as SVG."""
    import matplotlib as mpl

    negative, positive = (plain(name, 20) for name in text.class_list(analysis))
    with mpl.rc_context(html.FONT):
        figure = html.new_figure(3.6, 3.4)
        axes = proportion_axes(figure)
        axes.plot(*roc_points(analysis), color=CURVE, lw=1.6)
        axes.set(xlabel=f"{negative} predicted as {positive}", ylabel=f"{positive} predicted correctly")
        return html.svg(figure, "roc")


def reliability_image(analysis: Analysis) -> str:
    """Plot observed frequencies of a class by predicted probabilities, with confidence intervals, as SVG."""
    import matplotlib as mpl

    bins, names = reliability(analysis), text.class_list(analysis)
    observed = np.array([b.observed.value for b in bins])
    ends = np.array([b.observed.interval for b in bins]).T
    errors = np.maximum(np.abs(ends - observed), 0.0)
    about = f"of {plain(names[1], 20)}" if len(names) == 2 else "of the most likely class"
    with mpl.rc_context(html.FONT):
        figure = html.new_figure(3.6, 3.4)
        axes = proportion_axes(figure)
        axes.errorbar(
            [b.predicted for b in bins], observed, yerr=errors, fmt="o", ms=4, lw=1.2, color=CURVE, capsize=2
        )
        axes.set(xlabel=f"probability {about}", ylabel="observed frequency")
        return html.svg(figure, "reliability")


def proportion_axes(figure: Any) -> Any:
    """Add axes from 0 to 100 % in both directions, with the diagonal as a reference line."""
    from matplotlib.ticker import PercentFormatter

    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], **REFERENCE)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks([0, 0.25, 0.5, 0.75, 1])
        axis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def settings_rows(analysis: Analysis, source: str) -> list[tuple[str, str]]:
    """Names and values of the settings; requirements on single features are listed if there are any."""
    settings, dataset, choice = analysis.settings, analysis.dataset, analysis.choice
    n_encoded, counted = len(dataset.encoding.categories), dataset.counted
    at_most = "" if settings.repeats is None else f" (at most {settings.repeats})"
    n_features = len(dataset.encoding.feature_names)
    features = range(len(counted.names))
    signs = {j: counted.sign_of(j).replace("-", "−") for j in features}
    asked = [
        ("always in", ", ".join(counted.labels_of(j for j in features if counted.always_in[j]))),
        ("never in", ", ".join(counted.labels_of(counted.request.avoid or ()))),
        ("signs", ", ".join(f"{counted.names[j]} {sign}" for j, sign in signs.items() if sign)),
    ]
    Cs = ", ".join(f"{C:g}" for C in choice.table.Cs)
    return [
        ("table", f"{source}, {text.rows_text(analysis)}, {n_features} features"),
        ("target", dataset.target),
        ("model", f"kernel {settings.kernel}" if settings.kernel else "linear"),
        ("k counts", analysis.unit_label + ("" if analysis.is_shared else ", for each binary classifier")),
        *(row for row in asked if row[1]),
        ("k and C", f"{analysis.choice.k} and {analysis.choice.C:g}; C from {Cs}"),
        ("folds", f"{len(choice.first.fits)}, shuffled (seed {settings.seed}) and stratified by class"),
        ("rows kept together", together_text(dataset)),
        ("repeats of the folds", f"{choice.n_repeats}{at_most}"),
        ("score", settings.scoring),
        ("scaling", "standard deviation 1" if settings.standardize else "none"),
        ("missing values", "replaced by medians" if dataset.roles.impute else "none"),
        ("text columns", f"{n_encoded}, one feature per value" if n_encoded else "none"),
        ("row weights", "from a column" if dataset.weights is not None else "none"),
        ("class weights", "balanced" if settings.balanced else "none"),
        ("kmargin", __version__),
    ]


def together_text(dataset: Dataset) -> str:
    """Say which rows are kept together: in each fold, all are training rows or all are test rows."""
    if dataset.groups is None:
        return "none"
    if dataset.roles.grouped_by is None:
        return "rows with the same features"
    return f"by column {dataset.roles.grouped_by}: {count(len(np.unique(dataset.groups)), 'group')}"


# Matches text that a spreadsheet would run as a formula. A sign followed only by letters, digits, spaces,
# points, commas and signs is harmless.
_FORMULA = re.compile(r"[=@\t\r\n＝＠]|[+\-＋－](?![\w .,+-]*\Z)")


def csv_text(frame: pd.DataFrame) -> str:
    """Convert a frame to CSV, with an apostrophe before text that a spreadsheet would run as a formula."""
    safe = {
        at: frame.iloc[:, at].map(protect)
        for at, dtype in enumerate(frame.dtypes)
        if not pd.api.types.is_numeric_dtype(dtype)
    }
    columns = [safe.get(at, frame.iloc[:, at]) for at in range(frame.shape[1])]
    guarded = pd.concat(columns, axis=1) if columns else frame
    guarded.columns = [protect(name) for name in frame.columns]
    text = str(guarded.to_csv(index=False, lineterminator="\n"))
    if "\r" in text:  # quote all text: unquoted, a carriage return would end the line
        text = str(guarded.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC))
    return text


def protect(value: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would run as a formula; leave other values alone."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


FILES = (model_file.NAME, "features.csv", "points.csv", "predictions.csv", "report.html")


def check_folder(folder: Path, force: bool, inputs: Iterable[Path | None] = ()) -> None:
    """Raise InputError if results cannot be written to a folder, before the analysis starts.

    With `force` the folder may hold other files. No result replaces one of `inputs`, which are read.
    """
    for name in FILES:
        _check_not_read(folder / name, inputs)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file. Name a folder with --out.")
    parent = folder.resolve().parent
    if not parent.is_dir():
        raise InputError(f"There is no folder {folder.parent} to write {folder.name} into. Create it first.")
    if not os.access(folder if folder.exists() else parent, os.W_OK):
        raise InputError(f"The folder {folder} cannot be written. Choose another with --out.")
    there = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    if there and not {model_file.NAME, PART} & set(there) and not force:
        raise InputError(
            f"The folder {folder} holds {listing(there, 3)}, which kmargin did not write. "
            "Choose another with --out, or add --force to write into it."
        )


def check_file(path: Path | None, endings: tuple[str, ...], inputs: Iterable[Path | None] = ()) -> None:
    """Raise InputError if the file `path` cannot be written; if it is None, there is no file to write.

    It needs one of the `endings` and an existing folder, and may not be one of `inputs`, which are read.
    """
    if path is None:
        return
    if path.suffix not in endings:
        raise InputError(f"{path} does not end in {' or '.join(endings)}. Use that file extension.")
    if path.is_dir() or not path.resolve().parent.is_dir():
        problem = "is a folder" if path.is_dir() else "lies in a folder that is not there"
        raise InputError(f"{path} {problem}. Choose another name.")
    _check_not_read(path, inputs)


def _check_not_read(path: Path, inputs: Iterable[Path | None]) -> None:
    """Raise InputError if the file to write, `path`, is one of `inputs`, which the command reads."""
    if any(given and given.exists() and path.exists() and path.samefile(given) for given in inputs):
        raise InputError(f"{path} is a file that this command reads. Give another name with --out.")


def write_results(analysis: Analysis, folder: Path, source: str) -> list[Path]:
    """Write the model, CSV files and the report to a folder; return their paths.

    If writing fails, the folder stays as it was. Files of earlier results are replaced, others are kept.
    """
    kind, frame = "features.csv", feature_frame
    if analysis.model.is_kernel:
        kind, frame = "points.csv", point_frame
    page = render(analysis, source, folder.resolve().name)
    contents = {
        model_file.NAME: model_file.to_bytes(analysis.model),
        kind: csv_text(frame(analysis)).encode(),
        "predictions.csv": csv_text(prediction_frame(analysis)).encode(),
        "report.html": page.encode(errors="backslashreplace"),  # file names may not be valid Unicode
    }
    replace_folder(folder, contents, FILES)
    return [folder / name for name in contents]


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as a CSV file, completely or not at all."""
    replace_file(path, csv_text(frame).encode())


def plot_steps(steps: list[Step], path: Path, counted: str = "features", scoring: str = "accuracy") -> None:
    """Plot the score by k (cross-validated, or else the accuracy on training rows) to the file `path`."""
    mean = np.array([step.training_accuracy if step.score is None else step.score for step in steps])
    error = np.array([step.error or 0.0 for step in steps])
    figure = html.new_figure(6.4, 4.0)
    ks = [step.k for step in steps]
    scoring = "accuracy" if steps[0].score is None else scoring
    name = scoring if scoring in PERCENT else score_name(scoring)
    display = CVScoreDisplay(ks, mean, error, score_name=name, counted=counted).plot(figure.subplots())
    if steps[0].score is None:
        display.ax_.set_ylabel("accuracy (training rows)")
    image = io.BytesIO()
    figure.savefig(image, format=path.suffix[1:])
    replace_file(path, image.getvalue())
