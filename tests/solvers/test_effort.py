"""The effort of the search: small problems are searched exhaustively, large ones within the settings."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from fuzz.reference import LONG, Task, refit
from sklearn.datasets import load_breast_cancer

from kmargin import Exchange, SparseSVC, SparseSVCCV, Status, sparse_svm_path
from kmargin.core.validation import RepeatedFeaturesWarning
from kmargin.solvers.exchange import EFFORTS
from kmargin.solvers.search import path

# Optima of the standardised breast-cancer data, proven by enumeration, or by bounds for k >= 6: (k, lam).
CANCER = {
    (1, 1e-4): 0.116389993748,
    (3, 1e-3): 0.0579428091401,
    (5, 1e-4): 0.0412011187065,
    (7, 1e-4): 0.0346109106328,
    (9, 1e-2): 0.0475006152399,
    (10, 1e-4): 0.0283134199589,
}


def C_of(lam, n):
    return 1 / (2 * lam * n)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def make_neighbours(seed, n=60, p=12):
    """Columns that are strongly correlated with their neighbours."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
    truth = rng.standard_normal(p) * (np.arange(p) % 3 == 0)
    return X, (X @ truth + 0.1 * rng.standard_normal(n) > 0).astype(int)


def best_of_all(X, y, k, lam):
    """The lowest objective of all supports of k columns, by the reference."""
    n, p = X.shape
    task = Task(X, np.where(y == 1, 1.0, -1.0), np.full(n, LONG(1) / n), np.full(p, LONG(lam)), True)
    return min(float(refit(task, np.array(c), np.zeros(p), 0.0).value) for c in combinations(range(p), k))


@pytest.mark.parametrize(("k", "lam"), CANCER)
def test_the_default_single_fit_finds_the_optimum_of_breast_cancer(cancer, k, lam):
    model = SparseSVC(k, C=C_of(lam, len(cancer[1]))).fit(*cancer)
    assert model.objective_[0] == pytest.approx(CANCER[k, lam], rel=1e-9)


def test_the_path_finds_the_optimum_of_breast_cancer_where_exchanges_alone_do_not(cancer):
    found = sparse_svm_path(*cancer, range(30, 0, -1), C=C_of(1e-4, len(cancer[1])))
    assert found.objectives[list(found.ks).index(6)] == pytest.approx(0.0376524844553, rel=1e-9)


# seeds at which a search from one start does not find the optimum
@pytest.mark.parametrize("seed", [3, 60, 117, 250])
def test_the_default_single_fit_of_correlated_columns_is_the_best_of_all_supports(seed):
    X, y = make_neighbours(seed)
    model = SparseSVC(4, C=C_of(1e-4, len(y))).fit(X, y)
    assert model.objective_[0] == pytest.approx(best_of_all(X, y, 4, 1e-4), rel=1e-7)
    assert model.solutions_[0].status is Status.SWAP_OPTIMAL


def test_fast_fits_and_fits_in_folds_take_fewer_steps():
    X, y = make_neighbours(1, n=60, p=40)
    solvers = Exchange(), Exchange(effort="fast"), Exchange().in_folds()
    default, fast, folds = (SparseSVC(8, solver=solver).fit(X, y).n_iter_[0] for solver in solvers)
    assert folds == fast < default


def test_only_the_fit_on_all_rows_is_searched_from_other_starts(monkeypatch):
    starts = []
    begin = path.SupportPath._start_elsewhere

    def recorded(self, k):
        starts.append((self.n_rows, self.effort.max_starts))
        begin(self, k)

    monkeypatch.setattr(path.SupportPath, "_start_elsewhere", recorded)
    X, y = make_neighbours(1, n=60, p=24)
    SparseSVCCV(ks=[5], Cs=[1.0], cv=3).fit(X, y)
    assert {n for n, max_starts in starts if max_starts} == {60}


def few_rows(seed=0, n=40, p=600):
    """A problem too large for exhaustive search, with too few rows for one descent to find the optimum."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = (X[:, :5].sum(axis=1) + rng.standard_normal(n) > 0).astype(int)
    return X, y


def test_small_tables_are_searched_again_only_where_rows_are_few(monkeypatch):
    tables = few_rows(n=40, p=100), few_rows(n=200, p=100)
    models = [SparseSVC(6).fit(*table) for table in tables]
    monkeypatch.setitem(EFFORTS, "normal", EFFORTS["normal"]._replace(restart_seconds=0.0))
    for model, table, restarts in zip(models, tables, (True, False), strict=True):
        alone = SparseSVC(6).fit(*table)
        assert (model.n_iter_[0] > alone.n_iter_[0]) == restarts
        assert model.objective_[0] <= alone.objective_[0]


def test_restarts_are_the_same_in_every_fit_and_with_groups_of_one_feature():
    X, y = few_rows()
    X[:, 9] = X[:, 0]  # a repeated feature is left out, and reported, in each of the fits
    with pytest.warns(RepeatedFeaturesWarning) as caught:
        models = [
            SparseSVC(6, C=1.0, groups=groups, random_state=seed).fit(X, y)
            for seed, groups in enumerate((None, None, list(range(600))))
        ]
    assert len(caught) == len(models)
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


@pytest.mark.parametrize("width", [1, 2])
def test_columns_that_are_zero_in_all_active_rows_do_not_end_the_search(width):
    fit = partial(sparse_svm_path, C=np.inf, multi_class="ovr", solver=Exchange(effort="thorough"))
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.uniform(1, 2, 6 * width) * (rng.random((37, 6 * width)) < 0.12)
        y, unit = rng.integers(0, 4, 37), np.arange(6 * width) // width
        triples = (np.isin(unit, units) for units in combinations(range(6), 3))
        best = min(fit(X[:, chosen], y, [3 * width]).objectives.sum() for chosen in triples)
        path = fit(X, y, [6, 3], groups=unit)
        assert path.objectives[-1].sum() <= best * (1 + 1e-9)
        assert path.solutions[-1][0].status is Status.SWAP_OPTIMAL
