"""What was fitted, taken apart into binary classifiers that can be judged one by one."""

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from fuzz.reference import EPS, LONG, Task
from kmargin import Exchange

# Numbers spread over less than this share of their mean may be equal but for rounding: in extended precision
# they certainly are below the one, and certainly are not above the other.
CERTAINLY_EQUAL, CERTAINLY_VARIES = 1e-17, 1e-9


@dataclass
class Fitted:
    """One binary classifier of a model."""

    task: Task
    w: np.ndarray  # one coefficient for each column, or for each training point
    b: float
    objective: float  # as reported
    status: str
    k: int
    exact: bool  # fitted by `Exchange`, which reaches the minimum on its support
    eps: float = EPS  # of the numbers that the model was made of
    precision: float = EPS  # of the coefficients that it keeps
    place: str = ""  # which classifier this is, in words
    choices: np.ndarray | None = None  # columns that may be selected, if not all


class Weighing(NamedTuple):
    """Classes, and the weight of each row."""

    codes: np.ndarray
    classes: np.ndarray
    repeats: np.ndarray
    weights: np.ndarray
    kept: np.ndarray  # rows whose weight is not zero


def weigh(y, sample_weight, class_weight):
    """Sample weight times class weight, as scikit-learn has it."""
    classes, codes = np.unique(y, return_inverse=True)
    repeats = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
    repeats = np.broadcast_to(repeats, (len(y),))
    factor = np.ones(len(classes))
    if isinstance(class_weight, str):
        factor = len(y) / (len(classes) * np.bincount(codes))
    elif class_weight is not None:
        factor = np.array([class_weight.get(name, 1.0) for name in classes.tolist()])
    weights = repeats * factor[codes]
    return Weighing(codes, classes, repeats, weights, np.flatnonzero(weights))


def split(weighing, multi_class):
    """The rows and labels of each binary classifier."""
    codes, n_classes = weighing.codes, len(weighing.classes)
    if n_classes == 2 or multi_class == "ovo":
        for negative, positive in combinations(range(n_classes), 2):
            rows = weighing.kept[np.isin(codes[weighing.kept], (negative, positive))]
            yield rows, np.where(codes[rows] == positive, 1.0, -1.0)
    else:
        for positive in range(n_classes):
            yield weighing.kept, np.where(codes[weighing.kept] == positive, 1.0, -1.0)


def make_tasks(X, weighing, multi_class, C, has_intercept, spread=None, noise=None):
    """One task for each binary classifier, in the order of the model."""
    for rows, y in split(weighing, multi_class):
        weight = weighing.weights[rows].astype(LONG)
        total = weight.sum()
        lam = LONG(0) if np.isinf(C) else 1 / (2 * LONG(C) * total)
        ridge = np.full(X.shape[1], lam) * (1 if spread is None else spread**2)
        yield Task(X[rows], y, weight / total, ridge, has_intercept, None if noise is None else noise[rows])


def spreads(X, repeats):
    """Standard deviations, of weighted rows, in extended precision; 1 for constant columns.

    None where it is a matter of rounding whether a column is constant.
    """
    X, share = X.astype(LONG), repeats.astype(LONG) / repeats.astype(LONG).sum()
    mean = share @ X
    spread = np.sqrt(share @ (X - mean) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(spread > 0, spread / np.abs(mean), 0)
    if ((ratio > CERTAINLY_EQUAL) & (ratio < CERTAINLY_VARIES)).any():
        return None
    return np.where(ratio <= 1e-12, 1, spread)


def kernel_matrix(X, weighing, name, gamma, degree, coef0):
    """Kernel values of all rows with all rows, from their definition, and in which units they are rounded.

    Distances are commonly computed from products, and lose what these have in common. None where it is a
    matter of rounding whether the entries of X vary, and so what gamma is.
    """
    X = X.astype(float)
    if gamma == "auto":
        gamma = 1 / X.shape[1]
    elif gamma == "scale":
        kept = X[weighing.kept].astype(LONG)
        share = weighing.repeats[weighing.kept].astype(LONG)
        share = share / share.sum() / X.shape[1]
        mean = (share @ kept).sum()
        variance = (share @ (kept - mean) ** 2).sum()
        if (CERTAINLY_EQUAL * mean) ** 2 < variance < (CERTAINLY_VARIES * mean) ** 2:
            return None
        gamma = float(1 / (X.shape[1] * variance)) if variance > (CERTAINLY_VARIES * mean) ** 2 else 1.0
    products, sizes = X @ X.T, np.abs(X) @ np.abs(X.T)
    if name == "rbf":
        K = np.exp(-gamma * ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
        squares = (X**2).sum(axis=1)
        return K, K * gamma * (squares[:, None] + squares)
    if name == "linear":
        return products, sizes
    inner, sizes = gamma * products + coef0, gamma * sizes + abs(coef0)
    if name == "poly":
        return inner**degree, degree * sizes**degree
    return np.tanh(inner), sizes


class Undecided(Exception):
    """An oracle cannot tell; its message says why."""


def on_host(array):
    """An array of any library as NumPy's."""
    return np.asarray(array.numpy() if hasattr(array, "numpy") else array)


def precision(case):
    """The machine epsilon of the coefficients: those of float32 data are rounded to float32."""
    narrow = case.data.dtype == np.float32 and case.form != "list"
    return float(np.finfo(np.float32).eps) if narrow else EPS


def machines_of(case, model):
    """Every binary classifier of a model, or of every k on a path."""
    params, is_kernel = case.params, case.call.startswith("Kernel")
    weighing = weigh(case.y, case.sample_weight, params.get("class_weight"))
    scheme, has_intercept = params.get("multi_class", "ovo"), params.get("fit_intercept", True)
    C = model.C_ if case.call.endswith("CV") else params["C"]
    X, spread, noise, choices = case.data.astype(float), None, None, None
    if is_kernel:
        X, noise = _kernel_of(case, weighing)
        choices = _points_offered(case, weighing, scheme)
    elif params.get("standardize"):
        spread = spreads(X[weighing.kept], weighing.repeats[weighing.kept])
        if spread is None:
            raise Undecided("whether a column is constant is a matter of rounding")
    tasks = list(make_tasks(X, weighing, scheme, C, has_intercept, spread, noise))
    groups = params.get("groups")
    n_units = X.shape[1] if groups is None else len(np.unique(groups))
    found = []
    for k, solutions in _solutions_of(case, model):
        for number, (task, solution) in enumerate(zip(tasks, solutions, strict=True)):
            if is_kernel:
                w = np.zeros(X.shape[1])
                w[model.support_] = model.dual_coef_[number]
                b, objective = float(model.intercept_[number]), float(model.objective_[number])
            else:
                w, b, objective = solution.dense_coef(), solution.intercept, solution.objective
            machine = Fitted(
                task,
                w,
                b,
                objective,
                solution.status.name,
                k=n_units if isinstance(k, str) else min(int(k), n_units),
                exact=params.get("solver", "exchange") == "exchange"
                or isinstance(params["solver"], Exchange),
                eps=precision(case) if is_kernel else EPS,
                precision=precision(case),
                choices=choices[number] if is_kernel else None,
                place=f"machine {number}, k={k}",
            )
            found.append(machine)
    return found


def _solutions_of(case, model):
    """Each k with the solutions of all classifiers."""
    if case.call == "sparse_svm_path":
        return zip(model.ks, model.solutions, strict=True)
    k = model.k_ if case.call.endswith("CV") else case.params["k"]
    path = zip(model.path_.ks, model.path_.solutions, strict=True) if case.call == "SparseSVCCV" else ()
    return [(k, model.solutions_), *path]


def _kernel_of(case, weighing):
    """The kernel matrix, and by how much its entries may be wrong, where it was computed."""
    params, noise = case.params, None
    K = case.data.astype(float)
    if params["kernel"] != "precomputed":
        numbers = params.get("gamma", "scale"), params.get("degree", 3), params.get("coef0", 0.0)
        with np.errstate(all="ignore"):
            known = kernel_matrix(case.data, weighing, params["kernel"], *numbers)
            if known is None:
                raise Undecided("whether the entries of X vary is a matter of rounding")
            K, noise = known[0], 16 * precision(case) * known[1]
    if not np.isfinite(K).all() or (noise is not None and not np.isfinite(noise).all()):
        raise Undecided("the kernel matrix overflows")
    return K, noise


def _points_offered(case, weighing, scheme):
    """The points that each classifier may select."""
    rows = [rows for rows, _ in split(weighing, scheme)]
    if case.params.get("shared", True) and len(rows) > 1:  # points of every class are offered to all
        return [weighing.kept] * len(rows)
    if case.params["kernel"] == "precomputed":
        return rows
    # of equal points the first is offered
    return [of[np.sort(np.unique(case.data[of], axis=0, return_index=True)[1])] for of in rows]


def attributes(case, model):
    """The numbers of a model, by name, all of which have to be finite."""
    if case.call == "sparse_svm_path":
        return {name: on_host(getattr(model, name)) for name in ("coefs", "intercepts", "objectives")}
    weights = "dual_coef_" if case.call.startswith("Kernel") else "coef_"
    return {name: on_host(getattr(model, name)) for name in (weights, "intercept_", "objective_")}


def objectives(case, model):
    """Reported, flat."""
    name = "objectives" if case.call == "sparse_svm_path" else "objective_"
    return np.ravel(on_host(getattr(model, name)))
