"""Files and folders of results are replaced as a whole; a kill may leave a folder without a model."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tables_data import make_table
from typer.testing import CliRunner

from kmargin.cli.app import app
from kmargin.tables.model_file import PART, replace_file, replace_folder

OWNED = ("model", "features", "points", "page")
OLD = {"model": b"old model", "features": b"old features", "page": b"old page" * 1000}
NEW = {"model": b"new model", "points": b"new points", "page": b"new page"}
OTHERS = {"letter": b"dear"}
WRITING = ("open", "fsync", "mkdir")  # calls that need space on the disk
CALLS = (*WRITING, "rename", "replace", "unlink", "rmdir")


class Killed(BaseException):
    """Stands for the end of the process: from then on no call does anything."""


class Faults:
    """Lets a number of system calls pass; the next one fails, and all after it if `for_good`."""

    def __init__(self, monkeypatch, error, for_good):
        self.n_calls, self.fails_at, self.error, self.for_good = 0, None, error, for_good
        for name in CALLS:
            monkeypatch.setattr(os, name, self.wrap(getattr(os, name), name))
        monkeypatch.setattr(Path, "open", self.wrap(Path.open, "open"))

    def wrap(self, function, name):
        def call(*args, **kwargs):
            self.n_calls += 1
            can_fail = self.for_good or name in WRITING  # a full disk can still rename and remove
            n_after = 0 if self.fails_at is None else self.n_calls - self.fails_at
            if can_fail and (n_after > 0 if self.for_good else n_after == 1):
                raise self.error
            return None if name == "fsync" else function(*args, **kwargs)

        return call

    def attempts(self, set_up, function, n_calls=50):
        """Call a function with a fault at each system call in turn; yield the error, None at the end."""
        for number in range(n_calls):
            self.fails_at = None
            set_up()
            self.n_calls, self.fails_at, raised = 0, number, None
            try:
                function()
            except (Killed, OSError) as error:
                raised = error
            self.fails_at = None
            yield raised
            if raised is None and self.for_good:
                return


def content_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def fill(folder, contents):
    shutil.rmtree(folder, ignore_errors=True)
    if contents:
        folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)


PLACES = {"nothing": {}, "old results": OLD, "old results and files of others": OLD | OTHERS}


@pytest.mark.parametrize("before", PLACES.values(), ids=PLACES.keys())
def test_a_folder_with_a_model_has_the_results_of_one_analysis_wherever_the_process_is_killed(
    tmp_path, monkeypatch, before
):
    """At every system call in turn; the next run completes the change and clears away what is left."""
    folder, states = tmp_path / "out", []
    others = {name: content for name, content in before.items() if name in OTHERS}
    with monkeypatch.context() as patch:
        faults = Faults(patch, Killed(), for_good=True)
        write = lambda: replace_folder(folder, NEW, OWNED)  # noqa: E731
        for error in faults.attempts(lambda: fill(folder, before), write):
            if error is None:
                break
            found = content_of(folder) if folder.exists() else {}
            states.append(found.get("model"))
            if "model" in found:
                assert found == (NEW | others if found["model"] == NEW["model"] else before)
            write()
            assert content_of(folder) == NEW | others
            assert os.listdir(tmp_path) == ["out"]
            assert PART not in os.listdir(folder)
    assert len(states) > 10
    assert set(states) == {before.get("model"), None, NEW["model"]}


@pytest.mark.parametrize("before", PLACES.values(), ids=PLACES.keys())
def test_a_full_disk_leaves_the_old_folder_and_nothing_else(tmp_path, monkeypatch, before):
    folder, errors = tmp_path / "out", []
    with monkeypatch.context() as patch:
        faults = Faults(patch, OSError(errno.ENOSPC, "No space left on device"), for_good=False)
        attempts = faults.attempts(
            lambda: fill(folder, before), lambda: replace_folder(folder, NEW, OWNED), n_calls=30
        )
        for error in attempts:
            if error is not None:
                errors.append((error.errno, error.filename))
                assert folder.exists() == bool(before)
                assert not before or content_of(folder) == before
                assert not before or PART not in os.listdir(folder)
    assert len(errors) > 6
    assert set(errors) == {(errno.ENOSPC, str(folder))}


def test_a_file_is_the_old_one_or_the_new_one_wherever_the_process_is_killed(tmp_path, monkeypatch):
    path = tmp_path / "p.csv"
    with monkeypatch.context() as patch:
        faults = Faults(patch, Killed(), for_good=True)
        attempts = faults.attempts(lambda: path.write_bytes(b"old"), lambda: replace_file(path, b"new"), 9)
        seen = [path.read_bytes() for error in attempts if error is not None]
    assert set(seen) == {b"old", b"new"}
    assert seen == sorted(seen, reverse=True)


@pytest.fixture
def data(tmp_path, monkeypatch, undrawn):
    monkeypatch.chdir(tmp_path)
    make_table().to_csv("data.csv", index=False)
    return tmp_path


FIT = ["fit", "data.csv", "--target", "outcome", "--k", "2", "--C", "1", "--cv", "2", "--pairs", "0"]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL on Windows")
def test_a_killed_fit_leaves_the_old_results_or_none_and_the_next_is_whole(data):
    assert CliRunner().invoke(app, FIT).exit_code == 0
    folder = data / "data-kmargin"
    for call, left in (("fsync", content_of(folder)), ("replace", {})):  # while files are written, and moved
        code = (
            f"import os; from kmargin.cli import main; os.{call} = lambda *_: os.kill(os.getpid(), 9); main()"
        )
        done = subprocess.run([sys.executable, "-c", code, *FIT, "--kernel", "rbf", "-q"])
        assert (done.returncode, content_of(folder)) == (-signal.SIGKILL, left)
    assert CliRunner().invoke(app, [*FIT, "--kernel", "rbf"]).exit_code == 0
    assert sorted(os.listdir(folder)) == ["model.kmargin", "points.csv", "predictions.csv", "report.html"]


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits on Windows")
def test_files_that_may_not_grow_get_a_sentence_and_leave_the_old_ones(data, monkeypatch):
    """A real error of the system, as on a full disk."""
    import resource

    for arguments in (FIT, ["predict", "data-kmargin", "data.csv", "--out", "p.csv"]):
        assert CliRunner().invoke(app, arguments).exit_code == 0
    before = content_of(data / "data-kmargin") | content_of(data)
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
    assert content_of(data / "data-kmargin") | content_of(data) == before
    assert sorted(os.listdir(data)) == ["data-kmargin", "data.csv", "p.csv"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_predictions_that_do_not_fit_where_they_are_sent_are_an_error(data):
    assert CliRunner().invoke(app, FIT).exit_code == 0
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "kmargin", "predict", "data-kmargin", "data.csv"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "Error: the output: no space left on device.\n"
