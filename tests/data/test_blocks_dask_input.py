"""What is wrong with dask collections is said in one sentence, before any work is done."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from dask_data import N, assert_same, blocks, forget_sizes, make_data
from sklearn.exceptions import DataConversionWarning

from kmargin import Exchange, KernelSparseSVC, SparseSVC

pytestmark = pytest.mark.usefixtures("here")


def changed(array, row, value):
    array = np.array(array, dtype=np.result_type(array, type(value)))
    array[row] = value
    return array


def some_columns(size):
    """X without some columns in its block of so many rows; dask does not know of it."""
    return far_X.map_blocks(lambda block: block[:, : 5 if len(block) == size else None], meta=X[:0])


X, y, w = make_data()
far_X, far_y, far_w = blocks(X, y, w)
zeros = np.zeros(N)
frame = dd.from_pandas(pd.DataFrame(X).add_prefix("x").assign(city="Bern"), npartitions=5)
texts = [dd.from_pandas(pd.DataFrame(np.full((N, n), "a")).add_prefix("c"), npartitions=5) for n in (5, 6)]
other_rows = (200, 50, 100, 70, 180)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((blocks(changed(X, (251, 4), np.nan))[0], far_y), "X has NaN in block 2 (rows 250 to 349), col"),
        ((blocks(changed(X, (1, 0), -np.inf))[0], far_y), "infinity in block 0 (rows 0 to 249), column 0"),
        ((far_X, y), "X is a dask Array, but y is a numpy ndarray: one is divided into blocks"),
        ((X, far_y), "y is a dask Array, but X is a numpy ndarray: one is divided into blocks"),
        ((far_X, far_y, list(w)), "X is a dask Array, but sample_weight is a list"),
        ((X, y, far_w), "sample_weight is a dask Array, but X is a numpy ndarray"),
        ((far_X, far_y.rechunk((300, 300))), "X has 5 blocks of rows, but y has 2: they must have"),
        ((far_X, blocks(y, sizes=other_rows)[0]), "Block 0 of X has 250 rows, but that of y has 200"),
        ((forget_sizes(far_X), forget_sizes(blocks(y, sizes=other_rows)[0])), "Block 0 of X has 250 rows"),
        ((far_X, far_y, blocks(w, sizes=(250, 0, 100, 80, 170))[0]), "Block 3 of X has 70 rows"),
        ((far_X.rechunk((250, 4)), far_y), "X is divided into 3 blocks along its columns"),
        ((far_X[:, 0], far_y), "Expected 2D array, got 1D array instead"),
        ((far_X[:, :, None], far_y), "Expected 2D array, got 3D array instead"),
        ((far_X, far_X[:, :2]), "y should be a 1d array, got an array of 2 dimensions"),
        ((far_X.astype(complex), far_y), "X has dtype complex128: features have to be real numbers"),
        ((far_X.astype(object), far_y), "X has dtype object: features have to be real numbers"),
        ((frame, far_y), "X has columns that are not real numbers: 'city' ("),
        ((texts[0], far_y), "). Encode them as numbers, or leave them out."),
        ((texts[1], far_y), f"'c4' ({texts[1].dtypes['c4']}), .... Encode them as numbers, or leave"),
        ((forget_sizes(far_X.T).T, far_y), "The number of columns of X is not known"),
        ((some_columns(250), far_y), "X has shape (250, 5) in block 0 (rows 0 to 249), but 12 columns were"),
        ((some_columns(0), far_y), "X has shape (0, 5) in block 1, but 12 columns were expected"),
        ((far_X.map_blocks(scipy.sparse.csr_matrix), far_y), "X holds blocks of type scipy.csr_mat"),
        ((far_X.map_blocks(scipy.sparse.csr_matrix, meta=X[:0]), far_y), "X holds blocks of type scipy.csr_"),
        ((far_X, blocks(np.full(N, "a"))[0]), "y has only one class"),
        ((far_X, blocks(changed(zeros, 400, np.nan))[0]), "In block 3 (rows 350 to 419): y contains NaN"),
        ((far_X, blocks(changed(y.astype(object), 400, None))[0]), "block 3 (rows 350 to 419): y co"),
        ((far_X, blocks(changed(zeros, 7, 0.5))[0]), "In block 0 (rows 0 to 249): Unknown label type"),
        ((far_X, far_y, blocks(changed(w, 400, -1.0))[0]), "sample_weight[400]=-1 in block 3 (rows 35"),
        ((far_X, far_y, blocks(changed(w, 599, np.inf))[0]), "sample_weight contains NaN or infinity in"),
        ((far_X, far_y, blocks(zeros)[0]), "sample_weight is zero for every sample"),
        ((far_X, far_y, blocks(np.where(y == "no", 0.0, 1.0))[0]), "of class 'no' are zero"),
        ((far_X[:0], far_y[:0]), "Found array with 0 sample(s) (shape=(0, 12)) in 1 blocks"),
        ((far_X[:, :0], far_y), "0 feature(s)"),
        ((far_X, None), "requires y to be passed"),
        ((frame["city"].to_bag(), far_y), "X is a dask Bag. Give a dask array or a dask dataframe"),
    ],
)
def test_bad_input_is_refused(given, message, monkeypatch):
    monkeypatch.setattr(Exchange, "solve_grid", None)
    with pytest.raises((ValueError, TypeError)) as error:
        SparseSVC(k=3).fit(*given)
    assert message in str(error.value)


def test_missing_numbers_of_pandas_are_found(data):
    frame = pd.DataFrame({"a": pd.array([1, None, 3] * 200, dtype="Int64"), "b": 1.0})
    far = dd.from_pandas(frame, npartitions=2), dd.from_pandas(pd.Series(data[1]), npartitions=2)
    with pytest.raises(ValueError, match=r"X has NaN in block 0 \(rows 0 to 299\), column 0 \('a'\)"):
        SparseSVC(k=1).fit(*far)


def test_a_column_of_labels_is_taken_with_a_warning(data):
    X, y, w = data
    far_X, far_y, far_w = blocks(X, y, w)
    with pytest.warns(DataConversionWarning, match="A column-vector (y|sample_weight) was passed") as caught:
        model = SparseSVC(k=3).fit(far_X, far_y[:, None], far_w.to_dask_dataframe().to_frame())
    assert len(caught) == 2
    assert_same(model, SparseSVC(k=3).fit(X, y, w))


def test_mm_says_why_not(data):
    with pytest.raises(ValueError, match=r'singular vectors of X.*use solver="exchange" or solver="sd"'):
        SparseSVC(solver="mm").fit(*blocks(*data[:2]))


def test_a_kernel_machine_says_why_not(data):
    with pytest.raises(TypeError, match=r"KernelSparseSVC does not accept dask collections.*Use SparseSVC"):
        KernelSparseSVC().fit(*blocks(*data[:2]))
