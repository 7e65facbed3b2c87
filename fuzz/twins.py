"""Equivalent statements of a problem have the same objectives: oracles like those in `oracles`."""

from dataclasses import replace

import numpy as np

from fuzz.forms import FOREIGN, SPARSE
from fuzz.models import Undecided, machines_of, objectives
from fuzz.oracles import is_optimal_on_its_support, reports_its_objective

TOLERANCE = 1e-6
NOTHING = 1e-12
# Two local minima may differ by LOCAL times the larger, or by LOCAL_GAP times the objective of the zero
# model: of two objectives that are nearly zero, one may be many times the other.
LOCAL, LOCAL_GAP = 0.5, 0.01
WITHOUT_A_MODEL = 0.5  # the objective of the zero model, which no fit may exceed
FAR = (
    1e6  # in standard deviations; columns further from zero need an intercept (docs/evidence/reliability.md)
)


def same(a, b):
    return a.shape == b.shape and bool((np.abs(a - b) <= TOLERANCE * np.maximum(a, b) + NOTHING).all())


def compare(case, found, twin, how):
    """A sentence if the twin's objectives differ. Undecided if those of slightly perturbed data do, too."""
    other = objectives(twin, twin.fit())
    if same(found, other):
        return None
    sane = max(found.max(), other.max()) <= WITHOUT_A_MODEL * (1 + TOLERANCE)
    if sane and (is_ambiguous(case, found, other) or is_ambiguous(twin, other, found)):
        raise Undecided("rounding decides between supports")
    at = int(np.argmax(np.abs(found - other)))
    return f"objective {found[at]:.9g}, {how} {other[at]:.9g}"


def disturb(X, rng):
    """X with its numbers changed in their last digit."""
    X = X if X.dtype.kind == "f" else X.astype(float)
    factors = 1 + 2 * np.finfo(X.dtype).eps * rng.choice([-1.0, 0.0, 1.0], X.shape)
    return X * factors.astype(X.dtype)


def is_ambiguous(case, found, other):
    """Whether the case's own objectives differ as much when its numbers are perturbed by rounding."""
    rng = case.rng("ambiguous")
    lowest, highest = np.minimum(found, other), np.maximum(found, other)
    gap = highest - lowest
    for _ in range(6):
        again = objectives(case, replace(case, data=disturb(case.data, rng)).fit())
        if again.shape != found.shape:
            return True
        if (np.abs(again - found) > 0.01 * gap + TOLERANCE * highest + NOTHING).any():
            return True
    return False


def dense_and_sparse(case, model, machines):
    """An array and a CSR matrix of the same numbers; cross-validation then also chooses the same k and C."""
    if case.params.get("kernel") == "precomputed":
        return None
    return compare_with_form(case, model, "c" if case.form in SPARSE else "csr")


def orders(case, model, machines):
    """C order and Fortran order, or blocks and an array."""
    is_far = (np.abs(case.data.mean(axis=0)) > FAR * case.data.std(axis=0)).any()
    if is_far and not case.params.get("fit_intercept", True):
        return None
    return compare_with_form(case, model, "fortran" if case.form == "c" else "c")


def compare_with_form(case, model, form):
    """Compare with the same data in another form. Lists are read in double precision, so their twins are."""
    is_widened = case.form == "list" and case.data.dtype == np.float32
    data = case.data.astype(float) if is_widened else case.data
    return compare(case, objectives(case, model), replace(case, form=form, data=data), f"as {form}")


def repetitions(case, model, machines):
    """Integer weights and repeated rows."""
    if case.call.endswith("CV") or isinstance(case.params.get("class_weight"), str):
        return None
    if case.params.get("kernel") == "precomputed" or case.form in FOREIGN:
        return None
    times = case.rng("repetitions").integers(1, 4, len(case.y))
    form = "csr" if case.form in SPARSE else "c"
    weighted = replace(case, sample_weight=times.astype(float), form=form)
    repeated = replace(
        case,
        data=np.repeat(case.data, times, axis=0),
        y=np.repeat(case.y, times),
        sample_weight=None,
        form=form,
    )
    models = weighted.fit(), repeated.fit()
    found, other = (objectives(twin, model) for twin, model in zip((weighted, repeated), models, strict=True))
    if found.shape == other.shape and not same(found, other):
        for twin, model in zip((weighted, repeated), models, strict=True):
            if sentence := is_wrong_by_itself(twin, model):
                return sentence
        larger = np.maximum(found, other)
        if (np.abs(found - other) <= LOCAL * larger + LOCAL_GAP * WITHOUT_A_MODEL).all():
            # more rows make trial refits more expensive, so that fewer are made and another support is found
            raise Undecided("the search ended at another support")
    return compare(weighted, found, repeated, "with rows repeated")


def is_wrong_by_itself(case, model):
    """A sentence if a model misreports its objective, or is not at the minimum on its own support.

    Weights and repeated rows give the same function of the coefficients. So two models that report their
    objectives correctly, each at its minimum, can differ only by the support at which the search ended.
    """
    machines = machines_of(case, model)
    for oracle in (reports_its_objective, is_optimal_on_its_support):
        if sentence := oracle(case, model, machines):
            return sentence
    return None


# name: (twin, how often)
TWINS = {
    "dense = sparse": (dense_and_sparse, 0.12),
    "orders, blocks": (orders, 0.08),
    "repetitions": (repetitions, 0.1),
}
