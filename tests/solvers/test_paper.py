"""The paper's own example, `synthetic`, along the grid of its Table 2."""

import numpy as np
import pytest

from kmargin import sparse_svm_path
from kmargin.core.sparsity import count_kept
from kmargin.datasets import make_sparse_hyperplane, make_spiral, make_synthetic

SPARSITIES = np.concatenate([np.linspace(*ends, 5) for ends in [(0, 0.9), (0.91, 0.99), (0.991, 0.999)]])


@pytest.mark.parametrize(("solver", "seed"), [("mm", 0), ("sd", 2)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_synthetic_two_features_are_found_and_one_is_not_enough(solver, seed):
    X, y, coef = make_synthetic(1000, 500, random_state=seed, return_coef=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    train, test = slice(None, 800), slice(800, None)
    ks = [count_kept(s, 500) for s in SPARSITIES]
    path = sparse_svm_path(X[train], y[train], ks, C=np.inf, solver=solver)
    accuracy = {k: np.mean(path.predict(X[test], k) == y[test]) for k in path.ks}
    np.testing.assert_array_equal(path.solutions[-2][0].support, np.flatnonzero(coef))
    assert path.ks[-2] == 2
    assert accuracy[2] >= 0.99
    assert accuracy[1] < 0.85
    # dense machines overfit here: 73 to 77 % in the paper
    assert accuracy[500] < 0.85


def test_synthetic_has_the_covariance_it_says():
    X, y, coef = make_synthetic(200_000, 5, random_state=0, return_coef=True)
    covariance = np.cov(X.T)
    np.testing.assert_allclose(np.diag(covariance), [1, 3, 2, 2, 2], rtol=0.02)
    np.testing.assert_allclose(covariance[0, 1], 0.9, rtol=0.03)
    assert np.abs(np.triu(covariance, 1)[:, 2:]).max() < 0.03
    np.testing.assert_array_equal(y, np.sign(X @ coef))


def test_hyperplane_has_the_effects_it_says():
    X, y, coef = make_sparse_hyperplane(300, 80, 20, random_state=1, return_coef=True)
    effects = np.abs(coef[coef != 0])
    assert len(effects) == 20
    assert effects.min() >= 2
    assert effects.max() <= 10
    assert (coef < 0).any()
    np.testing.assert_array_equal(y, np.sign(X @ coef))


def test_spirals_have_the_sizes_and_radii_they_say():
    X, y = make_spiral(noise=(0, 0, 0), random_state=0)
    assert list(np.bincount(y)) == [600, 300, 100]
    radius = np.hypot(*(X - [-3.5, 3.5]).T)
    assert radius.max() < 7
    np.testing.assert_allclose(radius.min(), 7 / 6, rtol=1e-9)  # the last point of each arm


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (make_synthetic, {"n_features": 1}, "n_features=1 leaves no room"),
        (make_sparse_hyperplane, {"n_features": 5, "n_causal": 6}, "n_causal=6 of n_features=5"),
        (make_spiral, {"noise": (0.1,)}, "n_per_class has 3 entries and noise 1"),
    ],
)
def test_impossible_simulations_are_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)
