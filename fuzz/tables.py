"""Malformed and hostile tables for the command line: files of every kind of damage, options of every kind.

A case is a file and a command. The command must either succeed, with outputs that are whole, finite and
consistent, or end with exit code 2 and one sentence, with nothing written. `outputs` says what that means.
"""

import csv
import gzip
import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzz import outputs
from fuzz.hostile import DATES, FORMULAS, GAPS, INFINITIES, MARKUP, ODD_NAMES, ODD_NUMBERS

NAME = "tables"
ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-7", "shift_jis")
LINE_ENDS = ("\n", "\r\n", "\r")


@dataclass
class Case:
    """A file, and the command that is given it."""

    number: int
    command: str  # fit or path
    file: str  # its name
    content: bytes
    options: list[str] = field(default_factory=list)
    draws: bool = False  # whether figures are really drawn, which takes most of the time

    def __str__(self) -> str:
        words = " ".join(repr(word) for word in self.options)
        return f"kmargin {self.command} {self.file!r} {words}  # {len(self.content)} bytes: {self.content[:300]!r}"


def make_case(number: int) -> Case:
    """The case with this number: always the same."""
    rng = np.random.default_rng([number, 7])
    command = "path" if rng.random() < 0.12 else "fit"
    kind = rng.choice(["text", "parquet", "npz", "svmlight"], p=[0.82, 0.07, 0.06, 0.05])
    if kind == "text":
        return _text_case(number, command, rng)
    file, content, target = _BINARY[kind](rng)
    if rng.random() < 0.25:
        content = _damage(content, rng)
    options = _options(command, ["a", "b"], target, rng)
    return Case(number, command, file, content, options, bool(rng.random() < 0.05))


def check(case: Case) -> str | None:
    """A sentence that says what is wrong with the answer, or None."""
    return outputs.check(case)


def run(first: int, count: int) -> list[tuple[Case, str]]:
    """The cases that fail, each with what is wrong."""
    found = ((case, check(case)) for case in map(make_case, range(first, first + count)))
    return [(case, flaw) for case, flaw in found if flaw is not None]


def _text_case(number: int, command: str, rng: np.random.Generator) -> Case:
    n_rows, n_columns = (
        int(rng.choice([0, 1, 2, 3, 5, 12, 24, 40], p=[0.02, 0.03, 0.03, 0.05, 0.07, 0.3, 0.3, 0.2])),
        int(rng.integers(1, 7)),
    )
    oddity = rng.choice([0.0, 0.02, 0.3], p=[0.5, 0.3, 0.2])
    names = [_name(rng, f"x{j}", oddity) for j in range(n_columns)] + [_name(rng, "outcome", oddity)]
    columns = [_column(rng, n_rows, oddity) for _ in range(n_columns)]
    columns.append(_target(rng, n_rows, columns[0]))
    at = int(rng.integers(n_columns + 1))
    order = [*range(at), n_columns, *range(at, n_columns)]
    records = [[names[j] for j in order], *([columns[j][i] for j in order] for i in range(n_rows))]
    ending = str(
        rng.choice(["csv", "tsv", "txt", "csv.gz", "doc", "CSV"], p=[0.82, 0.06, 0.03, 0.05, 0.02, 0.02])
    )
    content = _serialise(records, "\t" if ending in ("tsv", "txt") else ",", rng)
    if rng.random() < 0.12:
        content = _damage(content, rng)
    if ending.endswith("gz"):
        content = gzip.compress(content, mtime=0)
        content = _damage(content, rng) if rng.random() < 0.2 else content
    options = _options(command, names[:-1], names[-1].strip(), rng)
    stem = str(
        rng.choice(
            ["data", "<b>data", "=cmd", "da ta", "data.v2", "-q", "[red]"],
            p=[0.7, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05],
        )
    )
    return Case(number, command, f"{stem}.{ending}", content, options, bool(rng.random() < 0.05))


def _name(rng: np.random.Generator, plain: str, oddity: float) -> str:
    if rng.random() < 0.8 - oddity:
        return plain
    return str(rng.choice(np.array([*MARKUP, *FORMULAS, *ODD_NAMES, *GAPS, "x0", "x1"], dtype=object)))


def _column(rng: np.random.Generator, n_rows: int, oddity: float) -> list[str]:
    kinds = [
        "float",
        "int",
        "binary",
        "constant",
        "text",
        "date",
        "huge",
        "odd",
        "gaps",
        "empty",
        "inf",
        "hostile",
        "scaled",
        "repeat",
    ]
    kind = rng.choice(
        kinds, p=[0.38, 0.1, 0.06, 0.05, 0.08, 0.02, 0.03, 0.02, 0.06, 0.01, 0.01, 0.05, 0.1, 0.03]
    )
    normal = rng.standard_normal(n_rows)
    if kind in ("text", "hostile"):
        words = ["red", "blue", "a long word"] if kind == "text" else [*MARKUP, *FORMULAS, *ODD_NAMES]
        cells = [
            str(word)
            for word in rng.choice(np.array(words[: 2 + int(rng.integers(60))], dtype=object), n_rows)
        ]
    elif kind in ("date", "odd", "inf", "empty"):
        words = {
            "date": DATES,
            "odd": ODD_NUMBERS,
            "inf": INFINITIES,
            "empty": GAPS[:1] if rng.random() < 0.5 else GAPS,
        }[str(kind)]
        cells = [str(word) for word in rng.choice(np.array(words, dtype=object), n_rows)]
    else:
        scale = 10.0 ** rng.uniform(-150, 150) if kind == "scaled" else 1e300 if kind == "huge" else 1.0
        whole = {"int": np.round(3 * normal), "binary": (normal > 0) * 1.0, "constant": np.full(n_rows, 0.1)}
        values = whole.get(str(kind), normal * scale)
        cells = [
            format(value, ".0f" if kind in ("int", "binary") else "r" if False else ".10g")
            for value in values
        ]
    strays = GAPS if kind == "gaps" else (*GAPS, *ODD_NUMBERS, *INFINITIES, *DATES, *MARKUP, "z" * 5000)
    rate = 0.2 if kind == "gaps" else oddity * 0.1
    return [
        str(rng.choice(np.array(strays, dtype=object))) if rng.random() < rate else cell for cell in cells
    ]


def _target(rng: np.random.Generator, n_rows: int, first: list[str]) -> list[str]:
    n_classes = int(rng.choice([1, 2, 3, 4], p=[0.04, 0.66, 0.2, 0.1]))
    pools: list[Any] = [
        ["no", "yes", "may be", "never"], ["0", "1", "2", "3"], ["-1", "1", "5", "7"], ["1.0", "2.0", "3.0", "4.0"],
        ["True", "False", "true", "FALSE"], [*MARKUP, *FORMULAS], [*ODD_NAMES], ["1", "b", "1.0", "01"], [*ODD_NUMBERS], [*DATES],
        ["a", "a ", " a", "A"], ["x" * 2000, "x" * 2001, "y", "z"], ["-", "+", "=", "@"], ["nan", "NaN", "inf", "0"],
        ["0.5", "1.5", "2.5", "1e300"], ["9223372036854775808", "1", "2", "-1"], ["1e400", "inf", "0", "1"],
    ]  # fmt: skip
    weights = np.array([10, 5, 3, 2, 2, 5, 4, 1, 1, 1, 2, 1, 3, 1, 1, 1, 1], dtype=float)
    pool = pools[int(rng.choice(len(pools), p=weights / weights.sum()))]
    names = rng.choice(np.array(pool, dtype=object), min(n_classes, len(pool)), replace=False)
    codes = rng.integers(len(names), size=n_rows)
    if rng.random() < 0.6 and n_rows:  # something to learn
        try:
            codes = np.argsort(np.argsort([float(cell) for cell in first])) * len(names) // n_rows
        except (ValueError, OverflowError):
            pass
    if rng.random() < 0.03:
        return [repr(value) for value in rng.standard_normal(n_rows).tolist()]
    cells = [str(names[code]) for code in codes]
    return (
        [str(rng.choice(GAPS)) if rng.random() < 0.1 else cell for cell in cells]
        if rng.random() < 0.04
        else cells
    )


def _serialise(records: list[list[str]], separator: str, rng: np.random.Generator) -> bytes:
    """Mostly as a careful program would write it; now and then with each mistake that people make."""
    if rng.random() < 0.06:
        separator = str(rng.choice([",", ";", "\t", "|", " "]))
    if rng.random() < 0.06:  # ragged
        for record in records:
            if rng.random() < 0.2:
                record[:] = (
                    record[: int(rng.integers(len(record) + 1))]
                    if rng.random() < 0.5
                    else [*record, "9", "9"]
                )
    end = str(rng.choice(LINE_ENDS, p=[0.8, 0.15, 0.05]))
    out = io.StringIO()
    if rng.random() < 0.05:  # nothing quoted that should be
        out.write(end.join(separator.join(record) for record in records))
    else:
        quoting = csv.QUOTE_ALL if rng.random() < 0.2 else csv.QUOTE_MINIMAL
        csv.writer(out, delimiter=separator, lineterminator=end, quoting=quoting).writerows(records)
    text = out.getvalue()
    if rng.random() < 0.05:
        text = "".join(line + str(rng.choice(LINE_ENDS)) for line in text.splitlines())
    if rng.random() < 0.04:
        text = str(rng.choice(["\n\n", "# a comment\n", "sep=,\n", " ", "\ufeff\ufeff", '"'])) + text
    if rng.random() < 0.04:
        text = text.rstrip("\r\n") + str(rng.choice(["", "\n\n\n", ",,,\n", '"', "\x1a", "\n;;;", "\\"]))
    encoding = "utf-8" if rng.random() < 0.92 else str(rng.choice(ENCODINGS))
    return text.encode(encoding, errors="replace" if encoding != "utf-8" else "surrogatepass")


def _damage(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut, flipped, repeated, zeroed, or something else altogether."""
    way, at = int(rng.integers(7)), int(rng.integers(len(content) + 1))
    if way == 0:
        return content[:at]
    if way == 1 and content:
        at = min(at, len(content) - 1)
        return content[:at] + bytes([content[at] ^ 1 << int(rng.integers(8))]) + content[at + 1 :]
    if way == 2:
        return content[:at] + b"\0" * int(rng.integers(1, 9)) + content[at:]
    if way == 3:
        return content[:at] + content[at // 2 :]
    if way == 4:
        return content[:at] + rng.bytes(int(rng.integers(1, 40))) + content[at:]
    if way == 5:
        return content[at:]
    return bytes(
        rng.choice(
            [
                b"",
                b"\n",
                b"PK\x03\x04",
                b"\x1f\x8b",
                b"PAR1",
                b"\xff\xfe",
                b"{}",
                b"a",
                b",",
                b'"',
                b"\0",
                b"\x80\x05.",
            ]
        )
    )


def _npz(rng: np.random.Generator) -> tuple[str, bytes, str | None]:
    n_rows = int(rng.integers(0, 30))
    X: Any = rng.standard_normal((n_rows, int(rng.integers(0, 5))))
    y: Any = rng.integers(0, 3, n_rows)
    way = int(rng.integers(12))
    X = {
        0: X.astype(object),
        1: X.ravel(),
        2: X.astype(complex),
        3: X.astype("U"),
        4: X.astype(np.float16),
        5: X * np.inf,
    }.get(way, X)
    y = {
        6: y.astype("U"),
        7: y.astype(object),
        8: y[:, None],
        9: y.astype("S"),
        10: y.astype("M8[s]"),
        11: y / 3,
    }.get(way, y)
    arrays = {"X": X, "y": y}
    if rng.random() < 0.4:
        arrays["feature_names"] = rng.choice(np.array([*MARKUP, *FORMULAS, *ODD_NAMES, "y"]), X.shape[-1])
    arrays = {name: array for name, array in arrays.items() if rng.random() < 0.95}
    out = io.BytesIO()
    np.savez(out, **arrays)
    return "data.npz", out.getvalue(), "y" if rng.random() < 0.8 else None


def _parquet(rng: np.random.Generator) -> tuple[str, bytes, str | None]:
    import pandas as pd

    n_rows = int(rng.integers(0, 30))
    makers: list[Any] = [
        lambda: rng.standard_normal(n_rows), lambda: rng.integers(0, 3, n_rows), lambda: rng.random(n_rows) < 0.5,
        lambda: pd.array([None if rng.random() < 0.2 else 1 for _ in range(n_rows)], dtype="Int64"),
        lambda: pd.Categorical(rng.choice(["u", "=v", "<w>"], n_rows)), lambda: pd.to_datetime(rng.integers(0, 9**9, n_rows)),
        lambda: [[1.0, 2.0]] * n_rows, lambda: [{"a": 1}] * n_rows, lambda: [b"raw"] * n_rows, lambda: [None] * n_rows,
        lambda: pd.to_timedelta(rng.integers(0, 99, n_rows)), lambda: rng.choice(np.array([*ODD_NAMES], dtype=object), n_rows),
        lambda: rng.standard_normal(n_rows).astype(np.float32), lambda: rng.integers(0, 2**63, n_rows, dtype=np.uint64),
        lambda: pd.arrays.IntervalArray.from_breaks(np.arange(n_rows + 1.0)),
    ]  # fmt: skip
    frame = pd.DataFrame(
        {
            f"x{j}": makers[int(rng.integers(len(makers)) if rng.random() < 0.4 else 0)]()
            for j in range(int(rng.integers(1, 5)))
        }
    )
    frame["outcome"] = [["no", "yes"][int(code)] for code in rng.integers(0, 2, n_rows)]
    if rng.random() < 0.2:
        frame = frame.set_index("x0")
    out = io.BytesIO()
    try:
        frame.to_parquet(out)
    except (ValueError, TypeError, OSError):  # not everything can be written
        frame[["outcome"]].to_parquet(out)
    return "data.parquet", out.getvalue(), "outcome"


def _svmlight(rng: np.random.Generator) -> tuple[str, bytes, str | None]:
    odd = [
        "nan:1",
        "1:nan",
        "1:inf",
        "-1:2",
        "1:",
        ":",
        "qid:3",
        "1:1 1:2",
        "3:1 2:1",
        "99999999:1",
        "1:1e999",
        "# note",
        "a:b",
        "4294967297:1",
    ]
    lines = []
    for _ in range(int(rng.integers(0, 30))):
        pairs = [f"{j}:{rng.standard_normal():.3g}" for j in range(1, 5) if rng.random() < 0.7]
        label = str(
            rng.choice(["1", "-1", "1", "-1", "0.5", "a", ""], p=[0.3, 0.3, 0.18, 0.18, 0.02, 0.01, 0.01])
        )
        lines.append(" ".join([label, *pairs, *([str(rng.choice(odd))] if rng.random() < 0.02 else [])]))
    return "data.svm", "\n".join(lines).encode(), None


_BINARY = {"npz": _npz, "parquet": _parquet, "svmlight": _svmlight}


def _options(command: str, names: list[str], target: str | None, rng: np.random.Generator) -> list[str]:
    """Sensible options most of the time, senseless ones now and then."""
    options = [] if target is None else ["--target", target if rng.random() < 0.97 else "nothing"]
    if rng.random() < 0.9:
        options += ["--ks", str(rng.choice(["1,2", "1", "0,1", "3", "2,2,1"]))]
        options += [
            "--C",
            str(rng.choice(["1", "0.1", "100", "inf", "1e-6"], p=[0.6, 0.15, 0.15, 0.05, 0.05])),
        ]
    options += ["--cv", str(rng.choice(["2", "3", "5"], p=[0.7, 0.2, 0.1]))]
    likely: dict[str, list[str]] = {"--encode": ["onehot"], "--impute": ["median"]}
    sometimes: dict[str, Any] = {
        "--weights": names, "--drop": names, "--no-standardize": None, "--balanced": None, "--multi-class": ["ovr", "ovo"],
        **({"--id": names, "--kernel": ["rbf", "linear", "poly", "sigmoid"], "--scoring": ["balanced_accuracy", "f1_macro", "roc_auc"], "--select": ["best"]} if command == "fit" else {}),
    }  # fmt: skip
    senseless: dict[str, list[str]] = {
        "--k": ["-1", "99", "1" * 30, "x"], "--ks": ["", ",", "-1", "1e3", "10000000000", "99999", "a"], "--C": ["0", "-1", "nan", "", "1,,2", "1e400", "1e-320"],
        "--cv": ["-1", "0", "1", "1000000000", "x"], "--seed": ["-1", "99999999999999999999", "4294967296"], "--jobs": ["0", "-1", "1"],
        "--gamma": ["-1", "nan", "inf", "0", "1e300"], "--scoring": ["r2", "", "f1", "neg_log_loss", "max_error", "homogeneity_score"], "--kernel": ["precomputed", "", "rbf"],
        "--multi-class": ["x"], "--encode": ["x", ""], "--impute": ["mean"], "--select": [""], "--weights": ["nothing", ""], "--id": ["nothing", ""], "--drop": ["nothing", ""],
    }  # fmt: skip
    for table, rate in ((likely, 0.6), (sometimes, 0.06), (senseless, 0.008)):
        for option, values in table.items():
            if rng.random() < rate:
                options += (
                    [option] if values is None else [option, str(rng.choice(np.array(values, dtype=object)))]
                )
    return options
