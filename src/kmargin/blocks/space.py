"""Where an array lives: its library and its device.

What is written against a `Space` runs on NumPy, and on whatever follows the array API standard.
"""

from typing import Any, NamedTuple

import numpy as np


class Space(NamedTuple):
    """A library of arrays, and the device that these are on; None for NumPy's."""

    xp: Any
    device: Any = None

    def put(self, array: Any) -> Any:
        """A NumPy array, brought here; floats as float64."""
        if self.device is None:
            return array
        return self.xp.asarray(array, device=self.device)

    def floats(self, array: Any) -> Any:
        """An array that is here already, as float64."""
        return array if array.dtype == self.xp.float64 else self.xp.astype(array, self.xp.float64)

    def bring(self, array: Any) -> Any:
        """An array of this space as one of NumPy's."""
        if self.device is None:
            return np.asarray(array)
        if hasattr(array, "cpu"):  # torch
            return array.detach().cpu().numpy()
        if hasattr(array, "get"):  # cupy
            return array.get()
        return np.asarray(np.from_dlpack(array))


def space_of(array: Any) -> Space:
    if isinstance(array, np.ndarray):
        return Space(_Numpy)
    from array_api_compat import array_namespace, device

    return Space(array_namespace(array), device(array))


class _Numpy:
    """NumPy by the names of the standard, which its older versions do not all have."""

    float64, float32 = np.float64, np.float32
    linalg, stack, take, where, sum, max = np.linalg, np.stack, np.take, np.where, np.sum, np.max
    zeros_like, abs, sqrt, nonzero, all = np.zeros_like, np.abs, np.sqrt, np.nonzero, np.all

    @staticmethod
    def astype(array: Any, dtype: Any) -> Any:
        return array.astype(dtype, copy=False)

    @staticmethod
    def concat(arrays: Any, axis: int) -> Any:
        return np.concatenate(arrays, axis=axis)
