"""The data sets of Table 1: loaders read the files, and simulators follow the paper."""

import hashlib
import io
import os
import re
import socket
import sys
import tarfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kmargin import datasets
from kmargin.datasets import TABLE_1, DatasetError, RemoteFile, cache_folder, load, loaders


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KMARGIN_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_network(monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", None)  # calling it is an error


def test_the_registry_is_table_1():
    sizes = ["n_classes", "n_samples", "n_features", "n_train", "n_test", "scaling"]
    assert {name: tuple(getattr(row, size) for size in sizes) for name, row in TABLE_1.items()} == {
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


def test_descriptions_give_shape_scaling_licence_and_files_with_checksums():
    files = [file for row in TABLE_1.values() for file in row.files]
    assert len({file.name for file in files}) == len(files) == 7
    for entry in TABLE_1.values():
        text = loaders.describe(entry)
        assert f"{entry.n_samples} samples, {entry.n_features} features, {entry.n_classes} classes" in text
        assert loaders.SCALINGS[entry.scaling] in " ".join(text.split())
        assert "Licence: " in text
        for file in entry.files:
            assert re.fullmatch("https://.*[0-9a-f]{64}", f"{file.url} {file.sha256}")
            assert f" File: {file.url}, SHA-256 {file.sha256}" in " ".join(text.split())


@pytest.mark.parametrize("name", ["synthetic", "spiral"])
def test_simulated_data_load_by_name_and_obey_random_state(name):
    first, again, other = (load(name, random_state=seed) for seed in (0, 0, 1))
    entry = TABLE_1[name]
    assert first.data.shape == (entry.n_samples, entry.n_features)
    assert (len(first.target_names), len(first.feature_names)) == (entry.n_classes, entry.n_features)
    assert (first.filenames, first.entry) == ([], entry)
    assert (first.data == again.data).all()
    assert (first.data != other.data).any()
    with pytest.raises(ValueError, match=r"name='mnist' is not .* Use one of synthetic, iris, letter-recog"):
        load("mnist")


def test_iris_needs_neither_network_nor_cache_nor_pooch(cache, no_network, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    iris = datasets.load_iris()
    assert iris.data.shape == (150, 4)
    assert iris.data[34].tolist() == [4.9, 3.1, 1.5, 0.1]  # 0.2 in scikit-learn's copy
    assert Counter(iris.target) == {"setosa": 50, "versicolor": 50, "virginica": 50}
    assert iris.target_names.tolist() == ["setosa", "versicolor", "virginica"]
    assert "Fisher (1936)" in iris.DESCR
    assert (iris.frame, cache.exists()) == (None, False)
    iris.feature_names.append("scent")
    assert len(datasets.load_iris().feature_names) == 4, "each call returns names of its own"


def test_frames_carry_the_same_numbers(cache, monkeypatch):
    X, y = datasets.load_iris(return_X_y=True)
    iris = datasets.load_iris(as_frame=True)
    np.testing.assert_array_equal(iris.data.to_numpy(), X)
    np.testing.assert_array_equal(iris.target.to_numpy(dtype=str), y)
    assert iris.frame.columns.tolist() == [*iris.data.columns, "target"] == [*iris.feature_names, "target"]
    data, target = datasets.load_iris(return_X_y=True, as_frame=True)
    assert all(one.equals(other) for one, other in ((data, iris.data), (target, iris.frame["target"])))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas"):
        datasets.load_iris(as_frame=True)


# the real files, if they are in the cache
BESIDE = Path(__file__).parents[3] / "shared" / "data" / "raw"
REAL = {  # the first row's start and label, and counts of classes
    "letter-recognition": ([2, 8, 3], "T", {"A": 789, "Z": 734}),
    "splice": ([0, 1, 0], "N", {"EI": 767, "IE": 765, "N": 1654}),
    "optdigits": ([0, 1, 6], 0, {0: 554, 9: 562}),
    "breast-cancer-wisconsin": ([5, 1, 1], "benign", {"benign": 444, "malignant": 239}),
    "iris": ([5.1, 3.5, 1.4], "setosa", {"setosa": 50}),
}


def test_every_loader_loads_its_data_set_as_asked(monkeypatch):
    monkeypatch.setattr(loaders, "load", lambda *name, **how: (*name, how))
    how = {"return_X_y": True, "as_frame": False}
    for name in (*REAL, "TCGA-PANCAN-HiSeq"):
        loader = getattr(datasets, f"load_{name.replace('-', '_').lower()}")
        assert loader(**how) == (name, how)


@pytest.mark.parametrize("name", REAL)
def test_the_real_files_agree_with_table_1(name, monkeypatch, no_network):
    if "KMARGIN_DATA" not in os.environ and BESIDE.is_dir():
        monkeypatch.setenv("KMARGIN_DATA", str(BESIDE))
    (first, label, counts), entry = REAL[name], TABLE_1[name]
    if missing := [file.name for file in entry.files if not (cache_folder() / file.name).exists()]:
        pytest.skip(f"{', '.join(missing)} not in {cache_folder()}; the loaders would download it")
    bunch = load(name)
    assert bunch.data.shape == (entry.n_samples, entry.n_features)
    assert (bunch.data.dtype, bunch.data.flags.c_contiguous) == (np.float64, True)
    assert np.isfinite(bunch.data).all()
    assert (bunch.data[0, :3].tolist(), bunch.target[0]) == (first, label)
    assert (len(set(bunch.feature_names)), len(bunch.target_names)) == (entry.n_features, entry.n_classes)
    assert counts.items() <= Counter(bunch.target.tolist()).items()
    assert [Path(path).name for path in bunch.filenames] == [file.name for file in entry.files]


def write_archive(path, values, labels, names=("labels.csv", "data.csv")):
    """An archive with the layout of TCGA's."""
    genes = [f"gene_{j}" for j in range(values.shape[1])]
    data = pd.DataFrame(values, [f"sample_{i}" for i in range(len(values))], genes)
    texts = {"data.csv": data.to_csv(), "labels.csv": pd.Series(labels, name="Class").to_csv()}
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


GENES = np.random.default_rng(0).standard_normal((12, 40))
GENES[np.random.default_rng(1).random((12, 40)) >= 0.15] = 0.0
KINDS = {f"sample_{i}": f"class {i % 5}" for i in reversed(range(12))}  # in another order than the data


@pytest.mark.parametrize("names", [("labels.csv", "data.csv"), ("data.csv", "labels.csv")])
def test_tcga_keeps_the_first_genes_that_are_not_zero_everywhere(cache, monkeypatch, no_network, names):
    cache.mkdir()
    path = write_archive(cache / "tcga.tar.gz", GENES, KINDS, names)
    nonzero = np.flatnonzero(GENES.any(axis=0))
    assert len(nonzero) < 40
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    file = RemoteFile(path.name, "https://example.org/tcga.tar.gz", checksum)
    for limit in (1, 7, len(nonzero)):
        entry = replace(TABLE_1["TCGA-PANCAN-HiSeq"], n_samples=12, n_features=limit, files=(file,))
        monkeypatch.setattr(loaders, "TABLE_1", {entry.name: entry})
        bunch = datasets.load_tcga_pancan_hiseq()
        np.testing.assert_array_equal(bunch.data, GENES[:, nonzero[:limit]])
        assert bunch.data.flags.c_contiguous
        assert bunch.feature_names == [f"gene_{j}" for j in nonzero[:limit]]
        assert bunch.target.tolist() == [f"class {i % 5}" for i in range(12)]
    monkeypatch.setattr(loaders, "TABLE_1", {entry.name: replace(entry, n_features=40)})
    with pytest.raises(DatasetError, match=r"was read with shape \(12, \d\d\), but Table 1 has \(12, 40\)"):
        load(entry.name)


def test_an_unreadable_archive_is_refused_with_the_reason(tmp_path):
    path = tmp_path / "tcga.tar.gz"
    for names in [("data.csv",), ("labels.csv",)]:
        with pytest.raises(DatasetError, match=r"gz cannot be read: data.csv or labels.csv is not in"):
            loaders.read_tcga(write_archive(path, GENES, KINDS, names), 3)
    with pytest.raises(DatasetError, match="no line for 11 samples, the first 'sample_1'"):
        loaders.read_tcga(write_archive(path, GENES, {"sample_0": "A"}), 3)
    path.write_bytes(write_archive(path, GENES, KINDS).read_bytes()[:150])
    with pytest.raises(DatasetError, match=r"tcga\.tar\.gz cannot be read: .*Delete it"):
        loaders.read_tcga(path, 3)


ROW, IRIS, UP = ",".join(map(str, range(16))), "1,2,3,4,Iris-", range(1, 10)
CELLS = "1000,1,2,3,4,5,6,7,8,9,2\n2000,1,2,3,4,5,?,7,8,9,4\n", "3000,9,8,7,6,5,4,3,2,1,4\n"
DNA = '"A0","A1","class"\n1,0,"3"\n0,0,"1"\n', "A0,A1,class\n1,1,2\n"
DIGITS = ",".join(["7"] * 64) + ",9\n", "\n" + "0," * 64 + "0"
FILES = {  # the contents of the files, the first and the last name of a feature, and what is read
    "letter-recognition": ((f"Z,{ROW}\nA,{ROW}\n",), "x-box yegvx", [range(16)] * 2, ["Z", "A"]),
    "splice": (DNA, "A0 A1", [[1, 0], [0, 0], [1, 1]], ["N", "EI", "IE"]),
    "optdigits": (DIGITS, "pixel_0_0 pixel_7_7", [[7] * 64, [0] * 64], [9, 0]),
    "breast-cancer-wisconsin": (CELLS, "clump thickness mitoses", [UP, UP[::-1]], ["benign", "malignant"]),
    "iris": ((f"{IRIS}virginica\n",), "sepal length (cm) petal width (cm)", [range(1, 5)], ["virginica"]),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_without_patient_numbers_and_rows_with_missing_values(tmp_path, name):
    texts, ends, X, y = FILES[name]
    paths = [tmp_path / str(number) for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    table = loaders.read_table(paths, loaders.LAYOUTS[name])
    np.testing.assert_array_equal(table.X, [list(row) for row in X])
    assert table.y.tolist() == y
    names = table.feature_names
    assert (f"{names[0]} {names[-1]}", len(names), len(set(names))) == (ends, table.X.shape[1], len(names))


@pytest.mark.parametrize(("text", "complaint"), [
    ("", "the file is empty"),
    (f"{IRIS}setosa\n1,2,Iris-setosa\n", "columns changed from 5 to 3 at row 2"),
    ("1,2,3,Iris-setosa\n", "it has 4 columns where 5 are expected"),
    ("1,2,3,four,Iris-setosa\n", "could not convert string to float: 'four"),
    (f"{IRIS}setosa\n1,2,3,4,Rose\n", r"the classes \['Rose'\] are not among \['Iris-setosa'"),
])  # fmt: skip
def test_an_unreadable_table_is_refused_with_the_reason(tmp_path, text, complaint):
    path = tmp_path / "iris.data"
    path.write_text(text)
    with pytest.raises(DatasetError, match=rf"iris\.data cannot be read: .*{complaint}.*\. Delete it"):
        loaders.read_table([path], loaders.LAYOUTS["iris"])


class Dealt(np.random.RandomState):
    """Gives ones, then the identity, and so on, instead of random numbers: X is a root of the covariance."""

    def standard_normal(self, size):
        self.n = getattr(self, "n", 0) + 1
        return np.ones(size) if self.n % 2 else np.eye(*size)


def test_the_two_informative_features_are_correlated_as_in_the_paper():
    X, y, coef = datasets.make_synthetic(5, 5, random_state=Dealt(), return_coef=True)
    expected = np.full((5, 5), 1e-3)
    np.fill_diagonal(expected, 2.0)
    expected[:2, :2] = [[1.0, 0.9], [0.9, 3.0]]
    np.testing.assert_allclose(X.T @ X, expected, atol=1e-12)
    np.testing.assert_array_equal(coef, [10, -10, 0, 0, 0])
    X, y = datasets.make_synthetic(1000, 2, random_state=0)
    np.testing.assert_array_equal(y, np.where(X[:, 0] > X[:, 1], 1, -1))
    assert np.corrcoef(X.T)[0, 1] == pytest.approx(0.9 / np.sqrt(3), abs=0.05)


@pytest.mark.parametrize(("make", "given", "message"), [
    ("synthetic", {"n_features": 1}, "n_features=1 leaves no room"),
    ("sparse_hyperplane", {"n_features": 5, "n_causal": 0}, "n_causal=0 of n_features=5"),
    ("sparse_hyperplane", {"n_features": 5, "n_causal": 6}, "n_causal=6 of n_features=5"),
    ("spiral", {"n_per_class": (5, 5)}, "n_per_class has 2 entries and noise 3"),
    ("genes", {"n_genes": 1999}, "n_genes=1999"),
    *(("genes", {"n_telling": wrong}, f"n_telling={wrong}") for wrong in (51, -1)),
    *(("genes", {"correlation": wrong}, f"correlation={wrong}") for wrong in (1.5, -0.1)),
])  # fmt: skip
def test_simulations_that_are_not_possible_are_refused(make, given, message):
    with pytest.raises(ValueError, match=message):
        getattr(datasets, f"make_{make}")(**given)


def test_simulations_may_have_features_of_one_kind_only():
    assert (datasets.make_sparse_hyperplane(10, 5, 5, random_state=0, return_coef=True)[2] != 0).all()
    shape = {"n_modules": 2, "genes_per_module": 3, "random_state": 0, "return_modules": True}
    for correlation, n_telling, rank in ((1, 2, 2), (0, 0, 6)):
        shape |= {"n_telling": n_telling, "correlation": correlation}
        X, y, modules = datasets.make_genes(20, 6, **shape)
        assert (np.linalg.matrix_rank(X - X.mean(axis=0)), y.sum()) == (rank, 7)
        assert modules.tolist() == [0, 0, 0, 1, 1, 1]


def test_effects_of_the_hyperplane_are_large_and_of_either_sign():
    assert datasets.make_sparse_hyperplane(return_coef=True)[2].nonzero()[0].shape == (50,)
    X, y, coef = datasets.make_sparse_hyperplane(50, 300, 200, random_state=0, return_coef=True)
    effects = coef[coef != 0]
    assert 2 <= np.abs(effects).min() < 2.2 < 9.8 < np.abs(effects).max() <= 10
    assert (len(effects), 60 < np.sum(effects > 0) < 140) == (200, True)
    np.testing.assert_array_equal(y, np.where(X @ coef > 0, 1, -1))
    assert np.abs(X.std() - 1) < 0.05


def test_spirals_are_rotated_arms_with_the_given_noise():
    n = 400
    clean, y = datasets.make_spiral((n, n), (0.0, 0.0), random_state=0)
    noisy, labels = datasets.make_spiral((n, n), (0.1, 0.3), random_state=0)
    angle = np.pi / 8 + np.arange(1, n + 1) * np.pi / n
    radius = 7 * (1 - np.arange(1, n + 1) / (1.2 * n))
    for c in (0, 1):
        turned = angle + c * np.pi
        arm = np.array([-3.5, 3.5]) + radius[:, None] * np.column_stack([np.cos(turned), np.sin(turned)])
        points, arm = (part[np.lexsort(part.T)] for part in (clean[y == c], arm))
        np.testing.assert_allclose(points, arm, atol=1e-12, err_msg=f"arm {c}")
        distance = np.sqrt(((noisy[labels == c][:, None] - arm) ** 2).sum(axis=2)).min(axis=1)
        assert distance.mean() == pytest.approx((0.1, 0.3)[c] * np.sqrt(2 / np.pi), rel=0.25)
    assert len(set(labels[:50])) == 2  # rows come in random order


def test_genes_of_a_module_are_correlated_and_informative_modules_differ_between_classes():
    shape = {"n_modules": 3, "genes_per_module": 3, "n_telling": 1, "effect": 2.0, "correlation": 0.6}
    X, y, modules = datasets.make_genes(30_000, 10, **shape, random_state=0, return_modules=True)
    np.testing.assert_array_equal(modules, [0, 0, 0, 1, 1, 1, 2, 2, 2, -1])
    assert y.sum() == 10_000
    same = (modules[:, None] == modules) & (modules >= 0)
    expected = np.where(np.eye(10, dtype=bool), 1.0, np.where(same, 0.6, 0.0))
    np.testing.assert_allclose(np.corrcoef(X[y == 0].T), expected, atol=0.03)
    np.testing.assert_allclose(np.corrcoef(X[y == 1].T), expected, atol=0.03)
    difference = (X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)) / X[y == 0].std(axis=0)
    np.testing.assert_allclose(difference, np.where(modules == 0, 2.0 * np.sqrt(0.6), 0.0), atol=0.05)
    X, y = datasets.make_genes(random_state=0)
    levels, spread = X.mean(axis=0), X.std(axis=0)
    for found, ends in ((levels, (4, 12)), (spread, (0.3, 1.2))):
        assert np.percentile(found, [1, 50, 99]) == pytest.approx([ends[0], np.mean(ends), ends[1]], abs=0.2)
