"""Data whose truth is known."""

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.datasets.dataset import Dataset
from kmargin.datasets import make_sparse_hyperplane, make_synthetic


def hyperplane(n, p, n_causal, seed, n_valid=2000, n_test=2000):
    """The paper's simulation, with rows of the same truth to choose by and others to score on."""
    X, y, coef = make_sparse_hyperplane(
        n + n_valid + n_test, p, n_causal, random_state=seed, return_coef=True
    )
    (X, X_valid, X_test), (y, y_valid, y_test) = (np.split(a, [n, n + n_valid]) for a in (X, y))
    return Dataset(f"{n}x{p}", X, y, X_test, y_test, X_valid, y_valid, np.flatnonzero(coef))


def synthetic(n=1000, p=500, seed=0):
    """The paper's `synthetic`: z-scored, the first 80 % of the rows to fit."""
    X, y, coef = make_synthetic(n, p, random_state=seed, return_coef=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Dataset.split(f"synthetic {n}x{p}", X, y, round(0.8 * n), causal=np.flatnonzero(coef))


def dense(n, p, n_causal, seed=0, flipped=0.05):
    """Many rows, few columns, a share of the labels wrong. Takes no memory to speak of beyond X."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    coef = np.zeros(p)
    coef[rng.choice(p, n_causal, replace=False)] = rng.uniform(2, 10, n_causal)
    y = np.where(X @ coef > 0, 1, -1)
    y[rng.random(n) < flipped] *= -1
    return Dataset(f"{n}x{p}", X, y, X[:1000], y[:1000], causal=np.flatnonzero(coef))


def flip(y, share, rng):
    """Labels of 0 and 1, this share of them wrong."""
    return np.where(rng.random(len(y)) < share, 1 - y, y)


def shells(n, n_test, p=5, seed=0):
    """A class between two spheres, one label in twenty wrong."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + n_test, p))
    radius = np.linalg.norm(X, axis=1)
    y = flip(((radius > 1.5) & (radius < 2.4)).astype(int), 0.05, rng)
    return Dataset.split("shells", X, y, n)


def arms(n, n_test, p=5, seed=0):
    """Two spirals of one and a half turns, other features without meaning, one label in ten wrong."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n + n_test)
    turn = 3 * np.pi * np.sqrt(rng.random(n + n_test))
    X = 0.5 * rng.standard_normal((n + n_test, p))
    angle = turn + np.pi * y
    X[:, :2] *= 0.3
    X[:, 0] += turn / 3 * np.cos(angle)
    X[:, 1] += turn / 3 * np.sin(angle)
    y = flip(y, 0.1, rng)
    return Dataset.split("arms", X, y, n)


def clusters(n, n_test, p=20, seed=0):
    """Six clusters a class in 8 of p dimensions, one label in ten wrong."""
    X, y = make_classification(
        n + n_test,
        p,
        n_informative=8,
        n_redundant=0,
        n_clusters_per_class=6,
        class_sep=2.0,
        flip_y=0.2,  # a new label for one in five, which is the old one for half of them
        random_state=seed,
    )
    X /= X.std(axis=0)
    return Dataset.split("clusters", X, y, n)


def correlated(n, p, correlation, rng):
    """Standard normal columns, neighbours correlated so much, others by its powers."""
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    return X


def draw_classes(logits, rng):
    """A class for each row, drawn with the probabilities of a multinomial logistic model."""
    return np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)


def several_classes(n, seed, strength=1.0, p=1000, n_causal=20, n_classes=10, n_valid=2000):
    """Classes that all depend on the same few features, with rows of the same truth to choose by.

    Coefficients are normal with this standard deviation.
    """
    rng = np.random.default_rng([n, seed])
    X = correlated(n + n_valid, p, 0.3, rng)
    causal = np.sort(rng.choice(p, n_causal, replace=False))
    coef = strength * rng.standard_normal((n_causal, n_classes))
    y = draw_classes(X[:, causal] @ coef, rng)
    name = f"{n}x{p}, {n_classes} classes" + (f", strength {strength:g}" if strength != 1 else "")
    return Dataset.split(name, X, y, n, X_valid=X[n:], y_valid=y[n:], causal=causal)


def with_known_probabilities(name, seed, n_classes, share, n=1000, n_test=10_000):
    """Classes drawn with the probabilities of a logistic model of 4 of 20 features, correlated.

    `share` is what the second of two classes has of the rows, about.
    """
    rng = np.random.default_rng([n_classes, seed])
    X = correlated(n + n_test, 20, 0.3, rng)
    causal = np.arange(0, 20, 5)
    coef = rng.choice([-1.0, 1.0], (len(causal), n_classes)) * rng.uniform(0.5, 1.0, (len(causal), n_classes))
    if n_classes == 2:
        coef[:, 0] = 0
    logits = X[:, causal] @ coef
    if share is not None:
        logits[:, 1] -= np.quantile(logits[:, 1] + rng.logistic(size=len(X)), 1 - share)
    y = draw_classes(logits, rng)
    return Dataset.split(name, X, y, n, causal=causal)


def grouped(n, seed, n_groups=100, size=5, n_causal=10, n_valid=2000):
    """Two classes, features in groups that are correlated within; `causal` are groups.

    Feature j is of group j // size. A causal group has random coefficients in all its features.
    """
    rng = np.random.default_rng([n, seed])
    X = np.sqrt(0.5) * rng.standard_normal((n + n_valid, n_groups * size))
    X += np.repeat(np.sqrt(0.5) * rng.standard_normal((n + n_valid, n_groups)), size, axis=1)
    causal = np.sort(rng.choice(n_groups, n_causal, replace=False))
    columns = (causal[:, None] * size + np.arange(size)).ravel()
    logits = X[:, columns] @ rng.standard_normal(len(columns))
    y = np.where(logits + rng.logistic(size=len(X)) > 0, 1, -1)
    name = f"{n}x{X.shape[1]}, groups of {size}"
    return Dataset.split(name, X, y, n, X_valid=X[n:], y_valid=y[n:], causal=causal)


def scattered(n, seed, correlation=0.0, strength=1.0, p=1000, n_causal=10, block=10):
    """Two classes by a logistic model with coefficients of this size and any sign at random places.

    Features are standard normal, correlated within blocks of neighbours.
    """
    rng = np.random.default_rng([n, seed, p])
    X = np.sqrt(1 - correlation) * rng.standard_normal((n, p))
    X += np.repeat(np.sqrt(correlation) * rng.standard_normal((n, p // block)), block, axis=1)
    causal = np.sort(rng.choice(p, n_causal, replace=False))
    logits = strength * X[:, causal] @ rng.choice([-1.0, 1.0], n_causal)
    y = np.where(logits + rng.logistic(size=n) > 0, 1, -1)
    name = f"{n}x{p}, strength {strength:g}, correlation {correlation:g}"
    return Dataset(name, X, y, X, y, causal=causal)
