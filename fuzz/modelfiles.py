"""Damaged, forged and foreign model files: each is refused in one sentence, or is the model that was saved.

Nothing in a file is ever run, and no file makes the reader take much more memory than it has bytes.
"""

import io
import json
import os
import pickle
import tarfile
import tempfile
import tracemalloc
import zipfile
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from fuzz import clock
from fuzz.files import Draw, Flaw, call
from fuzz.outputs import check_refusal

MAX_MEMORY = 30e6  # bytes beyond the file's own, whatever it claims
KINDS = ("linear", "kernel", "classes")


@dataclass
class Case:
    """A file that is, or was, or says that it is a model."""

    number: int
    kind: str  # of the model that it was
    damage: str
    content: bytes

    def __str__(self):
        """Lines that reproduce it."""
        write = f"open('m.kmargin', 'wb').write({self.content!r})  # a {self.kind} model, {self.damage}"
        return f"{write}\nfrom kmargin.tables import model_file\nmodel_file.load('m.kmargin')"


@cache
def originals():
    """A model of each kind, as a file and as what it decides about some rows."""
    import pandas as pd

    from kmargin.tables import model_file
    from kmargin.tables.analysis import analyse
    from kmargin.tables.dataset import Roles, prepare
    from kmargin.tables.read import Table
    from kmargin.tables.search import Settings

    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.standard_normal((24, 3)), columns=["a", "<b>", "=c"])
    frame["hue"] = ["red", "blue", "green"] * 8
    found = {}
    for kind in KINDS:
        names = np.array({"linear": ["no", "yes"], "classes": ["u", "v", "w"], "kernel": [3, 5]}[kind])
        frame["y"] = names[np.argsort(np.argsort(frame["a"])) * len(names) // 24]
        settings = Settings(k=2, ks=[2], Cs=[1.0], cv=2, kernel="rbf" if kind == "kernel" else None)
        dataset = prepare(Table(frame), Roles("y", encode="onehot", impute="median"))
        model = analyse(dataset, settings).model
        found[kind] = model_file.to_bytes(model), fingerprint(model)
    return found


def fingerprint(model):
    """Everything that a model decides by."""
    from kmargin.tables.model import estimator_numbers

    parameters, arrays = estimator_numbers(model.machine)
    scaling = model.scaling
    shared = {"mean": scaling.mean, "spread": scaling.spread, "medians": scaling.medians}
    encoding = (model.target, model.encoding.columns, sorted(model.encoding.categories.items()))
    numbers = [(name, None if a is None else np.asarray(a).tolist()) for name, a in (arrays | shared).items()]
    return [sorted(parameters.items(), key=str), numbers, encoding]


def make_case(number):
    """The case with this number: always the same."""
    draw = Draw(number, 11)
    kind = draw.one(KINDS)
    damaged, damage = draw.weighted(WAYS)(originals()[kind][0], draw.rng)
    return Case(number, kind, damage, damaged)


def check(case):
    """A sentence that says what is wrong with the answer, or None."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("m.kmargin").write_bytes(case.content)
        flaw = _check_load(case)
        if flaw is None and os.path.exists("sprung"):
            flaw = "code from the file was run"
        if flaw is None and case.number % 20 == 0:
            flaw = _check_command()
        return flaw


def _check_load(case):
    from kmargin.core.validation import InputError
    from kmargin.tables import model_file

    tracemalloc.start()
    try:
        with clock.running():
            model = model_file.load("m.kmargin")
    except InputError as error:
        message = str(error)
        if not message.startswith("m.kmargin ") or len(message) > 500:
            return f"a refusal that says little: {message[:200]!r}"
        model = None
    except clock.TooSlow:
        return "it runs for more than 10 s"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    if peak > MAX_MEMORY + 5 * len(case.content):
        return f"it takes {peak / 1e6:.0f} MB for {len(case.content)} bytes"
    if model is None or fingerprint(model) == originals()[case.kind][1]:
        return None
    if not _has_digest(case.content):
        return "it is read as another model"
    return _check_forgery(model)


def _has_digest(content):
    """Whether a file was made anew, by somebody who knows how: a digest is no signature."""
    from kmargin.tables import model_file

    arrays, _ = unpack(content)
    return bool(arrays.pop("sha256").tolist() == model_file._digest(arrays).tolist())


def _check_forgery(model):
    """Another model, but a model: it decides, or says what it lacks."""
    import pandas as pd

    from kmargin.core.validation import InputError
    from kmargin.tables.read import Table

    frame = pd.DataFrame({column: [0.5, -1.0] for column in model.encoding.columns})
    try:
        decisions = model.predict_table(Table(frame)).decisions
    except InputError:
        return None
    except Exception as error:
        return f"a forged model fails with {type(error).__name__}: {error}"
    return None if np.isfinite(decisions).all() else "a forged model decides by no number"


def _check_command():
    """The same file given to `kmargin predict`."""
    Path("new.csv").write_text("a,<b>,=c,hue\n1,2,3,red\n")
    try:
        code, stdout, stderr = call(["predict", "m.kmargin", "new.csv", "-q"])
    except Flaw as flaw:
        return str(flaw)
    return check_refusal(code, stdout, stderr, ["m.kmargin", "new.csv"]) if code else None


# What happens to files: each takes the bytes of a model file and returns others, and what was done.


class Trap:
    """A pickle of this makes a folder when it is opened."""

    def __reduce__(self):
        return os.mkdir, ("sprung",)


def cut(content, rng):
    at = int(rng.integers(len(content)))
    return (content[:at], f"cut at {at}") if rng.random() < 0.7 else (content[at:], f"from {at} on")


def flip(content, rng):
    data = bytearray(content)
    places = rng.integers(len(data), size=int(rng.choice([1, 1, 1, 2, 8])))
    for at in places:
        data[at] ^= 1 << int(rng.integers(8))
    return bytes(data), f"bits flipped at {places.tolist()}"


def splice(content, rng):
    at, n_bytes = int(rng.integers(len(content))), int(rng.integers(1, 200))
    middle = [rng.bytes(n_bytes), bytes(n_bytes), content[:n_bytes]][int(rng.integers(3))]
    rest = content[at:] if rng.random() < 0.5 else content[at + n_bytes :]
    return content[:at] + middle + rest, f"{n_bytes} bytes put in at {at}"


def unpack(content):
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    return arrays, json.loads(arrays["header"].tobytes())


def pack(arrays, rng, compress=False):
    """An archive, its digest right two times of three, so that what lies behind the digest is reached."""
    from kmargin.tables import model_file

    plain = {name: array for name, array in arrays.items() if name != "sha256"}
    if rng.random() < 0.67 and all(isinstance(a, np.ndarray) and a.dtype != object for a in plain.values()):
        arrays["sha256"] = model_file._digest(plain)
    out = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(out, **arrays)
    return out.getvalue()


def rearrange(content, rng):
    arrays, _ = unpack(content)
    names = sorted(set(arrays) - {"header", "sha256"})
    one, other = (str(name) for name in rng.choice(names, 2, replace=False))
    way = int(rng.integers(10))
    if way == 0:
        arrays[one], arrays[other] = arrays[other], arrays[one]
    elif way == 1:
        del arrays[one]
    elif way == 2:
        arrays[str(rng.choice(["extra", "../x", "header2", ""]))] = arrays[one]
    else:
        array = arrays[one]
        with np.errstate(over="ignore"):
            arrays[one] = [
                *(array[..., :-1], array * np.nan, np.asfortranarray(np.stack([array, array]))),
                *(array.astype(kind) for kind in (np.float16, complex, "U", object, ">f8")),
            ][int(rng.integers(8))]
    return pack(arrays, rng), f"way {way} with {one} and {other}"


def reword(content, rng):
    """A header with other types, versions, or words."""
    arrays, header = unpack(content)
    odd = [None, -1, 10**400, 1e999, "", "x" * 10**4, [], {}, [[]], {"a": 1}, True]
    odd += [["a", "a"], [1, "b"], 0.5, "NaN", "\ud800"]
    key = str(rng.choice(sorted(header)))
    if key == "kmargin":
        key = "format"
    value = odd[int(rng.integers(len(odd)))]
    if key in ("parameters", "categories") and rng.random() < 0.7:
        inner = dict(header[key])
        inner[str(rng.choice([*inner, "new"]))] = value
        value = inner
        if set(inner) != set(header[key]) and key == "parameters":
            value = {}
    if key == "version":
        value = [0, 2, 99, -1, "1", 1.0, True, None][int(rng.integers(8))]
    header[key] = value
    text = json.dumps(header)
    if rng.random() < 0.1:
        others = ["", "[" * 50_000, "{}", "null", "1", '"x"', text[:-2], text + "}", "NaN", '{"a":' * 5000]
        text = str(rng.choice(others))
    arrays["header"] = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    return pack(arrays, rng), f"header: {key} = {str(value)[:60]!r}"


def claim(content, rng):
    """A member that says it is huge, of an odd type, or written otherwise."""
    shape = [(10**14,), (1, 10**14), (2**62, 8), (-1, 5), (10**9,), (2**32, 2**32), ()][int(rng.integers(7))]
    descr = ["<f8", "|O", "<U1000000000", "<f2", "|V8", [("a", "<f8")], "<M8[s]"][int(rng.integers(7))]
    claim = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        claim, {"descr": descr, "fortran_order": bool(rng.random() < 0.2), "shape": shape}
    )
    out = io.BytesIO()
    chosen = str(rng.choice(zipfile.ZipFile(io.BytesIO(content)).namelist()))
    packing = zipfile.ZIP_DEFLATED if rng.random() < 0.2 else zipfile.ZIP_STORED
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w", packing) as new:
        for name in old.namelist():
            new.writestr(name, claim.getvalue() + bytes(40) if name == chosen else old.read(name))
    return out.getvalue(), f"{chosen} claims {shape} of {descr}"


def foreign(content, rng):
    way = int(rng.integers(9))
    out = io.BytesIO()
    if way == 0:
        return pickle.dumps(Trap()), "a pickle"
    if way == 1:
        arrays, _ = unpack(content)
        arrays[str(rng.choice([*arrays, "extra"]))] = np.array([Trap()], dtype=object)
        np.savez(out, **arrays)
        return out.getvalue(), "an npz with a pickle"
    if way == 2:
        with tarfile.open(fileobj=out, mode="w:gz" if rng.random() < 0.5 else "w") as archive:
            entry = tarfile.TarInfo("../escaped")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        return out.getvalue(), "a tar archive"
    if way == 3:
        with zipfile.ZipFile(out, "w") as zipped:
            names = ("../../escaped", "header.npy", "/etc/x", "header.npy/../x")
            for name in names[: int(rng.integers(1, 5))]:
                zipped.writestr(name, content)
        return out.getvalue(), "a zip of something else"
    if way == 4:
        arrays, _ = unpack(content)
        return pack(arrays, rng, compress=True), "compressed"
    if way == 5:
        np.savez_compressed(out, header=np.zeros(5 * 10**7, np.uint8))
        return out.getvalue(), "much packed into little"
    if way == 6:
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
            new.writestr("header", old.read("header.npy"))
        return out.getvalue(), "a member by two names"
    if way == 7:
        np.save(out, np.arange(3))
        return out.getvalue(), "one array"
    texts = [b"", b"a,b\n1,2\n", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), b"\x93NUMPY", b"{}"]
    texts += [rng.bytes(500), bytes(1000)]
    return texts[int(rng.integers(len(texts)))], "no archive at all"


WAYS = {cut: 15, flip: 30, splice: 10, rearrange: 15, reword: 15, claim: 8, foreign: 7}
