"""Files and folders are replaced as a whole or not at all, wherever a program is killed or a disk is full."""

import errno
import os
import shutil
import signal
import subprocess
import sys

import pytest
from tables_data import make_table
from typer.testing import CliRunner

from kmargin.cli.app import app
from kmargin.report import page
from kmargin.tables import files, model_file
from kmargin.tables.analysis import analyse
from kmargin.tables.dataset import Roles, prepare
from kmargin.tables.files import newest, replace_file, replace_folder
from kmargin.tables.read import Table
from kmargin.tables.request import Settings

OWNED = ("model", "features", "points", "page")
OLD = {"model": b"old model", "features": b"old features", "page": b"old page" * 1000}
NEW = {"model": b"new model", "points": b"new points", "page": b"new page"}
CALLS = ("open", "write", "fsync", "mkdir", "rename", "replace", "unlink", "rmdir", "link", "chmod")


class Killed(BaseException):
    """Stands for the end of the process: from then on no call does anything."""


class Faults:
    """Lets a number of calls to the system pass, and then fails: once, or for good."""

    def __init__(self, monkeypatch, error, for_good):
        self.n_calls, self.fails_at, self.error, self.for_good = 0, None, error, for_good
        monkeypatch.setattr(os, "fsync", lambda handle: None)  # slow, and nobody pulls the plug here
        for name in CALLS:
            monkeypatch.setattr(os, name, self.wrap(getattr(os, name), name))
        monkeypatch.setattr(files, "_renameat2", self.wrap(files._renameat2, "renameat2"))

    def wrap(self, function, name):
        def call(*args, **kwargs):
            self.n_calls += 1
            if self.fails_at is not None and (
                self.n_calls > self.fails_at if self.for_good else self.n_calls == self.fails_at + 1
            ):
                if not self.for_good and name not in ("open", "write", "fsync", "mkdir", "link"):
                    return function(*args, **kwargs)  # a full disk can still rename and remove
                raise self.error
            return function(*args, **kwargs)

        return call


def content_of(folder, with_hidden=False):
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and (with_hidden or not path.name.startswith("."))
    }


def set_up(tmp_path, place):
    """A folder with old results, of which some cannot be swapped for another."""
    folder = tmp_path / "out"
    shutil.rmtree(folder, ignore_errors=True)
    if place != "nothing":
        folder.mkdir()
        for name, content in OLD.items():
            (folder / name).write_bytes(content)
    if place in ("others", "inside"):
        (folder / "letter").write_bytes(b"dear")
    return folder


PLACES = ["nothing", "ours", "others", "inside"]
KILLS = range(0, 60)


def expected(place, results):
    return results | ({"letter": b"dear"} if place in ("others", "inside") else {})


@pytest.mark.parametrize("place", PLACES)
def test_a_folder_is_the_old_one_or_the_new_one_wherever_the_program_is_killed(tmp_path, monkeypatch, place):
    """At every call to the system in turn; the next run clears away what is left."""
    if place == "inside":
        monkeypatch.setattr(files, "_may_swap", lambda folder: False)
    with monkeypatch.context() as patch:
        faults = Faults(patch, Killed(), for_good=True)
        states = []
        for number in KILLS:
            faults.fails_at = None
            folder = set_up(tmp_path, place)
            faults.n_calls, faults.fails_at = 0, number
            try:
                replace_folder(folder, NEW, OWNED)
            except Killed:
                pass
            else:
                break
            faults.fails_at = None
            states.append(state_of(folder, place))
            replace_folder(folder, NEW, OWNED)
            assert content_of(folder, with_hidden=True) == expected(place, NEW)
            assert os.listdir(tmp_path) == ["out"], "nothing is left beside"
            assert not [name for name in os.listdir(folder) if files.is_ours(name)]
    assert len(states) > 10, "the program was killed at many moments"
    assert {"old", "new"} == set(states)
    assert states == sorted(states, key=["old", "new"].index), "there is one moment of change"


def state_of(folder, place):
    """Old or new, as a reader finds it."""
    if not folder.exists():
        assert place == "nothing"
        return "old"
    is_new = newest(folder, "model").read_bytes() == NEW["model"]
    if place == "inside" and is_new:  # on the way in: every new file is there, ready or in place
        for name, content in NEW.items():
            assert newest(folder, name).read_bytes() == content
        assert (folder / "letter").read_bytes() == b"dear"
    else:
        assert content_of(folder) == expected(place, NEW if is_new else OLD)
    return "new" if is_new else "old"


@pytest.mark.parametrize("place", PLACES)
def test_a_full_disk_leaves_the_old_folder_and_nothing_else(tmp_path, monkeypatch, place):
    if place == "inside":
        monkeypatch.setattr(files, "_may_swap", lambda folder: False)
    n_failed, told = 0, set()
    with monkeypatch.context() as patch:
        faults = Faults(patch, OSError(errno.ENOSPC, "No space left on device"), for_good=False)
        for number in KILLS:
            faults.fails_at = None
            folder = set_up(tmp_path, place)
            faults.n_calls, faults.fails_at = 0, number
            try:
                replace_folder(folder, NEW, OWNED)
            except OSError as error:
                n_failed += 1
                told.add((error.errno, error.filename))
                assert place == "nothing" or content_of(folder, True) == expected(place, OLD)
            else:
                assert content_of(folder, True) == expected(place, NEW)
            assert set(os.listdir(tmp_path)) <= {"out"}
    assert n_failed > 8
    assert told == {(errno.ENOSPC, str(folder))}


def test_a_file_is_the_old_one_or_the_new_one_wherever_the_program_is_killed(tmp_path, monkeypatch):
    path, seen = tmp_path / "p.csv", []
    with monkeypatch.context() as patch:
        faults = Faults(patch, Killed(), for_good=True)
        for number in range(9):
            faults.fails_at = None
            path.write_bytes(b"old")
            faults.n_calls, faults.fails_at = 0, number
            try:
                replace_file(path, b"new")
            except Killed:
                seen.append(path.read_bytes())
    assert set(seen) == {b"old", b"new"}
    assert seen == sorted(seen, reverse=True)


def test_a_write_that_takes_some_bytes_only_is_continued(tmp_path, monkeypatch):
    write_all = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write_all(handle, bytes(data[:3])))
    replace_file(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_what_others_wrote_meanwhile_is_kept(tmp_path, monkeypatch):
    """A file that appears between the look at the folder and the swap."""
    folder = set_up(tmp_path, "ours")
    swap = files._renameat2

    def late(one, other):
        (folder / "late").write_bytes(b"just now")
        swap(one, other)

    monkeypatch.setattr(files, "_renameat2", late)
    replace_folder(folder, NEW, OWNED)
    assert content_of(folder, True) == NEW | {"late": b"just now"}
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("failing", ["renameat2", "link", "a subfolder"])
def test_where_folders_cannot_be_exchanged_files_are_moved_in(tmp_path, monkeypatch, failing):
    def fail(*args, **kwargs):
        raise OSError(errno.EINVAL, "Invalid argument")

    folder = set_up(tmp_path, "others")
    if failing == "a subfolder":
        (folder / "sub").mkdir()
    else:
        monkeypatch.setattr(*((os, "link") if failing == "link" else (files, "_renameat2")), fail)
    replace_folder(folder, NEW, OWNED)
    assert content_of(folder, True) == expected("others", NEW)
    assert os.listdir(tmp_path) == ["out"]


def test_the_folder_that_one_works_in_stays_the_same_folder(tmp_path, monkeypatch):
    folder = set_up(tmp_path, "ours")
    before = folder.stat().st_ino
    monkeypatch.chdir(folder)
    replace_folder(folder, NEW, OWNED)
    assert folder.stat().st_ino == before
    assert content_of(folder, True) == NEW
    monkeypatch.chdir(tmp_path)
    if sys.platform == "linux":
        replace_folder(folder, OLD, OWNED)
        assert folder.stat().st_ino != before


def test_a_model_that_is_ready_but_not_moved_in_is_the_one_that_is_read(tmp_path, analyses):
    linear, kernel = analyses
    model_file.save(linear.model, tmp_path / model_file.NAME)
    assert not model_file.load(tmp_path).is_kernel
    (tmp_path / files.READY).mkdir()
    model_file.save(kernel.model, tmp_path / files.READY / model_file.NAME)
    assert model_file.load(tmp_path).is_kernel


def test_a_folder_that_is_being_written_is_not_swept_away(tmp_path):
    folder = set_up(tmp_path, "ours")
    busy, stale = (tmp_path / f".out{files.PART}{number}" for number in (1, 2))
    stale.mkdir()
    (stale / "model").write_bytes(b"half")
    with files._held(busy):
        (busy / "model").write_bytes(b"half")
        replace_folder(folder, NEW, OWNED)
        assert (busy / "model").exists()
        assert not stale.exists()


# the commands themselves


@pytest.fixture(scope="module")
def analyses():
    dataset = prepare(Table(make_table()), Roles("outcome"))
    settings = {"k": 2, "ks": [2], "Cs": [1.0], "cv": 2}
    return analyse(dataset, Settings(**settings)), analyse(dataset, Settings(kernel="rbf", **settings))


@pytest.fixture
def data(tmp_path, monkeypatch, undrawn):
    monkeypatch.chdir(tmp_path)
    make_table().to_csv("data.csv", index=False)
    return tmp_path


def test_a_fit_that_is_killed_leaves_old_results_or_new_ones(tmp_path, monkeypatch, analyses):
    """Linear results are replaced by those of a kernel: a mixture would show."""
    linear, kernel = analyses
    folder = tmp_path / "out"
    monkeypatch.setattr(page, "render", lambda *args: "<p>page</p>")
    wholes = []
    for found in analyses:
        page.write_results(found, folder, "data.csv")
        wholes.append(content_of(folder, True))
    seen = []
    with monkeypatch.context() as patch:
        faults = Faults(patch, Killed(), for_good=True)
        for number in range(3, 40, 2):
            faults.fails_at = None
            page.write_results(linear, folder, "data.csv")
            faults.n_calls, faults.fails_at = 0, number
            try:
                page.write_results(kernel, folder, "data.csv")
            except Killed:
                seen.append(wholes.index(content_of(folder, True)))
    assert set(seen) == {0, 1}


FIT = ["fit", "data.csv", "--target", "outcome", "--k", "2", "--C", "1", "--cv", "2", "--pairs", "0"]
SLOW = """
import os, sys, time
from kmargin.cli import main

write = os.write
def slowly(handle, data):
    sys.stderr.write("writing\\n")
    sys.stderr.flush()
    time.sleep(0.1)
    return write(handle, data[:max(1, len(data) // 2)])

os.write = slowly
sys.argv = ["kmargin", *sys.argv[1:]]
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL on Windows")
def test_a_real_kill_leaves_the_old_folder(data):
    assert CliRunner().invoke(app, FIT).exit_code == 0
    before = content_of(data / "data-kmargin", True)
    process = subprocess.Popen([sys.executable, "-c", SLOW, *FIT, "--kernel", "rbf"], stderr=subprocess.PIPE)
    with process:
        words = [process.stderr.readline() for _ in range(3)]
        process.send_signal(signal.SIGKILL)
    assert words == [b"writing\n"] * 3
    assert process.returncode == -signal.SIGKILL
    assert content_of(data / "data-kmargin", True) == before
    assert len(os.listdir(data)) == 3, "what was begun lies beside"
    assert CliRunner().invoke(app, [*FIT, "--kernel", "rbf"]).exit_code == 0
    assert sorted(os.listdir(data)) == ["data-kmargin", "data.csv"]
    assert model_file.load(data / "data-kmargin").is_kernel


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits on Windows")
def test_files_that_may_not_grow_get_a_sentence_and_leave_the_old_ones(data, monkeypatch):
    """A real error of the system, as on a full disk."""
    import resource

    for arguments in (FIT, ["predict", "data-kmargin", "data.csv", "--out", "p.csv"]):
        assert CliRunner().invoke(app, arguments).exit_code == 0
    before = content_of(data / "data-kmargin", True) | content_of(data)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, limits[1]))
        for arguments, name in (
            (FIT, "data-kmargin"),
            (["predict", "data-kmargin", "data.csv", "--out", "p.csv"], "p.csv"),
            (["path", "data.csv", "--target", "outcome", "--cv", "0", "--plot", "p.svg"], "p.svg"),
        ):
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 2
            assert result.stderr.endswith(f"{name}: file too large.\n")
            assert result.stderr.count("\n") == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert content_of(data / "data-kmargin", True) | content_of(data) == before
    assert sorted(os.listdir(data)) == ["data-kmargin", "data.csv", "p.csv"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_predictions_that_do_not_fit_where_they_are_sent_are_an_error(data):
    assert CliRunner().invoke(app, FIT).exit_code == 0
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "kmargin", "predict", "data-kmargin", "data.csv"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "Error: the output: no space left on device.\n"
