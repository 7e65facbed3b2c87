"""Blocks of X on the disk of whoever reads them, where reading them from their source takes long."""

import contextlib
import os
import shutil
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kmargin.blocks.kept import Leaves

# A source that yields fewer bytes per second is slower than a plain file; so much of the disk stays free.
SLOW = 300e6
LEFT_FREE = 0.1


class Folder:
    """Where one process writes. It is made when it is first needed."""

    def __init__(self) -> None:
        self.parent: str | None = None  # None for the system's folder of temporary files
        self._made: Path | None = None
        self._lock = threading.Lock()

    def new_file(self, n_bytes: int) -> Path | None:
        """The name of a file, if the disk has room for it."""
        with self._lock:
            if self._made is None:
                self._made = Path(tempfile.mkdtemp(prefix="kmargin-", dir=self.parent))
                weakref.finalize(self, shutil.rmtree, self._made, ignore_errors=True)
        disk = shutil.disk_usage(self._made)
        has_room = disk.free - n_bytes > LEFT_FREE * disk.total
        return self._made / uuid.uuid4().hex if has_room else None


FOLDER = Folder()


class OnDisk:
    """An array that a recipe makes, read from a plain file from the second time on if that is faster.

    As with `Kept`, only the recipe travels.
    """

    keep = False  # in memory

    def __init__(self, recipe: Callable[[Leaves], np.ndarray]) -> None:
        self.recipe = recipe
        self._saved: tuple[Path, Any, tuple[int, ...]] | None = None
        self._lock = threading.Lock()

    def get(self, leaves: Leaves) -> np.ndarray:
        with self._lock:
            if self._saved is None:
                started = time.perf_counter()
                array = self.recipe(leaves)
                if array.nbytes < SLOW * (time.perf_counter() - started):
                    self._save(array)
                return array
            path, dtype, shape = self._saved
        return np.fromfile(path, dtype=dtype).reshape(shape)

    def _save(self, array: np.ndarray) -> None:
        path = None
        try:
            path = FOLDER.new_file(array.nbytes)
            if path is not None:
                array.tofile(path)
                self._saved = path, array.dtype, array.shape
                weakref.finalize(self, _remove, path)
        except OSError:  # no room after all, or no folder to write to: then it is read from its source again
            if path is not None:
                _remove(path)

    def fresh(self) -> "OnDisk":
        """Itself: it takes no memory."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return OnDisk, (self.recipe,)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.remove(path)
