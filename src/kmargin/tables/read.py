"""Files to frames: CSV, TSV, Parquet, svmlight and npz."""

import gzip
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

from kmargin.errors import InputError, listing
from kmargin.tables.content import check_content

MOST_BYTES = 2e9  # of a dense matrix

# what NumPy and zipfile raise for bytes that are not what they should be
DAMAGED_ARCHIVE = (
    *(ValueError, OSError, EOFError, LookupError, TypeError, SyntaxError, OverflowError, NotImplementedError),
    *(
        RuntimeError,
        MemoryError,
        RecursionError,
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        tokenize.TokenError,
    ),
)

SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars (|)", ",": "commas"}
DAMAGED_GZIP = (gzip.BadGzipFile, EOFError, zlib.error)


class Table(NamedTuple):
    """A table as it lies in a file."""

    frame: pd.DataFrame
    target: str | None = None  # the column with the classes, if the format itself says which
    absent_is_zero: bool = False  # columns that are not there are zero (svmlight)
    notes: tuple[str, ...] = ()


def read_table(path: str | Path) -> Table:
    """Read a file in the format of its ending.

    Raises InputError, with one sentence, for whatever keeps it from being read.
    """
    path = Path(path)
    form = check_content(path)
    if form == "svmlight":
        table = _read_svmlight(path)
    elif form == "npz":
        table = _read_npz(path)
    elif form == "parquet":
        table = Table(_read_parquet(path))
    else:
        table = _read_text(path, "," if form == "csv" else "\t")
    if len(table.frame) == 0:
        raise InputError(f"{path.name} has names for its columns but no rows. Give rows of data.")
    return table


def _read_text(path: Path, separator: str) -> Table:
    options: dict[str, Any] = {"sep": separator, "encoding": "utf-8-sig", "index_col": False}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            header = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **options)
            names = [name.strip() for name in header.iloc[0]]
            full_names = [name or f"column {at + 1}" for at, name in enumerate(names)]
            _check_names(path, full_names)
            if len(names) == 1:
                raise InputError(_explain_one_column(path, names[0], separator))
            frame = pd.read_csv(path, low_memory=False, skipinitialspace=True, **options)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path.name} is not text in UTF-8 (byte {error.start} is {error.object[error.start]:#04x}). "
            "Save it as UTF-8."
        ) from error
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError) as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ").rstrip(".")
        if isinstance(error, pd.errors.ParserWarning):
            reason = "rows have more fields than there are names"
        raise InputError(
            f"{path.name} cannot be read as columns separated by {SEPARATORS[separator]}: {reason}. "
            "Give every row as many fields as there are names."
        ) from error
    except DAMAGED_GZIP as error:
        raise InputError(f"{path.name} is damaged or cut short. Download it, or pack it, again.") from error
    frame.columns = full_names
    return _without_row_numbers(frame, names)


def _explain_one_column(path: Path, header: str, separator: str) -> str:
    for other, name in SEPARATORS.items():
        if other != separator and other in header:
            advice = "Rename it to end in .tsv." if other == "\t" else "Save it with commas."
            advice = "Rename it to end in .csv." if other == "," else advice
            return (
                f"The columns of {path.name} are separated by {name}, "
                f"not by {SEPARATORS[separator]} as its ending says. {advice}"
            )
    return f"{path.name} has one column only, {header[:60]!r}. Give a target and at least one feature."


def _without_row_numbers(frame: pd.DataFrame, names: list[str]) -> Table:
    """Leave out a nameless first column that counts the rows: many programs write one."""
    first = frame.iloc[:, 0]
    if names[0] == "" and len(frame) and pd.api.types.is_integer_dtype(first):
        steps = first.to_numpy() - np.arange(len(frame))
        if (steps == steps[0]).all():
            note = "The first column has no name and numbers the rows: it is left out."
            return Table(frame.iloc[:, 1:], notes=(note,))
    return Table(frame)


def _read_parquet(path: Path) -> pd.DataFrame:
    import pyarrow
    from pyarrow import parquet

    try:
        _check_names(path, parquet.read_schema(path).names)
        frame = parquet.read_table(path).to_pandas()
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path.name} starts like Parquet but cannot be read: it may be cut short. Write it again."
        ) from error
    if not isinstance(frame.index, pd.RangeIndex) and any(frame.index.names):
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _read_svmlight(path: Path) -> Table:
    """Columns are named by the indices of the file: f1 is what the file calls 1."""
    try:
        X, y = load_svmlight_file(str(path), zero_based=True)
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{path.name} is not in svmlight format ({error}). "
            "Each line is a class and then index:value pairs, such as '1 3:0.5 7:2'."
        ) from error
    if X.shape[0] * X.shape[1] * 8 > MOST_BYTES:
        raise InputError(
            f"{path.name} has {X.shape[0]:,} rows and {X.shape[1]:,} features: {_gigabytes(X.shape)} when "
            f"written out, and kmargin takes {MOST_BYTES / 1e9:g} GB. Leave out rows or features."
        )
    first = 1 if X.shape[1] > 1 and X[:, 0].nnz == 0 else 0
    frame = pd.DataFrame(X.toarray()[:, first:], columns=[f"f{i}" for i in range(first, X.shape[1])])
    frame["target"] = y.astype(np.int64) if (y == np.round(y)).all() else y
    return Table(frame, target="target", absent_is_zero=True)


def _read_npz(path: Path) -> Table:
    try:
        _check_sizes(path)
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in ("X", "y", "feature_names") if name in archive}
            others = list(archive)
    except InputError:
        raise
    except DAMAGED_ARCHIVE as error:
        is_pickle = "pickle" in str(error).lower()
        reason = "it holds Python objects, which kmargin never opens" if is_pickle else "it is damaged"
        raise InputError(f"{path.name} cannot be read: {reason}. Save plain arrays X and y.") from error
    if "X" not in arrays:
        raise InputError(f"{path.name} has no array X; it has {listing(others)}. Save it with X and y.")
    X, y = arrays["X"], arrays.get("y")
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise InputError(
            f"X in {path.name} has shape {X.shape} and type {X.dtype}. Save numbers, a row per sample."
        )
    names = [str(name) for name in arrays.get("feature_names", [f"f{i + 1}" for i in range(X.shape[1])])]
    if len(names) != X.shape[1]:
        raise InputError(f"{path.name} has {len(names)} feature_names for the {X.shape[1]} columns of X.")
    frame = pd.DataFrame(X, columns=names)
    if y is None:
        _check_names(path, names)
        return Table(frame)
    if y.shape != (len(X),):
        raise InputError(f"y in {path.name} has shape {y.shape} for {len(X)} rows of X. Save one per row.")
    _check_names(path, [*names, "y"])
    return Table(frame.assign(y=y), target="y")


def _check_sizes(path: Path) -> None:
    """Raises InputError where arrays say that they are larger than kmargin takes, before they are made."""
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            with archive.open(info) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else None
                shape, _, dtype = (read or np.lib.format.read_array_header_2_0)(file)
            if math.prod(shape) * dtype.itemsize > MOST_BYTES:
                raise InputError(
                    f"{info.filename} in {path.name} has shape {shape}, and kmargin takes "
                    f"{MOST_BYTES / 1e9:g} GB. Leave out rows or features."
                )


def _check_names(path: Path, names: list[str]) -> None:
    repeated = [name for name, times in Counter(map(str, names)).items() if times > 1]
    if repeated:
        raise InputError(
            f"{path.name} has more than one column called {listing(repeated)}. Give each a name of its own."
        )


def _gigabytes(shape: tuple[int, int]) -> str:
    return f"{shape[0] * shape[1] * 8 / 1e9:.1f} GB"
