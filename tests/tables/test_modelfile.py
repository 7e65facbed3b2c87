"""Models on disk: the same decisions after, and nothing run from a file that is not one."""

import hashlib
import io
import json
import os
import pickle
import re
import zipfile

import numpy as np
import pytest
from tables_data import make_table

from kmargin import __version__
from kmargin.core.validation import InputError
from kmargin.tables import model_file
from kmargin.tables.analysis import analyse
from kmargin.tables.dataset import Roles, prepare
from kmargin.tables.read import Table
from kmargin.tables.search import Settings

FRAME = make_table(n_classes=3).assign(colour=["red", "green", "blue"] * 20)


def fit(frame, encode="onehot", impute="median", **settings):
    roles = {name: settings.pop(name) for name in Roles._fields if name in settings}
    dataset = prepare(Table(frame), Roles("outcome", encode=encode, impute=impute, **roles))
    return analyse(
        dataset, Settings(**{"k": 2, "Cs": [1.0], "ks": [2], "cv": 2, "pairs": 0} | settings)
    ).model


ASKED = {"keep": ["colour"], "avoid": ["noise"], "signs": ["age=+", "colour=red=-"]}
MODELS = {
    "linear": (make_table(), {}), "several classes": (FRAME, {}),
    "one against rest": (FRAME, {"multi_class": "ovr"}), "kernel": (make_table(), {"kernel": "rbf", "k": 5}),
    "several classes, kernel": (FRAME, {"kernel": "poly", "k": 3}),
    "each machine by itself": (FRAME, {"shared": False}), "groups, signs, kept and avoided": (FRAME, ASKED),
    "values one by one": (FRAME, {**ASKED, "each_value": True, "k": 4, "ks": [4]}),
    "no ridge": (make_table(), {"Cs": [float("inf")]}), "nothing kept": (make_table(), {"k": 0}),
    "a kernel with nothing kept": (make_table(), {"k": 0, "kernel": "rbf"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return fit(make_table())


@pytest.fixture
def file(model, tmp_path):
    return model_file.save(model, tmp_path / "model.kmargin")


@pytest.mark.parametrize(("frame", "settings"), MODELS.values(), ids=MODELS.keys())
def test_a_model_read_back_decides_the_same_to_the_last_bit(frame, settings, tmp_path):
    model = fit(frame, **settings)
    again = model_file.load(model_file.save(model, tmp_path / "m"))
    expected, found = model.predict_table(Table(frame)), again.predict_table(Table(frame))
    np.testing.assert_array_equal(found.decisions, expected.decisions)
    np.testing.assert_array_equal(found.classes, expected.classes)
    assert (again.target, again.encoding) == (model.target, model.encoding)
    assert again.parameters == model.parameters


def test_the_header_says_what_the_file_is(file, model):
    header = json.loads(np.load(file)["header"].tobytes())
    assert (header["format"], header["version"], header["kmargin"]) == ("kmargin model", 1, __version__)
    assert (header["kind"], header["target"], header["id"]) == ("linear", "outcome", None)
    assert header["classes"] == ["no", "yes"]
    assert header["columns"] == list(model.encoding.columns)
    assert header["parameters"] == {
        "k": 2, "C": "1.0", "multi_class": "ovo", "shared": True,
        "groups": None, "keep": None, "avoid": None, "signs": None,
    }  # fmt: skip


def test_where_there_is_no_model_that_is_said(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match=r"There is no model at .*Give the folder that `kmargin fit`"):
            model_file.load(place)


class Bomb:
    """A pickle of this makes a folder when it is opened."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("member", [None, "header", "coef", "another"])
def test_a_pickle_is_never_opened(file, tmp_path, member):
    """Neither as a file nor as a member of the archive."""
    trap, bad = tmp_path / "trap", tmp_path / "bad.npz"
    if member is None:
        bad.write_bytes(pickle.dumps(Bomb(trap)))
    else:
        np.savez(bad, **dict(np.load(file)) | {member: np.array([Bomb(trap)], dtype=object)})
    with pytest.raises(InputError, match="cannot be read as a kmargin model"):
        model_file.load(bad)
    assert not trap.exists()


def test_no_flipped_byte_goes_unnoticed(file, model):
    """A file with another bit is refused, or has the same content, as with another date in the archive."""
    content, rng, n_refused = file.read_bytes(), np.random.default_rng(0), 0
    for at in rng.choice(len(content), 200, replace=False):
        file.write_bytes(content[:at] + bytes([content[at] ^ 1 << rng.integers(8)]) + content[at + 1 :])
        try:
            again = model_file.load(file)
        except InputError:
            n_refused += 1
            continue
        assert model_file.to_bytes(again) == model_file.to_bytes(model)
    assert n_refused > 140


def test_the_digest_is_that_of_names_types_shapes_and_bytes(file):
    """Written out here once more: another digest would make every model of today unreadable."""
    arrays = dict(np.load(file))
    sha = hashlib.sha256()
    for name in sorted(set(arrays) - {"sha256"}):
        sha.update(
            f"{name} {arrays[name].dtype.str} {arrays[name].shape}\n".encode() + arrays[name].tobytes()
        )
    assert arrays["sha256"].tobytes() == sha.digest()
    np.savez(file.with_suffix(".npz"), **arrays | {"coef": arrays["coef"] * 1.01})
    with pytest.raises(InputError, match="that was not changed since"):
        model_file.load(file.with_suffix(".npz"))


@pytest.mark.parametrize("part", [slice(0), slice(500), slice(-20), slice(1000, None)], ids=str)
def test_a_part_of_a_file_is_refused(file, part):
    file.write_bytes(file.read_bytes()[part])
    with pytest.raises(InputError, match="it is not, or is damaged"):
        model_file.load(file)


def forge(file, header=None, text=None, **changes):
    """A file with another header or other arrays, and a digest that fits."""
    arrays = {name: array for name, array in np.load(file).items() if name != "sha256"}
    text = text or json.dumps(json.loads(arrays["header"].tobytes()) | (header or {}))
    arrays |= changes | {"header": np.frombuffer(text.encode(), np.uint8)}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    forged = file.with_name("forged.npz")
    np.savez(forged, **arrays, sha256=model_file._digest(arrays))
    return forged


def test_a_forged_file_that_changes_nothing_is_read(file):
    model_file.load(forge(file))


def with_parameters(**changes):
    return {"header": {"parameters": {"k": 2, "C": "1.0", "multi_class": "ovo"} | changes}}


FORGERIES = {
    "another format": {"header": {"format": "other"}}, "a version that is text": {"header": {"version": "1"}},
    "version 0": {"header": {"version": 0}}, "no coefficients": {"coef": None},
    "coefficients of another shape": {"coef": np.zeros((1, 4))},
    "coefficients of one dimension": {"coef": np.zeros(5)},
    "infinite coefficients": {"coef": np.full((1, 5), np.inf)}, "slopes without offsets": {"offsets": None},
    "ranges without upper ends": {"ranges": np.zeros((1, 5))}, "no spread": {"spread": np.zeros(5)},
    "an unknown kind": {"header": {"kind": "tree"}},
    "a kind that is a list": {"header": {"kind": ["linear"]}},
    "a very long kind": {"header": {"kind": "x" * 10**5}},
    "a kernel machine without points": {"header": {"kind": "kernel"}},
    "names that repeat": {"header": {"columns": ["a"] * 5}},
    "categories that are a number": {"header": {"categories": 1.5}},
    "one class": {"header": {"classes": ["no"]}}, "parameters that are text": {"header": {"parameters": "k"}},
    "no parameters": {"header": {"parameters": {}}}, "a C that is text": with_parameters(C="much"),
    "a header that is a list": {"text": "[1, 2]"}, "a header of brackets only": {"text": "[" * 100_000},
}  # fmt: skip


@pytest.mark.parametrize("changes", FORGERIES.values(), ids=FORGERIES.keys())
def test_forgeries_are_refused(file, changes):
    forged = forge(file, **changes)
    with pytest.raises(InputError, match="cannot be read as a kmargin model") as caught:
        model_file.load(forged)
    assert not re.search("Error|dtype", str(caught.value)), "no word of ours for people"
    assert len(str(caught.value)) < len(str(forged)) + 200


def test_a_file_from_before_features_were_shared_is_read_as_it_was_meant(file, model):
    """It says nothing of shared features, groups, signs."""
    parameters = json.loads(np.load(file)["header"].tobytes())["parameters"]
    old = {name: parameters[name] for name in ("k", "C", "multi_class")}
    assert set(parameters) > set(old)
    again = model_file.load(forge(file, {"parameters": old}))
    np.testing.assert_array_equal(again.machine.coef_, model.machine.coef_)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_called_so(file):
    file.chmod(0)
    with pytest.raises(PermissionError):
        model_file.load(file)


def test_a_kernel_that_cannot_be_computed_is_refused(tmp_path):
    file = model_file.save(fit(make_table(), kernel="rbf", k=5), tmp_path / "model.kmargin")
    parameters = json.loads(np.load(file)["header"].tobytes())["parameters"]
    with pytest.raises(InputError, match="cannot be read as a kmargin model"):
        model_file.load(forge(file, {"parameters": parameters | {"gamma": "scale"}}))


def test_a_newer_format_asks_for_an_upgrade(file):
    with pytest.raises(InputError, match=r"has format 2, but this kmargin \(.*\) reads up to 1"):
        model_file.load(forge(file, {"version": 2}))


def test_members_that_unpack_to_more_are_refused(file, tmp_path):
    bomb = tmp_path / "bomb.npz"
    np.savez_compressed(bomb, **dict(np.load(file)) | {"coef": np.zeros((1, 10_000_000))})
    with pytest.raises(InputError, match="it is not, or is damaged"):
        model_file.load(bomb)


def test_an_array_that_claims_more_than_it_holds_is_not_allocated(file, tmp_path):
    liar = tmp_path / "liar.npz"
    claim = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (1, 10**14)}
    np.lib.format.write_array_header_1_0(claim, header)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(liar, "w") as new:
        for name in old.namelist():
            new.writestr(name, claim.getvalue() + bytes(40) if name == "coef.npy" else old.read(name))
    with pytest.raises(InputError, match="it is not, or is damaged"):
        model_file.load(liar)


def test_a_prediction_says_how_many_missing_values_it_replaces():
    frame = make_table()
    model = fit(frame, k=5, ks=[5])
    assert model.predict_table(Table(frame)).notes == []
    gaps = frame.assign(age=frame["age"].mask(frame.index < 3))
    note = f"'age' is missing in 3 of {len(frame)} rows; the training median is used there."
    assert model.predict_table(Table(gaps)).notes == [note]
