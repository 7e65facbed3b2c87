"""The same problem told in another way has the same answer. Each takes a case and its model's objectives."""

import numpy as np

from fuzz.forms import SPARSE
from fuzz.models import Undecided, is_foreign, machines_of, objectives
from fuzz.oracles import is_optimal_on_its_support, says_its_objective

TOLERANCE = 1e-6
NOTHING = 1e-12
# By so much of the larger two local minima of one search may differ; or by so much of what there is to gain:
# where nearly all of it is gained, one of two objectives next to nothing may be many times the other.
LOCAL, LOCAL_GAP = 0.5, 0.01
WITHOUT_A_MODEL = 0.5  # the objective of coefficients and intercept zero; nothing excuses more


def same(a, b):
    return a.shape == b.shape and bool((np.abs(a - b) <= TOLERANCE * np.maximum(a, b) + NOTHING).all())


def compare(case, found, twin, how):
    """A sentence where the twin's objectives differ, unless rounding anywhere makes them differ."""
    other = objectives(twin, twin.fit())
    if same(found, other):
        return None
    sane = max(found.max(), other.max()) <= WITHOUT_A_MODEL * (1 + TOLERANCE)
    if sane and (is_ambiguous(case, found, other) or is_ambiguous(twin, other, found)):
        raise Undecided("rounding decides between supports")
    at = int(np.argmax(np.abs(found - other)))
    return f"objective {found[at]:.9g}, {how} {other[at]:.9g}"


def disturb(X, rng):
    """X, its numbers changed in their last digit."""
    X = X if X.dtype.kind == "f" else X.astype(float)
    factors = 1 + 2 * np.finfo(X.dtype).eps * rng.choice([-1.0, 0.0, 1.0], X.shape)
    return X * factors.astype(X.dtype)


def is_ambiguous(case, found, other):
    """Whether the case's own answers, with its numbers disturbed by rounding, differ as much."""
    rng = case.rng("ambiguous")
    lowest, highest = np.minimum(found, other), np.maximum(found, other)
    gap = highest - lowest
    for _ in range(6):
        again = objectives(case, case.having(data=disturb(case.data, rng)).fit())
        if again.shape != found.shape:
            return True
        if (np.abs(again - found) > 0.01 * gap + TOLERANCE * highest + NOTHING).any():
            return True
    return False


def dense_and_sparse(case, model):
    """An array and a CSR matrix of the same numbers."""
    if case.params.get("kernel") == "precomputed":
        return None
    form = "c" if case.form in SPARSE else "csr"
    return compare(case, objectives(case, model), told_as(case, form), f"as {form}")


def orders(case, model):
    """C order and Fortran order, or blocks and an array."""
    form = "fortran" if case.form == "c" else "c"
    return compare(case, objectives(case, model), told_as(case, form), f"as {form}")


def told_as(case, form):
    """The same numbers in another form, in the precision they are read in: that of a list is double."""
    is_single = case.data.dtype == np.float32
    data = case.data.astype(float) if case.form == "list" and is_single else case.data
    return case.having(form=form, data=data)


def repetitions(case, model):
    """Integer weights and repeated rows."""
    if case.call.endswith("CV") or isinstance(case.params.get("class_weight"), str):
        return None
    if case.params.get("kernel") == "precomputed" or is_foreign(case):
        return None
    times = case.rng("repetitions").integers(1, 4, len(case.y))
    form = "csr" if case.form in SPARSE else "c"
    weighted = case.having(sample_weight=times.astype(float), form=form)
    repeated = case.having(
        data=np.repeat(case.data, times, axis=0), y=np.repeat(case.y, times), sample_weight=None, form=form
    )
    models = weighted.fit(), repeated.fit()
    found, other = (objectives(twin, model) for twin, model in zip((weighted, repeated), models, strict=True))
    if found.shape == other.shape and not same(found, other):
        for twin, model in zip((weighted, repeated), models, strict=True):
            if sentence := is_wrong_by_itself(twin, model):
                return sentence
        larger = np.maximum(found, other)
        if (np.abs(found - other) <= LOCAL * larger + LOCAL_GAP * WITHOUT_A_MODEL).all():
            # more rows make tries dearer, so fewer are made: a large problem may end at another support
            raise Undecided("the search ended at another support")
    return compare(weighted, found, repeated, "with rows repeated")


def is_wrong_by_itself(case, model):
    """A sentence if a model is not worth what it says, or is not at the minimum on its own support.

    Weights and repeated rows are one function of the coefficients. So two models that are worth what they
    say, each at its minimum, can differ by nothing but the support that a search has ended at.
    """
    machines = machines_of(case, model)
    for oracle in (says_its_objective, is_optimal_on_its_support):
        if sentence := oracle(case, model, machines):
            return sentence
    return None


def choices(case, model):
    """Cross-validation chooses the same on an array and on a CSR matrix."""
    if case.call != "SparseSVCCV":
        return None
    form = "c" if case.form in SPARSE else "csr"
    twin = told_as(case, form)
    other = twin.fit()
    if (other.k_, other.C_) == (model.k_, model.C_):
        return None
    rng = case.rng("choices")
    for one, chosen in ((case, model), (twin, other)) * 6:
        again = one.having(data=disturb(one.data, rng)).fit()
        if (again.k_, again.C_) != (chosen.k_, chosen.C_):
            raise Undecided("rounding decides between k and C")
    return f"chose k={model.k_}, C={model.C_:g}; as {form} k={other.k_}, C={other.C_:g}"


# name: (twin, how often)
TWINS = {
    "dense = sparse": (dense_and_sparse, 0.12),
    "orders, blocks": (orders, 0.08),
    "repetitions": (repetitions, 0.1),
    "choices": (choices, 0.5),
}
