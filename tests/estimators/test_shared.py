"""k bounds the whole model: shared features and points, groups, kept and avoided features, signs."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from objectives import C_of, objective
from search_problems import lowest_by_lbfgs
from sklearn import config_context
from sklearn.datasets import load_iris, make_classification

from kmargin import MM, SD, Exchange, KernelSparseSVC, SparseSVC, SparseSVCCV, sparse_svm_path
from kmargin.core.problem import ArrayProblem
from kmargin.data.design.dense import DenseDesign

QUICK = {"exchange": Exchange(), "mm": MM(max_outer=20, max_inner=50), "sd": SD(max_outer=20, max_inner=50)}
QUICK["polished"] = MM(max_outer=20, max_inner=50, polish=True)


@pytest.fixture(scope="module")
def data():
    """Four classes, twelve features, half of them of use."""
    counts = {"n_informative": 5, "n_redundant": 1, "n_classes": 4, "n_clusters_per_class": 1}
    return make_classification(160, 12, **counts, random_state=3)


def used_by(coef):
    return np.flatnonzero(np.any(np.atleast_2d(coef) != 0, axis=0))


class TestShared:
    @pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
    @pytest.mark.parametrize("solver", QUICK)
    @pytest.mark.parametrize("k", [0, 3])
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_the_whole_model_uses_at_most_k_features(self, data, multi_class, solver, k):
        model = SparseSVC(k, solver=QUICK[solver], multi_class=multi_class).fit(*data)
        assert len(model.support_) <= k
        np.testing.assert_array_equal(model.support_, used_by(model.coef_))
        assert np.isfinite(model.coef_).all()

    def test_two_classes_have_one_machine_and_nothing_to_share(self, data):
        X, y = data
        both = [SparseSVC(4, shared=shared).fit(X, y > 1).coef_ for shared in (True, False)]
        np.testing.assert_array_equal(*both)

    @pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
    def test_kernel_machines_share_their_points(self, multi_class):
        X, y = load_iris(return_X_y=True)
        model = KernelSparseSVC(5, C=10.0, multi_class=multi_class).fit(X, y)
        assert len(model.support_) <= 5
        assert model.support_vectors_.shape == (len(model.support_), 4)
        assert model.score(X, y) > 0.9
        K = np.exp(-model.kernel_.numbers["gamma"] * ((X[:, None] - X[None]) ** 2).sum(-1))
        given = KernelSparseSVC(5, C=10.0, kernel="precomputed", multi_class=multi_class).fit(K, y)
        np.testing.assert_array_equal(given.support_, model.support_)
        np.testing.assert_array_equal(given.predict(K), model.predict(X))


GROUPS = [0, 0, 1, 2, 2, 2, 3, 3, 4, 5, 5, 5]


class TestGroups:
    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_k_counts_groups(self, data, n_classes):
        X, y = data
        model = SparseSVC(2, groups=GROUPS).fit(X, y % n_classes)
        assert len(np.unique(np.array(GROUPS)[model.support_])) <= 2
        every = []
        for pair in combinations(range(6), 2):
            columns = np.flatnonzero(np.isin(GROUPS, pair))
            every.append(SparseSVC("all").fit(X[:, columns], y % n_classes).objective_.sum())
        assert model.objective_.sum() == pytest.approx(min(every), rel=1e-7)

    def test_a_k_beyond_the_number_of_groups_keeps_all(self, data):
        with pytest.warns(UserWarning, match="k=9 is greater than the number of groups, 6"):
            model = SparseSVC(9, groups=GROUPS).fit(*data)
        assert len(model.support_) == 12

    def test_machines_may_have_groups_of_their_own(self, data):
        X, y = data
        model = SparseSVC(1, groups=GROUPS, shared=False).fit(X, y)
        for row in model.coef_:
            assert len(np.unique(np.array(GROUPS)[np.flatnonzero(row)])) == 1

    def test_names_come_from_the_table(self, data):
        X, y = data
        frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(12)])
        lists = [["gene 0", "gene 1"], ["gene 3", "gene 4", "gene 5"]]
        by_name = SparseSVC(3, groups=lists).fit(frame, y)
        np.testing.assert_array_equal(by_name.coef_, SparseSVC(3, groups=[[0, 1], [3, 4, 5]]).fit(X, y).coef_)
        path = sparse_svm_path(frame, y, [3, 1], groups=lists)
        np.testing.assert_allclose(path.coefs[0], by_name.coef_, rtol=1e-5, atol=1e-8)


class TestKeepAndAvoid:
    def test_what_is_kept_is_in_and_counts_and_the_rest_is_the_best_of_what_is_not_avoided(self, data):
        X, y = data
        model = SparseSVC(3, keep=[11], avoid=[0]).fit(X, y)
        assert 11 in model.support_
        assert 0 not in model.support_
        others = combinations(range(1, 11), 2)
        every = [SparseSVC("all").fit(X[:, [11, *pair]], y).objective_.sum() for pair in others]
        assert model.objective_.sum() == pytest.approx(min(every), rel=1e-6)

    def test_cross_validation_tries_no_k_without_room(self, data):
        model = SparseSVCCV(keep=[0, 1, 2], cv=3).fit(*data)
        assert model.path_.ks.min() == 3
        assert {0, 1, 2} <= set(model.support_)
        with pytest.raises(ValueError, match="k=2 is less than the 3 features"):
            SparseSVCCV([5, 2], keep=[0, 1, 2], cv=3).fit(*data)


class TestSigns:
    @pytest.mark.parametrize("n_classes", [2, 4])
    @pytest.mark.parametrize("solver", ["exchange", "mm", "polished"])
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_coefficients_have_their_signs(self, data, n_classes, solver):
        X, y = data
        signs = np.array([1, -1, 0] * 4)
        model = SparseSVC(6, signs=signs, solver=QUICK[solver]).fit(X, y % n_classes)
        assert (model.coef_ * signs >= 0).all()
        assert len(model.support_) <= 6

    @pytest.mark.parametrize("seed", range(3))
    def test_of_all_supports_the_best_under_signs_is_found(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 7)) + 0.5 * rng.standard_normal((60, 1))
        y = np.where(X @ rng.standard_normal(7) + rng.standard_normal(60) > 0, 1.0, -1.0)
        signs = rng.choice([-1, 0, 1], 7)
        lam = [0.1, 0.01, 0.001][seed % 3]
        model = SparseSVC(3, C=C_of(lam, 60), signs=signs).fit(X, y)

        problem = ArrayProblem(DenseDesign(X, True), y, np.ones(60), lam)
        supports = map(list, combinations(range(7), 3))
        best = min(lowest_by_lbfgs(problem, support, signs[support]) for support in supports)
        assert model.objective_[0] == pytest.approx(best, rel=1e-6)
        value = objective(X, y, model.coef_, model.intercept_, lam)
        assert model.objective_[0] == pytest.approx(value, rel=1e-10)


REQUEST = {"groups": GROUPS, "keep": [2], "signs": {0: 1, 3: -1, 10: 1}}


@pytest.mark.parametrize("request_", [{}, REQUEST], ids=["plain", "groups, keep, signs"])
@pytest.mark.parametrize("kind", ["sparse matrix", "data frame", "dask", "torch"])
def test_kinds_of_data_have_the_same_model(data, request_, kind, request):
    X, y = data
    expected = SparseSVC(3, **request_).fit(X, y)
    if kind == "sparse matrix":
        X = sp.csr_matrix(X)
    elif kind == "data frame":
        X = pd.DataFrame(X).rename(columns=str)
    elif kind == "dask":
        da = pytest.importorskip("dask.array")
        X, y = da.from_array(X, chunks=(50, 12)), da.from_array(y, chunks=50)
    else:
        torch = request.getfixturevalue("torch")
        torch.set_num_threads(1)  # on a busy machine they would wait for each other
        X, y = torch.asarray(X), torch.asarray(y)
    with config_context(array_api_dispatch=kind == "torch"):
        model = SparseSVC(3, **request_).fit(X, y)
    assert isinstance(model.coef_, np.ndarray) == (kind != "torch")
    np.testing.assert_array_equal(np.asarray(model.support_), expected.support_)
    np.testing.assert_allclose(np.asarray(model.coef_), expected.coef_, rtol=1e-6, atol=1e-8)


def test_signs_stay_where_columns_are_far_from_zero():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4)) + 3e8
    y = np.argmax((X - 3e8)[:, :3] + 0.5 * rng.standard_normal((40, 3)), axis=1)
    signs = np.array([1, -1, 1, -1])
    assert (SparseSVC(4, C=1e6, signs=signs).fit(X, y).coef_ * signs >= 0).all()
