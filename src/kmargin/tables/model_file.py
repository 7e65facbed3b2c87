"""A model on disk: plain arrays and JSON. Reading one never runs code from it.

The file is an npz archive, stored without compression. Its member `header` is JSON: names, classes,
parameters. The other members are arrays of numbers; `sha256` is the digest of all the rest. It tells
damage and careless edits; it is no signature.
"""

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping
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
from kmargin.tables.files import newest, replace_file
from kmargin.tables.model import SeenRows, TableModel, machine_numbers, make_machine
from kmargin.tables.read import DAMAGED_ARCHIVE

FORMAT = "kmargin model"
VERSION = 1
NAME = "model.kmargin"

SHARED = ("intercept", "mean", "spread")
KINDS = {"linear": ("coef",), "kernel": ("dual_coef", "support", "support_vectors")}
CLASS_TYPES = {"str": str, "int": int, "float": float, "bool": bool}
PLAIN = ("<f8", "<i8", "|u1")  # floats, positions, bytes
CALIBRATION = {"slopes", "offsets"}  # all of them or none
SEEN = {"seen_by_all", "seen_by_used"}  # all of them or none
RANGES = {"ranges"}  # not in older models
MEMBERS = {
    "header",
    "sha256",
    "medians",
    *CALIBRATION,
    *SEEN,
    *RANGES,
    *SHARED,
    *KINDS["linear"],
    *KINDS["kernel"],
}


class Mismatch(ValueError):
    """Parts of a file that do not go together, in a word."""


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
        reason = str(error) if isinstance(error, Mismatch) else "its header says what none of ours would"
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
    kind, parameters = header["kind"], header["parameters"]
    expected = {"header", *SHARED, *KINDS[kind]}
    optional = {"medians"}.union(*(names for names in (CALIBRATION, SEEN, RANGES) if names <= set(arrays)))
    _require(set(arrays) - optional == expected, f"a {kind} machine has other arrays")
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
    n_machines = len(class_pairs(len(classes), parameters["multi_class"]))
    n_points = len(arrays.get("support_vectors", ()))
    # older models have a slope for each machine
    is_joint = len(classes) > 2 and parameters["multi_class"] == "ovr"
    is_mixed = is_joint and np.ndim(arrays.get("slopes", 0.0)) == 2
    shapes: dict[str, tuple[int, ...]] = {
        "intercept": (n_machines,),
        "slopes": (n_machines, n_machines) if is_mixed else (n_machines,),
        "offsets": (n_machines,),
        "coef": (n_machines, len(names)),
        "dual_coef": (n_machines, n_points),
        "support": (n_points,),
        "support_vectors": (n_points, len(names)),
        "ranges": (2, len(names)),
    }
    for name in set(arrays) & SEEN:
        _require(arrays[name].ndim == 1, f"{name} is not a list")
        # compared, not subtracted: differences of digests overflow
        _require(bool((arrays[name][1:] > arrays[name][:-1]).all()), f"{name} is out of order")
        shapes[name] = arrays[name].shape
    for name in set(arrays) - {"header"}:
        shape = shapes.get(name, (len(names),))
        _require(arrays[name].shape == shape, f"{name} has shape {arrays[name].shape}, not {shape}")
        _require(bool(np.isfinite(arrays[name]).all()), f"{name} is not finite")
        is_whole = arrays[name].dtype.kind == "i"
        _require(is_whole == (name == "support" or name in SEEN), f"{name} is {arrays[name].dtype}")
    _require(type(parameters["k"]) is int and parameters["k"] >= 0, "k")
    _require(isinstance(parameters["C"], str) and float(parameters["C"]) > 0, "C")
    # models older than shared features have k of them for each machine
    shared = parameters.get("shared", False)
    _require(type(shared) is bool, "shared")
    numbers = {"k": parameters["k"], "C": float(parameters["C"]), "shared": shared}
    if kind == "kernel":
        _require(parameters["kernel"] in set(KERNELS) - {"precomputed"}, "kernel")
        of_kernel = {name: parameters[name] for name in ("gamma", "degree", "coef0")}
        is_number = [type(value) in (int, float) and math.isfinite(value) for value in of_kernel.values()]
        _require(all(is_number), "kernel numbers")
        numbers |= of_kernel
    else:
        numbers |= _check_request(parameters, arrays["coef"])
    _require(bool((arrays["spread"] > 0).all()), "spread")
    machine = make_machine(parameters | numbers, arrays | {"classes": classes})
    scaling = Scaling(arrays.get("medians"), arrays["mean"], arrays["spread"])
    calibration = Calibration(arrays["slopes"], arrays["offsets"]) if "slopes" in arrays else None
    seen = SeenRows(arrays["seen_by_all"], arrays["seen_by_used"]) if set(arrays) >= SEEN else None
    ranges, id = arrays.get("ranges"), header.get("id")
    _require(ranges is None or bool((ranges[0] <= ranges[1]).all()), "ranges are out of order")
    id = None if id is None else _text(id)
    return TableModel(_text(header["target"]), encoding, scaling, machine, calibration, seen, ranges, id)


def _check_request(parameters: dict[str, Any], coef: np.ndarray) -> dict[str, Any]:
    """What was asked for of the features, which the coefficients obey; nothing in older models."""
    n_features = coef.shape[1]
    request = UnitRequest(*(parameters.get(name) for name in UnitRequest._fields))
    for name, entries in request._asdict().items():
        _require(entries is None or (isinstance(entries, list) and len(entries) > 0), name)
    for name, entry_type in (("groups", str), ("signs", int)):
        entries = getattr(request, name)
        _require(entries is None or len(entries) == n_features, f"{name} of other features")
        _require(entries is None or all(type(entry) is entry_type for entry in entries), name)
    for name in ("keep", "avoid"):
        for place in getattr(request, name) or ():
            _require(type(place) is int and 0 <= place < n_features, f"{name} names no feature")
    units = request.resolve(n_features)
    _require(int(units.fixed.sum()) <= parameters["k"], "more is always in than k allows")
    _require(not coef[:, units.unit_of_each_column < 0].any(), "what is never in has a weight")
    _require(bool((coef * units.signs >= 0).all()), "a weight has the wrong sign")
    used = [coef.any(axis=0)] if parameters.get("shared") else [row != 0 for row in coef]
    n_used = max(len(np.unique(units.unit_of_each_column[features])) for features in used)
    _require(n_used <= parameters["k"], "more is in than k allows")
    return request._asdict()


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
