"""The sentences of the report and of the command line, and numbers as text."""

from collections.abc import Sequence

import numpy as np

from kmargin.core.validation import count, listing
from kmargin.model_selection.nested import MEASURE_NAMES
from kmargin.model_selection.scores import Interval
from kmargin.report.frames import order_features, results_by_group
from kmargin.tables.analysis import Analysis, Neighbour, Stability

PERCENT = ("accuracy", "balanced_accuracy")  # scores that are shown in per cent
SCORE_NAMES = {
    "roc_auc": "area under the ROC curve",
    "balanced_accuracy": "balanced accuracy",
    "neg_log_loss": "negative log loss",
    "neg_brier_score": "negative Brier score",
}
MAX_NAMES = 12  # maximum number of features or groups that a sentence lists by name
MAX_LISTED = 8  # grids of k or C with more values are summarised: their number, the first and the last value


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def signed(value: float, form: str) -> str:
    """Format a number by the format specification `form`, with a minus sign instead of a hyphen."""
    return format(value, form).replace("-", "−", 1)


def number(value: float) -> str:
    """A number as text with four significant digits; from 1e4 to 1e9 as an integer such as 12,345."""
    return signed(value, ",.0f" if 1e4 <= abs(value) < 1e9 else ".4g")


def relative_change_text(share: float) -> str:
    """A relative change as text: "+5.0 %" for 0.05, but from a doubling on as a factor: "× 2.5" for 1.5."""
    if share >= 1:
        return f"×\u00a0{1 + share:.1f}"
    return signed(round(100 * share, 1) + 0.0, "+.1f") + "\u00a0%"


def score_text(scoring: str, score: float) -> str:
    return percent(score) if scoring in PERCENT else f"{score:.3f}"


def score_name(scoring: str) -> str:
    return SCORE_NAMES.get(scoring, scoring.replace("_", " "))


def interval_text(scoring: str, interval: Interval) -> str:
    """The ends of the interval of a score as text, limited to the values that the score can take."""
    if scoring in PERCENT:
        return f"{100 * max(interval.low, 0):.1f} to {100 * min(interval.high, 1):.1f} %"
    most = 0.0 if scoring.startswith("neg_") else np.inf
    return f"{interval.low:.3f} to {min(interval.high, most):.3f}"


def change_text(scoring: str, change: float) -> str:
    """A difference of scores as text: in percentage points if the score is shown in per cent."""
    digits = 1 if scoring in PERCENT else 3
    points = round(100 * change if scoring in PERCENT else change, digits) + 0.0  # + 0.0 turns -0.0 into 0.0
    return signed(points, f"+.{digits}f") if points else "±0"


def amount_text(scoring: str, change: float) -> str:
    """The absolute value of a difference of scores as text, with the unit "points" if it is in per cent."""
    amount = change_text(scoring, abs(change)).lstrip("+±")
    return amount if scoring not in PERCENT else f"{amount} point" if amount == "1.0" else f"{amount} points"


def error_text(scoring: str, error: float) -> str:
    """The standard error of a score difference as text: in percentage points if scores are in per cent."""
    return f"{100 * error:.1f}" if scoring in PERCENT else f"{error:.3f}"


def choice_text(analysis: Analysis) -> str:
    """Say why this k was chosen, and whether more repeats of cross-validation might choose another."""
    settings, choice = analysis.settings, analysis.choice
    if settings.k is not None:
        return f"k = {analysis.choice.k}, as requested; C = {analysis.choice.C:g}."
    reason = "the highest score of all values tried"
    row, column = choice.table.choose("best")
    k, C = choice.table.ks[column], choice.table.Cs[row]
    if settings.select != "best" and k != choice.k:
        within = f"{settings.tolerance:g}" if settings.select == "tolerance" else "one standard error"
        score = score_text(settings.scoring, choice.table.mean[row, column])
        reason = (
            f"the smallest k within {within} of the highest score ({score} at k = {k}, C = {C:g}; "
            "`--select best` takes that)"
        )
    text = f"k = {analysis.choice.k}, C = {analysis.choice.C:g}: {reason}, over "
    n_folds = len(analysis.choice.first.fits)
    if choice.n_repeats == 1:
        return f"{text}{n_folds} folds."
    text += f"{choice.n_repeats} repeats of {n_folds}-fold cross-validation. "
    if choice.has_settled:
        return text + "The last repeats did not change the choice."
    return text + (
        "More repeats might choose another k, because several score nearly as well; `--repeats` allows more."
    )


def fold_choices_text(analysis: Analysis) -> str:
    """A sentence with the k chosen in each outer fold: how certain the choice is. Empty if there is none."""
    assessed = analysis.assessment
    if not assessed.is_nested or not analysis.choice.had_alternatives or analysis.settings.k is not None:
        return ""
    ks = sorted(chosen["k"] for chosen in assessed.chosen)
    n_folds = count(len(ks), "outer fold")
    if ks[0] == ks[-1]:
        return f"All {n_folds} also chose k = {ks[0]}."
    *others, last = (f"{k:,}" for k in ks)
    where = "without a fifth of the rows" if len(ks) == 5 else f"in each of {n_folds}"
    return f"When the choice was repeated {where}, k was {', '.join(others)} and {last}."


def honesty_text(analysis: Analysis) -> str:
    """Say whether the score is optimistic because k and C were chosen on the rows that are scored."""
    scoring, choice = analysis.settings.scoring, analysis.choice
    if not choice.had_alternatives:
        return "k and C were set in advance, so each fold is an independent test."
    chosen = "k and C were" if analysis.settings.k is None else "C was"
    own = score_text(scoring, choice.score)
    if analysis.assessment.is_nested:
        return (
            f"The {score_name(scoring)} above comes from nested cross-validation: in each of "
            f"{len(analysis.assessment.folds)} outer folds {chosen} chosen again from the other rows. On the "
            f"folds used for the choice it is {own}, which is optimistic on average."
        )
    return (
        f"{chosen} chosen on these same folds ({own}), so the {score_name(scoring)} above is optimistic. "
        "Leave out `--no-nested` for an unbiased one."
    )


def p_value_text(analysis: Analysis) -> str:
    """A sentence with the result of the permutation test; empty if no test was requested."""
    assessed = analysis.assessment
    if assessed.p_value is None:
        return ""
    n_times = assessed.n_permutations
    n_as_high = round(assessed.p_value * (n_times + 1)) - 1
    least = "" if n_as_high else f" That is the smallest p-value that {n_times:,} permutations can give."
    return (
        f"p = {assessed.p_value:.3g}: of {n_times:,} searches with permuted labels, {n_as_high or 'none'} "
        f"found a score as high as the search with the original labels.{least}"
    )


def class_list(analysis: Analysis) -> list[str]:
    return [str(name) for name in analysis.model.machine.classes_]


def subject(analysis: Analysis) -> str:
    """The subject of the headline: how many features, groups or points are used, and perhaps their names."""
    model, labels, names = analysis.model, analysis.unit_label, used_units(analysis)
    n_used = len(model.machine.support_) if model.is_kernel else len(names)
    n_all = len(analysis.dataset.y) if model.is_kernel else len(set(analysis.dataset.counted.labels))
    if n_used == 0:
        return f"None of the {n_all:,} {labels}"
    several = len(model.machine_names) > 1
    text = f"{n_used:,} of {n_all:,} {labels}"
    if not model.is_kernel and (several or analysis.dataset.counted.unit_label != "features"):
        more = f" and {n_used - MAX_NAMES} more" if n_used > MAX_NAMES else ""
        text += f" ({', '.join(names[:MAX_NAMES])}{more})"
    if analysis.is_shared:
        return text
    each = "class" if model.machine.multi_class == "ovr" else "pair of classes"
    return f"{text} in total, at most {analysis.choice.k} for each {each},"


def used_units(analysis: Analysis) -> list[str]:
    """The names of the features (or groups) in use, largest weight first; empty for a kernel model."""
    if analysis.model.is_kernel:
        return []
    order, is_used = order_features(analysis), (analysis.model.machine.coef_ != 0).any(axis=0)
    return analysis.dataset.counted.labels_of(order[is_used[order]])


def axis_text(labels: str, is_shared: bool = True) -> str:
    """The label of a plot's axis that shows k; `labels` is what k counts, such as "features"."""
    return f"k, the number of {labels}{'' if is_shared else ' of each binary classifier'}"


def counting_text(analysis: Analysis) -> str:
    """Say what k counts if it counts variables or groups; empty if it counts features or points."""
    if analysis.unit_label == "variables":
        return (
            "k counts variables: all features made from the values of one column enter or leave together. "
            "`--each-value` counts them separately."
        )
    if analysis.unit_label == "groups":
        return "k counts groups: the features of a group enter or leave together."
    return ""


def signs_text(analysis: Analysis) -> str:
    """Say what + and − beside feature names mean; empty if the page shows no feature with a required sign."""
    counted, used = analysis.dataset.counted, analysis.model.machine.support_
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
    """The user's requirements on a feature: "always in", and the sign that its weight must have."""
    always = ["always in"] if analysis.dataset.counted.always_in[feature] else []
    sign = analysis.dataset.counted.sign_of(feature).replace("-", "−")
    return ", ".join([*always, *([sign] if sign else [])])


def headline(analysis: Analysis) -> str:
    """The main sentence of the report: the model, its score with an interval, and the score of guessing."""
    assessed, scoring = analysis.assessment, analysis.settings.scoring
    score = f"{score_text(scoring, assessed.score)} {score_name(scoring)} on held-out rows"
    interval = f"95 % interval {interval_text(scoring, assessed.interval)}"
    guessing = f"guessing{most_common(analysis)} reaches {score_text(scoring, assessed.guessing)}"
    chosen = "k and C were" if analysis.settings.k is None else "C was"
    how = "" if is_unbiased(analysis) else f"; {chosen} chosen on the same rows, so this is optimistic"
    if assessed.is_better_than_guessing:
        return f"{subject(analysis)} {task(analysis)} with {score} ({interval}; {guessing}{how})."
    by = ""
    if assessed.judged_by == "permutations":
        by = f" by the permutation test (p = {assessed.p_value:.3g})"
    elif assessed.evidence.measure != scoring:
        by = f" by {evidence_numbers(analysis)}"
    were = "was" if n_used(analysis) == 1 else "were"
    return (
        f"Not clearly better than guessing{by}: {score} ({interval}; {guessing}{how}). "
        f"{subject(analysis)} {were} chosen."
    )


def evidence_numbers(analysis: Analysis) -> str:
    """Return the name of the score that compares the model with guessing, and the scores of both, as text."""
    measure, (value, interval), guessing = analysis.assessment.evidence
    return (
        f"{MEASURE_NAMES[measure]} ({score_text(measure, value)}, 95 % interval "
        f"{interval_text(measure, interval)}; guessing reaches {score_text(measure, guessing)})"
    )


def evidence_text(analysis: Analysis) -> str:
    """Say by which measure the model beats guessing, if its score does not show that; empty otherwise."""
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
    """Say what score all features reach, and what using fewer costs; empty if that is not known."""
    assessed, scoring = analysis.assessment, analysis.settings.scoring
    cost = assessed.cost_of_sparsity
    if cost is None:
        return ""
    n_all = analysis.dataset.counted.units.n_units
    allowed = "allowed " if n_all < len(set(analysis.dataset.counted.labels)) else ""
    reached = score_text(scoring, assessed.score + cost.value)
    amount = amount_text(scoring, cost.value)
    what = "costs" if cost.value > 0 else "gains"
    if amount.startswith("0 ") or not amount.strip("0."):
        what, amount = "changes", "nothing"
    return (
        f"All {n_all:,} {allowed}{analysis.unit_label} reach {reached} on the same folds, with the ridge "
        f"penalty alone; using fewer {what} {amount} (standard error {error_text(scoring, cost.error)})."
    )


def groups_text(analysis: Analysis) -> str:
    """List the accuracy in each group of rows, or its quartiles over many groups; empty without groups."""
    results, by = results_by_group(analysis), analysis.dataset.roles.grouped_by
    if not results:
        return ""
    count_by = "Intervals count groups, not rows."
    if len(results) <= MAX_NAMES:
        each = ", ".join(f"{r.name} {percent(r.correct.value)} of {count(r.n_rows, 'row')}" for r in results)
        return f"Accuracy by {by}: {each}. {count_by}"
    low, middle, high = np.quantile([r.correct.value for r in results], [0.25, 0.5, 0.75])
    return (
        f"Accuracy within the {len(results):,} groups by {by}: median {percent(middle)}, half of them "
        f"between {percent(low)} and {percent(high)}. {count_by}"
    )


def is_unbiased(analysis: Analysis) -> bool:
    """Whether neither k nor C was chosen on the rows that are scored."""
    return analysis.assessment.is_nested or not analysis.choice.had_alternatives


def task(analysis: Analysis) -> str:
    """The predicate of the headline, which names the classes, such as "distinguish ill from healthy"."""
    names = class_list(analysis)
    tell = "distinguishes" if n_used(analysis) == 1 else "distinguish"
    if len(names) == 2:
        return f"{tell} {names[0]} from {names[1]}"
    if len(names) <= 4:
        return f"{tell} {', '.join(names[:-1])} and {names[-1]}"
    return f"{tell} {len(names)} classes"


def n_used(analysis: Analysis) -> int:
    """The number of features, groups or training points that the model uses."""
    return len(analysis.model.machine.support_ if analysis.model.is_kernel else used_units(analysis))


def neighbour_text(analysis: Analysis, neighbour: Neighbour) -> str:
    """Return a sentence on the change of the score if the next smaller or larger k (`neighbour`) is used."""
    label = "training point" if analysis.model.is_kernel else analysis.unit_label.removesuffix("s")
    is_larger = neighbour.k > analysis.choice.k
    each = "" if analysis.is_shared else " for each binary classifier"
    distance = abs(neighbour.k - analysis.choice.k)
    amount = f"One {label}" if distance == 1 else count(distance, label)
    which = f"{amount} {'more' if is_larger else 'fewer'}{each} ({neighbour.k})"
    names = neighbour.enters if is_larger else neighbour.leaves
    swaps = neighbour.leaves if is_larger else neighbour.enters
    if names and len(names) <= 3 and not swaps:
        which += f", {'with' if is_larger else 'without'} {listing(names)}"
    scoring, change = analysis.settings.scoring, neighbour.change
    at = " at the same C" if len(analysis.choice.table.Cs) > 1 else ""
    error = f"{at} (standard error {error_text(scoring, change.error)})"
    comma, s = "," if ", with" in which else "", "s" if distance == 1 else ""
    if change_text(scoring, change.value) == "±0":
        return f"{which}{comma} change{s} nothing{error}."
    verb = "gain" if change.value > 0 else "cost"
    return f"{which}{comma} {verb}{s} {amount_text(scoring, change.value)}{error}."


def most_common(analysis: Analysis) -> str:
    """The words after "guessing": " the most common class" if the score is the accuracy, otherwise none."""
    return " the most common class" if analysis.settings.scoring == "accuracy" else ""


def class_counts(analysis: Analysis) -> str:
    """The number of rows of each class as text; for many classes, only the smallest and largest number."""
    names, counts = np.unique(analysis.dataset.y, return_counts=True)
    if len(names) > 4:
        return f"{len(names)} classes of {counts.min():,} to {counts.max():,}"
    return ", ".join(f"{n:,} {name}" for n, name in zip(counts, names, strict=True))


def frequency_text(analysis: Analysis, frequency: float) -> str:
    """Convert the proportion of folds that chose a feature to text, such as "4 of 5"."""
    n_folds = len(analysis.choice.first.fits)
    return f"{round(frequency * n_folds)} of {n_folds}"


def rows_text(analysis: Analysis) -> str:
    return count(len(analysis.dataset.y), "row")


def halves_text(analysis: Analysis, feature: int) -> str:
    """The percentage of random halves of the rows on which a feature is chosen; empty if not computed."""
    return "" if analysis.halves is None else f"{100 * analysis.halves[feature]:.0f} %"


def halves_sentence(analysis: Analysis) -> str:
    """Explain the column `halves` of the feature table, and how high a value chance alone can reach."""
    if analysis.stability is None:
        return ""
    selection, labels = analysis.stability.selection, analysis.dataset.counted.unit_label
    by_chance = (
        f"Of the {labels} chosen on {100 * selection.threshold_:.3g} % or more, at most one is expected to "
        "have been selected by chance"
        if selection.bounds_.unimodal <= 1
        else f"With {selection.q_:.3g} of {selection.n_candidates_:,} {labels} chosen each time, several may "
        "reach even 100 % by chance"
    )
    return (
        f"`halves`: the proportion of {2 * selection.n_pairs} random halves of the rows on which the "
        f"feature is chosen with the same k and C. {by_chance} (see `kmargin stability`)."
    )


def grid_text(values: Sequence[float]) -> str:
    """The values of a grid of k or C as text; of many values, their number and the first and last one."""
    if len(values) <= MAX_LISTED:
        return ", ".join(f"{value:g}" for value in values)
    return f"{len(values)} values from {values[0]:g} to {values[-1]:g}"


def stability_headline(stability: Stability) -> str:
    """Say how many features are stable, that is, selected on enough random halves of the rows."""
    selection, labels = stability.selection, stability.counted.unit_label
    share = f"{100 * selection.threshold_:.4g} % of {2 * selection.n_pairs} random halves of the rows"
    found = stability.stable
    if not found:
        hint = (
            "A larger --max-false accepts more features by chance and lowers this proportion."
            if selection.threshold == "auto"
            else "Without --threshold it is the lowest proportion at which at most one is expected by chance."
        )
        return f"None of {selection.n_candidates_:,} {labels} was selected on at least {share}. {hint}"
    were = "was" if len(found) == 1 else "were"
    return f"{len(found):,} of {selection.n_candidates_:,} {labels} {were} selected on at least {share}."


def chance_text(stability: Stability) -> str:
    """State upper bounds on the expected number of features that are stable by chance."""
    selection = stability.selection
    blind = f"{selection.q_:.3g} of {selection.n_candidates_:,} {stability.counted.unit_label}"
    worst, unimodal, r_concave = (f"{bound:.2g}" for bound in selection.bounds_)
    return (
        f"At most {unimodal} of these are expected to be stable by chance, if the number of pairs whose two "
        f"halves both select a feature has a unimodal distribution ({worst} for any distribution, "
        f"{r_concave} if it is r-concave). By chance means: selected on a half no more often than by a "
        f"random choice of {blind}. A feature that is correlated with a relevant one is selected more often "
        "than that, and may be stable without being relevant itself."
    )


def plan_text(stability: Stability) -> str:
    """Say how many pairs of random halves of the rows there are, and which model is fitted to each half."""
    kept = stability.counted.labels_of(np.flatnonzero(stability.counted.always_in))
    always_in = f" Always in the model, as requested by --keep: {listing(kept)}." if kept else ""
    pairs = count(stability.selection.n_pairs, "pair")
    model = f"a model with k = {stability.k}, C = {stability.C:.3g} on each half"
    return f"{pairs} of complementary halves, {model}.{always_in}"
