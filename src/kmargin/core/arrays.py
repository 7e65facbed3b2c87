"""Array types, and the array libraries and devices that X may come from."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.floating[Any]]
Matrix: TypeAlias = NDArray[np.floating[Any]]
Tensor: TypeAlias = NDArray[np.floating[Any]]  # three axes
Indices: TypeAlias = NDArray[np.integer[Any]]
Flags: TypeAlias = NDArray[np.bool_]


class Space(NamedTuple):
    """A library of arrays, and the device that these are on; None for NumPy's."""

    xp: Any
    device: Any = None
    wide: Any = np.float64  # the floats that sums are taken in: float64, unless the device has none

    @property
    def on_cpu(self) -> bool:
        return self.device is None or "cpu" in str(self.device).lower()

    def put(self, array: Any) -> Any:
        """A NumPy array, brought here; float64 as `wide`."""
        if self.device is None:
            return array
        if array.dtype == np.float64 and self.wide != self.xp.float64:
            array = array.astype(np.float32)
        if not array.flags.writeable:  # torch would share the memory, and warns
            array = array.copy()
        return self.xp.asarray(array, device=self.device)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        if self.device is None:
            return np.zeros(shape)
        return self.xp.zeros(shape, dtype=self.wide, device=self.device)

    def move(self, array: Any) -> Any:
        """An array of any library, or a list, brought here."""
        if self.device is not None and is_foreign(array) and space_of(array).xp is self.xp:
            from array_api_compat import to_device

            return array if space_of(array) == self else to_device(array, self.device)
        return self.put(np.asarray(to_host(array)))

    def floats(self, array: Any) -> Any:
        """An array that is here already, as `wide`."""
        return array if array.dtype == self.wide else self.xp.astype(array, self.wide)

    def bring(self, array: Any) -> Any:
        """An array of this space as one of NumPy's; `wide` as float64."""
        brought = self._bring(array)
        return brought.astype(np.float64) if array.dtype == self.wide != self.xp.float64 else brought

    def _bring(self, array: Any) -> Any:
        if self.device is None:
            return np.asarray(array)
        if hasattr(array, "cpu"):  # torch
            return array.detach().cpu().numpy()
        if hasattr(array, "get"):  # cupy
            return array.get()
        if hasattr(array, "to_device"):
            array = array.to_device(self.xp.__array_namespace_info__().default_device())
        return np.asarray(array)

    def __str__(self) -> str:
        return "NumPy" if self.device is None else f"{_plain_name(self.xp)} on {self.device}"


class _Numpy:
    """NumPy by the names of the standard, which its older versions do not all have."""

    float64, float32, int64 = np.float64, np.float32, np.int64
    linalg, stack, take, where, sum, max = np.linalg, np.stack, np.take, np.where, np.sum, np.max
    zeros_like, abs, sqrt, nonzero = np.zeros_like, np.abs, np.sqrt, np.nonzero
    all, any, isfinite, argmin, argmax = np.all, np.any, np.isfinite, np.argmin, np.argmax

    @staticmethod
    def astype(array: Any, dtype: Any) -> Any:
        return array.astype(dtype, copy=False)

    @staticmethod
    def concat(arrays: Any, axis: int) -> Any:
        return np.concatenate(arrays, axis=axis)


HOST = Space(_Numpy)

_SPACES: dict[tuple[type, str], Space] = {}  # a device is asked once for its floats


def space_of(array: Any) -> Space:
    """Where an array is; sparse matrices and frames are with NumPy's."""
    if isinstance(array, np.ndarray) or not hasattr(type(array), "device"):
        return HOST
    key = type(array), str(array.device)
    if key not in _SPACES:
        _SPACES[key] = _find_space(array) if is_foreign(array) else HOST
    return _SPACES[key]


def _find_space(array: Any) -> Space:
    from array_api_compat import array_namespace, device

    xp, where = array_namespace(array), device(array)
    floats = xp.__array_namespace_info__().dtypes(kind="real floating", device=where)
    return Space(xp, where, floats.get("float64", xp.float32))


def is_foreign(array: Any) -> bool:
    """Whether this is an array of another library than NumPy that follows the standard."""
    if isinstance(array, np.ndarray) or not hasattr(type(array), "device"):
        return False
    try:
        from array_api_compat import is_array_api_obj
    except ImportError:
        raise ImportError(
            f"Arrays of type {type(array).__module__}.{type(array).__qualname__} need "
            "array-api-compat. Install it with: pip install 'kmargin[array-api]'"
        ) from None
    return bool(is_array_api_obj(array))


def to_host(array: Any) -> Any:
    """An array of any library as one of NumPy's; what is none stays as it is."""
    return space_of(array).bring(array) if is_foreign(array) else array


def spread(space: Space, X: Any, columns: np.ndarray, n_features: int) -> Any:
    """X with its columns at these places among zeros."""
    xp, places = space.xp, np.full(n_features, X.shape[1])  # one further there are zeros
    places[columns] = np.arange(len(columns))
    zeros = xp.astype(space.zeros((X.shape[0], 1)), X.dtype)
    return xp.take(xp.concat([X, zeros], axis=1), space.put(places), axis=1)


def _plain_name(xp: Any) -> str:
    return str(xp.__name__).removeprefix("array_api_compat.")
