"""Write files and folders as a whole or not at all."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

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
