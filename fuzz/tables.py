"""Malformed and hostile tables for the command line: files of every kind of damage, options of every kind.

A case is a file and a command. The command must either succeed, with outputs that are whole, finite and
consistent, or end with exit code 2 and one sentence, with nothing written. `outputs` says what that means.
"""

import bz2
import gzip
import lzma
from dataclasses import dataclass, field

from fuzz import contents
from fuzz.files import Draw
from fuzz.outputs import check

ENDINGS = {"csv": 82, "tsv": 6, "txt": 3, "csv.gz": 4}
ENDINGS |= dict.fromkeys(("csv.bz2", "csv.xz", "csv.zip", "doc", "CSV"), 1)
PACKERS = {"gz": lambda content: gzip.compress(content, mtime=0), "bz2": bz2.compress, "xz": lzma.compress}
STEMS = {"data": 70, "<b>data": 5, "=cmd": 5, "da ta": 5, "data.v2": 5, "-q": 5, "[red]": 5}
ROWS = {0: 1, 1: 1, 2: 2, 3: 2, 5: 4, 12: 35, 24: 35, 40: 20}

LIKELY = {"--encode": ["onehot"], "--impute": ["median"]}
NOW_AND_THEN = {
    "fit": {
        "--kernel": ["rbf", "linear", "poly", "sigmoid"],
        "--scoring": ["balanced_accuracy", "f1_macro", "roc_auc"],
        "--select": ["best"],
    },
    "path": {},
}
SENSELESS = {
    "--k": ["-1", "99", "1" * 30, "x"],
    "--ks": ["", ",", "-1", "1e3", "10000000000", "99999", "a"],
    "--C": ["0", "-1", "nan", "", "1,,2", "1e400"],
    "--cv": ["-1", "0", "1", "1000000000", "x"],
    "--seed": ["-1", "99999999999999999999", "4294967296"],
    "--jobs": ["0", "-1", "1"],
    "--gamma": ["-1", "nan", "inf", "0", "1e300"],
    "--scoring": ["r2", "", "f1", "neg_log_loss", "max_error", "homogeneity_score"],
    "--kernel": ["precomputed", "", "rbf"],
    "--multi-class": ["x"],
    "--encode": ["x", ""],
    "--impute": ["mean"],
    "--select": [""],
    **dict.fromkeys(("--weights", "--id", "--drop", "--keep", "--avoid"), ("nothing", "")),
    "--sign": ["", "=", "+", "x0", "x0=", "x0=2", "nothing=+"],
    "--group-by": ["", "nothing"],
    "--groups": ["nothing.csv", "."],
    "--sep": ["", "xx", "a", "tab", ";"],
    "--decimal": ["", "x", ",", "."],
    "--encoding": ["", "nothing", "latin-1", "utf-16", "ascii"],
    "--labels": ["nothing.csv", "."],
    **dict.fromkeys(("--rows-grouped-by", "--feature"), ("nothing", "")),
}


__all__ = ["Case", "check", "make_case"]


@dataclass
class Case:
    """A file, and the command that is given it."""

    number: int
    command: str  # fit or path
    file: str  # its name
    content: bytes
    options: list[str] = field(default_factory=list)
    draws: bool = False  # whether figures are really drawn, which takes most of the time

    def __str__(self):
        """Lines that reproduce it."""
        words = [self.command, *self.options, "--", self.file]
        write = f"open({self.file!r}, 'wb').write({self.content!r})"
        return f"{write}\nfrom kmargin.cli.app import app\napp({words!r})"


def make_case(number):
    """The case with this number: always the same."""
    draw = Draw(number, 7)
    command = "path" if draw.chance(0.12) else "fit"
    kind = draw.weighted({"text": 82, "parquet": 7, "npz": 6, "svmlight": 5})
    if kind == "text":
        return _text_case(number, command, draw)
    file, content, target = contents.BINARY[kind](draw)
    if draw.chance(0.25):
        content = contents.damage(content, draw)
    return Case(
        number, command, file, content, _options(command, ["a", "b"], target, draw), draw.chance(0.05)
    )


def _text_case(number, command, draw):
    n_rows, n_columns = draw.weighted(ROWS), 1 + draw.below(6)
    oddity = draw.weighted({0.0: 72, 0.02: 20, 0.3: 8})
    names = [contents.name(draw, f"x{j}", oddity) for j in range(n_columns)]
    names.append(contents.name(draw, "outcome", oddity))
    columns = [contents.column(draw, n_rows, oddity) for _ in range(n_columns)]
    columns.append(contents.target(draw, n_rows, columns[0]))
    at = draw.below(n_columns + 1)
    order = [*range(at), n_columns, *range(at, n_columns)]
    records = [[names[j] for j in order], *([columns[j][i] for j in order] for i in range(n_rows))]
    ending = draw.weighted(ENDINGS)
    content = contents.serialise(records, "\t" if ending in ("tsv", "txt") else ",", draw)
    if draw.chance(0.05):
        content = contents.damage(content, draw)
    if ending.split(".")[-1] in PACKERS:
        content = PACKERS[ending.split(".")[-1]](content)
        content = contents.damage(content, draw) if draw.chance(0.2) else content
    options = _options(command, names[:-1], names[-1].strip(), draw)
    return Case(number, command, f"{draw.weighted(STEMS)}.{ending}", content, options, draw.chance(0.05))


def _options(command, names, target, draw):
    """Sensible options most of the time, senseless ones now and then."""
    options = [] if target is None else ["--target", target if draw.chance(0.97) else "nothing"]
    if draw.chance(0.9):
        options += ["--ks", draw.one(["1,2", "1,", "0,1", "1,", "2,2,1"])]
        options += ["--C", draw.weighted({"1": 60, "0.1": 15, "100": 15, "inf": 5, "1e-6": 5})]
    options += ["--cv", draw.weighted({"2": 7, "3": 2, "5": 1})]
    options += ["--pairs", "2"] if command == "fit" else []  # of halves, each fitted like the others
    sometimes = {
        "--weights": names[-1:],
        "--drop": names[:1],
        "--no-standardize": None,
        "--balanced": None,
        "--multi-class": ["ovr", "ovo"],
        "--keep": names[:1],
        "--avoid": names[-1:],
        "--sign": [f"{names[0]}=+", f"{names[-1]}=-"],
        "--group-by": ["x", "_"],
        "--each-value": None,
        "--each-machine": None,
        "--transpose": None,
        "--rows-grouped-by": names[-1:],
        "--feature": names[:1],
        "--decimal": [","],
        **({"--id": names[:1]} if command == "fit" else {}),
        **NOW_AND_THEN[command],
    }
    for table, rate in ((LIKELY, 0.93), (sometimes, 0.05), (SENSELESS, 0.004)):
        for option, values in table.items():
            if draw.chance(rate):
                options += [option] if values is None else [option, draw.one(values)]
    return options
