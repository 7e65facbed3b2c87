"""An analysis in words, the same in the terminal and on the page."""

import numpy as np

from kmargin.errors import count, listing
from kmargin.honest import MEASURE_NAMES
from kmargin.tables.analyse import Analysis, Neighbour
from kmargin.tables.class_quality import results_by_group
from kmargin.tables.results import order_features
from kmargin.tables.score_words import (
    amount_text,
    change_text,
    error_text,
    interval_text,
    percent,
    score_name,
    score_text,
)

MOST_NAMES = 12  # in a sentence
MOST_GROUPS = 40  # of rows, in a table


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
    return f"{text} in total, at most {analysis.k} for each {each},"


def used_units(analysis: Analysis) -> list[str]:
    """What k counts and the model uses, by name, the heaviest first."""
    if analysis.model.is_kernel:
        return []
    order, is_used = order_features(analysis), (analysis.model.machine.coef_ != 0).any(axis=0)
    return analysis.counted.labels_of(order[is_used[order]])


def axis_text(things: str, is_shared: bool = True) -> str:
    """What k counts, for an axis."""
    return f"k, the number of {things}{'' if is_shared else ' of each binary classifier'}"


def counting_text(analysis: Analysis) -> str:
    """What k counts, where that is not features; nothing else."""
    if analysis.things == "variables":
        return (
            "k counts variables: all features made from the values of one column enter or leave together. "
            "`--each-value` counts them separately."
        )
    if analysis.things == "groups":
        return "k counts groups: the features of a group enter or leave together."
    return ""


def signs_text(analysis: Analysis) -> str:
    """What a required sign means, where a feature of the model has one."""
    counted, used = analysis.counted, analysis.model.machine.support_
    is_shown = np.union1d(used, np.flatnonzero(counted.always_in)) if not analysis.model.is_kernel else ()
    if not any(counted.sign_of(j) for j in is_shown):
        return ""
    names = class_list(analysis)
    if len(names) == 2:
        return f"+ or − beside a name: its weight may only favour {names[1]} (+), or only {names[0]} (−)."
    if analysis.model.machine.multi_class == "ovr":
        return (
            "+ or − beside a name: in each binary classifier its weight may only favour the class (+), or "
            "only the others (−)."
        )
    return (
        "+ or − beside a name: in each binary classifier its weight may only favour the later of the two "
        f"classes ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''}), or only the earlier."
    )


def marks(analysis: Analysis, feature: int) -> str:
    """What was asked for of a feature, in a word or two."""
    always = ["always in"] if analysis.counted.always_in[feature] else []
    sign = analysis.counted.sign_of(feature).replace("-", "−")
    return ", ".join([*always, *([sign] if sign else [])])


def headline(analysis: Analysis) -> str:
    """The answer with its uncertainty, in a sentence."""
    assessed, scoring = analysis.assessment, analysis.settings.scoring
    score = f"{score_text(scoring, assessed.score)} {score_name(scoring)} on held-out rows"
    interval = f"95 % interval {interval_text(scoring, assessed.interval)}"
    guessing = f"guessing{most_common(analysis)} reaches {score_text(scoring, assessed.guessing)}"
    chosen = "k and C were" if analysis.was_chosen else "C was"
    how = "" if is_honest(analysis) else f"; {chosen} chosen on the same rows, so this is optimistic"
    if assessed.is_better_than_guessing:
        return f"{subject(analysis)} {task(analysis)} with {score} ({interval}; {guessing}{how})."
    were = "was" if n_used(analysis) == 1 else "were"
    return (
        f"Not clearly better than guessing{doubt_text(analysis)}: {score} ({interval}; {guessing}{how}). "
        f"{subject(analysis)} {were} chosen."
    )


def doubt_text(analysis: Analysis) -> str:
    """By which measure a model is not better than guessing, where that is not its score."""
    assessed = analysis.assessment
    if assessed.judged_by == "permutations":
        return f" by the permutation test (p = {assessed.p_value:.3g})"
    measure, (value, interval), guessing = assessed.evidence
    if measure == analysis.settings.scoring:
        return ""
    return (
        f" by {MEASURE_NAMES[measure]} ({score_text(measure, value)}, 95 % interval "
        f"{interval_text(measure, interval)}; guessing reaches {score_text(measure, guessing)})"
    )


def evidence_text(analysis: Analysis) -> str:
    """By which measure a model is better than guessing, where its score does not show it; nothing else."""
    assessed = analysis.assessment
    measure, (value, interval), guessing = assessed.evidence
    if assessed.guessing < assessed.interval.low or not assessed.evidence.is_better:
        return ""
    return (
        "The classes are of unequal size, so the model is compared with guessing by "
        f"{MEASURE_NAMES[measure]}: {score_text(measure, value)} (95 % interval "
        f"{interval_text(measure, interval)}), where guessing reaches {score_text(measure, guessing)}."
    )


def all_features_text(analysis: Analysis) -> str:
    """What all features reach, and so what it costs to use fewer; nothing where that is not known."""
    assessed, scoring = analysis.assessment, analysis.settings.scoring
    cost = assessed.cost_of_sparsity
    if cost is None:
        return ""
    n_all = analysis.counted.units.n_units
    reached = score_text(scoring, assessed.score + cost.value)
    amount = amount_text(scoring, cost.value)
    what = "costs" if cost.value > 0 else "gains"
    if amount.startswith("0 ") or not amount.strip("0."):
        what, amount = "changes", "nothing"
    return (
        f"All {n_all:,} {analysis.things} reach {reached} on the same folds, with the ridge penalty alone; "
        f"using fewer {what} {amount} (standard error {error_text(scoring, cost.error)})."
    )


def groups_text(analysis: Analysis) -> str:
    """The accuracy in each group of rows, or of many groups how it varies; nothing without groups."""
    results, by = results_by_group(analysis), analysis.dataset.grouped_by
    if not results:
        return ""
    if len(results) <= MOST_NAMES:
        each = ", ".join(f"{r.name} {percent(r.correct.value)} of {count(r.n_rows, 'row')}" for r in results)
        return f"Accuracy by {by}: {each}."
    low, middle, high = np.quantile([r.correct.value for r in results], [0.25, 0.5, 0.75])
    return (
        f"Accuracy within the {len(results):,} groups by {by}: median {percent(middle)}, half of them "
        f"between {percent(low)} and {percent(high)}."
    )


def is_honest(analysis: Analysis) -> bool:
    """Whether nothing was chosen on the rows that the score is of."""
    return analysis.assessment.is_nested or analysis.highest is None


def task(analysis: Analysis) -> str:
    """What the features do."""
    names = class_list(analysis)
    tell = "distinguishes" if n_used(analysis) == 1 else "distinguish"
    if len(names) == 2:
        return f"{tell} {names[0]} from {names[1]}"
    if len(names) <= 4:
        return f"{tell} {', '.join(names[:-1])} and {names[-1]}"
    return f"{tell} {len(names)} classes"


def n_used(analysis: Analysis) -> int:
    """How many of what k counts the model uses."""
    return len(analysis.model.machine.support_ if analysis.model.is_kernel else used_units(analysis))


def neighbour_text(analysis: Analysis, neighbour: Neighbour) -> str:
    """What one more or one fewer would cost."""
    thing = "training point" if analysis.model.is_kernel else analysis.things.removesuffix("s")
    more = neighbour.k > analysis.k
    each = "" if analysis.is_shared else " for each binary classifier"
    distance = abs(neighbour.k - analysis.k)
    amount = f"One {thing}" if distance == 1 else count(distance, thing)
    which = f"{amount} {'more' if more else 'fewer'}{each} ({neighbour.k})"
    names = neighbour.enters if more else neighbour.leaves
    swaps = neighbour.leaves if more else neighbour.enters
    if names and len(names) <= 3 and not swaps:
        which += f", {'with' if more else 'without'} {listing(names)}"
    scoring, change = analysis.settings.scoring, neighbour.change
    error = f"(standard error {error_text(scoring, change.error)})"
    comma, s = "," if ", with" in which else "", "s" if distance == 1 else ""
    if change_text(scoring, change.value) == "±0":
        return f"{which}{comma} change{s} nothing {error}."
    verb = "gain" if change.value > 0 else "cost"
    return f"{which}{comma} {verb}{s} {amount_text(scoring, change.value)} {error}."


def most_common(analysis: Analysis) -> str:
    """What a guess of the accuracy is; other scores have guesses of their own."""
    if not analysis.assessment.is_rate:
        return ""
    return " the most common class"


def class_counts(analysis: Analysis) -> str:
    """How many rows of each class."""
    names, counts = np.unique(analysis.dataset.y, return_counts=True)
    if len(names) > 4:
        return f"{len(names)} classes of {counts.min():,} to {counts.max():,}"
    return ", ".join(f"{n:,} {name}" for n, name in zip(counts, names, strict=True))


def frequency_text(analysis: Analysis, frequency: float) -> str:
    n_folds = len(analysis.supports)
    return f"{round(frequency * n_folds)} of {n_folds}"


def rows_text(analysis: Analysis) -> str:
    return count(len(analysis.dataset.y), "row")


def halves_text(analysis: Analysis, feature: int) -> str:
    """How often a feature came back on random halves of the rows."""
    return "" if analysis.halves is None else f"{100 * analysis.halves[feature]:.0f} %"


def halves_sentence(analysis: Analysis) -> str:
    """What the share of halves is, and from which share on at most one feature is expected by chance."""
    if analysis.stability is None:
        return ""
    selection, things = analysis.stability.selection, analysis.counted.things
    by_chance = (
        f"Of the {things} chosen on {100 * selection.threshold_:.3g} % or more, at most one is expected to "
        "have been selected by chance"
        if selection.bounds_.unimodal <= 1
        else f"With {selection.q_:.3g} of {selection.n_candidates_:,} {things} chosen each time, several may "
        "reach even 100 % by chance"
    )
    return (
        f"`halves`: the proportion of {analysis.stability.n_halves} random halves of the rows on which the "
        f"feature is chosen with the same k and C. {by_chance} (see `kmargin stability`)."
    )
