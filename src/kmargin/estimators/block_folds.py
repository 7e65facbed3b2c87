"""Cross-validation of data in blocks: folds without a list of rows, scores without a list of predictions."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring

from kmargin import validate
from kmargin.blocks.scores import Trial, confuse, count_rows
from kmargin.blocks.sums import add_up
from kmargin.blocks.view import Part
from kmargin.machines import BlockSamples, share_blocks
from kmargin.multiclass import class_pairs
from kmargin.selection import BlockFold, check_fold, score_pairs
from kmargin.types import Matrix

# Coefficients that are sent to the blocks at once: a pass over X for every so many bytes.
BATCH = 2**26

FitFolds = Callable[..., Iterator[Callable[[int, int], Any]]]


def make_parts(cv: Any, n_blocks: int, random_state: Any) -> list[Part]:
    """The rows to score, fold by fold.

    A number of folds deals the rows of each class within each block; the same rows to the same folds
    for the same `random_state`, None being one as well. `BlockFold` deals blocks.
    """
    n_folds, whole_blocks = 5 if cv is None else cv, False
    if isinstance(cv, BlockFold):
        n_folds, whole_blocks = cv.n_splits, True
        if n_folds > n_blocks:
            raise ValueError(
                f"cv={cv!r} asks for more folds than there are blocks, {n_blocks}. Use fewer folds, or "
                f"cv={n_folds} for folds of rows."
            )
    is_count = isinstance(n_folds, int | np.integer) and not isinstance(n_folds, bool)
    if not is_count or n_folds < 2:
        raise ValueError(
            f"cv={cv!r} makes no folds of a dask collection, whose rows have no numbers. Use an integer "
            ">= 2 for folds of rows, or BlockFold(5) for folds of whole blocks."
        )
    seed = 0 if random_state is None else validate.resolve_seed(random_state)
    return [Part(int(n_folds), fold, True, seed, whole_blocks) for fold in range(n_folds)]


def check_parts(samples: BlockSamples, parts: list[Part]) -> None:
    """Each fold has something to score, and every class to learn from."""
    n_classes = len(samples.classes)
    counts = add_up(samples.X.ask(count_rows, parts, n_classes))
    for number, (inside, outside) in enumerate(zip(counts, counts.sum(axis=0) - counts, strict=True)):
        check_fold(number, samples.classes[outside == 0], int(inside.sum()))


def score_block_folds(
    model: Any, fit_folds: FitFolds, samples: BlockSamples, parts: list[Part], Cs: list[float], ks: list[int]
) -> Matrix:
    """The validation score of every fold, C and k."""
    scorer = check_scoring(model, scoring=model.scoring or "accuracy")
    check_scorer(scorer, model.scoring, samples)
    n_classes = len(samples.classes)
    n_machines = len(class_pairs(n_classes, model.multi_class))
    shared, n_jobs = share_blocks(samples, model.n_jobs, n_machines * len(parts))
    trains = (shared._replace(part=part._replace(inside=False)) for part in parts)
    trials: list[Trial] = []
    models = fit_folds(trains, len(parts), n_classes, Cs, ks, n_jobs)
    for part, model_at in zip(parts, models, strict=True):
        coefs, intercepts = [], []
        for row in range(len(Cs)):
            for column in range(len(ks)):
                fitted = model_at(row, column)
                coefs.append(fitted.coef_)
                intercepts.append(fitted.intercept_)
        trials.append(Trial(part, np.stack(coefs), np.stack(intercepts)))
    scores = [
        score_pairs(scorer, samples.classes, confusion)
        for batch in _batches(trials)
        for confusions in add_up(samples.X.ask(confuse, batch, n_classes, model.multi_class))
        for confusion in confusions
    ]
    return np.reshape(scores, (len(parts), len(Cs), len(ks)))


def check_scorer(scorer: Any, scoring: Any, samples: BlockSamples) -> None:
    """Raise unless the score is one of predictions, with weights."""
    n_classes = len(samples.classes)
    try:
        score_pairs(scorer, samples.classes, np.ones((n_classes, n_classes)))
    except (AttributeError, TypeError) as error:
        raise ValueError(
            f"scoring={scoring!r} is not offered for dask collections: there a score is computed from how "
            "often each class was taken for which, so it has to be a function of predictions that takes "
            'weights, such as "accuracy", "balanced_accuracy", "f1_macro" or make_scorer of one.'
        ) from error


def _batches(trials: list[Trial]) -> Iterator[list[Trial]]:
    """Trials to be sent together, each whole."""
    batch: list[Trial] = []
    for trial in trials:
        if batch and sum(one.coefs.nbytes for one in [*batch, trial]) > BATCH:
            yield batch
            batch = []
        batch.append(trial)
    yield batch
