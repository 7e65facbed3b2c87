"""Dask collections are fitted and predicted as arrays are."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask_data import SHORT, SIZES, N, P, assert_same, blocks, forget_sizes
from sklearn.base import clone

from kmargin import SD, KernelSparseSVC, SparseSVC, sparse_svm_path


def sort_by_class(X, y, weights):
    order = np.argsort(y, kind="stable")
    return X[order], y[order], weights[order]


KINDS = {
    "blocks of one class each": sort_by_class,
    "whole numbers": lambda X, y, w: (np.round(3 * X).astype(np.int32), y, w),
    "flags": lambda X, y, w: (X > 0, y, w),
    "float32": lambda X, y, w: (X.astype(np.float32), y, w),
    "rows without weight": lambda X, y, w: (X, y, np.where(np.arange(N) % 3, w, 0.0)),
}


class TestFit:
    """The same coefficients as for arrays."""

    @pytest.mark.parametrize(
        ("place", "model"),
        [
            ("threads", SparseSVC(k=3, C=0.1, solver=SD(rho_growth=30.0, gtol=1e-2))),
            ("cluster", SparseSVC(k=2, class_weight="balanced", solver=SHORT)),
            ("threads", SparseSVC(k=2, multi_class="ovr", class_weight={0: 2.0, 2: 0.5}, solver=SHORT)),
        ],
        indirect=["place"],
    )
    def test_wherever_blocks_are_and_with_several_classes(self, place, data, model):
        X, y, weights = data
        y = np.digitize(X[:, 0] + X[:, 3], [-0.5, 1.0]) if model.class_weight else y
        assert_same(clone(model).fit(*blocks(X, y, weights)), clone(model).fit(X, y, weights))

    @pytest.mark.parametrize("kind", KINDS)
    def test_with_any_kind_of_rows(self, here, data, kind):
        X, y, weights = KINDS[kind](*data)
        sizes = np.bincount(y == "yes") if kind == "blocks of one class each" else SIZES
        found = SparseSVC(k=3, solver=SHORT).fit(*blocks(X, y, weights, sizes=tuple(map(int, sizes))))
        assert found.coef_.dtype == (np.float32 if kind == "float32" else np.float64)
        expected = SparseSVC(k=3, solver=SHORT).fit(X, y, weights)
        assert_same(found, expected, atol=1e-6 if kind == "float32" else 1e-8)

    def test_with_blocks_of_unknown_size(self, place, data):
        X, y, _ = data
        found = SparseSVC(k=3, solver=SHORT).fit(*map(forget_sizes, blocks(X, y)))
        assert_same(found, SparseSVC(k=3, solver=SHORT).fit(X, y))

    def test_with_dataframes(self, place, data):
        X, y, weights = data
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(P)]).assign(y=y, w=weights)
        names = list(frame.columns[:P])
        far = dd.from_pandas(frame, npartitions=4)
        found = SparseSVC(k=3, solver=SHORT).fit(far[names], far["y"], far["w"])
        expected = SparseSVC(k=3, solver=SHORT).fit(frame[names], y, weights)
        assert_same(found, expected)
        np.testing.assert_array_equal(found.feature_names_in_, expected.feature_names_in_)

    def test_of_a_path(self, client, data):
        X, y, _ = data
        found = sparse_svm_path(*blocks(X, y), ks=[P, 5, 2, 0], solver=SHORT)
        expected = sparse_svm_path(X, y, ks=[P, 5, 2, 0], solver=SHORT)
        np.testing.assert_allclose(found.coefs, expected.coefs, atol=1e-8)
        np.testing.assert_array_equal(found.predict(blocks(X)[0], 2).compute(), expected.predict(X, 2))
        assert found.decision_function(blocks(X.astype(np.float32))[0], 2).dtype == np.float32


@pytest.fixture(scope="module")
def models(data):
    """For two classes, and for three."""
    X, y, _ = data
    return SparseSVC(k=3).fit(X, y), SparseSVC(k=3).fit(X, np.digitize(X[:, 0], [-1.0, 1.0]))


class TestPrediction:
    """Dask arrays, lazily."""

    @pytest.mark.parametrize(("which", "known"), [(0, True), (1, True), (1, False)])
    def test_is_that_of_arrays(self, here, data, models, which, known):
        model, (X,) = models[which], blocks(data[0])
        X = X if known else forget_sizes(X)
        for method in ("decision_function", "predict"):
            expected = getattr(model, method)(data[0])
            found = getattr(model, method)(X)
            assert isinstance(found, da.Array)
            assert found.dtype == expected.dtype
            assert found.ndim == expected.ndim
            assert found.chunks[0] == X.chunks[0] or not known
            assert found._meta.dtype == expected.dtype
            np.testing.assert_array_equal(found.compute(), expected)

    def test_of_dataframes(self, client, data):
        X, y, _ = data
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(P)])
        model = SparseSVC(k=3).fit(frame, y)
        far = dd.from_pandas(frame, npartitions=3)
        np.testing.assert_array_equal(model.predict(far).compute(), model.predict(frame))
        labels = dd.from_pandas(pd.Series(y), npartitions=3)
        assert model.score(far, labels) == pytest.approx(model.score(frame, y))

    def test_computes_nothing(self, models):
        def refuse(block):
            raise AssertionError("computed")

        X = da.zeros((N, P), chunks=(100, P)).map_blocks(refuse, meta=np.empty((0, 0)))
        assert models[0].predict(X).shape == (N,)
        assert models[1].decision_function(X).shape == (N, 3)

    def test_is_scored_by_weight(self, here, data, models):
        X, y, weights = data
        assert models[0].score(*blocks(X, y, weights)) == pytest.approx(models[0].score(X, y, weights))

    def test_of_kernel_machines(self, here, data):
        X, y, _ = data
        model = KernelSparseSVC(k=5).fit(X, y)
        np.testing.assert_array_equal(model.predict(blocks(X)[0]).compute(), model.predict(X))

    def test_of_other_columns_is_refused_as_scikit_learn_does(self, data, models):
        X, y, _ = data
        with pytest.raises(ValueError, match=r"X has 3 features, but SparseSVC is expecting 12 features"):
            models[0].predict(blocks(X[:, :3])[0])
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(P)])
        model = SparseSVC(k=3).fit(frame, y)
        with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
            model.predict(dd.from_pandas(frame.rename(columns={"x0": "z"}), npartitions=2))

    def test_of_nan_is_refused_when_it_is_computed(self, here, data, models):
        X = data[0].copy()
        X[3, 1] = np.nan
        with pytest.raises(ValueError, match="Input X contains NaN"):
            models[0].predict(blocks(X)[0]).compute()
