"""Table 1 as data: found, downloaded, checked and read; or an error that says what to do."""

import hashlib
import io
import os
import re
import socket
import subprocess
import sys
import tarfile
import threading
from collections import Counter
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from kmargin import datasets
from kmargin.datasets import (
    TABLE_1,
    CacheFolderError,
    ChecksumError,
    DamagedFileError,
    DatasetError,
    DownloadError,
    RemoteFile,
    cache_folder,
    fetch,
    load,
    loaders,
)

fetching = sys.modules["kmargin.datasets.download"]  # the function has taken the module's name

CONTENT = b"1,2,3\n" * 20_000


class Server(ThreadingHTTPServer):
    """Answers every address with CONTENT, and notes who asked; a test may change its manners."""

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
    monkeypatch.setattr(fetching, "WAITS", (0.0, 0.0))
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


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket.socket, "connect", refuse)


# fetching


def test_a_file_is_downloaded_once_and_then_found_in_the_cache(server, cache):
    path = fetch(server.file())
    assert path == cache / "table.data"
    assert path.read_bytes() == CONTENT
    assert fetch(server.file()) == path
    assert server.requests == ["/table.data"]


def test_downloading_prints_nothing(server, cache, capfd):
    fetch(server.file())
    assert capfd.readouterr() == ("", "")


def test_the_cache_folder_is_the_one_that_KMARGIN_DATA_names(tmp_path, monkeypatch):
    monkeypatch.setenv("KMARGIN_DATA", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv("KMARGIN_DATA", "~/tables")
    assert cache_folder() == Path.home() / "tables"


@pytest.mark.parametrize(
    ("platform", "variable"), [("linux", "XDG_CACHE_HOME"), ("win32", "LOCALAPPDATA"), ("darwin", "HOME")]
)
def test_without_KMARGIN_DATA_the_cache_folder_is_the_platforms(platform, variable, tmp_path, monkeypatch):
    monkeypatch.setenv("KMARGIN_DATA", "")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    inside = "Library/Caches/kmargin" if platform == "darwin" else "kmargin"
    assert cache_folder() == tmp_path / inside


def test_a_file_in_the_cache_is_read_without_writing_without_network_and_without_pooch(
    server, cache, no_network, monkeypatch
):
    cache.mkdir()
    (cache / "table.data").write_bytes(CONTENT)
    monkeypatch.setitem(sys.modules, "pooch", None)

    def open_to_read(path, flags, *args, open=os.open, **kwargs):
        assert not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        return open(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", open_to_read)
    before = cache.stat().st_mtime_ns
    assert fetch(server.file()) == cache / "table.data"
    assert cache.stat().st_mtime_ns == before
    assert os.listdir(cache) == ["table.data"]


def test_without_pooch_a_download_says_what_to_install(server, cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"table\.data needs pooch: pip install 'kmargin\[experiments\]'"):
        fetch(server.file())


def test_no_network_is_an_error_with_the_address_and_the_place_for_the_file(server, cache):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/table.data"
        with pytest.raises(DownloadError) as caught:
            fetch(replace(server.file(), url=url))
    message = str(caught.value)
    assert message.startswith(f"{url} could not be reached (ConnectionError). ")
    assert f"by hand and put it at {cache / 'table.data'}, or set KMARGIN_DATA" in message
    assert os.listdir(cache) == []


def test_an_address_that_is_gone_is_asked_once(server, cache):
    server.status = 404
    with pytest.raises(
        DownloadError, match=r"/table\.data answered 404 Not Found\. Try again later, download"
    ):
        fetch(server.file())
    assert len(server.requests) == 1
    assert os.listdir(cache) == []


def test_an_address_that_makes_no_sense_is_an_error(server, cache):
    with pytest.raises(DownloadError, match=r"^nowhere could not be downloaded \(Invalid URL"):
        fetch(replace(server.file(), url="nowhere"))


@pytest.mark.parametrize("manners", [{"status": 503}, {"n_sent": 70_000}], ids=["busy", "breaks off"])
def test_a_failure_that_passes_is_tried_again(server, cache, manners):
    vars(server).update(manners, n_failures=2)
    assert fetch(server.file()).read_bytes() == CONTENT
    assert len(server.requests) == 3
    assert os.listdir(cache) == ["table.data"]


def test_a_download_that_breaks_off_leaves_no_file(server, cache):
    server.n_sent = 70_000
    with pytest.raises(DownloadError, match=r"/table\.data broke off before the whole file had come"):
        fetch(server.file())
    assert len(server.requests) == 3
    assert os.listdir(cache) == []


def test_a_server_that_does_not_answer_is_not_waited_for_without_end(cache, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(fetching, "WAITS", ())
    monkeypatch.setattr(fetching, "TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/table.data"
        with pytest.raises(DownloadError, match=f"^{url} did not answer in time"):
            fetch(RemoteFile("table.data", url, "0" * 64))


def test_a_download_with_a_wrong_checksum_is_not_kept(server, cache):
    file = server.file(content=b"something else")
    with pytest.raises(ChecksumError) as caught:
        fetch(file)
    message, received = str(caught.value), hashlib.sha256(CONTENT).hexdigest()
    assert message.startswith(f"{file.url} returned {len(CONTENT)} bytes with SHA-256 {received}, not")
    assert file.sha256 in message
    assert f"put it at {cache / 'table.data'}" in message
    assert len(server.requests) == 1
    assert os.listdir(cache) == []


def test_a_half_written_file_in_the_cache_is_an_error_with_its_size_and_checksum(server, cache):
    cache.mkdir()
    half = CONTENT[: len(CONTENT) // 2]
    (cache / "table.data").write_bytes(half)
    with pytest.raises(DamagedFileError) as caught:
        fetch(server.file())
    message = str(caught.value)
    assert (
        f"{cache / 'table.data'} has {len(half)} bytes with SHA-256 {hashlib.sha256(half).hexdigest()}"
        in message
    )
    assert f"{server.file().url} has {server.file().sha256}" in message
    assert "Delete it, and it will be downloaded again." in message
    assert server.requests == []
    (cache / "table.data").unlink()
    assert fetch(server.file()).read_bytes() == CONTENT


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_cache_folder_that_cannot_be_made_is_an_error(server, tmp_path, monkeypatch, inside):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("KMARGIN_DATA", str(tmp_path / "file" / inside))
    with pytest.raises(
        CacheFolderError, match=r"file.* cannot be written to \((Not a|File).*\), so http://.*"
    ) as caught:
        fetch(server.file())
    assert "set KMARGIN_DATA to another one" in str(caught.value)
    assert server.requests == []


def test_a_read_only_cache_folder_is_an_error(server, cache, monkeypatch):
    import tempfile

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    cache.mkdir()
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)  # chmod would not stop root
    with pytest.raises(CacheFolderError) as caught:
        fetch(server.file())
    assert str(caught.value).startswith(
        f"{cache} cannot be written to (Permission denied), so {server.file().url}"
    )
    assert server.requests == []


def test_something_that_is_no_file_in_the_cache_is_an_error(server, cache):
    (cache / "table.data").mkdir(parents=True)
    with pytest.raises(CacheFolderError, match=r"table\.data cannot be read \(.+\)\. Make it readable"):
        fetch(server.file())


IMPORT = """
import os, sys

def refuse(event, arguments):
    assert not event.startswith("socket."), event
    assert event != "open" or os.environ["KMARGIN_DATA"] not in str(arguments[0]), arguments

import kmargin
sys.addaudithook(refuse)
import kmargin.datasets
assert not {"pooch", "requests"} & sys.modules.keys()
"""


def test_importing_touches_neither_network_nor_pooch_nor_the_cache(tmp_path):
    environment = os.environ | {"KMARGIN_DATA": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", IMPORT], check=True, env=environment)
    assert os.listdir(tmp_path) == []


# Table 1


def test_the_registry_is_table_1():
    rows = {
        name: (row.n_classes, row.n_samples, row.n_features, row.n_train, row.n_test, row.scaling)
        for name, row in TABLE_1.items()
    }
    assert rows == {
        "synthetic": (2, 1000, 500, 800, 200, "zscore"),
        "iris": (3, 150, 4, 120, 30, "zscore"),
        "letter-recognition": (26, 20000, 16, 16000, 4000, "minmax"),
        "splice": (3, 3186, 180, 2549, 637, "minmax"),
        "spiral": (3, 1000, 2, 800, 200, "zscore"),
        "optdigits": (10, 5620, 64, 3822, 1798, "none"),
        "breast-cancer-wisconsin": (2, 683, 9, 546, 137, "none"),
        "TCGA-PANCAN-HiSeq": (5, 801, 10000, 641, 160, "minmax"),
    }
    assert [name for name, row in TABLE_1.items() if row.kernel == "rbf"] == ["spiral"]
    with pytest.raises(TypeError):
        TABLE_1["iris"] = None


def test_every_file_has_an_address_and_a_checksum():
    files = [file for row in TABLE_1.values() for file in row.files]
    assert len({file.name for file in files}) == len(files) == 7
    for file in files:
        assert file.url.startswith("https://")
        assert re.fullmatch("[0-9a-f]{64}", file.sha256)


@pytest.mark.parametrize("name", TABLE_1)
def test_descriptions_give_shape_scaling_licence_and_checksums(name):
    entry = TABLE_1[name]
    text = loaders.describe(entry)
    assert f"{entry.n_samples} samples, {entry.n_features} features, {entry.n_classes} classes" in text
    assert loaders.SCALINGS[entry.scaling] in " ".join(text.split())
    assert "Licence: " in text
    assert all(file.url in text and file.sha256 in text for file in entry.files)


# loading


@pytest.mark.parametrize("name", ["synthetic", "spiral"])
def test_simulated_data_load_by_name_and_obey_random_state(name):
    first, again, other = (load(name, random_state=seed) for seed in (0, 0, 1))
    entry = TABLE_1[name]
    assert first.entry is entry
    assert first.data.shape == (entry.n_samples, entry.n_features)
    assert len(first.target_names) == entry.n_classes
    assert len(first.feature_names) == entry.n_features
    assert first.filenames == []
    np.testing.assert_array_equal(first.data, again.data)
    assert not np.array_equal(first.data, other.data)


def test_a_name_that_is_not_in_table_1_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match=r"name='mnist' is not .* Use one of synthetic, iris, letter-recog"):
        load("mnist")


def test_iris_needs_neither_network_nor_cache_nor_pooch(cache, no_network, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    iris = datasets.load_iris()
    assert iris.data.shape == (150, 4)
    assert iris.data[34].tolist() == [4.9, 3.1, 1.5, 0.1]  # 0.2 in scikit-learn's copy
    assert Counter(iris.target) == {"setosa": 50, "versicolor": 50, "virginica": 50}
    assert iris.target_names.tolist() == ["setosa", "versicolor", "virginica"]
    assert iris.frame is None
    assert "Fisher (1936)" in iris.DESCR
    assert "CC BY 4.0" in iris.DESCR
    assert not cache.exists()


def test_a_copy_of_iris_in_the_cache_comes_before_the_shipped_one(cache):
    shipped = Path(datasets.load_iris().filenames[0])
    cache.mkdir()
    (cache / "iris.data").write_bytes(shipped.read_bytes())
    assert datasets.load_iris().filenames == [str(cache / "iris.data")]
    (cache / "iris.data").write_bytes(shipped.read_bytes()[:-1])
    with pytest.raises(DamagedFileError, match="has 4550 bytes"):
        datasets.load_iris()


def test_frames_carry_the_same_numbers(cache):
    X, y = datasets.load_iris(return_X_y=True)
    iris = datasets.load_iris(as_frame=True)
    np.testing.assert_array_equal(iris.data.to_numpy(), X)
    np.testing.assert_array_equal(iris.target.to_numpy(dtype=str), y)
    assert iris.data.columns.tolist() == iris.feature_names
    assert iris.frame.columns.tolist() == [*iris.feature_names, "target"]
    data, target = datasets.load_iris(return_X_y=True, as_frame=True)
    assert data.equals(iris.data)
    assert target.equals(iris.target)


def test_without_pandas_frames_say_what_to_install(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="as_frame=True needs pandas: pip install pandas"):
        datasets.load_iris(as_frame=True)


def test_changing_a_bunch_does_not_change_the_next_one(cache):
    datasets.load_iris().feature_names.append("scent")
    assert len(datasets.load_iris().feature_names) == 4


# the real files, where they are at hand

BESIDE = Path(__file__).parents[3] / "shared" / "data" / "raw"
REAL = {  # loader, first row's start, its label, some names, counts of classes
    "letter-recognition": (
        datasets.load_letter_recognition,
        [2, 8, 3],
        "T",
        ["x-box", "y-box"],
        {"A": 789, "Z": 734},
    ),
    "splice": (datasets.load_splice, [0, 1, 0], "N", ["A0", "A1"], {"EI": 767, "IE": 765, "N": 1654}),
    "optdigits": (datasets.load_optdigits, [0, 1, 6], 0, ["pixel_0_0", "pixel_0_1"], {0: 554, 9: 562}),
    "breast-cancer-wisconsin": (
        datasets.load_breast_cancer_wisconsin,
        [5, 1, 1],
        "benign",
        ["clump thickness", "uniformity of cell size"],
        {"benign": 444, "malignant": 239},
    ),
    "iris": (datasets.load_iris, [5.1, 3.5, 1.4], "setosa", ["sepal length (cm)"], {"setosa": 50}),
}


@pytest.fixture
def real_files(monkeypatch):
    if "KMARGIN_DATA" not in os.environ and BESIDE.is_dir():
        monkeypatch.setenv("KMARGIN_DATA", str(BESIDE))

    def require(name):
        missing = [file.name for file in TABLE_1[name].files if not (cache_folder() / file.name).exists()]
        if missing:
            pytest.skip(f"{', '.join(missing)} not in {cache_folder()}; the loaders would download it")

    return require


@pytest.mark.parametrize("name", REAL)
def test_the_real_files_are_what_table_1_says(name, real_files, no_network):
    real_files(name)
    loader, first, label, names, counts = REAL[name]
    bunch, entry = loader(), TABLE_1[name]
    assert bunch.data.shape == (entry.n_samples, entry.n_features)
    assert bunch.data.dtype == np.float64
    assert bunch.data.flags.c_contiguous
    assert np.isfinite(bunch.data).all()
    assert bunch.data[0, :3].tolist() == first
    assert bunch.target[0] == label
    assert len(bunch.feature_names) == len(set(bunch.feature_names)) == entry.n_features
    assert bunch.feature_names[: len(names)] == names
    assert len(bunch.target_names) == entry.n_classes
    assert counts.items() <= Counter(bunch.target.tolist()).items()
    assert [Path(path).name for path in bunch.filenames] == [file.name for file in entry.files]


def test_optdigits_has_the_training_file_before_the_test_file(real_files):
    real_files("optdigits")
    X, y = datasets.load_optdigits(return_X_y=True)
    test = np.loadtxt(cache_folder() / "optdigits.tes", delimiter=",")
    np.testing.assert_array_equal(X[3823:], test[:, :-1])
    np.testing.assert_array_equal(y[3823:], test[:, -1])


def test_sixteen_rows_of_breast_cancer_wisconsin_are_left_out(real_files):
    real_files("breast-cancer-wisconsin")
    lines = (cache_folder() / "breast-cancer-wisconsin.data").read_text().splitlines()
    whole = [line.split(",") for line in lines if "?" not in line]
    assert len(lines) - len(whole) == 16
    X, y = datasets.load_breast_cancer_wisconsin(return_X_y=True)
    np.testing.assert_array_equal(X, np.array(whole)[:, 1:-1].astype(float))
    np.testing.assert_array_equal(y == "malignant", np.array(whole)[:, -1] == "4")


# an archive laid out like TCGA's

GENES = np.array(  # gene_1 and gene_4 are zero everywhere, gene_0 and gene_2 in some samples
    [
        [0.0, 0.0, 2.5, 3.0, 0.0, 5.0],
        [1.25, 0.0, 0.0, 3.5, 0.0, 5.5],
        [0.0, 0.0, 0.0, 4.0, 0.0, 6.0],
    ]
)
LABELS = {"sample_2": "LUAD", "sample_0": "PRAD", "sample_1": "BRCA"}  # in another order than the data


def write_archive(path, values=GENES, labels=LABELS, names=("labels.csv", "data.csv")):
    header = ["", *(f"gene_{j}" for j in range(values.shape[1]))]
    rows = [[f"sample_{i}", *map(str, row)] for i, row in enumerate(values.tolist())]
    texts = {
        "data.csv": "".join(",".join(row) + "\n" for row in [header, *rows]),
        "labels.csv": "".join(f"{sample},{label}\n" for sample, label in [("", "Class"), *labels.items()]),
    }
    with tarfile.open(path, "w:gz") as archive:
        folder = tarfile.TarInfo("TCGA-PANCAN-HiSeq-801x20531")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name in names:
            content = texts[name].encode()
            member = tarfile.TarInfo(f"TCGA-PANCAN-HiSeq-801x20531/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("names", [("labels.csv", "data.csv"), ("data.csv", "labels.csv")])
@pytest.mark.parametrize(
    ("limit", "kept"), [(2, [0, 2]), (3, [0, 2, 3]), (4, [0, 2, 3, 5]), (9, [0, 2, 3, 5])]
)
def test_tcga_keeps_the_first_genes_that_are_not_zero_everywhere(tmp_path, names, limit, kept):
    path = write_archive(tmp_path / "tcga.tar.gz", names=names)
    X, y, genes = loaders.read_tcga([path], limit)
    np.testing.assert_array_equal(X, GENES[:, kept])
    assert genes == [f"gene_{j}" for j in kept]
    assert y.tolist() == ["PRAD", "BRCA", "LUAD"]


def test_reading_columns_only_as_far_as_needed_changes_nothing(tmp_path, rng):
    values = rng.standard_normal((12, 40)) * (rng.random((12, 40)) < 0.15)
    labels = {f"sample_{i}": "BRCA" for i in range(12)}
    path = write_archive(tmp_path / "tcga.tar.gz", values, labels)
    nonzero = np.flatnonzero(values.any(axis=0))
    assert len(nonzero) < 40
    for limit in range(1, 42):
        X, _, genes = loaders.read_tcga([path], limit)
        np.testing.assert_array_equal(X, values[:, nonzero[:limit]])
        assert genes == [f"gene_{j}" for j in nonzero[:limit]]


def test_the_tcga_loader_reads_the_archive_from_the_cache(cache, monkeypatch, no_network):
    cache.mkdir()
    path = write_archive(cache / "tcga.tar.gz")
    file = RemoteFile(
        path.name, "https://example.org/tcga.tar.gz", hashlib.sha256(path.read_bytes()).hexdigest()
    )
    name = "TCGA-PANCAN-HiSeq"
    entry = replace(TABLE_1[name], n_samples=3, n_features=3, n_classes=3, files=(file,))
    monkeypatch.setattr(loaders, "TABLE_1", {name: entry})
    bunch = datasets.load_tcga_pancan_hiseq()
    np.testing.assert_array_equal(bunch.data, GENES[:, [0, 2, 3]])
    assert bunch.target.tolist() == ["PRAD", "BRCA", "LUAD"]
    assert bunch.target_names.tolist() == ["BRCA", "LUAD", "PRAD"]
    assert bunch.feature_names == ["gene_0", "gene_2", "gene_3"]
    monkeypatch.setattr(loaders, "TABLE_1", {name: replace(entry, n_features=5)})
    with pytest.raises(DatasetError, match=r"was read with shape \(3, 4\), but Table 1 has \(3, 5\)"):
        load(name)


def test_an_archive_that_cannot_be_read_says_why(tmp_path):
    path = tmp_path / "tcga.tar.gz"
    for names in [("data.csv",), ("labels.csv",)]:
        with pytest.raises(
            DatasetError, match=r"tcga\.tar\.gz cannot be read: data.csv or labels.csv is not in"
        ):
            loaders.read_tcga([write_archive(path, names=names)], 3)
    with pytest.raises(DatasetError, match="no line for 1 samples, the first 'sample_1'"):
        loaders.read_tcga([write_archive(path, labels={"sample_0": "A", "sample_2": "B"})], 3)
    path.write_bytes(write_archive(path).read_bytes()[:150])
    with pytest.raises(DatasetError, match=r"tcga\.tar\.gz cannot be read: .*Delete it"):
        loaders.read_tcga([path], 3)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the file is empty"),
        ("1,2,3,4,Iris-setosa\n1,2,Iris-setosa\n", "line 2 has 3 columns where 5 are expected"),
        ("1,2,3,four,Iris-setosa\n", "could not convert string to float: 'four"),
        ("1,2,3,4,Iris-setosa\n1,2,3,4,Rose\n", r"the classes \['Rose'\] are not among \['Iris-setosa'"),
    ],
)
def test_a_table_that_cannot_be_read_says_why(tmp_path, text, complaint):
    path = tmp_path / "iris.data"
    path.write_text(text)
    with pytest.raises(DatasetError, match=rf"iris\.data cannot be read: .*{complaint}.*\. Delete it"):
        loaders.read_iris([path], 4)
