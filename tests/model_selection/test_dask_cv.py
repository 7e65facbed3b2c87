"""Cross-validation of data in blocks, by its in-memory twin."""

import dask
import numpy as np
import pytest
from dask_data import SHORT, blocks
from sklearn.metrics import make_scorer, matthews_corrcoef
from sklearn.model_selection import KFold

from kmargin import BlockKFold, SparseSVCCV
from kmargin.core.validation import resolve_seed
from kmargin.data.blocks.sums import Part

SIZES = (70, 40, 0, 55, 35)
KS, CS = [4, 1], [0.1, 1.0]


@pytest.fixture(autouse=True)
def in_threads():
    with dask.config.set(scheduler="threads"):
        yield


@pytest.fixture
def data(rng):
    X = rng.standard_normal((200, 8)) + 1.0
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(200), [1.0, 3.0])]
    return X, y


def collect(*arrays):
    return blocks(*arrays, sizes=SIZES)


def splits(y, n_folds, whole_blocks=False, seed=None):
    """The folds of blocks as splits by row numbers."""
    seed = resolve_seed(0) if seed is None else seed
    starts = np.append(0, np.cumsum(SIZES))
    codes = np.unique(y, return_inverse=True)[1]
    for fold in range(n_folds):
        part = Part(n_folds, fold, True, seed, whole_blocks)
        inside = np.concatenate([part.rows(b, codes[starts[b] : starts[b + 1]]) for b in range(len(SIZES))])
        yield np.flatnonzero(~inside), np.flatnonzero(inside)


BY_BLOCK = [(BlockKFold(2), scoring) for scoring in (None, "balanced_accuracy", "f1_macro")]


@pytest.mark.parametrize(("cv", "scoring"), [(3, None), (2, "matthews"), *BY_BLOCK])
def test_blocks_are_cross_validated_as_arrays_are(data, cv, scoring):
    X, y = data
    scoring = {"matthews": make_scorer(matthews_corrcoef)}.get(scoring, scoring)
    n_folds, whole = (cv.n_splits, True) if isinstance(cv, BlockKFold) else (cv, False)
    settings = {"ks": KS, "Cs": CS, "scoring": scoring, "standardize": True}
    found = SparseSVCCV(cv=cv, **settings).fit(*collect(X, y))
    expected = SparseSVCCV(cv=list(splits(y, n_folds, whole)), **settings).fit(X, y)
    for name in found.cv_results_:
        if name.endswith("_score"):
            np.testing.assert_allclose(found.cv_results_[name], expected.cv_results_[name], rtol=1e-12)
    assert (found.k_, found.C_) == (expected.k_, expected.C_)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)
    np.testing.assert_allclose(found.path_.coefs, expected.path_.coefs, atol=1e-8)


@pytest.mark.parametrize(("multi_class", "unit"), [("ovo", 1.0), ("ovr", 1e200)])
def test_weights_count_in_fitting_and_scoring(data, rng, multi_class, unit):
    X, y = data
    weights = unit * rng.integers(0, 3, len(y))
    Cs = [C / unit for C in CS]
    settings = {"ks": KS, "Cs": Cs, "multi_class": multi_class, "class_weight": "balanced"}
    settings |= {"standardize": True}  # by the sample weights alone, not by those of classes
    found = SparseSVCCV(cv=2, **settings).fit(*collect(X, y, weights))
    expected = SparseSVCCV(cv=list(splits(y, 2)), **settings).fit(X, y, weights)
    for name in ("mean_test_score", "se_test_score"):
        np.testing.assert_allclose(found.cv_results_[name], expected.cv_results_[name], rtol=1e-12)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)


def test_folds_do_not_depend_on_n_jobs(data):
    dX, dy = collect(*data)
    one, two = (SparseSVCCV([2], cv=2, n_jobs=n_jobs, solver=SHORT).fit(dX, dy) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_random_state_deals_the_rows_anew(data):
    X, y = data
    dX, dy = collect(X, y == "a")
    given = {"ks": [1], "cv": 2, "solver": SHORT}
    models = [SparseSVCCV(random_state=seed, **given).fit(dX, dy) for seed in (None, None, 1, 1, 2)]
    scores = [model.cv_results_["split0_test_score"].tolist() for model in models]
    assert scores[0] == scores[1]
    assert scores[2] == scores[3]
    assert len({tuple(score) for score in scores}) > 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cv": KFold(3)}, "splits rows by their indices, which rows in blocks do not have"),
        ({"cv": 1}, "cv=1 does not define folds"),
        ({"cv": BlockKFold(9)}, r"BlockKFold\(9\) needs a block for each fold, but X has 5"),
        ({"scoring": "roc_auc_ovr"}, "needs more than predictions"),
        ({"scoring": lambda model, X, y: 0.0}, "does not accept sample weights"),
    ],
)
def test_what_blocks_do_not_offer_is_said_in_a_sentence(data, settings, message):
    with pytest.raises(ValueError, match=message):
        SparseSVCCV([1], **settings).fit(*collect(*data))


def test_groups_are_blocks_and_a_fold_without_a_class_is_named(data):
    X, y = data
    with pytest.raises(ValueError, match="Put each group into one block"):
        SparseSVCCV([1]).fit(*collect(X, y), groups=np.arange(200))
    y = np.where(np.arange(200) < 70, "a", np.where(y == "a", "b", y))  # class a is in block 0 alone
    with pytest.raises(ValueError, match="Fold 0 has no training sample of class 'a'"):
        SparseSVCCV([1], cv=BlockKFold(2)).fit(*collect(X, y))


def test_whole_blocks_are_for_blocks(data):
    assert (BlockKFold().get_n_splits(), repr(BlockKFold(n_splits=3))) == (5, "BlockKFold(3)")
    with pytest.raises(TypeError, match="BlockKFold splits blocks, but X has none"):
        SparseSVCCV([1], cv=BlockKFold(3)).fit(*data)
