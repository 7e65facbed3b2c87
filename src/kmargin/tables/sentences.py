"""An analysis in words, the same in the terminal and on the page."""

import numpy as np

from kmargin.errors import count, listing
from kmargin.tables.analyse import Analysis, Neighbour
from kmargin.tables.results import order_features

PERCENT = ("accuracy", "balanced_accuracy")
MOST_NAMES = 12  # in the first line


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
    """What does the telling apart: how many, and where several classes or groups need them, which."""
    model, things, names = analysis.model, analysis.things, used_units(analysis)
    n_used = len(model.machine.support_) if model.is_kernel else len(names)
    n_all = len(analysis.dataset.y) if model.is_kernel else len(set(analysis.counted.labels))
    if n_used == 0:
        return f"None of the {n_all:,} {things}"
    several = len(model.machine_names) > 1
    text = f"{n_used:,} of {n_all:,} {things}"
    if not model.is_kernel and (several or analysis.counted.is_grouped):
        more = f" and {n_used - MOST_NAMES} more" if n_used > MOST_NAMES else ""
        text += f" ({', '.join(names[:MOST_NAMES])}{more})"
    if analysis.is_shared:
        return text
    each = "class" if model.machine.multi_class == "ovr" else "pair of classes"
    return f"{text} in all, at most {analysis.k} for each {each},"


def used_units(analysis: Analysis) -> list[str]:
    """What k counts and the model uses, by name, the heaviest first."""
    if analysis.model.is_kernel:
        return []
    order, is_used = order_features(analysis), (analysis.model.machine.coef_ != 0).any(axis=0)
    return analysis.counted.labels_of(order[is_used[order]])


def axis_text(things: str, is_shared: bool = True) -> str:
    """What k counts, for an axis."""
    return f"k, the number of {things}{'' if is_shared else ' of each machine'}"


def counting_text(analysis: Analysis) -> str:
    """What k counts, where that is not features; nothing else."""
    if analysis.things == "variables":
        return (
            "k counts variables: all features made of the values of one column are in or out together. "
            "`--each-value` counts them one by one."
        )
    if analysis.things == "groups":
        return "k counts groups: their features are in or out together."
    return ""


def signs_text(analysis: Analysis) -> str:
    """What a required sign means, where a feature of the model has one."""
    counted, used = analysis.counted, analysis.model.machine.support_
    is_shown = np.union1d(used, np.flatnonzero(counted.always_in)) if not analysis.model.is_kernel else ()
    if not any(counted.sign_of(j) for j in is_shown):
        return ""
    names = class_list(analysis)
    if len(names) == 2:
        return f"+ and − beside a name: its weight may only speak for {names[1]}, or only for {names[0]}."
    if analysis.model.machine.multi_class == "ovr":
        return (
            "+ and − beside a name: in each machine its weight may only speak for the class, or against it."
        )
    return (
        "+ and − beside a name: in each machine its weight may only speak for the later of the two classes "
        f"({', '.join(names[:3])}{', ...' if len(names) > 3 else ''}), or only for the earlier."
    )


def marks(analysis: Analysis, feature: int) -> str:
    """What was asked for of a feature, in a word or two."""
    always = ["always in"] if analysis.counted.always_in[feature] else []
    sign = analysis.counted.sign_of(feature).replace("-", "−")
    return ", ".join([*always, *([sign] if sign else [])])


def headline(analysis: Analysis) -> str:
    names = class_list(analysis)
    if len(names) == 2:
        task = f"tell {names[0]} from {names[1]}"
    elif len(names) <= 4:
        task = f"tell {', '.join(names[:-1])} and {names[-1]} apart"
    else:
        task = f"tell {len(names)} classes apart"
    n_used = len(analysis.model.machine.support_ if analysis.model.is_kernel else used_units(analysis))
    if n_used == 1:
        task = task.replace("tell", "tells", 1)
    return (
        f"{subject(analysis)} {task} with {percent(analysis.accuracy)} accuracy "
        f"(cross-validated, ± {100 * analysis.accuracy_error:.1f})."
    )


def neighbour_text(analysis: Analysis, neighbour: Neighbour) -> str:
    """What one more or one fewer would cost."""
    thing = "point" if analysis.model.is_kernel else analysis.things.removesuffix("s")
    more = neighbour.k > analysis.k
    each = "" if analysis.is_shared else " for each machine"
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
