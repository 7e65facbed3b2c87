"""The table of targets: generated from the results on disk, whichever run they come from."""

import os
from collections.abc import Iterator

import pandas as pd

from benchmarks import plots
from benchmarks.cases import CASES
from benchmarks.cases.case import Reached
from benchmarks.records import RESULTS, read, select
from benchmarks.solvers import HEADLINE
from benchmarks.targets import TARGETS, Target

HEADER = """# Results

Written by `python -m benchmarks`; every number is a ratio or a difference within one run, on one
thread, with everything compiled beforehand. Where a target names several parts, the worst one decides.
Runs at `quick` or `default` scale use fewer seeds or classes than the targets were set for; `--full`
uses them all. The measurements themselves are in the CSV files, a row each.

| case | claim | target | reached | verdict |
|---|---|---|---|---|
"""


def write_report() -> None:
    """`results/README.md`, replaced in one go."""
    frames = {name: frame for name in CASES if (frame := read(name)) is not None}
    reached = {name: judge(name, frame) for name, frame in frames.items()}
    lines = [row_of(target, reached) for target in TARGETS if target.case in frames]
    text = HEADER + "\n".join(lines) + "\n\n" + "\n".join(notes(frames)) + "\n"
    part = RESULTS / "README.md.part"
    part.write_text(text)
    os.replace(part, RESULTS / "README.md")


def judge(name: str, frame: pd.DataFrame) -> Reached:
    """What a case reached; nothing if the results on disk are not those of the headline solver."""
    measured = set(frame["competitor"]) & {HEADLINE, "kmargin"}
    return CASES[name].reached(frame) if measured else {}


def row_of(target: Target, reached: dict[str, Reached]) -> str:
    parts = reached[target.case].get(target.claim, {})
    cells = (target.case, target.text, target.describe(), describe(parts), verdict(target, parts))
    return "| " + " | ".join(cells) + " |"


def verdict(target: Target, parts: dict[str, float]) -> str:
    if not parts:
        return "not measured"
    if target.bound is None:
        return ""
    return "holds" if all(map(target.holds, parts.values())) else "**does not hold**"


def describe(parts: dict[str, float]) -> str:
    """Each number, with the part it belongs to in brackets."""
    return "; ".join(f"{value:.4g}" + (f" ({part})" if part else "") for part, value in parts.items())


def notes(frames: dict[str, pd.DataFrame]) -> Iterator[str]:
    """What a reader has to know about the runs behind the table."""
    if HEADLINE != "exchange":
        yield f"The installed kmargin has no exchange solver: `{HEADLINE}` stands in for it everywhere.\n"
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
    yield from tables(frames)
    pictures = [name for name in frames if (RESULTS / f"{name}.svg").is_file()]
    yield from (f"\n![{name}]({name}.svg)" for name in pictures)


def tables(frames: dict[str, pd.DataFrame]) -> Iterator[str]:
    """Of the cases that have some to show, under their names."""
    for name, frame in frames.items():
        own = getattr(CASES[name], "tables", None)
        for number, table in enumerate(own(frame) if own else []):
            if number == 0:
                yield f"\n## {name}"
            yield ""
            yield f"| {table.index.name} | " + " | ".join(map(str, table.columns)) + " |"
            yield "|---" * (len(table.columns) + 1) + "|"
            for label, row in table.iterrows():
                cells = ("" if value != value else f"{value:g}" for value in row)
                yield f"| {label} | " + " | ".join(cells) + " |"


def write_plot(case: str) -> None:
    """The picture of a case as PNG and SVG, if it has one."""
    figure = CASES[case].plot(read(case))
    if figure is not None:
        plots.save(figure, RESULTS / case)
