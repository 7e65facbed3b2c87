"""Results on disk: a table to which rows are appended, and a record of how it was made.

A folder holds `rows.csv` (a row for each finished unit; the same settings give the same bytes, however often
the run was stopped), `seconds.csv` (processor time of the same units), `manifest.json`, and during a run
`state/` with the parameters from which its chains continue.
"""

import csv
import importlib.metadata
import io
import json
import os
import platform
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from kmargin.core.arrays import Vector
from kmargin.paper.protocol import Chain, Finished, Unit
from kmargin.tables.model_file import replace_file

KEYS = ("experiment", "protocol", "dataset", "solver", "replicate", "parameter")
VALUES = (
    "iterations", "stalled", "objective", "gradient_sq", "distance_sq", "loss", "support_vectors", "kept",
    "sparsity", "fdr", "for", "train", "validation", "test",
)  # fmt: skip
FORMAT = 2  # since 2, times are taken after a warm-up
RECORDED = ("kmargin", "numpy", "scipy", "scikit-learn", "numba")

Key = tuple[str, ...]
Row = tuple[str, ...]


class StoreError(RuntimeError):
    """A folder that this run must not write to."""


class Store:
    """The folder of one run. Rows may come from several threads."""

    def __init__(self, folder: Path, settings: dict[str, Any], command: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._guard = Guard(folder)
        try:
            self._check_manifest(settings, command)
            self.rows = Table(folder / "rows.csv", (*KEYS, *VALUES))
            self.seconds = Table(folder / "seconds.csv", (*KEYS, "seconds"))
        except BaseException:
            self._guard.close()
            raise
        self.seconds.keep(self.rows.by_key)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.rows.close()
        self.seconds.close()
        self._guard.close()

    def done(self, chain: Chain) -> list[Unit]:
        """The units of a chain that are on disk, in the order of the chain."""
        return [unit for unit in chain.units if _key(chain, unit) in self.rows.by_key]

    def state(self, chain: Chain, done: Sequence[Unit]) -> list[Vector]:
        """The parameters from which the unit after the last one done starts."""
        path = self._state_path(chain, done[-1]) if done else None
        if path is None or not path.exists():
            return []
        with np.load(path) as arrays:
            return [arrays[str(number)] for number in range(len(arrays.files))]

    def append(self, chain: Chain, finished: Sequence[Finished]) -> None:
        """Save units. The row is written last: a unit that has a row has everything else, too."""
        for one in finished:
            if len(one.state):
                self._write_state(chain, one)
        with self._lock:
            lines = []
            for one in finished:
                key = _key(chain, one.unit)
                lines.append((*key, *(_text(one.values.get(name)) for name in VALUES)))
                self.seconds.append([(*key, _text(one.seconds))])
            self.rows.append(lines)
        for one in finished:
            self._delete_states(chain, one.unit)

    def finish(self, order: Callable[[Row], Any]) -> None:
        """Sort all rows. States of chains that other commands left unfinished stay."""
        self.rows.sort(order)
        self.seconds.sort(order)
        states = self.folder / "state"
        if states.exists() and not any(states.iterdir()):
            states.rmdir()

    def _state_path(self, chain: Chain, unit: Unit) -> Path:
        return self.folder / "state" / f"{chain.name}-{unit.parameter!r}.npz"

    def _write_state(self, chain: Chain, finished: Finished) -> None:
        path = self._state_path(chain, finished.unit)
        path.parent.mkdir(exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            vectors: dict[str, Any] = {str(number): v for number, v in enumerate(finished.state)}
            np.savez(file, **vectors)
        os.replace(part, path)

    def _delete_states(self, chain: Chain, unit: Unit) -> None:
        """Delete the states of all units before this one; after the last unit, all states of the chain."""
        position = chain.units.index(unit)
        for old in chain.units if unit == chain.units[-1] else chain.units[:position]:
            self._state_path(chain, old).unlink(missing_ok=True)

    def _check_manifest(self, settings: dict[str, Any], command: str) -> None:
        path = self.folder / "manifest.json"
        now = {"format": FORMAT, "kmargin": importlib.metadata.version("kmargin"), "settings": settings}
        manifest: dict[str, Any] = now | {"commands": [], "environments": []}
        if path.exists():
            manifest = json.loads(path.read_text(encoding="utf-8"))
        elif (self.folder / "rows.csv").exists():
            raise StoreError(f"{self.folder} has rows but no manifest. Give another folder with --out.")
        for name, value in now.items():
            if manifest.get(name) != value:
                raise StoreError(
                    f"{self.folder} holds rows made with {_difference(name, manifest.get(name), value)}. "
                    "Give another folder with --out, or remove this one."
                )
        for name, entry in (("commands", command), ("environments", environment())):
            if entry not in manifest[name]:
                manifest[name].append(entry)
        replace_file(path, (json.dumps(manifest, indent=2) + "\n").encode())


class Table:
    """A CSV file to which rows are appended. An incomplete last line is dropped."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.columns = tuple(columns)
        header = _line(self.columns)
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1] or header
        if not whole.startswith(header):
            raise StoreError(f"{path} is not a table of results. Give another folder with --out.")
        if whole != content:
            replace_file(path, whole)
        lines = list(csv.reader(io.StringIO(whole.decode())))[1:]
        self.by_key: dict[Key, Row] = {tuple(line[: len(KEYS)]): tuple(line) for line in lines}
        self._file = path.open("ab", buffering=0)

    def append(self, rows: Sequence[Row]) -> None:
        """Append rows in one write."""
        self._file.write(b"".join(_line(row) for row in rows))
        os.fsync(self._file.fileno())
        self.by_key |= {row[: len(KEYS)]: row for row in rows}

    def keep(self, keys: Iterable[Key]) -> None:
        """Drop rows with other keys."""
        keys = set(keys)
        if not keys >= set(self.by_key):
            self._rewrite([row for key, row in self.by_key.items() if key in keys])

    def sort(self, order: Callable[[Row], Any]) -> None:
        self._rewrite(sorted(self.by_key.values(), key=order))

    def close(self) -> None:
        self._file.close()

    def _rewrite(self, rows: Sequence[Row]) -> None:
        self._file.close()
        replace_file(self.path, b"".join(map(_line, (self.columns, *rows))))
        self.by_key = {row[: len(KEYS)]: row for row in rows}
        self._file = self.path.open("ab", buffering=0)


class Guard:
    """A lock on a folder that is released when this process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / ".lock"
        self.file = self.path.open("ab")
        try:
            import fcntl
        except ImportError:
            return  # no such locks on this system
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.file.close()
            raise StoreError(
                f"Another run is writing to {folder}. Wait for it, or give another folder with --out."
            ) from None

    def close(self) -> None:
        self.file.close()
        self.path.unlink(missing_ok=True)


def environment() -> dict[str, Any]:
    """The machine and the versions on which numbers may depend."""
    versions = {name: importlib.metadata.version(name) for name in RECORDED}
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        **versions,
    }


def _key(chain: Chain, unit: Unit) -> Key:
    names = (chain.experiment, chain.protocol, chain.dataset, chain.solver)
    return (*names, str(unit.replicate), _text(unit.parameter))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return format(value, ".8g") if isinstance(value, float) else str(value)


def _line(row: Sequence[str]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(row)
    return buffer.getvalue().encode()


def _difference(name: str, had: Any, has: Any) -> str:
    if name != "settings":
        return f"{name} {had}, and this is {name} {has}"
    changed = [key for key in {*had, *has} if had.get(key) != has.get(key)]
    key = min(changed, key=lambda name: (isinstance(has.get(name), list), name))  # the simplest to read
    return f"{key}={had.get(key)!r}, and this run has {key}={has.get(key)!r}"
