"""What must hold of every fitted model. Each oracle returns None, or a sentence that says what is wrong."""

import pickle
from itertools import product

import numpy as np
import sklearn

from fuzz.forms import FOREIGN
from fuzz.models import Undecided, attributes, on_host
from fuzz.reference import LARGE, LONG, refit

TOLERANCE = 1e-6  # relative, of objectives
NOTHING = 1e-9  # an objective as small as that is zero: without any coefficient it is 0.5


def is_finite(case, model, machines):
    """Every number of the model is finite."""
    for name, numbers in attributes(case, model).items():
        if not np.isfinite(numbers).all():
            return f"{name} holds {numbers[~np.isfinite(numbers)].flat[0]}"
    return None


def keeps_at_most_k(case, model, machines):
    """At most k units are used, by all classifiers together if they share their units."""
    for together, used in that_share(case, machines):
        counted = np.unique(unit_labels(case, len(together[0].w))[used])
        if len(counted) > together[0].k:
            return f"uses {len(counted)} ({together[0].place})"
    return None


def obeys_constraints(case, model, machines):
    """Avoided features are not selected, and coefficients have the required signs."""
    avoided = np.asarray(case.params.get("avoid", []), dtype=int)
    for machine in machines:
        if np.any(machine.w[avoided] != 0):
            return f"an avoided feature is in ({machine.place})"
        if "signs" in case.params and np.any(machine.w * case.params["signs"] < 0):
            return f"a coefficient has the wrong sign ({machine.place})"
    return None


def that_share(case, machines):
    """Yield the classifiers that share units (of a model, or of one k of a path) and the columns they use."""
    by_k = {}
    for machine in machines:
        shared = case.params.get("shared", True)
        by_k.setdefault(machine.place.partition(", ")[2] if shared else machine.place, []).append(machine)
    for together in by_k.values():
        yield together, np.flatnonzero(np.any([machine.w != 0 for machine in together], axis=0))


def unit_labels(case, n_columns):
    """The unit of each column, as a number."""
    groups = case.params.get("groups")
    return np.arange(n_columns) if groups is None else np.unique(groups, return_inverse=True)[1]


def decides_by_rounding(machine, eps):
    """Whether rounding may change the objective by more than one per cent."""
    value = machine.task.objective(machine.w, machine.b)
    return machine.task.doubt(machine.w, machine.b, eps) > 1e-2 * value + NOTHING


def reports_its_objective(case, model, machines):
    """The reported objective is that of the coefficients returned."""
    for machine in machines:
        if decides_by_rounding(machine, machine.eps):
            raise Undecided("the model's decision values are a matter of rounding")
        value = machine.task.objective(machine.w, machine.b)
        doubt = machine.task.doubt(machine.w, machine.b, machine.eps)
        if not abs(value - machine.objective) <= TOLERANCE * value + NOTHING + 4 * doubt:
            return f"reports {machine.objective:.9g}, has {float(value):.9g} ({machine.place})"
    return None


def beats_the_intercept(case, model, machines):
    """No model has a higher objective than the intercept alone."""
    for machine in machines:
        value, constant = machine.task.objective(machine.w, machine.b), machine.task.constant()
        doubt = machine.task.doubt(machine.w, machine.b, machine.eps)
        if not value <= constant * (1 + LONG(1e-9)) + NOTHING + min(doubt, LONG(1e-6) * constant):
            return (
                f"objective {float(value):.9g}, the intercept alone {float(constant):.9g} ({machine.place})"
            )
    return None


def is_optimal_on_its_support(case, model, machines):
    """No refit to the same columns is better."""
    for machine in machines:
        support = np.flatnonzero(machine.w)
        if "signs" in case.params:  # others would be better on the same support
            continue
        if not machine.exact or len(support) > 60 or len(support) * len(machine.task.y) > 20_000:
            continue
        value = machine.task.objective(machine.w, machine.b)
        best = refit(machine.task, support, machine.w, machine.b)
        eps = max(machine.eps, machine.precision)
        # rounding the model's own coefficients to float32 may cost more than rounding those of the reference
        doubt = max(machine.task.doubt(w, b, eps) for w, b in ((best.w, best.b), (machine.w, machine.b)))
        if value > best.value * (1 + TOLERANCE) + NOTHING + 4 * doubt:
            if best.size >= LARGE:
                raise Undecided("only very large coefficients would be better")
            return f"objective {float(value):.9g}, on the same support {best.value:.9g} ({machine.place})"
    return None


def is_swap_optimal(case, model, machines):
    """Where the status is SWAP_OPTIMAL, no swap lowers the objective, summed over classifiers that share."""
    if {"groups", "keep", "avoid", "signs"} & case.params.keys():
        return None
    for together, support in that_share(case, machines):
        first, n_shared = together[0], len(together)
        choices = np.arange(len(first.w)) if first.choices is None else first.choices
        others = np.setdiff1d(choices, support)
        if any(machine.status != "SWAP_OPTIMAL" for machine in together) or len(support) < first.k:
            continue
        if len(support) * len(others) > (30 if n_shared == 1 else 12) or len(first.task.y) > 40:
            continue
        if n_shared > 1 and case.call.startswith("Kernel"):
            continue
        value = sum(machine.task.objective(machine.w, machine.b) for machine in together)
        for leaving, entering in product(support, others):
            columns = np.append(np.setdiff1d(support, [leaving]), entering)
            if is_lower_after_swap(together, columns, leaving, value):
                return f"{leaving} for {entering} lowers the objective ({first.place})"
    return None


def is_lower_after_swap(together, columns, leaving, value):
    """Whether refits of all classifiers have a lower sum, by more than rounding can explain."""
    total = doubt = LONG(0)
    size = 0.0
    for machine in together:
        start = np.where(np.arange(len(machine.w)) == leaving, 0.0, machine.w)
        best = refit(machine.task, columns, start, machine.b)
        size = max(size, best.size)
        total += best.value
        doubt += 4 * machine.task.doubt(best.w, best.b, max(machine.eps, machine.precision))
    if value <= total + 10 * (TOLERANCE * total + NOTHING) + doubt:
        return False
    if size >= LARGE:
        raise Undecided("only very large coefficients would be better")
    return True


def never_gets_worse_with_k(case, model, machines):
    """Along a path the objective never rises with k."""
    path = model if case.call == "sparse_svm_path" else getattr(model, "path_", None)
    if path is None or not machines or not machines[0].exact:
        return None
    objectives = on_host(path.objectives)
    if case.params.get("shared", True):  # the sum is what falls
        objectives = objectives.sum(axis=1, keepdims=True)
    worse = objectives[:-1] > objectives[1:] * (1 + 1e-6) + NOTHING
    if worse.any():
        for machine in machines:
            if decides_by_rounding(machine, max(machine.eps, machine.precision)):
                raise Undecided("rounding of the coefficients decides which model is better")
        at, machine = np.argwhere(worse)[0]
        return (
            f"objective {objectives[at, machine]:.9g} for k={path.ks[at]}, "
            f"{objectives[at + 1, machine]:.9g} for k={path.ks[at + 1]} (machine {machine})"
        )
    return None


def predicts_as_it_decides(case, model, machines):
    """Predictions are classes, and follow from finite decision values."""
    X = case.given()[0]
    ks = (int(model.ks[0]),) if case.call == "sparse_svm_path" else ()
    with sklearn.config_context(array_api_dispatch=case.form in ("strict", "torch")):
        scores, predicted = (on_host(f(X, *ks)) for f in (model.decision_function, model.predict))
    classes = on_host(model.classes if ks else model.classes_)
    if not np.isfinite(scores).all():
        return "a decision value is not finite"
    if not np.isin(predicted, classes).all():
        return "a prediction is none of the classes"
    chosen = (scores > 0).astype(int) if scores.ndim == 1 else np.argmax(scores, axis=1)
    if not np.array_equal(classes[chosen], predicted):
        return "predict and decision_function disagree"
    return None


def decides_by_its_coefficients(case, model, machines):
    """For two classes, decision values are products with the coefficients."""
    if case.call != "SparseSVC" or case.form in FOREIGN or len(machines) != 1:
        return None
    machine = machines[0]
    used = np.flatnonzero(machine.w)
    X = case.data[:, used].astype(LONG)
    expected = X @ machine.w[used].astype(LONG) + LONG(machine.b)
    eps = np.finfo(np.float32 if case.data.dtype == np.float32 else float).eps
    error = (len(used) + 4) * eps * (np.abs(X) @ np.abs(machine.w[used]).astype(LONG) + abs(machine.b))
    if not (np.abs(model.decision_function(case.X) - expected) <= 4 * error + 1e-30).all():
        return "decision_function is not X @ coef_ + intercept_"
    return None


def survives_pickling(case, model, machines):
    if case.form in FOREIGN:
        return None
    X = case.given()[0]
    ks = (int(model.ks[0]),) if case.call == "sparse_svm_path" else ()
    again = pickle.loads(pickle.dumps(model))
    if not np.array_equal(again.decision_function(X, *ks), model.decision_function(X, *ks)):
        return "decides otherwise after pickling"
    return None


# name: (oracle, how often)
ORACLES = {
    "finite": (is_finite, 1.0),
    "at most k": (keeps_at_most_k, 1.0),
    "constraints": (obeys_constraints, 1.0),
    "objective": (reports_its_objective, 1.0),
    "intercept": (beats_the_intercept, 1.0),
    "support": (is_optimal_on_its_support, 0.7),
    "swaps": (is_swap_optimal, 0.5),
    "monotone": (never_gets_worse_with_k, 1.0),
    "predict": (predicts_as_it_decides, 0.3),
    "decide": (decides_by_its_coefficients, 0.2),
    "pickle": (survives_pickling, 0.1),
}
