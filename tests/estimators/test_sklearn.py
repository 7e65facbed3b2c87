"""The estimators are scikit-learn estimators."""

import inspect

import dask.array as da
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

from kmargin import MM, SD, honest_score, sparse_svm_path
from kmargin.estimators import KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV, StabilitySelection


# `check_array_api_input` and its kin skip themselves for libraries and devices that are not there
@pytest.mark.filterwarnings("ignore:k=.* is greater than the number of:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        SparseSVC(),
        SparseSVC(solver="mm"),
        SparseSVC(solver="sd", multi_class="ovr"),
        KernelSparseSVC(k=4),
        # with rtol > 0 the paper's second stopping rule may end a run far from S_k
        KernelSparseSVC(kernel="linear", multi_class="ovr", solver=MM(rtol=0.0)),
        SparseSVCCV(ks=[2, 1], cv=3),
        KernelSparseSVCCV(ks=[5, 2], cv=3),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return (X - X.mean()) / X.std(), y


def test_grid_search_reaches_k_C_and_the_solvers_knobs(cancer):
    X, y = cancer
    grid = [{"k": [1, 4], "solver__rho_growth": [1.5, 2.0]}, {"C": [0.1], "solver": ["exchange", SD()]}]
    search = GridSearchCV(SparseSVC(k=3, solver=MM(delay=2)), grid, cv=2).fit(X, y == 1)
    assert len(search.cv_results_["params"]) == 6
    assert search.cv_results_["mean_test_score"].min() > 0.85
    assert search.predict(X).dtype == bool
    assert clone(search.estimator).get_params()["solver__delay"] == 2


ROWS = np.random.default_rng(0).standard_normal((90, 5))
CLASSES = (ROWS[:, 1] - ROWS[:, 3] + 0.5 * np.random.default_rng(1).standard_normal(90) > 0).astype(int)
METADATA = {"sample_weight": np.linspace(0.1, 3, 90), "groups": np.arange(90) // 3}
EVERY = [SparseSVC(2), SparseSVCCV([2, 1], cv=2), KernelSparseSVC(3), KernelSparseSVCCV([3, 1], cv=2)]


def name_of(estimator):
    return type(estimator).__name__


def requesting(estimator, scaler):
    """A pipeline that requests all metadata that its steps take, and these metadata."""
    taken = {name: values for name, values in METADATA.items() if has_fit_parameter(estimator, name)}
    step = clone(estimator).set_fit_request(**dict.fromkeys(taken, True))
    return make_pipeline(scaler.set_fit_request(sample_weight=True), step), taken


@pytest.mark.parametrize("estimator", [*EVERY, StabilitySelection()], ids=name_of)
def test_nothing_is_answered_before_the_fit(estimator):
    others = ("_", "fit", "set_", "get_params", "get_metadata")
    methods = [getattr(estimator, name, None) for name in dir(estimator) if not name.startswith(others)]
    for method in filter(inspect.ismethod, methods):
        n_needed = sum(one.default is one.empty for one in inspect.signature(method).parameters.values())
        with pytest.raises(NotFittedError, match=f"This {name_of(estimator)} instance is not fitted yet"):
            method(*(ROWS, CLASSES)[:n_needed])


def test_decisions_of_the_machines_have_a_column_for_each():
    X, y = ROWS, np.arange(90) % 3
    for multi_class, classes in (("ovo", y), ("ovr", y), ("ovo", CLASSES)):
        model = SparseSVC(2, multi_class=multi_class).fit(X, classes)
        expected = X @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(model.machine_decisions(X), expected)
        lazy = model.machine_decisions(da.from_array(X, chunks=(40, 5)))
        assert lazy.shape == expected.shape
        np.testing.assert_allclose(lazy.compute(), expected)


def test_estimators_say_what_data_they_take():
    given = {"kernel": "precomputed"}
    for estimator, takes_sparse, is_pairwise in (
        (KernelSparseSVC(), True, False),
        (KernelSparseSVCCV(**given), False, True),
        (SparseSVC(solver="mm"), False, False),
        (StabilitySelection(KernelSparseSVC(**given)), False, False),
    ):
        tags = get_tags(estimator).input_tags
        assert (tags.sparse, tags.pairwise) == (takes_sparse, is_pairwise)
    assert get_tags(SparseSVC()).transformer_tags.preserves_dtype == ["float64", "float32"]


def test_fits_paths_and_scores_print_nothing_unless_asked_to(capsys):
    for estimator in [*EVERY, StabilitySelection(k=1, n_pairs=2)]:
        clone(estimator).fit(ROWS, CLASSES)
    sparse_svm_path(ROWS, CLASSES)
    honest_score(SparseSVC(2), ROWS, CLASSES, permutations=1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("estimator", EVERY, ids=name_of)
def test_weights_and_groups_of_samples_are_routed_through_pipelines_and_searches(estimator):
    with config_context(enable_metadata_routing=True):
        pipeline, taken = requesting(estimator, StandardScaler())
        name = pipeline.steps[-1][0]
        # scikit-learn 1.7 does not route weights through the `score` of a pipeline
        weighted = get_scorer("accuracy").set_score_request(sample_weight=True)
        search = GridSearchCV(pipeline, {f"{name}__fit_intercept": [True, False]}, cv=3, scoring=weighted)
        search.fit(ROWS, CLASSES, **taken)
        scores = cross_validate(pipeline, ROWS, CLASSES, params=taken, cv=3, scoring=weighted)
        whole = clone(pipeline).fit(ROWS, CLASSES, **taken)

    def fitted_by_hand(rows, **parameters):
        mine = {name: values[rows] for name, values in taken.items()}
        X = StandardScaler().fit(ROWS[rows], sample_weight=METADATA["sample_weight"][rows]).transform(ROWS)
        return clone(estimator).set_params(**parameters).fit(X[rows], CLASSES[rows], **mine), X

    every = np.arange(90)
    best = {"fit_intercept": search.best_params_[f"{name}__fit_intercept"]}
    for model, (alone, X) in (
        (whole, fitted_by_hand(every)),
        (search.best_estimator_, fitted_by_hand(every, **best)),
    ):
        np.testing.assert_allclose(model.decision_function(ROWS), alone.decision_function(X), rtol=1e-9)
    for at, (train, test) in enumerate(StratifiedKFold(3).split(ROWS, CLASSES)):
        alone, X = fitted_by_hand(train)
        expected = alone.score(X[test], CLASSES[test], METADATA["sample_weight"][test])
        assert scores["test_score"][at] == pytest.approx(expected)


def test_routing_changes_neither_honest_scores_nor_stability_selection():
    plain = make_pipeline(StandardScaler(), SparseSVCCV([2, 1], cv=2))
    selection = StabilitySelection(SparseSVC(2), n_pairs=3, random_state=0)
    expected = honest_score(plain, ROWS, CLASSES, cv=3, **METADATA)
    frequencies = selection.fit(ROWS, CLASSES, **METADATA).frequencies_
    with config_context(enable_metadata_routing=True):
        routed, _ = requesting(plain[-1], StandardScaler())
        found = honest_score(routed, ROWS, CLASSES, cv=3, **METADATA)
        step = clone(selection).set_fit_request(sample_weight=True, groups=True)
        last = SparseSVC(1).set_fit_request(sample_weight=True)
        chosen = make_pipeline(step, last).fit(ROWS, CLASSES, **METADATA)
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(chosen[0].frequencies_, frequencies)
