"""Files and folders that are replaced as a whole or not at all."""

import ctypes
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

READY = ".kmargin-ready"
PART = ".kmargin-part-"  # of a folder that is being written, before the number of the process

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class CannotSwap(Exception):
    """Two folders cannot be exchanged here."""


def replace_file(path: Path, content: bytes) -> None:
    """Write a file as a whole or not at all."""
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    with _blaming(path):
        try:
            _write(temporary, content)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    _sync(path.parent)


def replace_folder(folder: Path, contents: Mapping[str, bytes], owned: Sequence[str]) -> None:
    """Make a folder hold these files; files of others in it stay.

    `owned` are all names that such a folder may have, those that every one has first. Whenever the
    program ends, the folder is the old one or the new one. What it leaves beside is cleared away by the
    next call.
    """
    folder = folder.resolve()
    with _blaming(folder):
        _sweep(folder, owned)
        finish(folder, owned)
        if _may_swap(folder):
            with suppress(CannotSwap):
                _write_beside(folder, contents, owned)
                return
        _write_inside(folder, contents, owned)


def newest(folder: Path, name: str) -> Path:
    """Where a file of a folder is, also if its move into the folder was cut off."""
    ready = folder / READY / name
    return ready if ready.is_file() else folder / name


def is_ours(name: str) -> bool:
    """Whether this is what a killed program left in a folder."""
    return name == READY or name.startswith(PART)


def finish(folder: Path, owned: Sequence[str]) -> None:
    """Move in what is ready. While the first of the owned is there, nothing has been moved yet."""
    ready = folder / READY
    names = [name for name in owned if (ready / name).exists()]
    if owned[0] in names and (folder / owned[0]).exists():
        for name in set(owned) - set(names):
            (folder / name).unlink(missing_ok=True)
    for name in names:
        os.replace(ready / name, folder / name)
    if ready.exists():
        os.rmdir(ready)


def _write_beside(folder: Path, contents: Mapping[str, bytes], owned: Sequence[str]) -> None:
    temporary = folder.with_name(f".{folder.name}{PART}{os.getpid()}")
    ours = owned if (folder / owned[0]).exists() else tuple(contents)
    try:
        with _held(temporary):
            _fill(temporary, contents)
            if folder.exists():
                _exchange(temporary, folder, ours)
            else:
                os.rename(temporary, folder)
        _sync(folder.parent)
    finally:
        _discard(temporary, folder, ours)


def _write_inside(folder: Path, contents: Mapping[str, bytes], owned: Sequence[str]) -> None:
    temporary = folder / f"{PART}{os.getpid()}"
    try:
        with _held(temporary):
            _fill(temporary, contents)
            os.rename(temporary, folder / READY)
        _sync(folder)
    finally:
        _discard(temporary, folder, tuple(contents))
    finish(folder, owned)


def _fill(temporary: Path, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        _write(temporary / name, content)
    _sync(temporary)


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync(folder: Path) -> None:
    """Bring names to the disk. Where that is not to be had, only a power cut could tell."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _may_swap(folder: Path) -> bool:
    """Whether the folder's name may go to another folder."""
    if not folder.exists():
        return True
    is_somebodys = os.path.ismount(folder) or Path.cwd().is_relative_to(folder)
    return sys.platform == "linux" and not is_somebodys and os.access(folder.parent, os.W_OK)


def _exchange(temporary: Path, folder: Path, ours: Sequence[str]) -> None:
    """Swap two folders in one step; files of others are in both before."""
    try:
        for name in sorted(set(os.listdir(folder)) - set(ours)):
            os.link(folder / name, temporary / name, follow_symlinks=False)
        os.chmod(temporary, folder.stat().st_mode & 0o7777)
        _renameat2(temporary, folder)
    except OSError as error:
        raise CannotSwap from error


def _renameat2(one: Path, other: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        raise OSError("this system exchanges no names")
    names = os.fsencode(one), os.fsencode(other)
    if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))


def _discard(temporary: Path, folder: Path, ours: Sequence[str]) -> None:
    """Remove a folder of ours. What others put there and the new folder has not goes to the new one."""
    with suppress(FileNotFoundError):
        for name in os.listdir(temporary):
            there = folder / name
            is_there = os.path.lexists(there)
            if name in ours or (is_there and os.path.samestat(there.lstat(), (temporary / name).lstat())):
                (temporary / name).unlink(missing_ok=True)
            elif not is_there and folder.is_dir():
                os.rename(temporary / name, there)
        with suppress(OSError):  # something else has come in: it stays
            os.rmdir(temporary)


def _sweep(folder: Path, owned: Sequence[str]) -> None:
    """Clear away what killed programs left: folders that nobody holds any more."""
    beside = folder.parent.glob(f".{_verbatim(folder.name)}{PART}*")
    inside = folder.glob(f"{PART}*")
    for stale in [*beside, *inside]:
        with suppress(OSError), _held(stale, make=False):
            _discard(stale, folder, owned)


@contextmanager
def _held(folder: Path, make: bool = True) -> Iterator[None]:
    """A folder marked as in use until the program ends, however it ends. Raises OSError if it is already."""
    if make:
        os.mkdir(folder)
    try:
        import fcntl
    except ImportError:
        if not make:
            raise OSError("no such marks on this system: what was left stays") from None
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if not make:  # a folder of one's own is written on disks without marks, too
                raise
        yield
    finally:
        os.close(handle)


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    """Errors name what was to be written, not what it is called until it is whole."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _verbatim(name: str) -> str:
    """A name in which no character stands for others."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
