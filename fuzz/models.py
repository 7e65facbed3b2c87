"""From what `fit` returned to machines that can be judged."""

import numpy as np

from fuzz.forms import FOREIGN
from fuzz.machines import Fitted, kernel_matrix, make_tasks, split, spreads, weigh
from fuzz.reference import EPS
from kmargin import Exchange


class Undecided(Exception):
    """An oracle cannot tell; its message says why."""


def on_host(array):
    """An array of any library as NumPy's."""
    return np.asarray(array.numpy() if hasattr(array, "numpy") else array)


def is_exact(params):
    solver = params.get("solver", "exchange")
    return solver == "exchange" or isinstance(solver, Exchange)


def count(k, n_available):
    return n_available if isinstance(k, str) else min(int(k), n_available)


def machines_of(case, model):
    """Every machine of a model, or of every k on a path."""
    if case.call.startswith("Kernel"):
        return _kernel_machines(case, model)
    weighing = weigh(case.y, case.sample_weight, case.params.get("class_weight"))
    if case.call == "SparseSVC":
        rows, Ck = [model.solutions_], (case.params["C"], [case.params["k"]])
    elif case.call == "SparseSVCCV":
        rows, Ck = [model.solutions_, *model.path_.solutions], (model.C_, [model.k_, *model.path_.ks])
    else:
        rows, Ck = model.solutions, (case.params["C"], model.ks)
    X = case.data.astype(float)
    spread = None
    if case.params.get("standardize"):
        spread = spreads(X[weighing.kept], weighing.repeats[weighing.kept])
        if spread is None:
            raise Undecided("whether a column is constant is a matter of rounding")
    tasks = list(
        make_tasks(
            X,
            weighing,
            case.params.get("multi_class", "ovo"),
            Ck[0],
            case.params.get("fit_intercept", True),
            spread,
        )
    )
    found = []
    groups = case.params.get("groups")
    n_units = X.shape[1] if groups is None else len(np.unique(groups))
    for k, solutions in zip(Ck[1], rows, strict=True):
        for number, (task, solution) in enumerate(zip(tasks, solutions, strict=True)):
            found.append(
                Fitted(
                    task,
                    solution.dense_coef(),
                    solution.intercept,
                    solution.objective,
                    solution.status.name,
                    count(k, n_units),
                    is_exact(case.params),
                    precision=precision(case),
                    place=f"machine {number}, k={k}",
                )
            )
    return found


def precision(case):
    """Of the coefficients that are kept: those of float32 data are rounded to float32."""
    narrow = case.data.dtype == np.float32 and case.form != "list"
    return float(np.finfo(np.float32).eps) if narrow else EPS


def _kernel_machines(case, model):
    params = case.params
    weighing = weigh(case.y, case.sample_weight, params.get("class_weight"))
    narrow = case.data.dtype == np.float32 and case.form != "list"
    eps = float(np.finfo(np.float32).eps) if narrow else EPS
    K, noise = case.data.astype(float), None
    if params["kernel"] != "precomputed":
        numbers = params.get("gamma", "scale"), params.get("degree", 3), params.get("coef0", 0.0)
        with np.errstate(all="ignore"):
            known = kernel_matrix(case.data, weighing, params["kernel"], *numbers)
            if known is None:
                raise Undecided("whether the entries of X vary is a matter of rounding")
            K, noise = known[0], 16 * eps * known[1]
    if not np.isfinite(K).all() or (noise is not None and not np.isfinite(noise).all()):
        raise Undecided("the kernel matrix overflows")
    C, k = (params["C"], params["k"]) if case.call == "KernelSparseSVC" else (model.C_, model.k_)
    scheme, has_intercept = params.get("multi_class", "ovo"), params.get("fit_intercept", True)
    tasks = make_tasks(K, weighing, scheme, C, has_intercept, noise=noise)
    found = []
    rows = [rows for rows, _ in split(weighing, scheme)]
    if params["kernel"] != "precomputed":  # a point that is there twice is offered once
        rows = [of[np.sort(np.unique(case.data[of], axis=0, return_index=True)[1])] for of in rows]
    if params.get("shared", True) and len(rows) > 1:  # points of every class are offered to all
        rows = [weighing.kept] * len(rows)
    for number, task in enumerate(tasks):
        w = np.zeros(K.shape[1])
        w[model.support_] = model.dual_coef_[number]
        found.append(
            Fitted(
                task,
                w,
                float(model.intercept_[number]),
                float(model.objective_[number]),
                model.solutions_[number].status.name,
                count(k, K.shape[1]),
                is_exact(params),
                eps=eps,
                precision=precision(case),
                choices=rows[number],
                place=f"machine {number}, k={k}",
            )
        )
    return found


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


def is_foreign(case):
    return case.form in FOREIGN
