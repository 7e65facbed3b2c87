"""In words: why this k and C, and how far the score of such a choice can be trusted."""

from kmargin.errors import count
from kmargin.tables.analyse import Analysis
from kmargin.tables.score_words import score_name, score_text


def choice_text(analysis: Analysis) -> str:
    """Why this k."""
    settings, highest = analysis.settings, analysis.highest
    if not analysis.was_chosen:
        return f"k = {analysis.k}, as requested; C = {analysis.C:g}."
    text = f"k = {analysis.k}, C = {analysis.C:g}: "
    if settings.select == "best" or highest is None or highest.k == analysis.k:
        text += "the highest score of all values tried"
    else:
        within = "one standard error"
        if settings.select == "tolerance":
            within = f"{settings.tolerance:g}"
        score = score_text(settings.scoring, highest.score)
        text += (
            f"the smallest k within {within} of the highest score ({score} at k = {highest.k}, "
            f"C = {highest.C:g}; `--select best` takes that)"
        )
    return f"{text}, {rounds_text(analysis)}"


def rounds_text(analysis: Analysis) -> str:
    """How often the rows were dealt into folds, and whether that was enough."""
    choice, n_folds = analysis.choice, len(analysis.supports)
    if choice.n_rounds == 1:
        return f"over {n_folds} folds."
    folds = f"over {choice.n_rounds} rounds of {n_folds} folds. "
    if choice.has_settled:
        return folds + "The last rounds did not change the choice."
    return folds + (
        "More rounds might choose another k, because several score nearly as well; `--repeats` allows more "
        "rounds."
    )


def fold_choices_text(analysis: Analysis) -> str:
    """What the outer folds chose: how far k can be trusted."""
    assessed = analysis.assessment
    if not assessed.is_nested or analysis.highest is None or not analysis.was_chosen:
        return ""
    ks = sorted(k for k, _ in assessed.chosen)
    n_folds = count(len(ks), "outer fold")
    if ks[0] == ks[-1]:
        return f"All {n_folds} also chose k = {ks[0]}."
    return (
        f"When the choice was repeated without a fifth of the rows, k was {listed(ks)}."
        if len(ks) == 5
        else (f"When the choice was repeated in each of {n_folds}, k was {listed(ks)}.")
    )


def listed(numbers: list[int]) -> str:
    *others, last = (f"{number:,}" for number in numbers)
    return f"{', '.join(others)} and {last}"


def honesty_text(analysis: Analysis) -> str:
    """Where the score told comes from."""
    scoring, highest = analysis.settings.scoring, analysis.highest
    if highest is None:
        return "k and C were set in advance, so each fold is an independent test."
    chosen = "k and C were" if analysis.was_chosen else "C was"
    own = score_text(scoring, analysis.choice.score)
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
    """What a permutation test found; nothing without one."""
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
