"""A warm-started sweep over k, as a function."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sklearn.utils.validation import _get_feature_names, check_X_y

from kmargin import arguments, validate
from kmargin.blocks.ingest import check_features
from kmargin.fitting.grid_fit import Procedure, fit_grid
from kmargin.fitting.linear_blueprint import LinearBlueprint
from kmargin.fitting.repeats import warn_of_repeats
from kmargin.path import SparsityPath
from kmargin.samples.protocol import Samples
from kmargin.samples.read import Checks, read
from kmargin.solvers import DEFAULT
from kmargin.solvers.solver import Solver
from kmargin.unit_request import UnitRequest


def sparse_svm_path(
    X: Any,
    y: Any,
    ks: int | Sequence[int | str] | None = None,
    *,
    C: float = 1.0,
    solver: str | Solver = DEFAULT,
    multi_class: str = "ovo",
    shared: bool = True,
    groups: Any = None,
    keep: Any = None,
    avoid: Any = None,
    signs: Any = None,
    standardize: bool = False,
    fit_intercept: bool = True,
    class_weight: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> SparsityPath:
    """Fit a model for each k, from dense to sparse, each started from the previous one.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Or a dask collection in blocks of rows; or an array on a device, under scikit-learn's
        `array_api_dispatch`.
    y : array-like of shape (n_samples,)
        The classes, two or more.
    ks : list of int, int, or None, default=None
        The values of k, or their number, log-spaced from all features down to one; None means 20.
    C : float, default=1.0
        Inverse strength of the ridge; ``inf`` means no ridge.
    solver : "exchange", "mm", "sd", or a solver object, default="exchange"
        As in :class:`~kmargin.SparseSVC`.
    multi_class : "ovo" or "ovr", default="ovo"
        With more than two classes: one binary classifier for each pair of classes, or for each class against
        the rest.
    shared : bool, default=True
        With more than two classes: whether the binary classifiers share the same features.
    groups, keep, avoid, signs : list, dict or None, default=None
        Groups of features, features that are always or never in the model, and sign constraints, as in
        :class:`~kmargin.SparseSVC`.
    standardize : bool, default=False
        Scale the features to mean 0 and variance 1. The coefficients are in the original units.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    class_weight : dict, "balanced" or None, default=None
        Class weights; they multiply the sample weights.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        A sample of weight 2 counts as two samples, a sample of weight 0 is ignored.
    n_jobs : int or None, default=None
        Number of binary classifiers fitted in parallel; the result is exactly the same for any number.
    random_state : int, RandomState or None, default=None
        Only used by ``MM(start="normal")`` and ``SD(start="normal")``.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    SparsityPath
        The models for each k.

    See Also
    --------
    SparseSVCCV : Chooses k by cross-validation.
    SparsityPathDisplay : Draws a path.

    Examples
    --------
    >>> from kmargin import sparse_svm_path
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=200, n_features=20, random_state=0)
    >>> path = sparse_svm_path(X, y, ks=[20, 5, 2])
    >>> path.coefs.shape
    (3, 1, 20)
    >>> path.solutions[2][0].support
    array([0, 1])
    """
    validate.check_C(C)
    arguments.check_n_jobs(n_jobs)
    arguments.check_verbose(verbose)
    arguments.random_source(random_state)
    names = _get_feature_names(X)
    blueprint = LinearBlueprint(
        multi_class,
        fit_intercept,
        standardize,
        shared,
        request=UnitRequest(groups, keep, avoid, signs),
        names=None if names is None else tuple(names),
    )
    blueprint.check()
    resolved = validate.resolve_solver(solver)
    samples = _read(X, y, sample_weight, class_weight, resolved)
    if blueprint.request.is_empty:
        warn_of_repeats(samples, resolved)
    ks = blueprint.resolve_ks(ks, samples)
    procedure = Procedure(solver, n_jobs, random_state, verbose)
    return fit_grid(blueprint, samples, [C], ks, procedure, chosen=None).path(ks)


def _read(X: Any, y: Any, sample_weight: Any, class_weight: Any, solver: Solver) -> Samples:
    """Labelled data, checked."""
    check = partial(check_X_y, accept_sparse="csr", estimator="sparse_svm_path")
    return read(Checks(check, check_features), X, y, sample_weight, class_weight, solver)
