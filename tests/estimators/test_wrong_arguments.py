"""A wrong argument to anything public is answered in one sentence, before any work is done."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from kmargin import (
    MM,
    SD,
    BlockKFold,
    Exchange,
    KernelSparseSVC,
    KernelSparseSVCCV,
    Solver,
    SparseSVC,
    SparseSVCCV,
    StabilitySelection,
    honest_score,
    sparse_svm_path,
    stability_bounds,
    stability_C,
    stability_k,
)

X = np.random.default_rng(0).standard_normal((20, 3))
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
    return (name == "coef0" and isinstance(value, float) and value == -2.5) or (
        name in ("Cs", "rhos") and isinstance(value, np.ndarray)
    )


ESTIMATORS = {
    SparseSVC: {"k": 2},
    SparseSVCCV: {"ks": [2, 1], "cv": 2},
    KernelSparseSVC: {"k": 2},
    KernelSparseSVCCV: {"ks": [2, 1], "cv": 2},
    StabilitySelection: {"n_pairs": 2},
}


def parameters_of(*callables):
    return [
        pytest.param(each, name, id=f"{each.__name__}-{name}")
        for each in callables
        for name in inspect.signature(each).parameters
        if name not in ("X", "y", "model", "removed")
    ]


@pytest.mark.parametrize(("estimator", "name"), parameters_of(*ESTIMATORS))
def test_parameters_of_estimators(estimator, name):
    for value in WRONG:
        if not is_right(name, value):
            model = estimator(**{**ESTIMATORS[estimator], name: value})
            assert_refused(name, value, lambda model=model: model.fit(X, Y))


@pytest.mark.parametrize(("solver", "name"), parameters_of(MM, SD, Exchange))
def test_knobs_of_solvers(solver, name):
    for value in WRONG:
        if not is_right(name, value):
            model = SparseSVC(2, solver=solver(**{name: value}))
            assert_refused(name, value, lambda model=model: model.fit(X, Y))


@pytest.mark.parametrize(
    ("function", "name"),
    parameters_of(sparse_svm_path, honest_score, stability_bounds, stability_k, stability_C),
)
def test_arguments_of_functions(function, name):
    base = {
        sparse_svm_path: {"X": X, "y": Y, "ks": [2]},
        honest_score: {"model": SparseSVC(2), "X": X, "y": Y, "cv": 2},
        stability_bounds: {"n_features": 10, "q": 2, "threshold": 0.9},
        stability_k: {"n_features": 10},
        stability_C: {"n_samples": 20, "n_features": 10},
    }[function]
    for value in WRONG:
        assert_refused(name, value, lambda value=value: function(**{**base, name: value}))


@pytest.mark.parametrize("model", [*WRONG, SparseSVC, None])
def test_a_score_is_of_a_model(model):
    assert_refused("honest_score", model, lambda: honest_score(model, X, Y))


@pytest.mark.parametrize("n_splits", [*WRONG, 1, True, None])
def test_folds_of_blocks_are_a_number(n_splits):
    assert_refused("n_splits", n_splits, lambda: BlockKFold(n_splits))


@pytest.mark.parametrize("cv", [0, 1, True, [], [3], [(1, 2, 3)], {"a": 1}, "five"])
@pytest.mark.parametrize(
    "call", [lambda cv: SparseSVCCV(cv=cv).fit(X, Y), lambda cv: honest_score(SparseSVC(1), X, Y, cv=cv)]
)
def test_folds_are_a_number_a_splitter_or_pairs(call, cv):
    assert_refused("cv", cv, lambda: call(cv))


def test_a_misspelt_scorer_is_recognised():
    with pytest.raises(
        ValueError, match=r"scoring='acuracy' is not a scikit-learn scorer.* Did you mean 'accuracy'"
    ):
        SparseSVCCV(scoring="acuracy").fit(X, Y)


def test_texts_among_the_numbers_are_named():
    frame = pd.DataFrame({"a": X[:, 0], "sex": ["f", "m"] * 10})
    with pytest.raises(
        ValueError,
        match=r"X holds the text 'f' in column 'sex', which is not a number. Convert its column to",
    ):
        SparseSVC().fit(frame, Y)
    with pytest.raises(ValueError, match=r"X holds the text 'f', which is not a number"):
        SparseSVC().fit(frame.to_numpy(), Y)


def test_dates_among_the_numbers_are_named():
    frame = pd.DataFrame({"a": X[:, 0], "admitted": pd.date_range("2020-01-01", periods=20)})
    told = "Column 'admitted' of X holds dates or durations, which are not numbers"
    with pytest.raises(TypeError, match=told):
        SparseSVC().fit(frame, Y)
    frame["admitted"] -= frame["admitted"][0]
    with pytest.raises(TypeError, match=told):
        SparseSVC().fit(frame, Y)


def test_a_misspelt_class_is_recognised():
    told = r"class_weight names 'sik', which is not a class in y\. Did you mean 'sick'\?"
    with pytest.raises(ValueError, match=told):
        SparseSVC(class_weight={"sik": 2.0}).fit(X, NAMED)
    with pytest.raises(ValueError, match=r"names 7, which is not a class in y\. It has 'sick', 'well'\."):
        SparseSVC(class_weight={7: 2.0}).fit(X, NAMED)


def test_a_solver_of_ones_own_is_told_what_it_lacks():
    class Lazy(Solver):
        pass

    class Checked(Lazy):
        def check(self):
            pass

    with pytest.raises(NotImplementedError, match=r"Lazy has no check. Define check\(self\)"):
        SparseSVC(solver=Lazy()).fit(X, Y)
    with pytest.raises(
        NotImplementedError, match=r"Checked has no solve_grid. Define solve_grid\(self, problem"
    ):
        SparseSVC(1, solver=Checked()).fit(X, Y)


@pytest.mark.parametrize("solver", [MM, 3, None, [MM()], LogisticRegression()])
def test_what_is_no_solver_is_refused(solver):
    with pytest.raises(ValueError, match=r"is neither a name nor a solver object. Use one of 'exchange'"):
        SparseSVC(solver=solver).fit(X, Y)
