"""Simulate the data of the paper, and gene expression with known relevant genes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def make_synthetic(
    n_samples: int = 1000, n_features: int = 500, *, random_state: Any = None, return_coef: bool = False
) -> tuple[np.ndarray, ...]:
    """Simulate two informative, correlated features and many uninformative ones (the paper's appendix B.1).

    Features x_1 and x_2 have variances 1 and 3 and covariance 0.9, the others have variance 2. All other
    covariances are 1e-3 times a standard normal number. The label is the sign of 10 x_1 - 10 x_2. The paper
    standardises the features before use.

    Parameters
    ----------
    n_samples, n_features : int, default=1000 and 500
        Numbers of rows and columns.
    random_state : int, RandomState or None, default=None
        Seed for the covariances and the rows.
    return_coef : bool, default=False
        Whether the true coefficients are returned as well.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The features.
    y : ndarray of shape (n_samples,)
        The labels, -1 or 1.
    coef : ndarray of shape (n_features,)
        The true coefficients. Only with `return_coef`.

    Examples
    --------
    >>> from kmargin.datasets import make_synthetic
    >>> X, y, coef = make_synthetic(random_state=0, return_coef=True)
    >>> X.shape, coef[:3]
    ((1000, 500), array([ 10., -10.,   0.]))
    """
    if n_features < 2:
        raise ValueError(
            f"n_features={n_features} leaves no room for the two informative features. Use n_features >= 2."
        )
    rng = check_random_state(random_state)
    covariance = np.triu(1e-3 * rng.standard_normal((n_features, n_features)), 1)
    covariance[0, 1] = 0.9
    covariance += covariance.T
    np.fill_diagonal(covariance, 2.0)
    covariance[0, 0], covariance[1, 1] = 1.0, 3.0
    X = rng.standard_normal((n_samples, n_features)) @ np.linalg.cholesky(covariance).T
    coef = np.zeros(n_features)
    coef[:2] = 10.0, -10.0
    return _label(X, coef, return_coef)


def make_sparse_hyperplane(
    n_samples: int = 1000,
    n_features: int = 500,
    n_causal: int = 50,
    *,
    random_state: Any = None,
    return_coef: bool = False,
) -> tuple[np.ndarray, ...]:
    """Simulate independent standard normal features, `n_causal` of which decide the class.

    This is the simulation of the paper's section on model selection. The label is the sign of ``X @ coef``,
    without noise. The coefficients of the causal features are in [-10, -2] or [2, 10], all others are 0.

    Parameters
    ----------
    n_samples, n_features : int, default=1000 and 500
        Numbers of rows and columns.
    n_causal : int, default=50
        Number of features with a nonzero coefficient.
    random_state : int, RandomState or None, default=None
        Seed for the coefficients and the rows.
    return_coef : bool, default=False
        Whether the true coefficients are returned as well.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The features.
    y : ndarray of shape (n_samples,)
        The labels, -1 or 1.
    coef : ndarray of shape (n_features,)
        The true coefficients. Only with `return_coef`.

    Examples
    --------
    >>> from kmargin.datasets import make_sparse_hyperplane
    >>> X, y, coef = make_sparse_hyperplane(200, 30, 5, random_state=0, return_coef=True)
    >>> X.shape, int((coef != 0).sum())
    ((200, 30), 5)
    """
    if not 0 < n_causal <= n_features:
        raise ValueError(
            f"n_causal={n_causal} of n_features={n_features} is not possible. Use 0 < n_causal <= n_features."
        )
    rng = check_random_state(random_state)
    coef = np.zeros(n_features)
    causal = rng.choice(n_features, n_causal, replace=False)
    coef[causal] = rng.uniform(2.0, 10.0, n_causal) * rng.choice([-1.0, 1.0], n_causal)
    return _label(rng.standard_normal((n_samples, n_features)), coef, return_coef)


def make_spiral(
    n_per_class: Sequence[int] = (600, 300, 100),
    noise: Sequence[float] = (0.1, 0.2, 0.3),
    *,
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate noisy spirals in the plane, one per class, rows in random order (the paper's appendix B.2).

    Parameters
    ----------
    n_per_class : list of int, default=(600, 300, 100)
        Number of points of each spiral.
    noise : list of float, default=(0.1, 0.2, 0.3)
        Standard deviation of the noise of each spiral.
    random_state : int, RandomState or None, default=None
        Seed for the noise and the order of the rows.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points.
    y : ndarray of shape (n_samples,)
        The class of each point: the index of its spiral.

    Examples
    --------
    >>> from kmargin.datasets import make_spiral
    >>> X, y = make_spiral(random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 2), [0, 1, 2])
    """
    if len(n_per_class) != len(noise):
        raise ValueError(
            f"n_per_class has {len(n_per_class)} entries and noise {len(noise)}. Give one of each per class."
        )
    rng = check_random_state(random_state)
    arms = []
    for c, (n, sigma) in enumerate(zip(n_per_class, noise, strict=True)):
        index = np.arange(1, n + 1)
        radius = 7 * (1 - index / (n + n / 5))
        angle = np.pi / 8 + index * np.pi / n + c * 2 * np.pi / len(n_per_class)
        center = np.array([-3.5, 3.5])
        arm = center + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        arms.append(arm + sigma * rng.standard_normal((n, 2)))
    y = np.repeat(np.arange(len(arms)), n_per_class)
    order = rng.permutation(len(y))
    return np.vstack(arms)[order], y[order]


def make_genes(
    n_samples: int = 72,
    n_genes: int = 7129,
    *,
    n_modules: int = 50,
    genes_per_module: int = 40,
    n_telling: int = 3,
    effect: float = 1.8,
    correlation: float = 0.7,
    random_state: Any = None,
    return_modules: bool = False,
) -> tuple[np.ndarray, ...]:
    """Simulate few samples of many genes, some of which are correlated.

    The default size is that of a well-known leukaemia study. A module is a set of genes that share a latent
    factor. In class 1 the factors of some modules have a higher mean. Genes outside the modules are
    independent. All genes are then scaled by 0.3 to 1.2 and shifted by 4 to 12, like log expression.

    Parameters
    ----------
    n_samples, n_genes : int, default=72 and 7129
        Numbers of rows and columns. A third of the samples belong to class 1.
    n_modules, genes_per_module : int, default=50 and 40
        Number and size of the modules. Their genes are the first columns, module after module.
    n_telling : int, default=3
        How many modules have a factor that depends on the class; these modules come first.
    effect : float, default=1.8
        Mean of these factors in class 1 minus that in class 0, in standard deviations of a factor.
    correlation : float, default=0.7
        Correlation between genes of the same module within a class.
    random_state : int, RandomState or None, default=None
        Seed for the classes and the expression values.
    return_modules : bool, default=False
        Whether the module of each gene is returned as well.

    Returns
    -------
    X : ndarray of shape (n_samples, n_genes)
        The expression of each gene.
    y : ndarray of shape (n_samples,)
        The classes, 0 or 1.
    modules : ndarray of shape (n_genes,)
        The index of each gene's module, -1 for none. Only with `return_modules`.

    Examples
    --------
    >>> from kmargin.datasets import make_genes
    >>> X, y, modules = make_genes(random_state=0, return_modules=True)
    >>> X.shape, int(y.sum()), int((modules == 0).sum())
    ((72, 7129), 24, 40)
    """
    n_shared = n_modules * genes_per_module
    if not (0 <= n_telling <= n_modules and n_shared <= n_genes):
        raise ValueError(
            f"n_telling={n_telling} of n_modules={n_modules} with genes_per_module={genes_per_module} is not "
            f"possible with n_genes={n_genes}. Use fewer or smaller modules, and at most all for y."
        )
    if not 0 <= correlation <= 1:
        raise ValueError(
            f"correlation={correlation} is not a proportion of variance. Use a number from 0 to 1."
        )
    rng = check_random_state(random_state)
    y = rng.permutation((np.arange(n_samples) < round(n_samples / 3)).astype(int))
    factors = rng.standard_normal((n_samples, n_modules))
    factors[:, :n_telling] += effect * y[:, None]
    modules = np.full(n_genes, -1)
    modules[:n_shared] = np.repeat(np.arange(n_modules), genes_per_module)
    X = rng.standard_normal((n_samples, n_genes))
    X[:, :n_shared] *= np.sqrt(1 - correlation)
    X[:, :n_shared] += np.sqrt(correlation) * factors[:, modules[:n_shared]]
    X = rng.uniform(4.0, 12.0, n_genes) + rng.uniform(0.3, 1.2, n_genes) * X
    return (X, y, modules) if return_modules else (X, y)


def _label(X: np.ndarray, coef: np.ndarray, return_coef: bool) -> tuple[np.ndarray, ...]:
    """Return X, the labels (the signs of ``X @ coef``) and, if `return_coef`, also `coef`."""
    y = np.where(X @ coef > 0, 1, -1)
    return (X, y, coef) if return_coef else (X, y)
