"""Files to frames: CSV, TSV, Excel, Parquet, svmlight and npz."""

import io
import math
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

from kmargin.errors import InputError, listing
from kmargin.tables.content import check_content
from kmargin.tables.dialect import Reading
from kmargin.tables.packed import open_bytes, seekable
from kmargin.tables.text import check_names, read_text

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


class Table(NamedTuple):
    """A table as it lies in a file."""

    frame: pd.DataFrame
    target: str | None = None  # the column with the classes, if the format itself says which
    absent_is_zero: bool = False  # columns that are not there are zero (svmlight)
    notes: tuple[str, ...] = ()
    row_names: pd.Series | None = None  # where rows have names in no column


AS_FOUND = Reading()


def read_table(path: str | Path, how: Reading = AS_FOUND) -> Table:
    """Read a file in the format of its ending.

    Raises InputError, with one sentence, for whatever keeps it from being read.
    """
    path, how = Path(path), how.check()
    form = check_content(path, is_text=how.encoding is not None)
    if form not in ("csv", "tsv"):
        _check_unsaid(path, how)
    if form in ("csv", "tsv", "xlsx"):
        text = read_text(path, form, how)
        table = Table(text.frame, notes=text.notes, row_names=text.row_names)
    else:
        table = READERS[form](path)
        table = _transpose(path, table) if how.transpose else table
    if len(table.frame) == 0:
        raise InputError(f"{path.name} has column names but no rows. Give rows of data.")
    return table


def _check_unsaid(path: Path, how: Reading) -> None:
    """Raises InputError where something is said of text, and the file holds none."""
    for option in ("sep", "decimal", "encoding"):
        if getattr(how, option) is not None:
            raise InputError(
                f"--{option} applies to text tables (.csv, .tsv), but {path.name} is not one. Leave it out."
            )


def _transpose(path: Path, table: Table) -> Table:
    """Rows as columns, named by the first column, which has to be of texts."""
    frame = table.frame
    if table.target is not None or pd.api.types.is_numeric_dtype(frame.iloc[:, 0].dtype):
        raise InputError(
            f"--transpose takes the feature names from the first column, but {path.name} has no names there. "
            "Transpose the table before you save it."
        )
    names = [str(name) for name in frame.iloc[:, 0]]
    check_names(path, names, "row")
    turned = frame.iloc[:, 1:].T.reset_index(drop=True).infer_objects()
    turned.columns = names
    return Table(turned, row_names=pd.Series(frame.columns[1:], name="id", dtype=object))


def _read_parquet(path: Path) -> Table:
    import pyarrow
    from pyarrow import parquet

    try:
        content = seekable(path)
        check_names(path, parquet.read_schema(content).names)
        frame = parquet.read_table(content).to_pandas()
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path.name} starts like Parquet but cannot be read; it may be truncated. Write it again."
        ) from error
    if not isinstance(frame.index, pd.RangeIndex) and any(frame.index.names):
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    return Table(frame)


def _read_svmlight(path: Path) -> Table:
    """Columns are named by the indices of the file: f1 is what the file calls 1."""
    try:
        with open_bytes(path) as file:
            X, y = load_svmlight_file(file, zero_based=True)
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{path.name} is not in svmlight format ({error}). "
            "Each line is a class and then index:value pairs, such as '1 3:0.5 7:2'."
        ) from error
    if X.shape[0] * X.shape[1] * 8 > MOST_BYTES:
        raise InputError(
            f"{path.name} has {X.shape[0]:,} rows and {X.shape[1]:,} features: {_gigabytes(X.shape)} as a "
            f"dense table, but kmargin accepts at most {MOST_BYTES / 1e9:g} GB. Leave out rows or features."
        )
    first = 1 if X.shape[1] > 1 and X[:, 0].nnz == 0 else 0
    frame = pd.DataFrame(X.toarray()[:, first:], columns=[f"f{i}" for i in range(first, X.shape[1])])
    frame["target"] = y.astype(np.int64) if (y == np.round(y)).all() else y
    return Table(frame, target="target", absent_is_zero=True)


def _read_npz(path: Path) -> Table:
    try:
        content = seekable(path)
        _check_sizes(path, content)
        if isinstance(content, io.BytesIO):
            content.seek(0)
        with np.load(content, allow_pickle=False) as archive:
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
        check_names(path, names)
        return Table(frame)
    if y.shape != (len(X),):
        raise InputError(f"y in {path.name} has shape {y.shape} for {len(X)} rows of X. Save one per row.")
    check_names(path, [*names, "y"])
    return Table(frame.assign(y=y), target="y")


def _check_sizes(path: Path, content: Path | io.BytesIO) -> None:
    """Raises InputError where arrays say that they are larger than kmargin takes, before they are made."""
    with zipfile.ZipFile(content) as archive:
        for info in archive.infolist():
            with archive.open(info) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else None
                shape, _, dtype = (read or np.lib.format.read_array_header_2_0)(file)
            if math.prod(shape) * dtype.itemsize > MOST_BYTES:
                raise InputError(
                    f"{info.filename} in {path.name} has shape {shape}, but kmargin accepts at most "
                    f"{MOST_BYTES / 1e9:g} GB. Leave out rows or features."
                )


READERS = {"svmlight": _read_svmlight, "npz": _read_npz, "parquet": _read_parquet}


def _gigabytes(shape: tuple[int, int]) -> str:
    return f"{shape[0] * shape[1] * 8 / 1e9:.1f} GB"
