"""In words: why this k and C, and how far the score of such a choice can be trusted."""

from kmargin.errors import count
from kmargin.tables.analyse import Analysis
from kmargin.tables.score_words import score_name, score_text


def choice_text(analysis: Analysis) -> str:
    """Why this k."""
    settings, highest = analysis.settings, analysis.highest
    if not analysis.was_chosen:
        return f"k = {analysis.k}, as asked for; C = {analysis.C:g}."
    text = f"k = {analysis.k}, C = {analysis.C:g}: "
    if settings.select == "best" or highest is None or highest.k == analysis.k:
        text += "the highest score of all that were tried"
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
        return folds + "The last rounds changed nothing."
    return folds + (
        "More rounds might choose another k: several do nearly as well. `--repeats` allows for more rounds."
    )


def fold_choices_text(analysis: Analysis) -> str:
    """What the outer folds chose: how far k can be trusted."""
    assessed = analysis.assessment
    if not assessed.is_nested or analysis.highest is None or not analysis.was_chosen:
        return ""
    ks = sorted(k for k, _ in assessed.chosen)
    n_folds = count(len(ks), "outer fold")
    if ks[0] == ks[-1]:
        return f"All of the {n_folds} chose k = {ks[0]}, too."
    return (
        f"Chosen anew without a fifth of the rows, k was {listed(ks)}."
        if len(ks) == 5
        else (f"Chosen anew in each of {n_folds}, k was {listed(ks)}.")
    )


def listed(numbers: list[int]) -> str:
    *others, last = (f"{number:,}" for number in numbers)
    return f"{', '.join(others)} and {last}"


def honesty_text(analysis: Analysis) -> str:
    """Where the score told comes from."""
    scoring, highest = analysis.settings.scoring, analysis.highest
    if highest is None:
        return "Nothing was left to choose, so each fold is a fair test."
    chosen = "k and C were" if analysis.was_chosen else "C was"
    own = score_text(scoring, analysis.choice.score)
    if analysis.assessment.is_nested:
        return (
            f"The {score_name(scoring)} told above is that of nested cross-validation: in each of "
            f"{len(analysis.assessment.folds)} outer folds {chosen} chosen anew by its other rows. "
            f"On the folds that {chosen} chosen on it is {own}, which on average is too good."
        )
    return (
        f"{chosen} chosen on these same folds ({own}), so the {score_name(scoring)} told is too good. "
        "Without `--no-nested` it is not."
    )


def p_value_text(analysis: Analysis) -> str:
    """What a permutation test found; nothing without one."""
    assessed = analysis.assessment
    if assessed.p_value is None:
        return ""
    n_times = assessed.n_permutations
    n_as_high = round(assessed.p_value * (n_times + 1)) - 1
    least = "" if n_as_high else f" That is the least that {n_times:,} can tell."
    return (
        f"p = {assessed.p_value:.3g}: of {n_times:,} searches with the labels shuffled, "
        f"{n_as_high or 'none'} found a score as high as the search with the labels as they are.{least}"
    )
