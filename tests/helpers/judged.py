"""Fitted models judged by a reference that shares no code with the package."""

import warnings

import numpy as np
from fuzz.models import make_tasks, weigh
from fuzz.reference import refit
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning


def tasks_of(model, X, y, weights=None):
    """The two-class problems that a linear model was asked to solve."""
    X = X.toarray() if issparse(X) else X
    weighing = weigh(y, weights, model.class_weight)
    return list(make_tasks(X, weighing, model.multi_class, model.C, model.fit_intercept))


def each_machine(model, X, y, weights=None):
    """Task, coefficients, intercept and solution of each machine, in double precision."""
    fitted = zip(tasks_of(model, X, y, weights), model.coef_, model.intercept_, model.solutions_, strict=True)
    return [(task, w.astype(float), float(b), solution) for task, w, b, solution in fitted]


def assert_sound(model, X, y, weights=None, *, rel=1e-7):
    """Finite, at most k features, worth what it says, and never worse than the intercept alone."""
    for task, w, b, solution in each_machine(model, X, y, weights):
        assert np.isfinite(w).all()
        assert np.isfinite(b)
        assert model.k == "all" or np.count_nonzero(w) <= model.k
        value, doubt = task.objective(w, b), 4 * task.doubt(w, b)
        assert abs(value - solution.objective) <= rel * value + doubt + 1e-12
        assert value <= task.constant() * (1 + 1e-9) + min(doubt, 1e-6) + 1e-15


def assert_minimal(model, X, y, weights=None, *, rel=1e-6, tiny=1e-12):
    """No refit on the support of a machine is better."""
    for task, w, b, _ in each_machine(model, X, y, weights):
        best = refit(task, np.flatnonzero(w), w, b)
        doubt = task.doubt(best.w, best.b)
        assert task.objective(w, b) <= best.value * (1 + rel) + 4 * doubt + tiny


def quietly(fit, *args, **options):
    """Repeated columns, a k beyond the features, and an annealing that ends early are no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit(*args, **options)
