"""An analysis in words, the same in the terminal and on the page."""

import numpy as np

from kmargin.errors import count, listing
from kmargin.tables.analyse import Analysis, Neighbour

PERCENT = ("accuracy", "balanced_accuracy")


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def score_text(scoring: str, score: float) -> str:
    return percent(score) if scoring in PERCENT else f"{score:.3f}"


def change_text(scoring: str, change: float) -> str:
    """A difference of scores: in percentage points where the score is a share."""
    points = 100 * change if scoring in PERCENT else change
    digits = 1 if scoring in PERCENT else 3
    points = round(points, digits) + 0.0  # no minus zero
    return f"{points:+.{digits}f}".replace("-", "−") if points else "±0"


def class_list(analysis: Analysis) -> list[str]:
    return [str(name) for name in analysis.model.machine.classes_]


def subject(analysis: Analysis) -> str:
    """What does the telling apart."""
    model, n_rows = analysis.model, len(analysis.dataset.y)
    several = len(model.machine_names) > 1
    n_used = len(model.machine.support_)
    n_all = n_rows if model.is_kernel else len(analysis.dataset.encoding.feature_names)
    thing = "training points" if model.is_kernel else "features"
    if n_used == 0:
        return f"None of the {n_all:,} {thing}"
    if not several:
        return f"{n_used:,} of {n_all:,} {thing}"
    each = "class" if model.machine.multi_class == "ovr" else "pair of classes"
    return f"{n_used:,} of {n_all:,} {thing}, at most {analysis.k} for each {each},"


def headline(analysis: Analysis) -> str:
    names = class_list(analysis)
    if len(names) == 2:
        task = f"tell {names[0]} from {names[1]}"
    elif len(names) <= 4:
        task = f"tell {', '.join(names[:-1])} and {names[-1]} apart"
    else:
        task = f"tell {len(names)} classes apart"
    if len(analysis.model.machine.support_) == 1:
        task = task.replace("tell", "tells", 1)
    return (
        f"{subject(analysis)} {task} with {percent(analysis.accuracy)} accuracy "
        f"(cross-validated, ± {100 * analysis.accuracy_error:.1f})."
    )


def neighbour_text(analysis: Analysis, neighbour: Neighbour) -> str:
    """What one more or one fewer would cost."""
    thing = "point" if analysis.model.is_kernel else "feature"
    more = neighbour.k > analysis.k
    each = "" if len(analysis.model.machine_names) == 1 else " for each machine"
    which = f"One {thing} {'more' if more else 'fewer'}{each} ({neighbour.k})"
    names = neighbour.enters if more else neighbour.leaves
    swaps = neighbour.leaves if more else neighbour.enters
    if names and len(names) <= 3 and not swaps:
        which += f", {'with' if more else 'without'} {listing(names)}"
    scoring = analysis.settings.scoring
    amount = change_text(scoring, abs(neighbour.change)).lstrip("+")
    unit = " points" if scoring in PERCENT else ""
    if amount == "±0":
        return f"{which}, changes nothing." if ", with" in which else f"{which} changes nothing."
    verb = "gains" if neighbour.change > 0 else "costs"
    return f"{which}{',' if ', with' in which else ''} {verb} {amount}{unit}."


def choice_text(analysis: Analysis) -> str:
    """Why this k."""
    if not analysis.was_chosen:
        return f"k = {analysis.k}, as asked for; C = {analysis.C:g}."
    text = f"k = {analysis.k}, C = {analysis.C:g}: "
    highest = analysis.highest
    if analysis.settings.select == "best" or highest is None or highest.k == analysis.k:
        return text + "the highest score of all that were tried."
    score = score_text(analysis.settings.scoring, highest.score)
    return text + (
        f"the smallest k within one standard error of the highest score ({score} at k = {highest.k}); "
        "`--select best` takes the highest."
    )


def baseline(analysis: Analysis) -> tuple[str, float]:
    """The most common class, and its share: by weight, as the accuracy is."""
    names, codes = np.unique(analysis.dataset.y, return_inverse=True)
    totals = np.bincount(codes, analysis.dataset.weights)
    return str(names[totals.argmax()]), float(totals.max() / totals.sum())


def frequency_text(analysis: Analysis, frequency: float) -> str:
    n_folds = len(analysis.folds.supports)
    return f"{round(frequency * n_folds)} of {n_folds}"


def rows_text(analysis: Analysis) -> str:
    return count(len(analysis.dataset.y), "row")
