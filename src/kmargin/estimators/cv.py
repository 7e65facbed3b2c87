"""Machines whose k and C are chosen by cross-validation."""

from typing import Any

from kmargin.estimators.cross_validated import CrossValidated
from kmargin.estimators.kernel import KernelMachines
from kmargin.estimators.linear import LinearMachines
from kmargin.solvers import DEFAULT


class SparseSVCCV(CrossValidated, LinearMachines):
    """A linear support vector machine whose number of features is chosen by cross-validation.

    Parameters
    ----------
    ks : list of int, int or None, default=None
        The values of k to try, or their number, log-spaced from all features down to one. None means 20
        values from the number of features or samples, whichever is smaller, down to one.
    Cs : list of float, default=(1.0,)
        The values of C to try; see :class:`~kmargin.SparseSVC`.
    cv : int, splitter, list of splits, or None, default=None
        As in scikit-learn; None means five folds. A number means stratified folds in the order of the rows,
        reshuffled only if there are several `repeats`, which keep groups of samples given to `fit` together.
        With dask data an integer splits the rows of each class within each block, and ``BlockKFold(5)`` makes
        folds of whole blocks.
    scoring : str, callable or None, default=None
        Any scikit-learn scorer; None means accuracy. With dask data, any scorer of predictions. A scorer of
        probabilities is given probabilities that were calibrated on the test rows of the other folds.
    repeats : int, default=1
        How often the cross-validation is repeated with rows reshuffled by `random_state`. The choice then
        depends less on the random assignment to folds.
    selection : "best", "1se" or "tolerance", default="best"
        The highest mean score over all folds of all repeats (ties go to the smaller k, then to the smaller
        C); or the smallest k whose mean score is within one standard error, or within `tolerance`, of the
        highest. Standard errors are those of Nadeau and Bengio, which account for the training rows that
        folds and repeats have in common; for proportions such as the accuracy they are at least as large as
        the number of rows implies.
    tolerance : float, default=0.01
        With ``selection="tolerance"``, the loss of score that is accepted for fewer features.
    standardize : bool, default=False
        Scale the features to mean 0 and variance 1, in each fold using its training rows alone. The
        coefficients are in the original units.
    solver : "exchange", "mm", "sd", or a solver object, default="exchange"
        As in :class:`~kmargin.SparseSVC`.
    multi_class : "ovo" or "ovr", default="ovo"
        With more than two classes: one binary classifier for each pair of classes, or for each class against
        the rest.
    shared : bool, default=True
        With more than two classes: whether the binary classifiers share the same features.
    groups, keep, avoid, signs : list, dict or None, default=None
        As in :class:`~kmargin.SparseSVC`. These are groups of features; groups of samples, which stay in one
        fold, are passed to `fit`.
    fit_intercept : bool, default=True
        Whether to fit an intercept; without one, features are not centred.
    class_weight : dict, "balanced" or None, default=None
        Class weights; they multiply the sample weights.
    n_jobs : int or None, default=None
        Number of folds and binary classifiers fitted in parallel. The values of C are fitted in order within
        each: the supports found with a strong ridge are the start for a weaker one, which is faster and finds
        better supports, and does not depend on `n_jobs`. To fit each C separately and in parallel, use
        GridSearchCV with ``SparseSVC``.
    random_state : int, RandomState or None, default=None
        Shuffles the rows into folds, and draws the starts of ``MM(start="normal")`` and
        ``SD(start="normal")``.
    verbose : int, default=0
        1 shows a progress bar (by rich, if it is installed).

    Attributes
    ----------
    k_, C_ : int, float
        The chosen values.
    best_score_ : float
        Their mean score over the folds.
    cv_results_ : dict of arrays
        As in GridSearchCV: `param_k`, `param_C`, `params`, `split0_test_score`, ...,
        `mean_test_score`, `std_test_score`, `rank_test_score`; and `se_test_score`, the standard errors of
        the means.
    path_ : SparsityPath
        All values of k at `C_`, fitted to all samples; at `k_` the final model.
    calibration_ : Calibration or None
        The map from decision values to probabilities; its `slopes` and `offsets` have one entry per binary
        classifier. None if a class is in no test fold.
    n_splits_ : int
        The number of folds, over all repeats.
    coef_, intercept_, scale_, classes_, support_, n_iter_, objective_, solutions_
        As in :class:`~kmargin.SparseSVC`, and so are `n_features_in_` and `feature_names_in_`: the final
        model is that of ``SparseSVC(k_, C=C_)`` with the same other parameters, fitted to all samples.

    See Also
    --------
    honest_score : Nested cross-validation of the whole choice.
    CVScoreDisplay : Draws the scores.
    SparsityPathDisplay : Draws the path.

    Examples
    --------
    >>> from kmargin import SparseSVCCV
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=200, n_features=20, random_state=0)
    >>> model = SparseSVCCV(ks=[20, 10, 5, 2, 1]).fit(X, y)
    >>> model.k_
    2
    >>> model.support_
    array([0, 1])
    >>> model.predict_proba(X[1:2]).round(2)
    array([[0.99, 0.01]])
    """

    def __init__(
        self,
        ks: Any = None,
        *,
        Cs: Any = (1.0,),
        cv: Any = None,
        scoring: Any = None,
        repeats: int = 1,
        selection: str = "best",
        tolerance: float = 0.01,
        standardize: bool = False,
        solver: Any = DEFAULT,
        multi_class: str = "ovo",
        shared: bool = True,
        groups: Any = None,
        keep: Any = None,
        avoid: Any = None,
        signs: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.ks = ks
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.repeats = repeats
        self.selection = selection
        self.tolerance = tolerance
        self.standardize = standardize
        self.solver = solver
        self.multi_class = multi_class
        self.shared = shared
        self.groups = groups
        self.keep = keep
        self.avoid = avoid
        self.signs = signs
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


class KernelSparseSVCCV(CrossValidated, KernelMachines):
    """A kernel support vector machine whose number of training points is chosen by cross-validation.

    Parameters
    ----------
    ks : list of int, int or None, default=None
        The values of k to try; None means 20 values, log-spaced from 100 (or all points) down to one.
    Cs : list of float, default=(1.0,)
        The values of C to try.
    cv : int, splitter, list of splits, or None, default=None
        As in :class:`~kmargin.SparseSVCCV`.
    scoring : str, callable or None, default=None
        Any scikit-learn scorer; None means accuracy.
    repeats : int, default=1
        How often the cross-validation is repeated with reshuffled rows.
    selection : "best", "1se" or "tolerance", default="best"
        As in :class:`~kmargin.SparseSVCCV`.
    tolerance : float, default=0.01
        With ``selection="tolerance"``, the loss of score that is accepted for fewer points.
    kernel : "rbf", "poly", "linear", "sigmoid", "precomputed" or callable, default="rbf"
        As in :class:`~kmargin.KernelSparseSVC`.
    gamma : "scale", "auto" or float, default="scale"
        "scale" is computed from the training rows of each fold.
    degree : float, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        Of the kernels "poly" and "sigmoid".
    standardize : bool, default=False
        Scale the features to mean 0 and variance 1, in each fold using its training rows alone, before the
        kernel is computed.
    solver : "exchange", "mm", "sd", or a solver object, default="exchange"
        As in :class:`~kmargin.SparseSVC`.
    multi_class : "ovo" or "ovr", default="ovo"
        With more than two classes: one binary classifier for each pair of classes, or for each class against
        the rest.
    shared : bool, default=True
        With more than two classes: whether the binary classifiers share the same points.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    cache_size : float, default=200
        Megabytes for kernel values, for each binary classifier being fitted.
    n_candidates : int, "all" or None, default=None
        The number of training points from which a binary classifier chooses, as in
        :class:`~kmargin.KernelSparseSVC`.
    class_weight : dict, "balanced" or None, default=None
        Class weights; they multiply the sample weights.
    n_jobs : int or None, default=None
        Number of folds and binary classifiers fitted in parallel.
    random_state : int, RandomState or None, default=None
        Shuffles the rows into folds, and draws the candidate points if they are a sample.
    verbose : int, default=0
        1 shows a progress bar (by rich, if it is installed).

    Attributes
    ----------
    k_, C_, best_score_, cv_results_, calibration_, n_splits_
        As in :class:`~kmargin.SparseSVCCV`.
    support_, support_vectors_, dual_coef_, intercept_, classes_, n_iter_, objective_, solutions_
        As in :class:`~kmargin.KernelSparseSVC`, for the refit with the chosen values.
    path_ : SparsityPath
        All values of k at `C_`, fitted to all samples; a column of its `coefs` for each training
        point that is kept for some k.

    See Also
    --------
    SparseSVCCV : Chooses features instead.
    honest_score : Nested cross-validation of the whole choice.

    Examples
    --------
    >>> from kmargin import KernelSparseSVCCV
    >>> from kmargin.datasets import make_spiral
    >>> X, y = make_spiral(random_state=0)
    >>> model = KernelSparseSVCCV(ks=[60, 20, 10, 5], Cs=[100.0], gamma=1.0).fit(X[::5], y[::5])
    >>> len(model.support_vectors_) == model.k_
    True
    """

    def __init__(
        self,
        ks: Any = None,
        *,
        Cs: Any = (1.0,),
        cv: Any = None,
        scoring: Any = None,
        repeats: int = 1,
        selection: str = "best",
        tolerance: float = 0.01,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        standardize: bool = False,
        solver: Any = DEFAULT,
        multi_class: str = "ovo",
        shared: bool = True,
        fit_intercept: bool = True,
        cache_size: float = 200,
        n_candidates: int | str | None = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.ks = ks
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.repeats = repeats
        self.selection = selection
        self.tolerance = tolerance
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.standardize = standardize
        self.solver = solver
        self.multi_class = multi_class
        self.shared = shared
        self.fit_intercept = fit_intercept
        self.cache_size = cache_size
        self.n_candidates = n_candidates
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
