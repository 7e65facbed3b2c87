"""A wrong argument to anything public is answered in one sentence, before any work is done."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import kmargin
from kmargin import MM, SD, Exchange, KernelSparseSVC, KernelSparseSVCCV, Solver, SparseSVC, SparseSVCCV

X = np.sort(np.random.default_rng(0).standard_normal((20, 3)), axis=0)
Y = np.where(X[:, 0] > 0, 1, -1)
NAMED = np.where(Y > 0, "sick", "well")

WRONG = ["ten", -2.5, float("nan"), [[]], object, np.array([0.5, 1.5])]
ADVICE = re.compile(r"\b(Use|Give|Set|Did you mean|Name|Define|Turn|write)\b")


class Started(Exception):
    """A solver was asked to work."""


@pytest.fixture(autouse=True)
def no_work_is_done(monkeypatch):
    def refuse(*args, **kwargs):
        raise Started

    for solver in (MM, SD, Exchange):
        monkeypatch.setattr(solver, "solve_grid", refuse)


def assert_refused(name, value, call):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    text = str(caught.value)
    assert name in text or name.removesuffix("s") + "=" in text, text  # one of several ks or Cs
    assert ADVICE.search(text), text
    assert "\n" not in text
    assert len(text) < 400


def is_right(name, value):
    """Some are no mistake."""
    is_list = name in ("Cs", "rhos") and isinstance(value, np.ndarray)
    return is_list or (name == "coef0" and isinstance(value, float) and value == -2.5)


# everything public that takes parameters, and arguments that are right
RIGHT = {
    SparseSVC: {"k": 2}, SparseSVCCV: {"ks": [2, 1], "cv": 2}, KernelSparseSVC: {"k": 2},
    KernelSparseSVCCV: {"ks": [2, 1], "cv": 2}, kmargin.StabilitySelection: {"n_pairs": 2}, MM: {}, SD: {},
    Exchange: {}, kmargin.sparse_svm_path: {"X": X, "y": Y, "ks": [2]},
    kmargin.honest_score: {"model": SparseSVC(2), "X": X, "y": Y, "cv": 2},
    kmargin.stability_bounds: {"n_features": 10, "q": 2, "threshold": 0.9},
    kmargin.stability_k: {"n_features": 10}, kmargin.stability_C: {"n_samples": 20, "n_features": 10},
}  # fmt: skip


def use(target, **given):
    """Call a function, fit an estimator, or fit with a solver."""
    made = target(**{**RIGHT[target], **given})
    if isinstance(made, Solver):
        made = SparseSVC(2, solver=made)
    if hasattr(made, "fit"):
        made.fit(X, Y)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        pytest.param(target, name, id=f"{target.__name__}-{name}")
        for target in RIGHT
        for name in inspect.signature(target).parameters
        if name not in ("X", "y", "model", "removed")
    ],
)
def test_a_wrong_value_of_any_parameter_is_refused(target, name):
    for value in WRONG:
        if not is_right(name, value):
            assert_refused(name, value, lambda value=value: use(target, **{name: value}))


@pytest.mark.parametrize("model", [*WRONG, SparseSVC, None, Ridge(), make_pipeline(Ridge())])
def test_a_score_is_of_a_model(model):
    assert_refused("honest_score", model, lambda: kmargin.honest_score(model, X, Y))


@pytest.mark.parametrize("n_splits", [*WRONG, 1, True, None])
def test_folds_of_blocks_are_a_number(n_splits):
    assert_refused("n_splits", n_splits, lambda: kmargin.BlockKFold(n_splits))


@pytest.mark.parametrize("cv", [0, 1, True, [], [3], [(1, 2, 3)], {"a": 1}, "five"])
@pytest.mark.parametrize(
    "call",
    [lambda cv: SparseSVCCV(cv=cv).fit(X, Y), lambda cv: kmargin.honest_score(SparseSVC(1), X, Y, cv=cv)],
)
def test_folds_are_a_number_a_splitter_or_pairs(call, cv):
    assert_refused("cv", cv, lambda: call(cv))


NO_SOLVER = "is neither a name nor a solver object. Use one of 'exchange'"
NO_MEGABYTES = "cache_size={} is not a number of megabytes"
NO_POINTS = "n_candidates={} leaves no training points"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SparseSVCCV(scoring="acuracy"), "scoring='acuracy' is not a scikit-learn scorer"),
        (SparseSVCCV(scoring="acuracy"), "Did you mean 'accuracy'"),
        (SparseSVCCV(selection="2se"), "selection='2se' is not known. Did you mean '1se'?"),
        (SparseSVCCV(Cs=[]), "Cs=[] leaves nothing to fit"),
        (SparseSVCCV(Cs=[1.0, 0.0]), "C=0.0 is not a positive weight of the loss"),
        (SparseSVCCV(Cs="auto"), "Cs='auto' is not a list"),
        (SparseSVCCV(cv=KFold(2)), "Fold 0 has no training sample of class"),
        (SparseSVCCV(cv=KFold(2)), "Use fewer folds, or a splitter"),
        (SparseSVC(class_weight={"sik": 2.0}), "'sik', which is not a class in y. Did you mean 'sick'?"),
        (SparseSVC(class_weight={7: 2.0}), "names 7, which is not a class in y. It has 'sick', 'well'."),
        *((SparseSVC(solver=wrong), NO_SOLVER) for wrong in (MM, 3, None, [MM()], LogisticRegression())),
        *(
            (estimator(cache_size=wrong), NO_MEGABYTES.format(repr(wrong)))
            for estimator in (KernelSparseSVC, KernelSparseSVCCV)
            for wrong in (0, -1.0, np.inf, np.nan, "200", None, True)
        ),
        *(
            (estimator(n_candidates=wrong), NO_POINTS.format(repr(wrong)))
            for estimator in (KernelSparseSVC, KernelSparseSVCCV)
            for wrong in (0, -5, 2.5, "some", True)
        ),
    ],
)
def test_the_message_names_the_value_and_what_to_use(model, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit(X, NAMED)


TEXTS = pd.DataFrame({"a": X[:, 0], "sex": ["f", "m"] * 10})
DATES = pd.DataFrame({"a": X[:, 0], "admitted": pd.date_range("2020-01-01", periods=20)})
NO_DATES = "Column 'admitted' of X holds dates or durations, which are not numbers"


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (TEXTS, "X holds the text 'f' in column 'sex', which is not a number. Convert its column to"),
        (TEXTS.to_numpy(), "X holds the text 'f', which is not a number"),
        (DATES, NO_DATES),
        (DATES.assign(admitted=DATES["admitted"] - DATES["admitted"][0]), NO_DATES),
    ],
)
def test_texts_and_dates_among_the_numbers_are_named(frame, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SparseSVC().fit(frame, Y)


def test_a_class_of_one_row_is_refused():
    data, message = (X, np.r_[2, Y[1:]]), "Class 2 has 1 row, but cross-validation needs at least two. Give"
    assert_refused(message, None, lambda: SparseSVCCV(cv=2).fit(*data))
    assert_refused(message, None, lambda: kmargin.honest_score(SparseSVC(), *data))


def test_no_message_names_an_internal_class():
    with pytest.raises(TypeError, match=r"^MM or SD\(\) got an unexpected keyword argument 'foo'"):
        SD(foo=1)


def test_a_solver_of_ones_own_is_told_what_it_lacks():
    lazy = type("Lazy", (Solver,), {})
    checked = type("Checked", (Solver,), {"check": lambda self: None})
    with pytest.raises(NotImplementedError, match=r"Lazy has no check. Define check\(self\)"):
        SparseSVC(solver=lazy()).fit(X, Y)
    with pytest.raises(NotImplementedError, match=r"Checked has no solve_grid. Define solve_grid"):
        SparseSVC(1, solver=checked()).fit(X, Y)
