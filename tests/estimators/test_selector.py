"""A linear machine hands on exactly the features that it chose."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from kmargin import KernelSparseSVC, SparseSVC, SparseSVCCV

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 8))
Y = (X[:, 1] - 2 * X[:, 4] + X[:, 6] + 0.3 * RNG.standard_normal(60) > 0).astype(int)
NAMES = [f"gene {j}" for j in range(8)]
FRAME = pd.DataFrame(X, columns=NAMES)
CHOSEN = [1, 4, 6]


@pytest.fixture(scope="module")
def model():
    return SparseSVC(k=3).fit(FRAME, Y)


@pytest.fixture(scope="module")
def nameless():
    return SparseSVC(k=3).fit(X, Y)


@pytest.mark.parametrize("selector", [SparseSVC(k=3), SparseSVCCV([3], cv=2)])
def test_a_pipeline_hands_on_the_chosen_features_and_no_others(selector):
    pipeline = make_pipeline(selector, LogisticRegression()).fit(X, Y)
    assert pipeline[-1].n_features_in_ == 3
    alone = LogisticRegression().fit(X[:, CHOSEN], Y)
    np.testing.assert_allclose(pipeline[-1].coef_, alone.coef_)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(X[:, CHOSEN]))


def test_arrays_and_sparse_matrices_stay_what_they_are(nameless):
    np.testing.assert_array_equal(nameless.transform(X), X[:, CHOSEN])
    np.testing.assert_array_equal(SparseSVC(k=3).fit_transform(X, Y), X[:, CHOSEN])
    assert nameless.transform(X.astype(np.float32)).dtype == np.float32
    for kind in (sp.csr_matrix, sp.csc_array):
        chosen = nameless.transform(kind(X))
        assert sp.issparse(chosen)
        np.testing.assert_array_equal(chosen.toarray(), X[:, CHOSEN])


@pytest.mark.parametrize(("library", "make_frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_frames_come_out_where_set_output_asks_for_them(library, make_frame):
    frame = make_frame({name: FRAME[name].to_numpy() for name in NAMES})
    model = SparseSVC(k=3).set_output(transform=library)
    chosen = model.fit(frame, Y).transform(frame)
    assert isinstance(chosen, make_frame)
    assert list(chosen.columns) == list(model.get_feature_names_out()) == [NAMES[j] for j in CHOSEN]
    np.testing.assert_array_equal(chosen.to_numpy(), X[:, CHOSEN])


def test_dask_collections_stay_lazy(nameless, model):
    chosen = nameless.transform(da.from_array(X, chunks=(20, 8)))
    assert isinstance(chosen, da.Array)
    np.testing.assert_array_equal(chosen.compute(scheduler="sync"), X[:, CHOSEN])
    back = nameless.inverse_transform(chosen)
    assert isinstance(back, da.Array)
    np.testing.assert_array_equal(back.compute(scheduler="sync"), nameless.inverse_transform(X[:, CHOSEN]))
    frame = model.transform(dd.from_pandas(FRAME, npartitions=3))
    assert isinstance(frame, dd.DataFrame)
    assert list(frame.columns) == [NAMES[j] for j in CHOSEN]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(dd.from_pandas(FRAME[NAMES[::-1]], npartitions=3))


def test_arrays_on_a_device_stay_there(torch):
    T = torch.asarray(X)
    with config_context(array_api_dispatch=True):
        model = SparseSVC(k=3).fit(T, torch.asarray(Y))
        chosen = model.transform(T)
        assert isinstance(chosen, torch.Tensor)
        assert isinstance(model.get_support(), torch.Tensor)
        np.testing.assert_array_equal(chosen.numpy(), X[:, CHOSEN])
        back = model.inverse_transform(chosen)
        assert back.shape == T.shape
        np.testing.assert_array_equal(model.transform(back).numpy(), X[:, CHOSEN])
        assert model.get_feature_names_out().tolist() == ["x1", "x4", "x6"]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_the_inverse_has_zeros_where_nothing_was_chosen(nameless, kind):
    back = nameless.inverse_transform(nameless.transform(kind(X)))
    expected = np.where(np.isin(np.arange(8), CHOSEN), X, 0.0)
    np.testing.assert_array_equal(back.toarray() if sp.issparse(back) else back, expected)
    words = r"X has shape \(60, 2\), but there are 3 chosen features. Give the output"
    with pytest.raises(ValueError, match=words):
        nameless.inverse_transform(kind(X[:, :2]))


@pytest.mark.parametrize(
    ("request_", "bare", "chosen"),
    [({"groups": {"a": [6, 2, 3], "b": [4, 5]}, "avoid": [3]}, 2, [2, 4, 5, 6]), ({"keep": [0]}, 0, [0, 4])],
)
def test_all_columns_of_a_chosen_group_and_kept_ones_are_chosen_even_without_weight(request_, bare, chosen):
    sign = -np.sign(np.corrcoef(X[:, bare], Y)[0, 1])
    model = SparseSVC(k=2, signs={bare: sign}, **request_).fit(X, Y)
    assert model.coef_[0, bare] == 0, "the sign leaves it no weight"
    assert bare not in model.support_
    assert model.get_support(indices=True).tolist() == chosen
    assert model.get_feature_names_out().tolist() == [f"x{j}" for j in chosen]
    assert model.transform(X).shape == (60, len(chosen))


def test_a_model_without_features_hands_on_none():
    model = SparseSVC(k=0).fit(X, Y)
    assert model.transform(X).shape == (60, 0)
    assert model.inverse_transform(np.empty((60, 0))).shape == X.shape


@pytest.mark.parametrize("k", [3, 6])
def test_select_from_model_keeps_what_was_chosen(k):
    """Its default threshold would be the mean of the coefficients' sizes, zeros included."""
    chosen = SparseSVC(k=k).fit(X, Y)
    selector = SelectFromModel(SparseSVC(k=k)).fit(X, Y)
    np.testing.assert_array_equal(selector.get_support(), chosen.get_support())
    assert np.abs(chosen.coef_).mean() > np.abs(chosen.coef_[0, chosen.support_]).min() or k == 3
    tiny = SelectFromModel(SparseSVC(k=k, standardize=True), threshold=1e-300).fit(X * 1e9, Y)
    assert tiny.get_support().sum() == k


@pytest.mark.parametrize("name", ["transform", "get_feature_names_out", "coef_", "summary", "set_output"])
def test_a_kernel_machine_says_that_it_chooses_points(name):
    with pytest.raises(AttributeError, match=f"has no {name}: a kernel model selects training points"):
        getattr(KernelSparseSVC(), name)
    assert not hasattr(KernelSparseSVC(), "n_features_in_")
