"""What happens to model files: damage, forgery, and files that are something else altogether."""

import io
import json
import os
import pickle
import tarfile
import zipfile
from typing import Any

import numpy as np

Damaged = tuple[bytes, str]


class Trap:
    """A pickle of this makes a folder when it is opened."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("sprung",)


def cut(content: bytes, rng: np.random.Generator) -> Damaged:
    at = int(rng.integers(len(content)))
    return (content[:at], f"cut at {at}") if rng.random() < 0.7 else (content[at:], f"from {at} on")


def flip(content: bytes, rng: np.random.Generator) -> Damaged:
    data = bytearray(content)
    places = rng.integers(len(data), size=int(rng.choice([1, 1, 1, 2, 8])))
    for at in places:
        data[at] ^= 1 << int(rng.integers(8))
    return bytes(data), f"bits flipped at {places.tolist()}"


def splice(content: bytes, rng: np.random.Generator) -> Damaged:
    at, n_bytes = int(rng.integers(len(content))), int(rng.integers(1, 200))
    middle = [rng.bytes(n_bytes), bytes(n_bytes), content[:n_bytes]][int(rng.integers(3))]
    rest = content[at:] if rng.random() < 0.5 else content[at + n_bytes :]
    return content[:at] + middle + rest, f"{n_bytes} bytes put in at {at}"


def unpack(content: bytes) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    return arrays, json.loads(arrays["header"].tobytes())


def pack(arrays: dict[str, Any], rng: np.random.Generator, compress: bool = False) -> bytes:
    """An archive, its digest right two times of three, so that what lies behind the digest is reached."""
    from kmargin.tables import model_file

    plain = {name: array for name, array in arrays.items() if name != "sha256"}
    if rng.random() < 0.67 and all(isinstance(a, np.ndarray) and a.dtype != object for a in plain.values()):
        arrays["sha256"] = model_file._digest(plain)
    out = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(out, **arrays)
    return out.getvalue()


def rearrange(content: bytes, rng: np.random.Generator) -> Damaged:
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


def reword(content: bytes, rng: np.random.Generator) -> Damaged:
    """A header with other types, versions, or words."""
    arrays, header = unpack(content)
    odd: list[Any] = [
        None,
        -1,
        10**400,
        1e999,
        "",
        "x" * 10**4,
        [],
        {},
        [[]],
        {"a": 1},
        True,
        ["a", "a"],
        [1, "b"],
        0.5,
        "NaN",
        "\ud800",
    ]
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
        text = str(
            rng.choice(
                ["", "[" * 50_000, "{}", "null", "1", '"x"', text[:-2], text + "}", "NaN", '{"a":' * 5000]
            )
        )
    arrays["header"] = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    return pack(arrays, rng), f"header: {key} = {str(value)[:60]!r}"


def claim(content: bytes, rng: np.random.Generator) -> Damaged:
    """A member that says it is huge, of an odd type, or written otherwise."""
    shape = [(10**14,), (1, 10**14), (2**62, 8), (-1, 5), (10**9,), (2**32, 2**32), ()][int(rng.integers(7))]
    descr: Any = ["<f8", "|O", "<U1000000000", "<f2", "|V8", [("a", "<f8")], "<M8[s]"][int(rng.integers(7))]
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


def foreign(content: bytes, rng: np.random.Generator) -> Damaged:
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
            for name in ("../../escaped", "header.npy", "/etc/x", "header.npy/../x")[
                : int(rng.integers(1, 5))
            ]:
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
    texts = [
        b"",
        b"a,b\n1,2\n",
        b"PK\x03\x04",
        b"PK\x05\x06" + bytes(18),
        b"\x93NUMPY",
        b"{}",
        rng.bytes(500),
        bytes(1000),
    ]
    return texts[int(rng.integers(len(texts)))], "no archive at all"


WAYS = {cut: 15, flip: 30, splice: 10, rearrange: 15, reword: 15, claim: 8, foreign: 7}
