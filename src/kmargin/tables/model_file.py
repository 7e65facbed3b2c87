"""Save and load models, and replace files and folders of results either completely or not at all.

Reading a model never runs code from it. Its file is an npz archive, stored without compression. The member
`header` is JSON: names, classes, parameters. The other members are arrays of numbers. One, `sha256`, is the
digest of all the others, which detects damage and careless edits. It is not a signature.
"""

import hashlib
import io
import json
import math
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from kmargin import __version__
from kmargin.core.labels import SCHEMES, class_pairs
from kmargin.core.units import UnitRequest
from kmargin.core.validation import InputError
from kmargin.fitting.decisions import KERNELS
from kmargin.model_selection.calibration import Calibration
from kmargin.tables.columns import Encoding, Scaling
from kmargin.tables.model import KERNEL_PARAMETERS, SeenRows, TableModel, estimator_numbers, make_estimator
from kmargin.tables.read import DAMAGED_ARCHIVE

FORMAT = "kmargin model"
VERSION = 1
NAME = "model.kmargin"

# Shapes of the arrays: m binary classifiers, p features, q support vectors of a kernel model, n any number
SHAPES = {"intercept": "m", "coef": "mp", "mean": "p", "spread": "p"}
SHAPES |= {"dual_coef": "mq", "support": "q", "support_vectors": "qp"}
SHAPES |= {"medians": "p", "ranges": "2p", "slopes": "m", "offsets": "m"}  # not in every model
SHAPES |= {"seen_by_all": "n", "seen_by_used": "n"}
KINDS = {"linear": ("intercept", "coef"), "kernel": ("intercept", "dual_coef", "support", "support_vectors")}
INTEGERS = {"support", "seen_by_all", "seen_by_used"}
MEMBERS = {"header", "sha256", *SHAPES}
PLAIN = ("<f8", "<i8", "|u1")  # the data types that arrays in a file may have: floats, integers, bytes

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


def is_temporary(name: str) -> bool:
    """Whether this is the name of a subfolder that a killed process may have left, `PART` or `READY`."""
    return name in (PART, READY)


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


class Mismatch(ValueError):
    """An error for invalid contents of a model file; the message says briefly what is wrong."""


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
    members = _read_members(path)
    try:
        header = json.loads(members["header"].tobytes())
        format, version = header["format"], header["version"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _foreign(path, "its header cannot be read") from error
    if format != FORMAT or type(version) is not int or version < 1:
        raise _foreign(path, f"its format is {str(format)[:40]!r}, version {str(version)[:10]!r}")
    if version > VERSION:
        raise InputError(
            f"{path} has format {version}, but this kmargin ({__version__}) reads up to {VERSION}. Upgrade "
            "kmargin."
        )
    if not np.array_equal(members.pop("sha256", np.empty(0, np.uint8)), _digest(members)):
        raise InputError(f"{path} was changed or damaged after it was written. Fit the model again.")
    try:
        del members["header"]
        return _assemble(header, members)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = str(error) if isinstance(error, Mismatch) else "its header has values kmargin never writes"
        raise _foreign(path, reason[:80]) from error


def _digest(members: Mapping[str, np.ndarray]) -> np.ndarray:
    sha = hashlib.sha256()
    for name in sorted(members):
        array = members[name]
        sha.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sha.update(array.tobytes())
    return np.frombuffer(sha.digest(), np.uint8)


def _read_members(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of an archive; as none may be compressed, a small file cannot fill the memory."""
    members: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                name = info.filename.removesuffix(".npy")
                _check_member(info, name not in members)
                members[name] = _read_array(info.filename, archive.read(info))
    except Mismatch as error:
        raise _foreign(path, str(error)) from error
    except DAMAGED_ARCHIVE as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise  # the file exists, but may not be read
        raise _foreign(path, "it is damaged or not an archive") from error
    return members


def _check_member(info: zipfile.ZipInfo, is_new: bool) -> None:
    """Raise Mismatch for a member of an archive that is not part of a model, is compressed or encrypted."""
    _require(is_new and info.filename.removesuffix(".npy") in MEMBERS, f"it holds {info.filename[:40]!r}")
    is_stored = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1
    _require(is_stored, f"{info.filename} is compressed or encrypted")


def _read_array(name: str, content: bytes) -> np.ndarray:
    """Read an array of numbers in NumPy's npy format. Raises Mismatch if `content` is not one."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    data = content[file.tell() :]
    is_plain = version == (1, 0) and not is_fortran and dtype.str in PLAIN and min(shape, default=0) >= 0
    _require(is_plain, f"{name} is not a plain array of numbers")
    n_bytes = math.prod(shape) * dtype.itemsize
    _require(n_bytes == len(data), f"{name} declares shape {shape} but holds {len(data)} bytes")
    return np.frombuffer(data, dtype).reshape(shape).copy()


def _assemble(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> TableModel:
    """Make the model from the members of its file. Raises Mismatch, or another error, for invalid values."""
    kind, columns, categories = header["kind"], header["columns"], header["categories"]
    encoding = Encoding(tuple(columns), {name: tuple(values) for name, values in categories.items()})
    names, classes = encoding.feature_names, np.array(header["classes"])
    texts = [header["target"], header.get("id") or "", *columns, *categories, *chain(*categories.values())]
    given = {"shared": False} | header["parameters"]  # older files lack `shared`, which was always False
    parameters = {name: given[name] for name in ("k", "multi_class", "shared")} | {"C": float(given["C"])}
    numbers: list[Any] = []
    if kind == "kernel":
        parameters |= {name: given[name] for name in KERNEL_PARAMETERS}
        numbers = [given[name] for name in KERNEL_PARAMETERS if name != "kernel"]
    else:  # older models have no constraints on features
        request = UnitRequest(*(given.get(name) for name in UnitRequest._fields))
        request.resolve(len(names))
        parameters |= request._asdict()
    is_valid = {
        "names": all(isinstance(text, str) for text in texts),
        "features": len(set(names)) == len(names) > 0,
        "categories": set(categories) <= set(columns),
        "classes": len({type(value) for value in header["classes"]}) == 1 and classes.dtype.kind in "Uifb",
        "order of classes": len(classes) >= 2 and np.array_equal(np.unique(classes), classes),
        "k": type(given["k"]) is int and given["k"] >= 0,
        "C": isinstance(given["C"], str) and parameters["C"] > 0,
        "multi_class": given["multi_class"] in SCHEMES,
        "shared": type(given["shared"]) is bool,
        "kernel": kind == "linear" or given["kernel"] in set(KERNELS) - {"precomputed"},
        "parameters of the kernel": all(type(n) in (int, float) and math.isfinite(n) for n in numbers),
    }
    for what, holds in is_valid.items():
        _require(holds, f"its {what} cannot be those of a model")
    _check_arrays(arrays, len(class_pairs(len(classes), given["multi_class"])), len(names))
    fitted = {name: arrays[name] for name in KINDS[kind]}
    return TableModel(
        target=header["target"],
        encoding=encoding,
        scaling=Scaling(arrays.get("medians"), arrays["mean"], arrays["spread"]),
        machine=make_estimator(parameters, fitted | {"classes": classes}),
        calibration=Calibration(arrays["slopes"], arrays["offsets"]) if "slopes" in arrays else None,
        seen=SeenRows(arrays["seen_by_all"], arrays["seen_by_used"]) if "seen_by_all" in arrays else None,
        ranges=arrays.get("ranges"),
        id=header.get("id"),
    )


def _check_arrays(arrays: dict[str, np.ndarray], n_classifiers: int, n_features: int) -> None:
    """Raise Mismatch if arrays have shapes, types or values that those of a model never have."""
    sizes = {"m": n_classifiers, "p": n_features, "q": len(arrays.get("support_vectors", ())), "2": 2}
    for name, array in arrays.items():
        letters = "mm" if name == "slopes" and array.ndim == 2 else SHAPES[name]  # see `Calibration`
        shape = tuple(sizes.get(letter, array.size) for letter in letters)
        _require(array.shape == shape, f"{name} has shape {array.shape}, not {shape}")
        _require(bool(np.isfinite(array).all()), f"{name} is not finite")
        _require((array.dtype.kind == "i") == (name in INTEGERS), f"{name} is {array.dtype}")
    for name in arrays.keys() & {"seen_by_all", "seen_by_used"}:
        digests = arrays[name]  # not compared by np.diff, because differences of digests may overflow
        _require(bool((digests[1:] > digests[:-1]).all()), f"{name} is out of order")
    _require(bool((arrays["spread"] > 0).all()), "spread")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise Mismatch(what)


def _foreign(path: Path, reason: str) -> InputError:
    return InputError(
        f"{path} is not a kmargin model ({reason}). Give a file that `kmargin fit` or save_model wrote."
    )
