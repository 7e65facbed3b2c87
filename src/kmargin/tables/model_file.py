"""Save and load models, and replace files and folders of results either completely or not at all.

Reading a model never runs code from it. Its file is an npz archive, stored without compression. The member
`header` is JSON: names, classes, parameters. The other members are arrays of numbers. One, `sha256`, is the
digest of all the others, which detects damage and careless edits. It is not a signature.
"""

import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kmargin import __version__
from kmargin.core.units import UnitRequest
from kmargin.core.validation import InputError
from kmargin.model_selection.calibration import Calibration
from kmargin.tables.columns import Encoding, Scaling
from kmargin.tables.model import (
    FITTED_ARRAYS,
    KERNEL_PARAMETERS,
    SeenRows,
    TableModel,
    estimator_numbers,
    make_estimator,
)
from kmargin.tables.read import Table

FORMAT = "kmargin model"
VERSION = 1
NAME = "model.kmargin"

# Subfolders of a folder of results: files are written to PART, which is renamed to READY when all of them are
# complete; then they are moved from READY to the folder itself.
PART, READY = ".kmargin-part", ".kmargin-ready"


def replace_file(path: Path, content: bytes) -> None:
    """Write a file; if that fails, an existing file with this name is not changed."""
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    with _errors_name(path):
        try:
            _write(temporary, content)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def replace_folder(folder: Path, contents: Mapping[str, bytes], result_names: Sequence[str]) -> None:
    """Replace the results in a folder by the files in `contents`.

    `result_names` are all names that files of results can have, first that of a file which all results have:
    older files with these names are removed, files with other names stay. The new files are first written to
    the subfolder `PART`. When this is renamed to `READY`, the new results are valid: `newest` finds them, and
    `finish` moves them to the folder itself. If the process is killed before that, the next call does it.
    """
    is_new, part = not folder.exists(), folder / PART
    with _errors_name(folder):
        folder.mkdir(exist_ok=True)
        finish(folder, result_names)
        try:
            shutil.rmtree(part, ignore_errors=True)  # left by a process that was killed
            part.mkdir()
            for name, content in contents.items():
                _write(part / name, content)
            os.rename(part, folder / READY)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            if is_new:
                with suppress(OSError):
                    folder.rmdir()
            raise
        finish(folder, result_names)


def finish(folder: Path, result_names: Sequence[str]) -> None:
    """Move all files from the subfolder `READY` to a folder of results, and remove its older results.

    Older results are files with other names in `result_names`. The file with the first of these names is
    moved first: while it is in `READY`, no file has been moved.
    """
    ready = folder / READY
    names = [name for name in result_names if (ready / name).exists()]
    if result_names[0] in names and (folder / result_names[0]).exists():
        for name in set(result_names) - set(names):
            (folder / name).unlink(missing_ok=True)
    for name in names:
        os.replace(ready / name, folder / name)
    if ready.exists():
        ready.rmdir()


def newest(folder: Path, name: str) -> Path:
    """Return the path of a file of results: in the subfolder `READY` if it has not been moved from there."""
    ready = folder / READY / name
    return ready if ready.is_file() else folder / name


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    """Raise an OSError again with this path, because its own path may be that of a temporary file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def save(model: TableModel, path: str | Path) -> Path:
    """Write a model to a file; if that fails, an existing file is not changed."""
    path = Path(path)
    if not path.resolve().parent.is_dir():
        raise InputError(
            f"{path} is in a folder that does not exist. Create the folder, or choose another name."
        )
    replace_file(path, to_bytes(model))
    return path


def to_bytes(model: TableModel) -> bytes:
    """Return the content of the file of a model."""
    parameters, arrays = estimator_numbers(model.machine)
    classes = arrays.pop("classes").tolist()
    arrays |= {"mean": model.scaling.mean, "spread": model.scaling.spread}
    optional = {"medians": model.scaling.medians, "ranges": model.ranges}
    if model.calibration is not None:
        optional |= {"slopes": model.calibration.slopes, "offsets": model.calibration.offsets}
    if model.seen is not None:
        optional |= {"seen_by_all": model.seen.by_all, "seen_by_used": model.seen.by_used}
    arrays |= {name: array for name, array in optional.items() if array is not None}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "kmargin": __version__,
        "kind": "kernel" if model.is_kernel else "linear",
        "parameters": parameters | {"C": str(parameters["C"])},  # JSON cannot represent infinity
        "target": model.target,
        "id": model.id,
        "class_type": type(classes[0]).__name__,
        "classes": classes,
        "columns": list(model.encoding.columns),
        "categories": {column: list(values) for column, values in model.encoding.categories.items()},
    }
    text = json.dumps(header, ensure_ascii=False, indent=1).encode()
    members = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    members["header"] = np.frombuffer(text, np.uint8)
    members["sha256"] = _digest(members)
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **members)
    return content.getvalue()


def load(path: str | Path) -> TableModel:
    """Read a model. Raises InputError for a file that `save` did not write; no code in the file is run."""
    path = Path(path)
    if path.is_dir():
        path = newest(path, NAME)
    if not path.is_file():
        raise InputError(
            f"There is no model at {path}. Give the folder that `kmargin fit` wrote, or its {NAME}."
        )
    content = path.read_bytes()
    with _errors_refuse(path, "it is damaged, compressed or not an archive"):
        members = _read_members(content)
        header = json.loads(members["header"].tobytes())
        if header["format"] != FORMAT or header["version"] < 1:
            raise ValueError(header["format"])
    if header["version"] > VERSION:
        raise InputError(
            f"{path} has format {header['version']}, but this kmargin ({__version__}) reads up to {VERSION}. "
            "Upgrade kmargin."
        )
    if not np.array_equal(members.pop("sha256", np.empty(0, np.uint8)), _digest(members)):
        raise InputError(f"{path} was changed or damaged after it was written. Fit the model again.")
    with _errors_refuse(path, "it has values that kmargin never writes"):
        model = _assemble(header, members)
        _check(model)
    return model


@contextmanager
def _errors_refuse(path: Path, reason: str) -> Iterator[None]:
    """Turn any error into an InputError, because only files that kmargin did not write cause errors."""
    try:
        yield
    except Exception as error:
        raise InputError(
            f"{path} is not a kmargin model ({reason}). Give a file that `kmargin fit` or save_model wrote."
        ) from error


def _digest(members: Mapping[str, np.ndarray]) -> np.ndarray:
    sha = hashlib.sha256()
    for name in sorted(members):
        array = members[name]
        sha.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sha.update(array.tobytes())
    return np.frombuffer(sha.digest(), np.uint8)


def _read_members(content: bytes) -> dict[str, np.ndarray]:
    """Read the arrays of an archive.

    NumPy's own reader would unpack compressed members, and allocate the shapes that members declare. Here a
    small file cannot fill the memory.
    """
    members = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{info.filename} is compressed")
            file = io.BytesIO(archive.read(info))
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            if dtype.kind not in "fiu":
                raise ValueError(f"{info.filename} is not an array of numbers")
            array = np.frombuffer(file.read(), dtype).reshape(shape)
            members[info.filename.removesuffix(".npy")] = array.copy()
    return members


def _assemble(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> TableModel:
    """Make the model from the members of its file."""
    categories = {column: tuple(values) for column, values in header["categories"].items()}
    # older files lack `shared`, which was always False, and the constraints on features
    given = {"shared": False} | header["parameters"]
    names = KERNEL_PARAMETERS if header["kind"] == "kernel" else UnitRequest._fields
    parameters = {name: given.get(name) for name in ("k", "multi_class", "shared", *names)}
    parameters["C"] = float(given["C"])
    fitted = {"classes": np.array(header["classes"])}
    fitted |= {name: arrays[name] for name in FITTED_ARRAYS[header["kind"]]}
    return TableModel(
        target=str(header["target"]),
        encoding=Encoding(tuple(map(str, header["columns"])), categories),
        scaling=Scaling(arrays.get("medians"), arrays["mean"], arrays["spread"]),
        machine=make_estimator(parameters, fitted),
        calibration=Calibration(arrays["slopes"], arrays["offsets"]) if "slopes" in arrays else None,
        seen=SeenRows(arrays["seen_by_all"], arrays["seen_by_used"]) if "seen_by_all" in arrays else None,
        ranges=arrays.get("ranges"),
        id=header.get("id"),
    )


def _check(model: TableModel) -> None:
    """Raise an error unless the model can be saved again, and predicts finite numbers for a row of means."""
    to_bytes(model)
    row = pd.DataFrame(model.scaling.mean[np.newaxis], columns=model.encoding.feature_names)
    found = model.predict_table(Table(row, absent_is_zero=True))
    for numbers in (found.decisions, found.probabilities):
        if numbers is not None and not np.isfinite(numbers).all():
            raise ValueError("The model does not predict finite numbers.")
