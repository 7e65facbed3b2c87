"""Files of data sets are found, downloaded and checked, or an error says what to do."""

import hashlib
import os
import socket
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kmargin.datasets import RemoteFile, cache_folder, download, fetch

CONTENT = b"1,2,3\n" * 20_000
# pooch leaves the connection of a download that breaks off to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Server(ThreadingHTTPServer):
    """Answers every address with CONTENT and records the requests; a test may make it fail."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.requests = []
        self.status, self.n_sent = 200, len(CONTENT)
        self.n_failures = 10**9  # answers with a bad status or a broken body, before good ones

    def file(self, name="table.data", content=CONTENT):
        sha256 = hashlib.sha256(content).hexdigest()
        return RemoteFile(name, f"http://127.0.0.1:{self.server_port}/{name}", sha256)


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        assert self.headers["Accept-Encoding"] == "identity"
        server.requests.append(self.path)
        fails = len(server.requests) <= server.n_failures
        self.send_response(server.status if fails else 200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[: server.n_sent] if fails else CONTENT)

    def log_message(self, *args):
        """Tests print nothing."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # pooch waits before it tries again
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("KMARGIN_DATA", str(folder))
    return folder


@pytest.mark.parametrize(("platform", "variable", "inside"), [
    ("linux", "KMARGIN_DATA", ""), ("linux", "XDG_CACHE_HOME", "kmargin"),
    ("linux", "HOME", ".cache/kmargin"), ("darwin", "HOME", "Library/Caches/kmargin"),
    ("win32", "LOCALAPPDATA", "kmargin"), ("win32", "HOME", "AppData/Local/kmargin"),
])  # fmt: skip
def test_the_cache_is_in_KMARGIN_DATA_or_as_usual(platform, variable, inside, tmp_path, monkeypatch):
    for name in ("KMARGIN_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    assert cache_folder() == tmp_path / inside
    monkeypatch.setenv("KMARGIN_DATA", "~/tables")
    assert cache_folder() == Path.home() / "tables"


def test_a_cached_file_is_read_without_network_or_pooch_which_others_need(server, cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"table\.data needs pooch: pip install 'kmargin\[experiments\]'"):
        fetch(server.file())
    cache.mkdir()
    (cache / "table.data").write_bytes(CONTENT)
    before = cache.stat().st_mtime_ns
    assert fetch(server.file()) == cache / "table.data"
    assert (cache.stat().st_mtime_ns, os.listdir(cache), server.requests) == (before, ["table.data"], [])


@pytest.mark.parametrize(("faults", "url", "problem", "n_requests"), [
    ({"status": 404}, None, "404 Client Error: Not Found", 3), ({}, "nowhere", "Invalid URL", 0),
    ({"n_sent": 70_000}, None, "IncompleteRead(70000 bytes read", 3),
    ({}, "http://127.0.0.1:{closed}/table.data", "refused", 0),
])  # fmt: skip
def test_failed_downloads_say_why_and_leave_nothing(server, cache, faults, url, problem, n_requests):
    vars(server).update(faults)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        url = server.file().url if url is None else url.format(closed=closed.getsockname()[1])
        with pytest.raises(download.DownloadError) as caught:
            fetch(replace(server.file(), url=url))
    message, path = str(caught.value), cache / "table.data"
    assert message.startswith(f"{url} could not be downloaded (")
    remedy = f"download it by hand and put it at {path}, or set KMARGIN_DATA"
    assert (problem in message, remedy in message) == (True, True)
    assert (len(server.requests), os.listdir(cache)) == (n_requests, [])


@pytest.mark.parametrize("faults", [{"n_failures": 0}, {"status": 503}, {"n_sent": 70_000}])
def test_a_file_is_downloaded_once_or_again_after_failures_and_then_cached(server, cache, faults):
    vars(server).update({"n_failures": 2} | faults)
    assert fetch(server.file()) == fetch(server.file()) == cache / "table.data"
    assert ((cache / "table.data").read_bytes(), os.listdir(cache)) == (CONTENT, ["table.data"])
    assert server.requests == ["/table.data"] * (server.n_failures + 1)


def test_a_server_that_does_not_answer_causes_a_timeout(cache, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(download, "N_RETRIES", 0)
    monkeypatch.setattr(download, "TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/table.data"
        with pytest.raises(download.DownloadError, match=f"^{url} could not be downloaded .*timed out"):
            fetch(RemoteFile("table.data", url, "0" * 64))


def test_a_download_with_a_wrong_checksum_is_not_kept(server, cache):
    with pytest.raises(download.ChecksumError) as caught:
        fetch(file := server.file(content=b"something else"))
    message = str(caught.value)
    assert message.startswith(f"{file.url} is not the recorded file, and was not kept")
    assert all(checksum in message for checksum in (file.sha256, hashlib.sha256(CONTENT).hexdigest()))
    assert f"put it at {cache / 'table.data'}" in message
    assert os.listdir(cache) == []


def test_an_incomplete_file_in_the_cache_is_an_error_with_its_size_and_checksum(server, cache):
    cache.mkdir()
    half, file, path = CONTENT[: len(CONTENT) // 2], server.file(), cache / "table.data"
    path.write_bytes(half)
    with pytest.raises(download.DamagedFileError) as caught:
        fetch(file)
    sizes = f"has {len(half)} bytes with SHA-256 {hashlib.sha256(half).hexdigest()}"
    assert str(caught.value).startswith(f"{path} {sizes}, but {file.url} has {file.sha256}")
    assert "Delete it, and it will be downloaded again." in str(caught.value)
    assert server.requests == []
    path.unlink()
    assert fetch(server.file()).read_bytes() == CONTENT


def test_a_cache_folder_that_cannot_be_made_or_written_or_read_is_an_error(server, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "other.data").mkdir()
    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)  # root may write despite chmod
    for inside, name, message in (
        ("file", "table.data", rf"cannot be written to \(.*\), so {server.file().url} was not downloaded"),
        ("file/deeper", "table.data", r"cannot be written to \((Not a|File).*\), so http"),
        ("", "table.data", r"cannot be written to \(Permission denied\).* set KMARGIN_DATA to another one"),
        ("", "other.data", r"other\.data cannot be read \(.+\)\. Make it readable"),
    ):
        monkeypatch.setenv("KMARGIN_DATA", str(tmp_path / inside))
        with pytest.raises(download.CacheFolderError, match=message):
            fetch(server.file(name))
    assert server.requests == []
