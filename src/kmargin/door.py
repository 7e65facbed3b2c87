"""Where data come in: one place that knows the kinds of X there are."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from kmargin import validate
from kmargin.blocks.labelled import BlockSamples
from kmargin.blocks.space import Space, space_of, to_host
from kmargin.design import canonical
from kmargin.device import detach, device_space, read_device
from kmargin.validate import Samples


def read(
    check: Callable[..., Any], X: Any, y: Any, sample_weight: Any, class_weight: Any
) -> Samples | BlockSamples:
    """Labelled data, wherever they are; y and the weights follow X.

    `check` is scikit-learn's function for X and y.
    """
    space = device_space(X)
    if space is not None:
        y = y if hasattr(y, "shape") else np.asarray(y)
        X, y = check(detach(X), y, dtype=_floats(space))
        return read_device(X, y, sample_weight, class_weight)
    X, y = check(X, to_host(y), dtype=[np.float64, np.float32])
    X = canonical(X) if issparse(X) else X
    return validate.read_samples(X, y, to_host(sample_weight), class_weight)


def read_inputs(check: Callable[..., Any], X: Any, method: str, reference: Any) -> Any:
    """X to decide about, which has to be where the fitted attributes (`reference`) are.

    `check` is scikit-learn's function for X alone.
    """
    space = device_space(X)
    X = check(detach(X), dtype=[np.float64, np.float32] if space is None else _floats(space))
    given, fitted = space_of(X), space_of(reference)
    if given != fitted:
        hint = "Move X there, or fit to data like X."
        if given.device is None and fitted.device is not None:
            hint = "Move X there, with sklearn.set_config(array_api_dispatch=True), or fit to data like X."
        raise ValueError(
            f"{method}() must use the same namespace and device as fit(): X is in {given}, "
            f"the fitted attributes are in {fitted}. {hint}"
        )
    return X


def _floats(space: Space) -> list[Any]:
    return [space.wide, space.xp.float32]
