"""Save and load models, and replace files and folders of results either completely or not at all.

The file of a model is an npz archive, stored without compression; reading it never runs code. Its member
`header` is JSON: names, classes, parameters. The other members are arrays of numbers. One, `sha256`, is the
digest of all others. It detects damage and careless edits, but is no signature: anyone can make it.
"""

import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from kmargin import KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV, __version__
from kmargin.core.validation import InputError
from kmargin.estimators.cv import CrossValidated, FoldModel
from kmargin.fitting.decisions import Kernel, KernelDecisions, KernelInputs
from kmargin.fitting.path import LinearDecisions
from kmargin.model_selection.calibration import Calibration
from kmargin.tables.columns import Encoding, Scaling
from kmargin.tables.model import SeenRows, TableModel
from kmargin.tables.read import Table, readable_as

FORMAT = "kmargin model"
VERSION = 1
NAME = "model.kmargin"
CACHE_SIZE = 200  # memory limit, in MB, for the kernel values that predictions compute at a time
ESTIMATORS = (SparseSVC, SparseSVCCV, KernelSparseSVC, KernelSparseSVCCV)

PART = ".kmargin-part"  # the subfolder to which new results are written before they are moved


def replace_file(path: Path, content: bytes) -> None:
    """Write a file completely, or, if that fails, leave an existing file with this name unchanged."""
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    with _errors_name(path):
        try:
            _write(temporary, content)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def replace_folder(folder: Path, contents: Mapping[str, bytes], result_names: Sequence[str]) -> None:
    """Replace the results in a folder by the files in `contents`, which maps names to bytes.

    `result_names` are all names that files of results can have. Older files with these names are removed,
    files with other names stay. The new files are first written to the subfolder `PART`, then moved. If
    writing fails, the folder stays as it was. The model, the first entry of `contents` and `result_names`, is
    removed first and moved last. So a folder with a model has all results, even after a process is killed.
    """
    is_new, part = not folder.exists(), folder / PART
    with _errors_name(folder):
        folder.mkdir(exist_ok=True)
        try:
            shutil.rmtree(part, ignore_errors=True)  # from a process that was killed
            part.mkdir()
            for name, content in contents.items():
                _write(part / name, content)
        except BaseException:
            shutil.rmtree(folder if is_new else part, ignore_errors=True)
            raise
        for name in result_names:
            (folder / name).unlink(missing_ok=True)
        for name in reversed(list(contents)):
            os.replace(part / name, folder / name)
        part.rmdir()


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    """Raise every OSError again as an error about `path`, because it may name a temporary file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def save(model: Any, path: str | Path, target: str = "target") -> Path:
    """Write a fitted model and the name of its target to a file; if this fails, an old file is kept."""
    model, path = to_table_model(model, target), Path(path)
    if not path.resolve().parent.is_dir():
        raise InputError(f"{path} is in a folder that does not exist. Create the folder, or use another.")
    replace_file(path, to_bytes(model))
    return path


def to_table_model(model: Any, target: str) -> TableModel:
    """Convert a fitted estimator, or a pipeline that ends in one, to a `TableModel` with this `target`.

    Its columns have the names in the training data frame, or x0, x1 and so on after a fit to an array.
    """
    if isinstance(model, TableModel):
        return model
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    steps = [step for step in steps if step not in (None, "passthrough")] or [model]
    machine: Any = steps[-1]
    if not isinstance(machine, ESTIMATORS):
        names = ", ".join(kind.__name__ for kind in ESTIMATORS)
        known = f"a fitted {names}, a pipeline that ends in one, or the result of load_model"
        raise InputError(f"{type(machine).__name__} is not a model that kmargin can save. Give {known}.")
    check_is_fitted(machine)
    scaling, intercept = _scaling(steps[:-1], int(machine.n_features_in_)), np.asarray(machine.intercept_)
    decisions: Any
    if isinstance(machine, KernelSparseSVC | KernelSparseSVCCV):
        if machine.kernel == "precomputed" or callable(machine.kernel):
            raise InputError("A model with a custom kernel function cannot be saved. Use kernel='rbf', say.")
        kernel: Any = machine.kernel_
        points: Any = machine.support_vectors_
        points = points.toarray() if hasattr(points, "toarray") else points
        if kernel.scaling is not None:
            centers, scales = kernel.scaling[:2]
            points, mean = (points - centers) / scales, scaling.mean + scaling.spread * centers
            scaling = Scaling(scaling.medians, mean, scaling.spread * scales)
        inputs = KernelInputs(Kernel(kernel.name, **kernel.numbers), points, machine.support_, CACHE_SIZE)
        decisions = KernelDecisions(inputs, machine.dual_coef_, intercept)
    else:
        decisions = LinearDecisions(np.asarray(machine.coef_), intercept)
    classes = np.array(np.asarray(machine.classes_).tolist())
    if classes.dtype.kind not in "Uifb":
        raise InputError(f"Classes such as {classes[0]!r} cannot be saved. Use strings, numbers or booleans.")
    columns = getattr(steps[0], "feature_names_in_", [f"x{j}" for j in range(machine.n_features_in_)])
    k, C = (machine.k_, machine.C_) if isinstance(machine, CrossValidated) else (machine.k, machine.C)
    encoding, calibration = Encoding(tuple(map(str, columns))), getattr(machine, "calibration_", None)
    parameters = {"k": k if k == "all" else int(k), "C": float(C), "shared": machine.shared}
    fitted = FoldModel(decisions, classes, machine.multi_class)
    return TableModel(target, encoding, scaling, fitted, parameters, calibration)


def _scaling(steps: list[Any], n_features: int) -> Scaling:
    """Convert the SimpleImputer and StandardScaler of a pipeline to one `Scaling`; refuse other steps."""
    medians, mean, spread = None, np.zeros(n_features), np.ones(n_features)
    kinds = [type(step) for step in steps]
    is_known = kinds in ([], [StandardScaler], [SimpleImputer], [SimpleImputer, StandardScaler])
    for step in steps if is_known else ():
        if isinstance(step, SimpleImputer):
            medians = pd.to_numeric(pd.Series(step.statistics_), errors="coerce").to_numpy(float)
            is_known = len(medians) == n_features and np.isfinite(medians).all() and not step.add_indicator
        else:
            mean = step.mean_ if step.with_mean else mean
            spread = step.scale_ if step.with_std else spread
    if not is_known:
        raise InputError(
            f"A pipeline with {', '.join(kind.__name__ for kind in kinds)} before the estimator cannot be "
            "saved, only a SimpleImputer that fills in a number for every column, without add_indicator, and "
            "then a StandardScaler. Scale with standardize=True, or save the pipeline with joblib."
        )
    return Scaling(medians, mean, spread)


def to_bytes(model: TableModel) -> bytes:
    """Return the content of the file in which this model is saved."""
    machine = model.machine
    parameters: dict[str, Any] = {**model.parameters, "multi_class": machine.multi_class}
    arrays: Any = {"mean": model.scaling.mean, "spread": model.scaling.spread, "ranges": model.ranges}
    if isinstance(machine.decisions, KernelDecisions):
        inputs: Any = machine.decisions.inputs
        parameters |= {"kernel": inputs.kernel.name, **inputs.kernel.numbers}
        arrays |= {"dual_coef": machine.coef_, "support": inputs.columns, "support_vectors": inputs.points}
    else:
        arrays["coef"] = machine.coef_
    if model.calibration is not None:
        arrays |= {"slopes": model.calibration.slopes, "offsets": model.calibration.offsets}
    if model.seen is not None:
        arrays |= {"seen_by_all": model.seen.by_all, "seen_by_used": model.seen.by_used}
    arrays |= {"medians": model.scaling.medians, "intercept": machine.intercept_}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "kmargin": __version__,
        "kind": "kernel" if model.is_kernel else "linear",
        "parameters": parameters | {"C": str(parameters["C"])},  # as text, because JSON cannot hold infinity
        "target": model.target,
        "id": model.id,
        "classes": model.classes_.tolist(),
        "columns": list(model.encoding.columns),
        "categories": {column: list(values) for column, values in model.encoding.categories.items()},
    }
    members = {name: np.ascontiguousarray(array) for name, array in arrays.items() if array is not None}
    members["header"] = np.frombuffer(json.dumps(header, ensure_ascii=False, indent=1).encode(), np.uint8)
    members["sha256"] = _digest(members)
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **members)
    return content.getvalue()


def load(path: str | Path) -> TableModel:
    """Read a model from its file, or from a folder that `kmargin fit` wrote; no code in the file is run."""
    path = Path(path)
    path = path / NAME if path.is_dir() else path
    if not path.is_file():
        advice = f"Give the folder that `kmargin fit` wrote, or its {NAME}."
        raise InputError(f"There is no model at {path}. {advice}")
    content = path.read_bytes()
    advice = "Give a file that `kmargin fit` or save_model wrote and that was not changed since."
    with readable_as(str(path), "a kmargin model", advice):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
                raise ValueError("The archive has compressed members, which could fill the memory.")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            members = dict(arrays)
        header = json.loads(members["header"].tobytes())
        if header["format"] == FORMAT and header["version"] > VERSION:
            problem = f"{path} has format {header['version']}, but this kmargin ({__version__}) reads up to"
            raise InputError(f"{problem} {VERSION}. Upgrade kmargin.")
        is_unchanged = np.array_equal(members.pop("sha256"), _digest(members))
        if header["format"] != FORMAT or header["version"] < 1 or not is_unchanged:
            raise ValueError("The format or the digest is not that of a model.")
        return _assemble(header, members)


def _digest(members: Mapping[str, np.ndarray]) -> np.ndarray:
    sha = hashlib.sha256()
    for name in sorted(members):
        array = members[name]
        sha.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sha.update(array.tobytes())
    return np.frombuffer(sha.digest(), np.uint8)


def _assemble(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> TableModel:
    """Make a model from the header and arrays of its file; an invalid file raises an error of any type."""
    categories = {column: tuple(values) for column, values in header["categories"].items()}
    parameters = header["parameters"] | {"C": float(header["parameters"]["C"])}
    multi_class, intercept = parameters.pop("multi_class"), arrays["intercept"]
    decisions: Any
    if header["kind"] == "kernel":
        kernel = Kernel(*(parameters.pop(name) for name in ("kernel", "gamma", "degree", "coef0")))
        inputs = KernelInputs(kernel, arrays["support_vectors"], arrays["support"], CACHE_SIZE)
        decisions = KernelDecisions(inputs, arrays["dual_coef"], intercept)
    elif header["kind"] == "linear":
        decisions = LinearDecisions(arrays["coef"], intercept)
    else:
        raise ValueError("The kind of the model is unknown.")
    encoding = Encoding(tuple(map(str, header["columns"])), categories)
    scaling = Scaling(arrays.get("medians"), arrays["mean"], arrays["spread"])
    machine = FoldModel(decisions, np.array(header["classes"]), multi_class)
    calibration = Calibration(arrays["slopes"], arrays["offsets"]) if "slopes" in arrays else None
    seen = SeenRows(arrays["seen_by_all"], arrays["seen_by_used"]) if "seen_by_all" in arrays else None
    target, ranges, id = str(header["target"]), arrays.get("ranges"), header.get("id")
    model = TableModel(target, encoding, scaling, machine, parameters, calibration, seen, ranges, id)
    if not model.is_kernel:
        model.machine.coef_.reshape(len(model.machine_names), len(model.scaling.mean))
    row = pd.DataFrame(model.scaling.mean[np.newaxis], columns=model.encoding.feature_names)
    found = model.predict_table(Table(row, absent_is_zero=True))
    for numbers in (found.decisions, found.probabilities):
        if numbers is not None and not np.isfinite(numbers).all():
            raise ValueError("The model does not predict finite numbers.")
    return model
