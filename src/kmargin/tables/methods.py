"""A paragraph of methods for a paper: what was done with a table, in the order in which it was done."""

import platform
from collections.abc import Sequence

import numpy as np
import sklearn

from kmargin import __version__
from kmargin.errors import count
from kmargin.tables.analyse import Analysis
from kmargin.tables.score_words import interval_text, score_name, score_text
from kmargin.tables.sentences import all_features_text, class_counts, evidence_text, is_honest, rows_text

MOST_LISTED = 8  # values of a grid; of more the ends are named


def methods_text(analysis: Analysis, source: str) -> str:
    """Data, preparation, model, choice of k and C, assessment, software."""
    parts = (data_text, preparation_text, model_text, choice_text, assessment_text, software_text)
    return " ".join(text for part in parts if (text := part(analysis, source)))


def data_text(analysis: Analysis, source: str) -> str:
    dataset, settings = analysis.dataset, analysis.settings
    n_features = count(len(dataset.encoding.feature_names), "feature")
    text = (
        f"The data ({source}) comprise {rows_text(analysis)} ({class_counts(analysis)}; classes by column "
        f"{dataset.target}) and {n_features}."
    )
    if dataset.groups is not None:
        same = "features" if dataset.grouped_by is None else f"value in column {dataset.grouped_by}"
        n_groups = count(len(np.unique(dataset.groups)), "group")
        text += f" Rows with the same {same} ({n_groups}) were never split between training and test rows."
    if dataset.weights is not None:
        text += " Rows were weighted in fitting and in scoring."
    return text + (" Classes were weighted inversely to their frequency." if settings.balanced else "")


def preparation_text(analysis: Analysis, source: str) -> str:
    dataset, steps = analysis.dataset, []
    if dataset.encoding.categories:
        steps.append("Text columns were encoded as one indicator feature per value.")
    if dataset.impute:
        steps.append("Missing values were replaced by the median of the training rows.")
    if analysis.settings.standardize:
        steps.append("Features were standardised to mean 0 and standard deviation 1 on the training rows.")
    return " ".join(steps)


def model_text(analysis: Analysis, source: str) -> str:
    settings, n_classes = analysis.settings, len(analysis.model.machine.classes_)
    if settings.kernel is None:
        kind, bound = "linear support vector machine", f"at most k {analysis.things}"
    else:
        kind, bound = f"support vector machine with the kernel {settings.kernel}", "at most k training points"
    text = (
        f"The model is a {kind} with squared hinge loss and L2 penalty (strength 1/C), constrained to use "
        f"{bound} (Landeros and Lange, Algorithms for Sparse Support Vector Machines) and fitted by a search "
        "that exchanges them as long as the objective falls."
    )
    if n_classes == 2:
        return text
    which = "per pair of classes" if settings.multi_class == "ovo" else "per class, against all others,"
    if not settings.shared:
        return f"{text} One classifier {which} was fitted, with k of its own."
    return f"{text} One classifier {which} was fitted; all use the same {analysis.things}."


def choice_text(analysis: Analysis, source: str) -> str:
    choice, settings = analysis.choice, analysis.settings
    final = "The final model was fitted to all rows."
    if not choice.had_alternatives:
        return f"k = {analysis.k} and C = {analysis.C:g} were set in advance. {final}"
    table = choice.table
    ks = f"k ({grid_text(sorted(table.ks))})"
    Cs = f"C ({grid_text(table.Cs)})" if len(table.Cs) > 1 else ""
    what = " and ".join(filter(None, (ks, Cs))) if analysis.was_chosen else Cs
    was = "were" if " and " in what else "was"
    given = "" if analysis.was_chosen else f"k = {analysis.k} was set in advance; "
    times = f", repeated {choice.n_rounds} times" if choice.n_rounds > 1 else ""
    by = f"{len(analysis.supports)}-fold stratified cross-validation{times}"
    name = score_name(settings.scoring)
    rules = {
        "best": f"the values with the highest mean {name} were taken",
        "1se": f"the smallest k was taken whose mean {name} was within one standard error (Nadeau and "
        "Bengio) of the highest",
        "tolerance": f"the smallest k was taken whose mean {name} was within {settings.tolerance:g} of the "
        "highest",
    }
    rule = rules[settings.select if analysis.was_chosen else "best"]
    return (
        f"{given}{what} {was} chosen by {by}: {rule}, which gave k = {analysis.k} and C = {analysis.C:g}. "
        f"{final}"
    )


def grid_text(values: Sequence[float]) -> str:
    if len(values) <= MOST_LISTED:
        return ", ".join(f"{value:g}" for value in values)
    return f"{len(values)} values from {values[0]:g} to {values[-1]:g}"


def assessment_text(analysis: Analysis, source: str) -> str:
    assessed, scoring = analysis.assessment, analysis.settings.scoring
    name, n_folds = score_name(scoring), len(assessed.folds)
    kind = {"accuracy": "Wilson", "roc_auc": "DeLong"}.get(scoring, "Student")
    if assessed.is_nested:
        how = (
            f"The {name} was estimated by nested cross-validation: in each of {n_folds} outer folds the "
            "preparation and the choice were repeated on the training rows alone, and the model was scored "
            "on the test rows."
        )
    else:
        how = f"The {name} was estimated by {n_folds}-fold stratified cross-validation."
        if not is_honest(analysis):
            how += " These are the folds of the choice, so that the estimate is optimistic."
    text = (
        f"{how} It was {score_text(scoring, assessed.score)} (95 % {kind} interval "
        f"{interval_text(scoring, assessed.interval)}), against {score_text(scoring, assessed.guessing)} by "
        "guessing."
    )
    if assessed.p_value is not None:
        text += (
            f" The search was repeated with {assessed.n_permutations:,} permutations of the labels "
            f"(p = {assessed.p_value:.3g})."
        )
    halves = ""
    if analysis.stability is not None:
        n_halves = analysis.stability.n_halves
        halves = f"The selection was repeated on {n_halves} random halves of the rows, with the same k and C."
    return " ".join(filter(None, (text, evidence_text(analysis), all_features_text(analysis), halves)))


def software_text(analysis: Analysis, source: str) -> str:
    return (
        f"The analysis was made with kmargin {__version__} (Python {platform.python_version()}, NumPy "
        f"{np.__version__}, scikit-learn {sklearn.__version__}), random seed {analysis.settings.seed}."
    )
