"""Types for NumPy arrays, and conversions between array libraries (NumPy, torch, cupy) and devices."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.floating[Any]]
Matrix: TypeAlias = NDArray[np.floating[Any]]
Tensor: TypeAlias = NDArray[np.floating[Any]]  # an array with three axes
Indices: TypeAlias = NDArray[np.integer[Any]]
Flags: TypeAlias = NDArray[np.bool_]


class Space(NamedTuple):
    """The array library `xp` (such as NumPy, torch) and the device of arrays; NumPy has device None."""

    xp: Any
    device: Any = None
    wide: Any = np.float64  # the widest float type: float64, or float32 if the device has no float64

    @property
    def on_cpu(self) -> bool:
        return self.device is None or "cpu" in str(self.device).lower()

    def put(self, array: Any) -> Any:
        """Move a NumPy array to this device; float64 becomes float32 if the device has no float64."""
        if self.device is None:
            return array
        if array.dtype == np.float64 and self.wide != self.xp.float64:
            array = array.astype(np.float32)
        if not array.flags.writeable:  # torch would share its memory, and warns of read-only memory
            array = array.copy()
        return self.xp.asarray(array, device=self.device)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        if self.device is None:
            return np.zeros(shape)
        return self.xp.zeros(shape, dtype=self.wide, device=self.device)

    def move(self, array: Any) -> Any:
        """Convert an array of any library, or a list, to an array of this library on this device."""
        if self.device is not None and is_foreign(array) and space_of(array).xp is self.xp:
            from array_api_compat import to_device

            return array if space_of(array) == self else to_device(array, self.device)
        return self.put(np.asarray(to_host(array)))

    def floats(self, array: Any) -> Any:
        """Cast an array on this device to float64, or to float32 if the device has no float64."""
        return array if array.dtype == self.wide else self.xp.astype(array, self.wide)

    def bring(self, array: Any) -> Any:
        """Convert an array on this device to NumPy; float32 becomes float64 if the device has no float64."""
        if self.device is None:
            return np.asarray(array)
        is_narrow = array.dtype == self.wide != self.xp.float64
        if hasattr(array, "cpu"):  # torch
            array = array.detach().cpu().numpy()
        elif hasattr(array, "get"):  # cupy
            array = array.get()
        elif hasattr(array, "to_device"):
            array = array.to_device(self.xp.__array_namespace_info__().default_device())
        return np.asarray(array, dtype=np.float64 if is_narrow else None)

    def __str__(self) -> str:
        name = str(getattr(self.xp, "__name__", "")).removeprefix("array_api_compat.")
        return "NumPy" if self.device is None else f"{name} on {self.device}"


class _Numpy:
    """NumPy functions under their array API names, some of which older versions of NumPy do not have."""

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


HOST = Space(_Numpy)  # the space of NumPy arrays, in main memory

_SPACES: dict[tuple[type, str], Space] = {}  # cached results of `space_of` by array type and device


def space_of(array: Any) -> Space:
    """Return the library and device of an array; sparse matrices and data frames count as NumPy arrays."""
    if isinstance(array, np.ndarray) or not hasattr(type(array), "device"):
        return HOST
    key = type(array), str(array.device)
    if key not in _SPACES:
        _SPACES[key] = HOST
        if is_foreign(array):
            from array_api_compat import array_namespace, device

            xp, where = array_namespace(array), device(array)
            floats = xp.__array_namespace_info__().dtypes(kind="real floating", device=where)
            _SPACES[key] = Space(xp, where, floats.get("float64", xp.float32))
    return _SPACES[key]


def is_foreign(array: Any) -> bool:
    """Whether an array belongs to a library other than NumPy that follows the array API standard."""
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


def is_dask(*objects: Any) -> bool:
    """Whether any of the objects is a dask collection."""
    return any(hasattr(type(one), "__dask_graph__") for one in objects)


def to_host(array: Any) -> Any:
    """Convert an array of any library to a NumPy array; other objects are returned unchanged."""
    space = space_of(array)
    return array if space is HOST else space.bring(array)


def spread(space: Space, X: Any, columns: np.ndarray, n_features: int) -> Any:
    """Return a matrix of `n_features` columns: column columns[j] is column j of X; the others are zero."""
    xp, places = space.xp, np.full(n_features, X.shape[1])  # a column of zeros is appended at X.shape[1]
    places[columns] = np.arange(len(columns))
    zeros = xp.astype(space.zeros((X.shape[0], 1)), X.dtype)
    return xp.take(xp.concat([X, zeros], axis=1), space.put(places), axis=1)
