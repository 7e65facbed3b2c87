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

from fuzz import clock, contents
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
    machine, scaling = model.machine, model.scaling
    arrays = {"classes": model.classes_, "intercept": machine.intercept_, "coef": machine.coef_}
    if model.is_kernel:
        arrays |= {"points": machine.decisions.inputs.points, "support": machine.support_}
    shared = {"mean": scaling.mean, "spread": scaling.spread, "medians": scaling.medians}
    encoding = (model.target, model.encoding.columns, sorted(model.encoding.categories.items()))
    numbers = [(name, None if a is None else np.asarray(a).tolist()) for name, a in (arrays | shared).items()]
    return [sorted(model.parameters.items(), key=str), machine.multi_class, numbers, encoding]


def make_case(number):
    """The case with this number: always the same."""
    draw = Draw(number, 11)
    kind = draw.one(KINDS)
    damaged, what = draw.weighted(WAYS)(originals()[kind][0], draw)
    return Case(number, kind, what, damaged)


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
    arrays, _ = unpack(case.content)  # a digest is no signature: whoever forges a file can compute it
    if arrays.pop("sha256").tolist() != model_file._digest(arrays).tolist():
        return "it is read as another model"
    return _check_forgery(model)


def _check_forgery(model):
    """A forged model has finite decision values, or an error says what it lacks."""
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


# What happens to files: each way takes the bytes of a model file and returns others, and what was done.


class Trap:
    """A pickle of this makes a folder when it is opened."""

    def __reduce__(self):
        return os.mkdir, ("sprung",)


def unpack(content):
    """The arrays of a model file, and its header."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    return arrays, json.loads(arrays["header"].tobytes())


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members, packing=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return out.getvalue()


def saved(arrays, save=np.savez):
    out = io.BytesIO()
    save(out, **arrays)
    return out.getvalue()


def pack(arrays, draw, save=np.savez):
    """An archive, its digest right two times of three, so that what lies behind the digest is reached."""
    from kmargin.tables import model_file

    plain = {name: array for name, array in arrays.items() if name != "sha256"}
    if draw.chance(0.67) and all(array.dtype != object for array in plain.values()):
        arrays = plain | {"sha256": model_file._digest(plain)}
    return saved(arrays, save)


@cache
def much_in_little():
    return saved({"header": np.zeros(5 * 10**7, np.uint8)}, np.savez_compressed)


def damage(content, draw):
    return contents.damage(content, draw), "damaged"


def flip(content, draw):
    damaged = bytearray(content)
    places = draw.rng.integers(len(content), size=draw.one([1, 1, 1, 2, 8]))
    for at in places:
        damaged[at] ^= 1 << draw.below(8)
    return bytes(damaged), f"bits flipped at {places.tolist()}"


def rearrange(content, draw):
    """Arrays that are missing, exchanged, there twice, or of another shape or type."""
    arrays, _ = unpack(content)
    names = sorted(set(arrays) - {"header", "sha256"})
    one, other = draw.one(names), draw.one(names)
    array = arrays.pop(one)
    with np.errstate(over="ignore"):
        others = [array[..., :-1], array * np.nan, np.asfortranarray(np.stack([array, array]))]
        others += [array.astype(kind) for kind in (np.float16, complex, "U", object, ">f8")]
    extra = draw.one(["extra", "../x", "header2", ""])
    moved = [{}, {one: array, extra: array}, {other: array, one: arrays.get(other, array)}]
    changed = draw.one(moved) if draw.chance(0.3) else {one: draw.one(others)}
    return pack(arrays | changed, draw), f"{one} in another way"


def reword(content, draw):
    """A header with other types, versions, or words."""
    arrays, header = unpack(content)
    key = draw.one(sorted(set(header) - {"kmargin"}))
    value = draw.one(ODD_VALUES)
    if key == "version":
        value = draw.one([0, 2, 99, -1, "1", 1.0, True, None])
    elif key == "parameters" and draw.chance(0.7):
        value = header[key] | {draw.one([*header[key]]): value}
    elif key == "categories" and draw.chance(0.7):
        value = header[key] | {draw.one([*header[key], "new"]): value}
    text = json.dumps(header | {key: value})
    if draw.chance(0.1):
        others = ["", "[" * 50_000, "{}", "null", "1", '"x"', text[:-2], text + "}", "NaN", '{"a":' * 5000]
        text = draw.one(others)
    arrays["header"] = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    return pack(arrays, draw), f"header: {key} = {str(value)[:60]!r}"


def claim(content, draw):
    """A member that says it is huge, of an odd type, or written otherwise."""
    shape = draw.one([(10**14,), (1, 10**14), (2**62, 8), (-1, 5), (10**9,), (2**32, 2**32), ()])
    descr = draw.one(["<f8", "|O", "<U1000000000", "<f2", "|V8", [("a", "<f8")], "<M8[s]"])
    claim, members = io.BytesIO(), members_of(content)
    header = {"descr": descr, "fortran_order": draw.chance(0.2), "shape": shape}
    np.lib.format.write_array_header_1_0(claim, header)
    chosen = draw.one([*members])
    members[chosen] = claim.getvalue() + bytes(40)
    packing = zipfile.ZIP_DEFLATED if draw.chance(0.2) else zipfile.ZIP_STORED
    return zipped(members, packing), f"{chosen} claims {shape} of {descr}"


def foreign(content, draw):
    """A file of another kind, or an archive that the package does not write."""
    (arrays, _), members = unpack(content), members_of(content)
    trapped = arrays | {draw.one([*arrays, "extra"]): np.array([Trap()], dtype=object)}
    names = ("../../escaped", "header.npy", "/etc/x", "header.npy/../x")[: 1 + draw.below(4)]
    tar, array = io.BytesIO(), io.BytesIO()
    np.save(array, np.arange(3))
    with tarfile.open(fileobj=tar, mode=draw.one(["w", "w:gz"])) as archive:
        entry = tarfile.TarInfo("../escaped")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    texts = [b"", b"a,b\n1,2\n", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), b"\x93NUMPY", bytes(1000)]
    return draw.one(
        [
            (pickle.dumps(Trap()), "a pickle"),
            (saved(trapped), "an npz with a pickle"),
            (tar.getvalue(), "a tar archive"),
            (zipped(dict.fromkeys(names, content)), "a zip of something else"),
            (pack(arrays, draw, np.savez_compressed), "compressed"),
            (much_in_little(), "much packed into little"),
            (zipped(members | {"header": members["header.npy"]}), "a member by two names"),
            (array.getvalue(), "one array"),
            (draw.one(texts), "no archive at all"),
        ]
    )


ODD_VALUES = [None, -1, 10**400, 1e999, "", "x" * 10**4, [], {}, [[]], {"a": 1}, True]
ODD_VALUES += [["a", "a"], [1, "b"], 0.5, "NaN", "\ud800"]
WAYS = {damage: 25, flip: 30, rearrange: 15, reword: 15, claim: 8, foreign: 7}
