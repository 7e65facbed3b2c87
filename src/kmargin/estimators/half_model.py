"""What a stability selection fits to each half of the rows."""

from typing import Any

from sklearn.base import clone

from kmargin import validate
from kmargin.estimators.linear import LinearMachines, SparseSVC
from kmargin.fitting.halves import last_step
from kmargin.unit_request import UnitRequest

K = 10
STRENGTH = 2000  # of the ridge, see `stability_C`
WEAKEST = 1.0  # the C of SparseSVC


def stability_C(n_samples: int, n_features: int) -> float:
    """Return a C that suits stability selection, for features of variance 1.

    The more features there are per row of a half, the more a fit is determined by chance, and the stronger
    the ridge that finds the most features. C is m² / (2000 p) for halves of m rows and p features, at most 1;
    this rule was fitted to simulated data with 100 to 400 rows and 200 to 5000 features, see the guide.

    Parameters
    ----------
    n_samples : int
        The number of all rows, not of a half.
    n_features : int
        The number of features, or of groups if groups are selected.

    Returns
    -------
    float
        The C that ``StabilitySelection(C=None)`` uses.

    Examples
    --------
    >>> from kmargin import stability_C
    >>> stability_C(n_samples=200, n_features=1000)
    0.005
    """
    validate.check_count("n_samples", n_samples, "rows", least=2)
    validate.check_count("n_features", n_features, "features")
    return min(WEAKEST, (int(n_samples) // 2) ** 2 / (STRENGTH * int(n_features)))


def check_model(estimator: Any, k: Any, ridge: Any) -> None:
    """Raise ValueError for what selects nothing, or has a k and C of its own beside those given."""
    given = {name: value for name, value in (("k", k), ("C", ridge)) if value is not None}
    if estimator is None:
        refuse_all("k", k)
        validate.check_count("k", K if k is None else k, "features to select on each half")
        validate.check_C(WEAKEST if ridge is None else ridge)
    elif isinstance(estimator, type) or getattr(estimator, "fit", None) is None:
        raise ValueError(
            f"estimator={estimator!r} has no method fit. Use an estimator such as SparseSVC(k=10), or "
            "write StabilitySelection(k=10)."
        )
    elif given:
        name, value = next(iter(given.items()))
        raise ValueError(
            f"{name}={value!r} cannot be combined with estimator={type(estimator).__name__}, which has "
            f"its own. Set it there, as in StabilitySelection(SparseSVC({name}={value!r}))."
        )
    else:
        refuse_all("estimator with k", getattr(last_step(estimator), "k", None))


def refuse_all(what: str, k: object) -> None:
    """A k that keeps everything selects nothing."""
    if isinstance(k, str) and k == "all":
        raise ValueError(
            f'{what}="all" keeps every feature on every half, so nothing is selected. '
            "Use an integer, such as k=10."
        )


def make_model(
    estimator: Any,
    k: Any,
    ridge: Any,
    request: UnitRequest,
    shape: tuple[int, int],
    names: tuple[str, ...] | None,
) -> Any:
    """What is fitted to halves of arrays of this shape, which have no names."""
    if estimator is None:
        return SparseSVC(K if k is None else k, C=stability_C(*shape) if ridge is None else ridge)
    model = clone(estimator)
    if not request.is_empty:
        last_step(model).set_params(**request.by_place(shape[1], names)._asdict())
    return model


def request_of(estimator: Any) -> UnitRequest:
    """What is said about features."""
    last = None if estimator is None else last_step(estimator)
    if isinstance(last, LinearMachines):
        return UnitRequest(last.groups, last.keep, last.avoid, last.signs)
    return UnitRequest()
