"""A process's own folder on disk, for what it may not keep in memory."""

import contextlib
import os
import pickle
import shutil
import tempfile
import threading
import uuid
import weakref
from pathlib import Path
from typing import Any

# So much of the disk stays free.
LEFT_FREE = 0.1


class Folder:
    """Where one process writes. It is made when it is first needed, and removed with the process."""

    def __init__(self) -> None:
        self.parent: str | None = None  # None for the system's folder of temporary files
        self._made: Path | None = None
        self._lock = threading.Lock()

    def save(self, thing: Any, n_bytes: int) -> "File | None":
        """A file with the thing in it, if there is room."""
        path = None
        try:
            path = self._new_path(n_bytes)
            if path is None:
                return None
            with path.open("wb") as file:
                pickle.dump(thing, file, protocol=5)
            return File(path)
        except OSError:  # no room after all, or no folder to write to
            if path is not None:
                _remove(path)
            return None

    def _new_path(self, n_bytes: int) -> Path | None:
        with self._lock:
            if self._made is None:
                self._made = Path(tempfile.mkdtemp(prefix="kmargin-", dir=self.parent))
                weakref.finalize(self, shutil.rmtree, self._made, ignore_errors=True)
        disk = shutil.disk_usage(self._made)
        has_room = disk.free - n_bytes > LEFT_FREE * disk.total
        return self._made / uuid.uuid4().hex if has_room else None


class File:
    """A thing on disk, as long as somebody refers to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        weakref.finalize(self, _remove, path)

    def load(self) -> Any:
        with self.path.open("rb") as file:
            return pickle.load(file)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.remove(path)


FOLDER = Folder()
