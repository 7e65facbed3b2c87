"""How hard the search tries: everything where that is cheap, what its knobs say where it is not."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from fuzz.reference import LONG, Task, refit
from judged import each_machine
from sklearn.datasets import load_breast_cancer

from kmargin import Exchange, SparseSVC, SparseSVCCV, Status, sparse_svm_path
from kmargin.solvers.exchange import EFFORTS
from kmargin.solvers.search import path as grid
from kmargin.solvers.search import working_set

# Of the standardised breast-cancer table, proven: by every support, or for k = 6 and more by bounds.
CANCER = {
    (1, 1e-4): 0.116389993748,
    (2, 1e-3): 0.0783019493042,
    (3, 1e-3): 0.0579428091401,
    (3, 1e-4): 0.0560261183637,
    (5, 1e-3): 0.0439379240539,
    (5, 1e-4): 0.0412011187065,
    (7, 1e-4): 0.0346109106328,
    (9, 1e-2): 0.0475006152399,
    (10, 1e-3): 0.033035866865,
    (10, 1e-4): 0.0283134199589,
}


def C_of(lam, n):
    return 1 / (2 * lam * n)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def make_neighbours(seed, n=60, p=12):
    """Columns that are much like those beside them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
    truth = rng.standard_normal(p) * (np.arange(p) % 3 == 0)
    return X, (X @ truth + 0.1 * rng.standard_normal(n) > 0).astype(int)


def best_of_all(X, y, k, lam):
    """The lowest objective of any k columns, by the reference."""
    n, p = X.shape
    task = Task(X, np.where(y == 1, 1.0, -1.0), np.full(n, LONG(1) / n), np.full(p, LONG(lam)), True)
    return min(float(refit(task, np.array(c), np.zeros(p), 0.0).value) for c in combinations(range(p), k))


@pytest.fixture
def searches(monkeypatch):
    """What each search through a panel was told, and how many tries it made in how many rounds."""
    made = []
    search = working_set.search

    def recorded(fit, value, max_swaps, max_doubles, room, tol, counts):
        before = counts.copy()
        value = search(fit, value, max_swaps, max_doubles, room, tol, counts)
        rounds, tries = (counts - before)[:2]
        made.append((len(fit.idx) - 1, max_swaps, max_doubles, int(rounds), int(tries)))
        return value

    monkeypatch.setattr(working_set, "search", recorded)
    return made


@pytest.mark.parametrize(("k", "lam"), CANCER)
def test_the_default_single_fit_finds_the_optimum_of_breast_cancer(cancer, k, lam):
    model = SparseSVC(k, C=C_of(lam, len(cancer[1]))).fit(*cancer)
    assert model.objective_[0] == pytest.approx(CANCER[k, lam], rel=1e-9)


def test_the_path_finds_the_optimum_of_breast_cancer_where_exchanges_alone_do_not(cancer):
    path = sparse_svm_path(*cancer, range(30, 0, -1), C=C_of(1e-4, len(cancer[1])))
    at = list(path.ks).index(6)
    assert path.objectives[at] == pytest.approx(0.0376524844553, rel=1e-9)


# where features that are much alike mislead a search from one start
@pytest.mark.parametrize("seed", [3, 10, 15, 60, 117, 169, 210, 217, 250, 0])
def test_the_default_single_fit_of_columns_that_are_much_alike_is_the_best_of_all_supports(seed):
    X, y = make_neighbours(seed)
    model = SparseSVC(4, C=C_of(1e-4, len(y))).fit(X, y)
    assert model.objective_[0] == pytest.approx(best_of_all(X, y, 4, 1e-4), rel=1e-7)
    assert model.solutions_[0].status is Status.SWAP_OPTIMAL


@pytest.mark.parametrize("seed", [3, 60])
def test_a_path_of_columns_that_are_much_alike_is_as_good_as_single_fits(seed):
    X, y = make_neighbours(seed)
    C = C_of(1e-4, len(y))
    path = sparse_svm_path(X, y, [4, 3, 2, 1], C=C)
    single = [SparseSVC(k, C=C).fit(X, y).objective_ for k in (4, 3, 2, 1)]
    np.testing.assert_allclose(path.objectives, single, rtol=1e-7)


@pytest.mark.parametrize(("p", "k"), [(7, 3), (9, 2), (6, 6), (8, 1), (5, 4)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_where_all_supports_are_tried_the_best_is_found(p, k, fit_intercept):
    X, y = make_neighbours(p, n=25, p=p)
    model = SparseSVC(k, C=100.0, fit_intercept=fit_intercept).fit(X, y)
    ((task, *_),) = each_machine(model, X, y)
    values = [refit(task, np.array(c), np.zeros(p), 0.0).value for c in combinations(range(p), k)]
    assert len(values) == comb(p, k)
    assert model.objective_[0] == pytest.approx(float(min(values)), rel=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_a_small_problem_says_that_no_swap_helps_and_none_does(seed):
    X, y = make_neighbours(seed, n=40, p=30)
    model = SparseSVC(5, C=C_of(1e-2, len(y))).fit(X, y)
    ((task, w, b, solution),) = each_machine(model, X, y)
    assert solution.status is Status.SWAP_OPTIMAL
    support = np.flatnonzero(w)
    for leaving in support:
        start = np.where(np.arange(30) == leaving, 0.0, w)
        for entering in np.setdiff1d(np.arange(30), support):
            swapped = np.append(np.setdiff1d(support, leaving), entering)
            assert refit(task, swapped, start, b).value >= solution.objective * (1 - 1e-8)


def test_without_other_starts_and_in_folds_less_is_done():
    X, y = make_neighbours(1, n=60, p=40)
    steps = {
        name: SparseSVC(8, solver=solver).fit(X, y).n_iter_[0]
        for name, solver in (
            ("default", Exchange()),
            ("fast", Exchange(effort="fast")),
            ("folds", Exchange().in_folds()),
        )
    }
    assert steps["folds"] == steps["fast"] < steps["default"]


def test_folds_are_searched_without_other_starts(monkeypatch):
    """Only the fit on all rows begins anew from single features."""
    starts = []
    begin = grid.SupportGrid._start_elsewhere

    def recorded(self, lam, k):
        starts.append((self.design.n_samples, self.effort.max_starts))
        begin(self, lam, k)

    monkeypatch.setattr(grid.SupportGrid, "_start_elsewhere", recorded)
    X, y = make_neighbours(1, n=60, p=24)
    SparseSVCCV(ks=[5], Cs=[1.0], cv=3).fit(X, y)
    assert {n for n, max_starts in starts if max_starts} == {60}


@pytest.mark.parametrize("max_swaps", [1, 3, 8])
def test_a_large_problem_is_tried_no_more_than_the_effort_says(searches, max_swaps, monkeypatch):
    n, p, k = 300, 200, 5
    assert n * p * p > grid.SMALL_GRAM
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    y = (X[:, :8].sum(axis=1) + 2 * rng.standard_normal(n) > 0).astype(int)
    few = EFFORTS["fast"]._replace(max_swaps=max_swaps, max_double_swaps=2)
    monkeypatch.setitem(EFFORTS, "fast", few)
    model = SparseSVC(k, solver=Exchange(effort="fast")).fit(X, y)
    assert model.solutions_[0].status is Status.SETTLED
    assert searches
    for size, swaps, doubles, rounds, tries in searches:
        blocks = np.log2(max(size, 2))  # halved at each failure
        assert swaps <= max_swaps
        assert tries <= rounds * (max(swaps, 1) + doubles + blocks)


def test_a_small_problem_is_tried_more_than_the_effort_says(searches, monkeypatch):
    monkeypatch.setitem(EFFORTS, "normal", EFFORTS["normal"]._replace(max_swaps=1, max_double_swaps=0))
    X, y = make_neighbours(0, n=60, p=30)
    SparseSVC(6).fit(X, y)
    assert max(tries / rounds for *_, rounds, tries in searches) > 10


@pytest.mark.parametrize("k", [150, 200, 290])
def test_no_claim_is_made_of_swaps_that_were_not_tried(k):
    """More features than rows: the search by rows tries few swaps, whatever it was told."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 300)), np.arange(40) % 2
    model = SparseSVC(k, C=1.0, solver=Exchange(effort="thorough")).fit(X, y)
    ((task, w, b, solution),) = each_machine(model, X, y)
    if solution.status is Status.SETTLED:
        return
    support, others = np.flatnonzero(w), np.flatnonzero(w == 0)
    for leaving in support[np.argsort(np.abs(w[support]))[:5]]:
        start = np.where(np.arange(300) == leaving, 0.0, w)
        for entering in others[:20]:
            swapped = np.append(np.setdiff1d(support, leaving), entering)
            assert refit(task, swapped, start, b).value >= solution.objective * (1 - 1e-8)


def test_no_claim_is_made_of_columns_that_rounding_cannot_tell_apart():
    """The difference of two nearly equal ones tells the classes apart, and no Gram matrix shows it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    hidden = rng.standard_normal(40)
    X[:, 1] = X[:, 0] + 1e-9 * hidden
    y = np.where(hidden + 0.3 * rng.standard_normal(40) > 0, 1, -1)
    model = SparseSVC(3, C=np.inf).fit(X, y)
    best = SparseSVC("all", C=np.inf).fit(np.column_stack([X[:, 0], hidden]), y).objective_[0]
    assert model.objective_[0] < best * 1.01 or model.solutions_[0].status is not Status.SWAP_OPTIMAL


def test_all_swaps_are_tried_where_that_was_asked_for_on_a_large_problem(searches):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 200))
    y = (X[:, :3].sum(axis=1) + rng.standard_normal(300) > 0).astype(int)
    model = SparseSVC(2, C=1.0, solver=Exchange(effort="thorough")).fit(X, y)
    assert model.solutions_[0].status is Status.SWAP_OPTIMAL
    assert max(tries for size, *_, tries in searches if size == 2) >= 2 * 198


def few_rows(seed=0, n=40, p=600):
    """Too large to be searched from every start, too few rows for one descent to find the best."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = (X[:, :5].sum(axis=1) + rng.standard_normal(n) > 0).astype(int)
    return X, y


def test_restarts_lower_the_objective_where_rows_are_few():
    lower = 0
    for seed in range(4):
        X, y = few_rows(seed)
        fast, normal = (
            SparseSVC(6, C=1.0, solver=Exchange(effort=effort)).fit(X, y).objective_[0]
            for effort in ("fast", "normal")
        )
        assert normal <= fast * (1 + 1e-9)
        lower += normal < 0.99 * fast
    assert lower >= 2


def test_restarts_are_the_same_in_every_fit_and_with_groups_of_one_feature():
    X, y = few_rows()
    models = [
        SparseSVC(6, C=1.0, groups=groups, random_state=seed).fit(X, y)
        for seed, groups in enumerate((None, None, list(range(600))))
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_features_of_several_classes_are_restarted_together():
    X, y = few_rows(p=400, n=60)
    y = y + (X[:, 0] > 1)
    fast, normal = (
        SparseSVC(5, C=1.0, solver=Exchange(effort=effort)).fit(X, y).objective_.sum()
        for effort in ("fast", "normal")
    )
    assert normal < fast
