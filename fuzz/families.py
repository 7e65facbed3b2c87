"""The families of cases: each a function of a random generator that returns the parts of a case."""

import numpy as np
from sklearn.base import clone

from fuzz import draw
from fuzz.bad import bad_arguments
from fuzz.case import Case
from fuzz.forms import ARRAYS, FOREIGN, SPARSE
from fuzz.matrices import MATRICES, PLAIN
from kmargin import MM, SD

# `effort="thorough"` tries every swap. Cases use it up to this many swaps times the features of a refit.
MOST_SWAPPED = 1e5

# Limits of an annealing whose steps are expensive, or which fits many classifiers.
FEW_OUTER, FEW_INNER = 30, 200


def problem(rng, matrix=None, n=None, p=None, n_classes=None, separable=False):
    """Data and labels."""
    n = int(rng.integers(4, 61)) if n is None else n
    p = draw.size(rng, 1, 80 if rng.random() < 0.2 else 20) if p is None else p
    if n_classes is None:
        n_classes = 2 if rng.random() < 0.93 else int(rng.integers(3, 7))
    X = MATRICES[matrix or rng.choice(PLAIN)](rng, n, p)
    codes = draw.codes(rng, X, n_classes, separable)
    return {"data": X, "y": draw.labels(rng, codes)}


def typed(rng, X, narrow=0.2):
    """X in another type now and then."""
    if np.array_equal(X, np.round(X)) and np.abs(X).max(initial=0) < 1000 and rng.random() < 0.5:
        return X.astype(rng.choice([np.int64, np.int32, np.int16]))
    sizes = np.abs(X).max(axis=0, initial=0)
    if rng.random() < narrow and sizes.max(initial=0) < 1e37 and sizes[sizes > 0].min(initial=1) > 1e-30:
        return X.astype(np.float32)
    return X


def settings(rng, parts, *, annealing=0.04, path=0.12, weighted=0.15, narrow=0.2):
    """Add to data their form, the call and its parameters."""
    p = parts["data"].shape[1]
    parts["data"] = typed(rng, parts["data"], narrow)
    params = {"C": draw.C(rng), "solver": draw.solver(rng, rng.random() < annealing)}
    params["random_state"] = int(rng.integers(0, 100))
    parts["call"] = "SparseSVC"
    if rng.random() < path:
        parts["call"] = "sparse_svm_path"
        params["ks"] = [draw.k(rng, p) for _ in range(rng.integers(1, 5))]
        if rng.random() < 0.1:
            params["ks"] = int(10.0 ** rng.uniform(0, 9)) if rng.random() < 0.2 else int(rng.integers(1, 30))
    else:
        params["k"] = draw.k(rng, p)
    if rng.random() < 0.12:
        params["fit_intercept"] = False
    if rng.random() < 0.3:
        params["multi_class"] = str(rng.choice(["ovo", "ovr"]))
    if rng.random() < weighted:
        parts["sample_weight"] = draw.weights(rng, len(parts["y"]))
    if rng.random() < 0.08:
        params["class_weight"] = draw.class_weight(rng, np.unique(parts["y"]))
    kind = rng.random()
    if isinstance(params["solver"], MM) and rng.random() < 0.9:
        kind *= 0.7  # it takes no sparse matrices, and says so
    parts["form"] = str("c" if kind < 0.4 else rng.choice(ARRAYS) if kind < 0.7 else rng.choice(SPARSE))
    if len(np.unique(parts["y"])) > 2 or "ks" in params:  # each of many machines and sizes takes all steps
        params["solver"] = with_few_steps(params["solver"])
    parts["params"] = params | {"solver": "exchange"} if asks_too_much(params, p) else params
    return parts


def with_few_steps(solver):
    """An annealing that ends soon; other solvers as they are."""
    if not isinstance(solver, MM | SD):
        return solver
    few = {"max_outer": min(FEW_OUTER, solver.max_outer), "max_inner": min(FEW_INNER, solver.max_inner)}
    return clone(solver).set_params(**few)


def asks_too_much(params, p):
    """Whether more swaps are asked for than there is time for."""
    if getattr(params["solver"], "effort", "") != "thorough":
        return False
    sizes = params.get("ks", [params.get("k")])
    sizes = range(1, p + 1) if isinstance(sizes, int) else [p if k == "all" else min(k, p) for k in sizes]
    return sum(k * k * (p - k) for k in sizes) > MOST_SWAPPED


def any_matrix(rng, share):
    """The name of any kind of matrix in this share of the cases, otherwise None."""
    return rng.choice(list(MATRICES)) if rng.random() < share else None


def wide(rng):
    p = draw.size(rng, 80, 1500 if rng.random() < 0.2 else 300)
    return settings(rng, problem(rng, n=int(rng.integers(4, 41)), p=p, n_classes=2))


def tall(rng):
    n = draw.size(rng, 60, 2000 if rng.random() < 0.2 else 300)
    return settings(rng, problem(rng, n=n, p=draw.size(rng, 1, 12), n_classes=2))


def classes(rng):
    parts = settings(rng, problem(rng, n=int(rng.integers(6, 41)), n_classes=int(rng.integers(3, 7))))
    if rng.random() < 0.3:
        parts["params"]["shared"] = False
    return parts


def units(rng):
    """Groups, features that are always or never in, signs; two classes or more."""
    matrix = any_matrix(rng, 0.3)
    p, n_classes = draw.size(rng, 2, 20), int(rng.choice([2, 2, 3, 4]))
    parts = settings(rng, problem(rng, matrix, n=int(rng.integers(6, 61)), p=p, n_classes=n_classes))
    params = parts["params"] | draw.request(rng, p)
    if n_classes > 2 and rng.random() < 0.3:
        params["shared"] = False
    n_kept = len(params.get("keep", ()))
    if "k" in params and params["k"] != "all":
        params["k"] = max(params["k"], n_kept)
    elif "ks" in params and not isinstance(params["ks"], int):
        params["ks"] = [k if k == "all" else max(k, n_kept) for k in params["ks"]]
    parts["params"] = params
    return parts


def foreign(rng):
    """Dask collections and arrays of other libraries."""
    matrix = rng.choice(["scales", "odd_columns", "offsets"]) if rng.random() < 0.3 else None
    n = int(rng.integers(4, 31))
    parts = settings(rng, problem(rng, matrix, n=n, p=draw.size(rng, 1, 10), n_classes=2))
    parts["form"] = str(rng.choice(FOREIGN))
    parts["data"] = np.asarray(parts["data"], dtype=float)
    parts["params"]["solver"] = with_few_steps(parts["params"]["solver"])  # each step takes a millisecond
    return parts


def cross_validation(rng):
    parts = settings(rng, problem(rng, any_matrix(rng, 0.3), p=draw.size(rng, 1, 20)), path=0.0)
    params = parts["params"]
    p = parts["data"].shape[1]
    params["ks"] = [draw.k(rng, p) for _ in range(rng.integers(1, 4))]
    params["Cs"] = [params.pop("C"), *(draw.C(rng) for _ in range(rng.integers(0, 2)))]
    params.pop("k")
    params["cv"] = int(rng.integers(2, 4))
    params["standardize"] = bool(rng.random() < 0.6)
    if rng.random() < 0.3:
        params["selection"] = "1se"
    parts["call"] = "SparseSVCCV"
    return parts


def kernels(rng):
    matrix = any_matrix(rng, 0.3)
    parts = settings(rng, problem(rng, matrix, n=int(rng.integers(3, 31)), p=draw.size(rng, 1, 8)), path=0.0)
    params, n = parts["params"], len(parts["y"])
    params["k"] = draw.k(rng, n)
    params["kernel"] = str(rng.choice(["rbf", "linear", "poly", "sigmoid", "precomputed"]))
    if rng.random() < 0.5:
        params["gamma"] = float(10.0 ** rng.uniform(-3, 3))
    if params["kernel"] == "poly":
        params["degree"] = int(rng.integers(1, 6))
        params["coef0"] = float(rng.choice([0.0, 1.0]))
    limit = 1e3 / (params.get("gamma", 1.0) * parts["data"].shape[1])
    largest = limit**0.5 if params["kernel"] == "poly" else 1e30  # for kernel values below 1e15, or 1e100
    parts["data"] = np.clip(parts["data"], -largest, largest).astype(parts["data"].dtype)
    if params["kernel"] == "precomputed":
        Z = draw.units(parts["data"].astype(float))
        parts["data"] = Z @ Z.T if rng.random() < 0.7 else rng.standard_normal((n, n))
        parts["form"] = str(rng.choice(ARRAYS))
        params.pop("gamma", None)
    elif rng.random() < 0.2:
        params["cache_size"] = 1e-3
        params["solver"] = with_few_steps(params["solver"])  # the kernel is computed anew in each of them
    parts["call"] = "KernelSparseSVC"
    if rng.random() < 0.1:
        params["ks"] = [params.pop("k"), 1]
        params["Cs"] = [params.pop("C")]
        params["cv"] = 2
        parts["call"] = "KernelSparseSVCCV"
    return parts


FAMILIES = {name: lambda rng, name=name: settings(rng, problem(rng, name)) for name in MATRICES} | {
    "spread": lambda rng: settings(rng, problem(rng, "spread"), narrow=0.6),
    "separable": lambda rng: settings(rng, problem(rng, separable=True, n_classes=2)),
    "tiny": lambda rng: settings(rng, problem(rng, rng.choice(list(MATRICES)), n=int(rng.integers(1, 6)))),
    "wide": wide,
    "tall": tall,
    "weights": lambda rng: settings(rng, problem(rng, any_matrix(rng, 0.3)), weighted=0.9),
    "classes": classes,
    "units": units,
    "annealing": lambda rng: settings(rng, problem(rng, any_matrix(rng, 0.5), n_classes=2), annealing=1.0),
    "paths": lambda rng: settings(rng, problem(rng, rng.choice(list(MATRICES))), path=1.0),
    "foreign": foreign,
    "cross_validation": cross_validation,
    "kernels": kernels,
    "bad_arguments": bad_arguments,
}
# how often, where that is not once: what costs most comes seldom
SHARES = {
    "wide": 0.3,
    "tall": 0.3,
    "classes": 0.4,
    "units": 0.5,
    "foreign": 0.15,
    "cross_validation": 0.3,
    "kernels": 0.7,
    "zero": 0.4,
    "bad_arguments": 0.5,
    "annealing": 0.7,
    "binary": 2.0,
    "scales": 2.0,
}
_NAMES = list(FAMILIES)
_PROBABILITIES = np.array([SHARES.get(name, 1.0) for name in _NAMES])
_PROBABILITIES /= _PROBABILITIES.sum()


def family_of(number):
    """Which family a case belongs to."""
    return _NAMES[np.random.default_rng(number).choice(len(_NAMES), p=_PROBABILITIES)]


def make_case(number):
    """The case of this number, always the same."""
    rng = np.random.default_rng(number)
    family = _NAMES[rng.choice(len(_NAMES), p=_PROBABILITIES)]
    return Case(number=number, family=family, **FAMILIES[family](rng))
