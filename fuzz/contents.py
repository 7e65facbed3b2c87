"""Contents of files: columns of every kind, written with every mistake that people and programs make."""

import csv
import io
from contextlib import suppress

import numpy as np

# words that have broken programs: markup, formulas, control characters, and numbers that are none
MARKUP = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>',
    "</td></table><iframe src='http://example.org'>", "' onmouseover='alert(1)", "<!-- ", "]]>",
    "&lt;b&gt;", "`code` <b>", "<svg/onload=alert(1)>", "</title><script>1</script>",
    "</style><base href=//example.org>",
)  # fmt: skip

FORMULAS = (
    "=1+1", "=cmd|' /C calc'!A0", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1+1", "\r=1",
    "\uff1d1+1", '=HYPERLINK("http://example.org","x")', "-", "+", "=", "@", "-a", "+b",
)  # fmt: skip

ODD_NAMES = (
    "", " ", "  padded  ", "a\tb", "a\nb", "a\r\nb", "\xfcn\xefc\xf6d\xe9", "\u540d\u524d", "\U0001f642",
    "x" * 3000, "Unnamed: 0", "nan", "NaN", "None", "0", "1", "1.0", "-1", "True", "row", "id", "class",
    "fold", "actual", "predicted", "decision", "feature", "machine", "weight", "weight: a", "chosen",
    "target", "y", "X", "index", "column 1", "[red]rich[/red]", "[/]", "[link=x]", "a=b",
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x07bell", "\x00", "a,b", 'quo"te', "semi;colon", "$x_1$",
    "$\\frac{$", "\\", "%s", "{0}", "{x}", "../../etc/passwd", "\u202eright to left", "\ufeffbom",
    "\u200b", "a=1", "--drop", "k>", ">", "\x85", "\u2028line", "e\u0301", "\ufdfd",
)  # fmt: skip

GAPS = (
    "", "NaN", "nan", "NA", "N/A", "null", "NULL", "None", "n/a", "-nan", "<NA>", "#N/A", "-", "?", ".",
    "missing", " ",
)  # fmt: skip

INFINITIES = (
    "inf", "-inf", "Infinity", "1e999", "-1e400", "INF", "+inf",
)  # fmt: skip

ODD_NUMBERS = (
    "1e308", "-1e308", "1.7976931348623157e308", "5e-324", "1e-320", "1e150", "-1e150",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "-9223372036854775809",
    "123456789012345678901234567890", "1" * 400, "0x10", "1_000", "1,5", "1.234,5", "12%", "$5", "1e",
    "1e5.5", "--1", "+1", "00012", "1.", ".5", "\u0663", "\uff11", "1e-400", "-0.0", "TRUE", "true",
    "False", "yes", "1+2j", "16777217", "9007199254740993",
)  # fmt: skip

DATES = (
    "2024-01-31", "31.01.2024", "1/2/03", "2024-01-31T12:00:00Z", "0000-00-00", "12:30",
    "1970-01-01 00:00:00",
)  # fmt: skip

ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-7", "shift_jis")
LINE_ENDS = ("\n", "\r\n", "\r")
HOSTILE = (*MARKUP, *FORMULAS, *ODD_NAMES)
STRAYS = (*GAPS, *ODD_NUMBERS, *INFINITIES, *DATES, *MARKUP, "z" * 5000)

NUMBERS = {"float": 38, "int": 10, "binary": 6, "constant": 5, "scaled": 10, "huge": 1, "gaps": 6}
WORDS = {"text": 8, "hostile": 5, "date": 2, "odd": 1, "inf": 0.5, "empty": 0.5}

CLASSES: dict[tuple[str, ...], float] = {
    ("no", "yes", "may be", "never"): 10,
    ("0", "1", "2", "3"): 5,
    ("-1", "1", "5", "7"): 3,
    ("1.0", "2.0", "3.0", "4.0"): 2,
    ("True", "False", "true", "FALSE"): 2,
    (*MARKUP, *FORMULAS): 5,
    ODD_NAMES: 4,
    ODD_NUMBERS: 0.5,
    DATES: 1,
    ("1", "b", "1.0", "01"): 1,
    ("a", "a ", " a", "A"): 2,
    ("x" * 2000, "x" * 2001, "y", "z"): 1,
    ("-", "+", "=", "@"): 3,
    ("nan", "NaN", "inf", "0"): 1,
    ("0.5", "1.5", "2.5", "1e300"): 1,
    ("9223372036854775808", "1", "2", "-1"): 1,
    ("1e400", "inf", "0", "1"): 1,
}


def name(draw, plain, oddity):
    """Of a column: the plain one, or one that has broken programs."""
    return plain if draw.chance(0.9 - oddity) else draw.one((*HOSTILE, *GAPS, "x0", "x1"))


def column(draw, n_rows, oddity):
    kind = draw.weighted(NUMBERS | WORDS)
    if kind in WORDS:
        words = {
            "text": ("red", "blue", "a long word"),
            "hostile": HOSTILE[draw.below(30) : 32 + draw.below(60)],
            "date": DATES,
            "odd": ODD_NUMBERS,
            "inf": INFINITIES,
            "empty": GAPS if draw.chance(0.5) else GAPS[:1],
        }
        cells = draw.some(words[kind], n_rows)
    else:
        normal = draw.rng.standard_normal(n_rows)
        scale = 10.0 ** draw.rng.uniform(-90, 90) if kind == "scaled" else 1e300 if kind == "huge" else 1.0
        whole = {"int": np.round(3 * normal), "binary": (normal > 0) * 1.0, "constant": np.full(n_rows, 0.1)}
        digits = ".0f" if kind in ("int", "binary") else ".10g"
        cells = [format(value, digits) for value in whole.get(kind, normal * scale)]
    strays, rate = (GAPS, 0.2) if kind == "gaps" else (STRAYS, 0.1 * oddity)
    return [draw.one(strays) if draw.chance(rate) else cell for cell in cells]


def target(draw, n_rows, first):
    """Classes, mostly such that the first column tells them."""
    pool = draw.weighted(CLASSES)
    n_classes = min(draw.weighted({1: 2, 2: 68, 3: 20, 4: 10}), len(pool))
    names = [pool[i] for i in draw.rng.choice(len(pool), n_classes, replace=False)]
    codes = draw.rng.integers(n_classes, size=n_rows)
    if draw.chance(0.6) and n_rows:
        with suppress(ValueError, OverflowError):  # not every column can be put in order
            codes = np.argsort(np.argsort([float(cell) for cell in first])) * n_classes // n_rows
    if draw.chance(0.03):
        return [repr(value) for value in draw.rng.standard_normal(n_rows).tolist()]
    rate = 0.1 if draw.chance(0.04) else 0.0
    return [draw.one(GAPS) if draw.chance(rate) else names[code] for code in codes]


def serialise(records, separator, draw):
    """Mostly as a careful program would write it; now and then with one of the usual mistakes."""
    if draw.chance(0.03):
        separator = draw.one([",", ";", "\t", "|", " "])
    if draw.chance(0.03):  # ragged
        for record in records:
            if draw.chance(0.2):
                cut = record[: draw.below(len(record) + 1)]
                record[:] = cut if draw.chance(0.5) else [*record, "9", "9"]
    end = draw.weighted({"\n": 80, "\r\n": 15, "\r": 5})
    out = io.StringIO()
    if draw.chance(0.03):  # nothing quoted that should be
        out.write(end.join(separator.join(record) for record in records))
    else:
        quoting = csv.QUOTE_ALL if draw.chance(0.2) else csv.QUOTE_MINIMAL
        csv.writer(out, delimiter=separator, lineterminator=end, quoting=quoting).writerows(records)
    text = out.getvalue()
    if draw.chance(0.05):
        text = "".join(line + draw.one(LINE_ENDS) for line in text.splitlines())
    if draw.chance(0.04):
        text = draw.one(["\n\n", "# a comment\n", "sep=,\n", " ", "\ufeff\ufeff", '"']) + text
    if draw.chance(0.04):
        text = text.rstrip("\r\n") + draw.one(["", "\n\n\n", ",,,\n", '"', "\x1a", "\n;;;", "\\"])
    encoding = "utf-8" if draw.chance(0.95) else draw.one(ENCODINGS)
    return text.encode(encoding, errors="replace")


def damage(content, draw):
    """Cut, flipped, repeated, zeroed, or something else altogether."""
    way, at = draw.below(7), draw.below(len(content) + 1)
    if way == 0:
        return content[:at]
    if way == 1 and content:
        at = min(at, len(content) - 1)
        return content[:at] + bytes([content[at] ^ 1 << draw.below(8)]) + content[at + 1 :]
    if way == 2:
        return content[:at] + b"\0" * (1 + draw.below(8)) + content[at:]
    if way == 3:
        return content[:at] + content[at // 2 :]
    if way == 4:
        return content[:at] + draw.rng.bytes(1 + draw.below(40)) + content[at:]
    if way == 5:
        return content[at:]
    starts = [b"", b"\n", b"PK\x03\x04", b"\x1f\x8b", b"PAR1", b"\xff\xfe", b"{}", b"a", b",", b'"', b"\0"]
    return draw.one([*starts, b"\x80\x05."])


def npz(draw):
    n_rows, rng = draw.below(30), draw.rng
    X = rng.standard_normal((n_rows, draw.below(5)))
    y = rng.integers(0, 3, n_rows)
    n_names = X.shape[1]
    X = draw.one([X, X, X, X.astype(object), X.ravel(), X.astype(complex), X.astype("U"), X * np.inf])
    y = draw.one([y, y, y.astype("U"), y.astype(object), y[:, None], y.astype("S"), y.astype("M8[s]"), y / 3])
    arrays = {"X": X, "y": y}
    if draw.chance(0.4):
        arrays["feature_names"] = np.array(draw.some((*HOSTILE, "y"), n_names), dtype="U")
    out = io.BytesIO()
    np.savez(out, **{name: array for name, array in arrays.items() if draw.chance(0.95)})
    return "data.npz", out.getvalue(), "y" if draw.chance(0.8) else None


def parquet(draw):
    import pandas as pd

    n_rows, rng = draw.below(30), draw.rng
    plain = [rng.standard_normal(n_rows), rng.integers(0, 3, n_rows), rng.random(n_rows) < 0.5]
    odd = [
        pd.array([None if draw.chance(0.2) else 1 for _ in range(n_rows)], dtype="Int64"),
        pd.Categorical(draw.some(["u", "=v", "<w>"], n_rows)),
        pd.to_datetime(rng.integers(0, 9**9, n_rows)),
        pd.to_timedelta(rng.integers(0, 99, n_rows)),
        *([[1.0, 2.0]] * n_rows, [{"a": 1}] * n_rows, [b"raw"] * n_rows, [None] * n_rows),
        draw.some(ODD_NAMES, n_rows),
        rng.standard_normal(n_rows).astype(np.float32),
        rng.integers(0, 2**63, n_rows, dtype=np.uint64),
        pd.arrays.IntervalArray.from_breaks(np.arange(n_rows + 1.0)),
    ]
    frame = pd.DataFrame(
        {f"x{j}": draw.one(odd) if draw.chance(0.3) else draw.one(plain) for j in range(1 + draw.below(4))}
    )
    frame["outcome"] = draw.some(["no", "yes"], n_rows)
    frame = frame.set_index("x0") if draw.chance(0.2) else frame
    out = io.BytesIO()
    try:
        frame.to_parquet(out)
    except (ValueError, TypeError, OSError):  # not everything can be written
        frame[["outcome"]].to_parquet(out)
    return "data.parquet", out.getvalue(), "outcome"


def svmlight(draw):
    odd = ["nan:1", "1:nan", "1:inf", "-1:2", "1:", ":", "qid:3", "1:1 1:2", "3:1 2:1", "99999999:1"]
    odd += ["1:1e999", "# note", "a:b", "4294967297:1"]
    lines = []
    for _ in range(draw.below(30)):
        pairs = [f"{j}:{draw.rng.standard_normal():.3g}" for j in range(1, 5) if draw.chance(0.7)]
        label = draw.weighted({"1": 48, "-1": 48, "0.5": 2, "a": 1, "": 1})
        lines.append(" ".join([label, *pairs, *([draw.one(odd)] if draw.chance(0.02) else [])]))
    return "data.svm", "\n".join(lines).encode(), None


BINARY = {"npz": npz, "parquet": parquet, "svmlight": svmlight}
