"""A campaign in pieces: which numbers each has run, by which source, and all of them as one."""

import hashlib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = ("src/kmargin", "fuzz")


def code_version(root=ROOT):
    """A few digits that change with every change of the package or of the campaign."""
    digest = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*.py")):
            if "failures" not in path.parts:
                digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def overlap(pieces):
    """Two pieces that have cases in common, or None: a case counts once."""
    for at, one in enumerate(pieces):
        for other in pieces[:at]:
            same_family = None in (one["family"], other["family"]) or one["family"] == other["family"]
            if same_family and one["first"] < other["end"] and other["first"] < one["end"]:
                return other, one
    return None


def merge(parts):
    """Results of several pieces, as in their files, as one."""
    pieces = [piece for part in parts for piece in part["pieces"]]
    if twice := overlap(pieces):
        numbers = " and ".join(f"{piece['first']:,} to {piece['end'] - 1:,}" for piece in twice)
        raise ValueError(f"Cases would be counted twice: {numbers}.")
    skips = {}
    for part in parts:
        for family, reasons in part["skips"].items():
            skips.setdefault(family, Counter()).update(reasons)
    return {
        "pieces": pieces,
        "cases": dict(sum((Counter(part["cases"]) for part in parts), Counter())),
        "complaints": dict(sum((Counter(part["complaints"]) for part in parts), Counter())),
        "skips": {family: dict(reasons) for family, reasons in skips.items()},
        "failures": [verdict for part in parts for verdict in part["failures"]],
        "slowest": max(list(part["slowest"]) for part in parts),
        "memory_growth_mb": max(part["memory_growth_mb"] for part in parts),
    }


def after(results):
    """The first number after all that were run."""
    return max(piece["end"] for piece in results["pieces"])


def by_version(results):
    """How many cases each version of the source has run, the last one first."""
    cases = Counter()
    for piece in results["pieces"]:
        cases[piece["code"]] += piece["cases"]
    return {code: cases[code] for code in reversed(list(cases))}


def left(results):
    """The failures that are not known to be gone."""
    return [verdict for verdict in results["failures"] if verdict.get("again", {}).get("failures") != []]
