"""Files that are replaced as a whole or not at all, and models on disk: plain arrays and JSON.

Reading a model never runs code from it. Its file is an npz archive, stored without compression. The member
`header` is JSON: names, classes, parameters. The other members are arrays of numbers; `sha256` is the digest
of all the rest, which detects damage and careless edits. It is not a signature.
"""

import hashlib
import io
import json
import math
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
from kmargin.tables.model import SeenRows, TableModel, machine_numbers, make_machine
from kmargin.tables.read import DAMAGED_ARCHIVE

FORMAT = "kmargin model"
VERSION = 1
NAME = "model.kmargin"

SHARED = {"header", "intercept", "mean", "spread"}  # arrays of every model
KINDS = {"linear": {"coef"}, "kernel": {"dual_coef", "support", "support_vectors"}}
# arrays that are there together or not at all; older models lack some
OPTIONAL = ({"medians"}, {"slopes", "offsets"}, {"seen_by_all", "seen_by_used"}, {"ranges"})
MEMBERS = {"sha256"}.union(SHARED, *KINDS.values(), *OPTIONAL)
WHOLE = {"support", "seen_by_all", "seen_by_used"}  # arrays of integers
CLASS_TYPES = {"str": str, "int": int, "float": float, "bool": bool}
PLAIN = ("<f8", "<i8", "|u1")  # floats, positions, bytes

PART = ".kmargin-part-"  # prefix of a folder in which files are being written
READY = ".kmargin-ready"  # the folder with all files of new results, before they are moved to their places
STALE_SECONDS = 3600  # age from which a `PART` folder is taken to be left by a killed process


def replace_file(path: Path, content: bytes) -> None:
    """Write a file; if that fails, a file that was there stays as it was."""
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    with _errors_name(path):
        try:
            _write(temporary, content)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def replace_folder(folder: Path, contents: Mapping[str, bytes], owned: Sequence[str]) -> None:
    """Make a folder hold these files, and none of the other names in `owned`; files of others stay.

    All files are written to a folder inside it first, which is then renamed to `READY`. From then on the
    new results count: `newest` finds them there, and `finish` moves them to their places, in the next call
    if the process is killed. The first name in `owned` is that of a file that all results have.
    """
    is_new = not folder.exists()
    with _errors_name(folder):
        folder.mkdir(exist_ok=True)
        for stale in folder.glob(f"{PART}*"):
            if time.time() - stale.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(stale, ignore_errors=True)
        finish(folder, owned)
        part = None
        try:
            part = Path(tempfile.mkdtemp(prefix=PART, dir=folder))
            for name, content in contents.items():
                _write(part / name, content)
            os.rename(part, folder / READY)
        except BaseException:
            if part is not None:
                shutil.rmtree(part, ignore_errors=True)
            if is_new:
                with suppress(OSError):
                    folder.rmdir()
            raise
        finish(folder, owned)


def finish(folder: Path, owned: Sequence[str]) -> None:
    """Move the files of a `READY` folder to their places, and remove owned files that are not among them.

    The first of the owned files is moved first: while it is in `READY`, no file has been moved.
    """
    ready = folder / READY
    names = [name for name in owned if (ready / name).exists()]
    if owned[0] in names and (folder / owned[0]).exists():
        for name in set(owned) - set(names):
            (folder / name).unlink(missing_ok=True)
    for name in names:
        os.replace(ready / name, folder / name)
    if ready.exists():
        ready.rmdir()


def newest(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder of results, in `READY` if it has not been moved yet."""
    ready = folder / READY / name
    return ready if ready.is_file() else folder / name


def is_temporary(name: str) -> bool:
    """Whether a killed process may have left a folder with this name."""
    return name == READY or name.startswith(PART)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    """Raise errors with the name of what is written instead of that of a temporary file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


class Mismatch(ValueError):
    """Contents of a model file that are inconsistent; the message says briefly which."""


def save(model: TableModel, path: str | Path) -> Path:
    """Write a model; `path` is either replaced as a whole or left as it was."""
    path = Path(path)
    if not path.resolve().parent.is_dir():
        raise InputError(
            f"{path} is in a folder that does not exist. Create the folder, or choose another name."
        )
    replace_file(path, to_bytes(model))
    return path


def to_bytes(model: TableModel) -> bytes:
    """The content of a model's file."""
    parameters, arrays = machine_numbers(model.machine)
    classes = arrays.pop("classes").tolist()
    arrays |= {"mean": model.scaling.mean, "spread": model.scaling.spread}
    if model.scaling.medians is not None:
        arrays["medians"] = model.scaling.medians
    if model.calibration is not None:
        arrays |= {"slopes": model.calibration.slopes, "offsets": model.calibration.offsets}
    if model.seen is not None:
        arrays |= {"seen_by_all": model.seen.by_all, "seen_by_used": model.seen.by_used}
    if model.ranges is not None:
        arrays["ranges"] = model.ranges
    header = {
        "format": FORMAT,
        "version": VERSION,
        "kmargin": __version__,
        "kind": "kernel" if model.is_kernel else "linear",
        "parameters": parameters | {"C": str(parameters["C"])},  # JSON has no word for inf
        "target": model.target,
        "id": model.id,
        "class_type": type(classes[0]).__name__,
        "classes": classes,
        "columns": list(model.encoding.columns),
        "categories": {column: list(values) for column, values in model.encoding.categories.items()},
    }
    text = json.dumps(header, ensure_ascii=False, indent=1).encode()
    members = {"header": np.frombuffer(text, np.uint8)} | {
        n: np.ascontiguousarray(a) for n, a in arrays.items()
    }
    members["sha256"] = _digest(members)
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **members)
    return content.getvalue()


def load(path: str | Path) -> TableModel:
    """Read a model. Raises InputError for anything that `save` did not write, without running it."""
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
    digest = members.pop("sha256", np.empty(0, np.uint8))
    if not np.array_equal(digest, _digest(members)):
        raise InputError(f"{path} was changed or damaged after it was written. Fit the model again.")
    try:
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
    """The arrays of an archive, after a look at what they say of themselves."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            names = [info.filename.removesuffix(".npy") for info in infos]
            if len(set(names)) < len(names) or not set(names) <= MEMBERS or "header" not in names:
                raise _foreign(path, f"it holds {', '.join(map(repr, sorted(names)[:5]))}")
            for info in infos:
                _check_member(path, archive, info)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in names}
    except InputError:
        raise
    except DAMAGED_ARCHIVE as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise  # there, but not to be read
        raise _foreign(path, "it is damaged or not an archive") from error


def _check_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """Numbers only, as many as the member has bytes for, and no bytes that unpack to more."""
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.file_size > path.stat().st_size:
        raise _foreign(path, f"{info.filename} is compressed or encrypted")
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise _foreign(path, f"{info.filename} is not an array that kmargin writes")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        n_left = info.file_size - file.tell()
    if dtype.str not in PLAIN or fortran or min(shape, default=0) < 0:
        raise _foreign(path, f"{info.filename} holds {dtype}, not plain numbers")
    if math.prod(shape) * dtype.itemsize != n_left:
        raise _foreign(path, f"{info.filename} declares shape {shape} but holds {n_left} bytes")


def _assemble(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> TableModel:
    """The model, every name, number and shape checked. Raises ValueError and its like."""
    kind, parameters, present = header["kind"], header["parameters"], set(arrays)
    optional = set().union(*(names for names in OPTIONAL if names <= present))
    _require(present - optional == SHARED | KINDS[kind], f"a {kind} model has other arrays")
    encoding = Encoding(
        tuple(map(_text, header["columns"])),
        {_text(name): tuple(map(_text, values)) for name, values in header["categories"].items()},
    )
    names = encoding.feature_names
    _require(len(set(names)) == len(names) > 0, "features repeat")
    _require(set(encoding.categories) <= set(encoding.columns), "categories of no column")
    type_ = CLASS_TYPES[header["class_type"]]
    _require(all(type(value) is type_ for value in header["classes"]), "classes of mixed types")
    classes = np.array(header["classes"])
    _require(len(classes) >= 2 and np.array_equal(np.unique(classes), classes), "classes out of order")
    _require(parameters["multi_class"] in SCHEMES, "multi_class")
    n_classifiers = len(class_pairs(len(classes), parameters["multi_class"]))
    _check_arrays(arrays, n_classifiers, len(names))
    _require(type(parameters["k"]) is int and parameters["k"] >= 0, "k")
    _require(isinstance(parameters["C"], str) and float(parameters["C"]) > 0, "C")
    # files from before the parameter `shared` hold models with k features for each binary classifier
    changed = {"C": float(parameters["C"]), "shared": parameters.get("shared", False)}
    _require(type(changed["shared"]) is bool, "shared")
    if kind == "kernel":
        _require(parameters["kernel"] in set(KERNELS) - {"precomputed"}, "kernel")
        numbers = [parameters[name] for name in ("gamma", "degree", "coef0")]
        _require(all(type(n) in (int, float) and math.isfinite(n) for n in numbers), "kernel numbers")
    else:  # older models have no constraints on features
        request = UnitRequest(*(parameters.get(name) for name in UnitRequest._fields))
        request.resolve(len(names))
        changed |= request._asdict()
    machine = make_machine(parameters | changed, arrays | {"classes": classes})
    scaling = Scaling(arrays.get("medians"), arrays["mean"], arrays["spread"])
    calibration = Calibration(arrays["slopes"], arrays["offsets"]) if "slopes" in arrays else None
    seen = SeenRows(arrays["seen_by_all"], arrays["seen_by_used"]) if "seen_by_all" in arrays else None
    id = None if header.get("id") is None else _text(header["id"])
    target, ranges = _text(header["target"]), arrays.get("ranges")
    return TableModel(target, encoding, scaling, machine, calibration, seen, ranges, id)


def _check_arrays(arrays: dict[str, np.ndarray], n_classifiers: int, n_features: int) -> None:
    """Raises Mismatch where arrays have other shapes, types or values than those of a model."""
    n_points = len(arrays.get("support_vectors", ()))
    slopes = arrays.get("slopes")
    is_mixed = slopes is not None and slopes.ndim == 2  # older models have a slope for each classifier
    shapes: dict[str, tuple[int, ...]] = {
        "intercept": (n_classifiers,),
        "slopes": (n_classifiers,) * (1 + is_mixed),
        "offsets": (n_classifiers,),
        "coef": (n_classifiers, n_features),
        "dual_coef": (n_classifiers, n_points),
        "support": (n_points,),
        "support_vectors": (n_points, n_features),
        "ranges": (2, n_features),
        **{name: arrays[name].shape for name in ("seen_by_all", "seen_by_used") if name in arrays},
    }
    for name in set(arrays) - {"header"}:
        array, shape = arrays[name], shapes.get(name, (n_features,))
        _require(array.shape == shape, f"{name} has shape {array.shape}, not {shape}")
        _require(bool(np.isfinite(array).all()), f"{name} is not finite")
        _require((array.dtype.kind == "i") == (name in WHOLE), f"{name} is {array.dtype}")
        if name.startswith("seen"):  # compared, not subtracted: differences of digests overflow
            is_sorted = array.ndim == 1 and bool((array[1:] > array[:-1]).all())
            _require(is_sorted, f"{name} is out of order")
    _require(bool((arrays["spread"] > 0).all()), "spread")


def _text(value: object) -> str:
    _require(isinstance(value, str), f"{value!r} is not a name")
    return str(value)


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise Mismatch(what)


def _foreign(path: Path, reason: str) -> InputError:
    return InputError(
        f"{path} is not a kmargin model ({reason}). Give a file that `kmargin fit` or save_model wrote."
    )
