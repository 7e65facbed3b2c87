"""The results of the experiments on disk, to which the results of each job are added when it ends.

A folder holds `rows.csv` (a row of results for each fit), `seconds.csv` (the processor time of each fit) and
`manifest.json` (settings and versions). The same settings give the same `rows.csv`, even if the run was
stopped and continued.
"""

import csv
import importlib.metadata
import io
import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kmargin.paper.protocol import Job
from kmargin.tables.model_file import replace_file

KEYS = ("experiment", "protocol", "dataset", "solver", "replicate", "parameter")
VALUES = (
    "iterations", "stalled", "objective", "gradient_sq", "distance_sq", "loss", "support_vectors", "kept",
    "sparsity", "fdr", "for", "train", "validation", "test",
)  # fmt: skip
# The columns of each file of results. Times are written first, so that no other result lacks its time.
COLUMNS = {"seconds.csv": (*KEYS, "seconds"), "rows.csv": (*KEYS, *VALUES)}
FORMAT = 2  # version of the files of results; since version 2, times exclude compilation
RECORDED = ("kmargin", "numpy", "scipy", "scikit-learn", "numba")

Key = tuple[str, ...]  # the values of the columns KEYS, which identify a fit


class StoreError(RuntimeError):
    """Raised if a folder cannot take results: it has other files or settings, or another run uses it."""


class Store:
    """The tables `rows.csv` and `seconds.csv` of one folder, with all numbers as text.

    The time of a fit is written first, so that every fit in `rows.csv` has a time, even if a run is killed.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], command: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        write_manifest(folder, settings, command)
        self.tables = {name: read_table(folder / name, columns) for name, columns in COLUMNS.items()}

    def has(self, job: Job) -> bool:
        """Whether `rows.csv` has the results of all fits of a job."""
        keys = (_key(job, fit._asdict()) for fit in job.fits)
        return all(key in self.tables["rows.csv"] for key in keys)

    def append(self, job: Job, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append the results of a job to `seconds.csv` and `rows.csv`: a line for each fit."""
        for name, columns in COLUMNS.items():
            values = columns[len(KEYS) :]
            found = {_key(job, row): tuple(_text(row.get(column)) for column in values) for row in rows}
            with (self.folder / name).open("ab") as file:
                file.write(_lines((*key, *found[key]) for key in found))
                file.flush()
                os.fsync(file.fileno())
            self.tables[name] |= found

    def finish(self, order: Callable[[Key], Any]) -> None:
        """Sort the lines of both files by `order(key)`; drop times of fits that `rows.csv` does not have."""
        keys = sorted(self.tables["rows.csv"], key=order)
        for name, columns in COLUMNS.items():
            found = self.tables[name]
            rows = ((*key, *found[key]) for key in keys if key in found)
            replace_file(self.folder / name, _lines([columns, *rows]))


def read_table(path: Path, columns: Sequence[str]) -> dict[Key, tuple[str, ...]]:
    """Read a CSV file: values by key of a fit. Create it if missing; cut off an incomplete last line."""
    header = _lines([columns])
    content = path.read_bytes() if path.exists() else b""
    complete = content[: content.rfind(b"\n") + 1] or header
    if not complete.startswith(header):
        raise StoreError(f"{path} is not a table of results. Give another folder with --out.")
    if complete != content:
        replace_file(path, complete)
    lines = list(csv.reader(io.StringIO(complete.decode())))[1:]
    return {tuple(line[: len(KEYS)]): tuple(line[len(KEYS) :]) for line in lines}


def write_manifest(folder: Path, settings: dict[str, Any], command: str) -> None:
    """Record a command and this computer in `manifest.json`. Raises StoreError if its settings differ."""
    path = folder / "manifest.json"
    now = {"format": FORMAT, "kmargin": importlib.metadata.version("kmargin"), "settings": settings}
    manifest: dict[str, Any] = now | {"commands": [], "environments": []}
    if path.exists():
        manifest = json.loads(path.read_text(encoding="utf-8"))
    elif (folder / "rows.csv").exists():
        raise StoreError(f"{folder} has rows but no manifest. Give another folder with --out.")
    stored, wanted = manifest | manifest.get("settings", {}), now | settings
    changed = [name for name in ("format", "kmargin", *settings) if stored.get(name) != wanted[name]]
    if changed:
        name = changed[0]
        raise StoreError(
            f"{folder} holds rows made with {name}={stored.get(name)!r}, and this run has "
            f"{name}={wanted[name]!r}. Give another folder with --out, or remove this one."
        )
    for name, entry in (("commands", command), ("environments", environment())):
        if entry not in manifest[name]:
            manifest[name].append(entry)
    replace_file(path, (json.dumps(manifest, indent=2) + "\n").encode())


def environment() -> dict[str, Any]:
    """The computer and the versions of packages; the last digits of results may depend on both."""
    versions = {name: importlib.metadata.version(name) for name in RECORDED}
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        **versions,
    }


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder until this process leaves the context or ends."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".lock"
    with path.open("ab") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass  # Windows has no fcntl: there, two runs may write to the same folder
        except OSError:
            raise StoreError(
                f"Another run is writing to {folder}. Wait for it, or give another folder with --out."
            ) from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _key(job: Job, row: Mapping[str, Any]) -> Key:
    return (*job[:4], _text(row["replicate"]), _text(row["parameter"]))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return format(value, ".8g") if isinstance(value, float) else str(value)


def _lines(rows: Iterable[Sequence[str]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().encode()
