"""The table of targets, from `targets.csv` and the results on disk, whichever run these come from."""

import csv
import operator
import os
from pathlib import Path

import pandas as pd

from benchmarks.cases import CASES
from benchmarks.records import RESULTS, read, select

RELATIONS = {
    "at least": operator.ge,
    "more than": operator.gt,
    "at most": operator.le,
    "less than": operator.lt,
}

HEADER = """# Results

Written by `python -m benchmarks`; every number is a ratio or a difference within one run, on one
thread, with everything compiled beforehand. Where a target names several parts, the worst one decides.
Runs at `quick` or `default` scale use fewer seeds or classes than the targets were set for; `--full`
uses them all. The measurements themselves are in the CSV files, a row each.

| case | claim | target | reached | verdict |
|---|---|---|---|---|
"""


def write_report():
    """Write `results/README.md`, replaced in one go."""
    frames = {name: frame for name in CASES if (frame := read(name)) is not None}
    reached = {name: CASES[name].reached(frame) for name, frame in frames.items()}
    with Path(__file__).with_name("targets.csv").open(newline="", encoding="utf-8") as file:
        targets = [target for target in csv.DictReader(file) if target["case"] in frames]
    lines = [row_of(**target, reached=reached[target["case"]]) for target in targets]
    text = HEADER + "\n".join(lines) + "\n\n" + "\n".join(notes(frames)) + "\n"
    part = RESULTS / "README.md.part"
    part.write_text(text)
    os.replace(part, RESULTS / "README.md")


def row_of(case, claim, text, target, reached):
    """A row of the table: each number with the part it belongs to in brackets, and the verdict.

    A target such as "at least 40" holds if it holds for every part; without a target there is no verdict.
    """
    parts = {part: value for part, value in reached.get(claim, {}).items() if value == value}
    shown = "; ".join(f"{value:.4g}" + (f" ({part})" if part else "") for part, value in parts.items())
    verdict = "" if parts else "not measured"
    if parts and target:
        relation, _, bound = target.rpartition(" ")
        holds = all(RELATIONS[relation](value, float(bound)) for value in parts.values())
        verdict = "holds" if holds else "**does not hold**"
    return f"| {case} | {text} | {target or 'no target'} | {shown} | {verdict} |"


def notes(frames):
    """What a reader has to know about the runs behind the table; then tables."""
    yield "| case | scale | data | run | not installed |"
    yield "|---|---|---|---|---|"
    for name, frame in frames.items():
        absent = select(frame, metric="not installed")["competitor"].unique()
        datasets = frame["dataset"].dropna().unique()
        shown = ", ".join(map(str, datasets)) if len(datasets) <= 4 else f"{len(datasets)} data sets"
        first = frame.iloc[0]
        yield f"| {name} | {first['scale']} | {shown} | {first['when'][:10]} | {', '.join(absent)} |"
    versions = pd.concat(frames.values()).dropna(subset="version").groupby("competitor")["version"].last()
    yield "\nVersions: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "."
    for name, frame in frames.items():
        for number, table in enumerate(CASES[name].tables(frame)):
            yield f"\n## {name}\n" if number == 0 else ""
            yield f"| {table.index.name} | " + " | ".join(map(str, table.columns)) + " |"
            yield "|---" * (len(table.columns) + 1) + "|"
            for label, row in table.iterrows():
                cells = ("" if value != value else f"{value:g}" for value in row)
                yield f"| {label} | " + " | ".join(cells) + " |"
