"""The report: one page that lays our numbers beside the paper's."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kmargin.paper import figures, tables
from kmargin.paper.figures import CAPTIONS
from kmargin.paper.protocol import DATASETS, PEERS, PROTOCOLS, SOLVERS, Settings
from kmargin.paper.sections import Verdict, data_section, heading, judge, map_section, verdict
from kmargin.paper.tables import NAMES, Entry, Line, reasons
from kmargin.report import html
from kmargin.tables.files import replace_file

if TYPE_CHECKING:
    import pandas as pd

TITLES = {
    "iterations": "iterations",
    "seconds": "time (s)",
    "objective": "penalised objective",
    "loss": "training loss",
    "distance_sq": "distance",
    "train": "train (%)",
    "validation": "valid. (%)",
    "test": "test (%)",
    "support_vectors": "SV",
    "sparsity": "sparsity (%)",
}
SMALL = (
    "Our numbers come first, the paper's are grey beside them. A number marked ≠ differs from the paper's by "
    "more than noise."
)
LOSS = (
    "The training loss compares all solvers by one objective: the mean squared hinge loss of the final "
    "classifiers on their training rows, without a ridge. The penalised objective is the one that the paper "
    "prints, before the final projection; the exchange has none."
)


def write_report(folder: Path, parts: Sequence[str], settings: Settings) -> Path:
    """Tables as CSV files and `report.html`, from the rows in the folder."""
    rows = figures.with_places(tables.read_rows(folder))
    protocols = [name for name in PROTOCOLS if name in set(rows.protocol)]
    first = protocols[0] if protocols else "paper"
    by_part: dict[str, list[Line]] = {}
    if "table2" in parts:
        by_part["table2"] = [line for s in SOLVERS for line in tables.table2(rows, first, s)]
    if "table3" in parts:
        by_part["table3"] = tables.table3(rows, first)
    if "table4" in parts:
        by_part["table4"] = tables.table4(rows, first)
    for name, lines in by_part.items():
        if lines:
            text = tables.to_frame(lines).to_csv(index=False, lineterminator="\n")
            replace_file(folder / f"{name}.csv", text.encode())
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    body = list(_body(rows, parts, by_part, protocols, settings, manifest))
    return html.write(folder / "report.html", "The paper's experiments, run again", body)


def main_results(folder: Path, settings: Settings) -> tuple[list[Line], Verdict]:
    """The lines of Table 3, and what they say."""
    rows = tables.read_rows(folder)
    protocols = [name for name in PROTOCOLS if name in set(rows.protocol)]
    lines = tables.table3(rows, protocols[0]) if protocols else []
    return lines, judge(lines, settings)


def _body(
    rows: "pd.DataFrame",
    parts: Sequence[str],
    by_part: dict[str, list[Line]],
    protocols: Sequence[str],
    settings: Settings,
    manifest: dict[str, Any],
) -> Iterator[str]:
    yield "<h1>Sparse support vector machines: the paper’s experiments, run again</h1>"
    yield html.paragraph(
        "Landeros and Lange, Algorithms for Sparse Support Vector Machines. MM and SD are the paper's "
        "algorithms as this package implements them; exchange is the package's own solver.",
        "soft",
    )
    yield from verdict(by_part.get("table3") or [], settings)
    shown = [part for part in parts if _has_rows(part, rows)]
    links = [("table1", "Table 1"), *((part, heading(part)) for part in shown)]
    links += [
        ("differences", "Differences"),
        ("paper", "From the paper to the code"),
        ("settings", "Settings"),
    ]
    yield html.section_nav(links)
    yield from data_section(set(rows.dataset))
    for part in shown:
        yield f'<h2 id="{part}">{heading(part)}</h2>'
        yield from _part(part, rows, by_part, protocols, settings)
    yield from _differences(by_part)
    yield from map_section({"table1", *shown})
    yield from _settings(manifest, protocols, [name for name, lines in by_part.items() if lines])


def _has_rows(part: str, rows: "pd.DataFrame") -> bool:
    needed = {"figure1": "sensitivity", "figure2": "recovery"}
    if part == "descent" or part.startswith("figureS"):
        return True
    mine = rows[rows.experiment == needed.get(part, "crossval")]
    return len(mine) > 0 and (part != "table2" or "synthetic" in set(mine.dataset))


def _part(
    part: str,
    rows: "pd.DataFrame",
    by_part: dict[str, list[Line]],
    protocols: Sequence[str],
    settings: Settings,
) -> Iterator[str]:
    if part == "table2":
        yield from _table2(by_part["table2"])
    elif part == "table3":
        yield from _table3(rows, by_part["table3"], protocols)
    elif part == "table4":
        yield from _table4(rows, by_part["table4"], protocols)
    elif part == "descent":
        yield _plot(part, figures.figure_descent(settings), wide=True)
    elif part == "figure1":
        yield _plot(part, figures.figure1(rows), wide=True)
    elif part == "figure2":
        yield _plot(part, figures.figure2(rows, settings), wide=True)
    elif part == "figure3":
        yield from _figure3(rows, protocols[0])
    elif part == "figureS1":
        yield _plot(part, figures.figure_s1(settings), wide=True, has_pictures=True)
    elif part == "figureS2":
        yield _plot(part, figures.figure_s2(settings), has_pictures=True)


def _plot(part: str, figure: Any, wide: bool = False, has_pictures: bool = False) -> str:
    image = html.svg(figure, part, follows_theme=not has_pictures)
    return html.figure(image, CAPTIONS[part], f"plot-{part}", wide=wide, narrow=not wide)


def _table2(lines: Sequence[Line]) -> Iterator[str]:
    yield html.paragraph(
        "Cross-validation on synthetic, where two of 500 features matter. The shaded row is the true "
        "sparsity: accuracy rises as features are removed, peaks there, and falls when one of the two is "
        f"removed. {SMALL}"
    )
    yield html.paragraph(LOSS)
    for solver in SOLVERS:
        mine = [line for line in lines if line.solver == solver]
        if mine:
            yield f"<h3>{NAMES[solver]}</h3>"
            if solver == "exchange":
                yield html.paragraph(
                    "The exchange goes down and up the whole path, so its iterations (Newton steps) and its "
                    "time cannot be attributed to one sparsity. Each row shows an even share of the path's."
                )
            yield _table(f"table2-{solver}", mine, names=False)


def _table3(rows: "pd.DataFrame", lines: Sequence[Line], protocols: Sequence[str]) -> Iterator[str]:
    yield html.paragraph(
        "The sparsity that cross-validation selects, and the results there. Iterations and time are sums "
        "along the whole path, averaged over folds. The paper's times are from another machine with eight "
        f"cores; ours are processor time on one core. {SMALL}"
    )
    yield html.paragraph(LOSS)
    yield _table("table3", lines)
    for protocol in protocols[1:]:
        other = tables.table3(rows, protocol)
        if other:
            yield f"<h3>The same with {protocol} rows</h3>"
            yield html.paragraph(
                "The paper takes the first rows of each file for training and the last for testing. Iris is "
                "sorted by species, so its test set is one species alone. Here split and folds are random "
                "and stratified, and scaling uses the fitted rows only."
            )
            yield _table(f"table3-{protocol}", other)


def _table4(rows: "pd.DataFrame", lines: Sequence[Line], protocols: Sequence[str]) -> Iterator[str]:
    best = ("train", "validation", "test", "sparsity")
    yield html.paragraph(
        "Test accuracy after cross-validation of the sparsity (ours) or of C (LIBLINEAR's L2R and L1R, "
        f"LIBSVM's SVC). The best value of a data set in each column is bold. {SMALL}"
    )
    yield html.paragraph(
        "The paper's numbers for LIBLINEAR agree with one class against the rest and no intercept, so under "
        "the paper's protocol we run it like that. MM and SD do not have this handicap."
    )
    yield _table("table4", lines, best)
    for protocol in protocols[1:]:
        other = tables.table4(rows, protocol)
        if other:
            yield f"<h3>The same with {protocol} rows, and LIBLINEAR on equal terms</h3>"
            yield html.paragraph(
                "Here LIBLINEAR has what our solvers have: an intercept, and one classifier for each pair of "
                "classes."
            )
            yield _table(f"table4-{protocol}", other, best)


def _table(id: str, lines: Sequence[Line], best: Sequence[str] = (), names: bool = True) -> str:
    if not lines:
        return html.paragraph("No rows for this table yet.")
    columns = list(dict.fromkeys(name for line in lines for name in line.entries))
    leaders = {(d, c): _best(lines, d, c) for d in {line.dataset for line in lines} for c in best}
    cells_by_column = {
        name: [line.entries[name] for line in lines if name in line.entries] for name in columns
    }
    cells_by_column["parameter"] = [line.parameter for line in lines]
    has_print = {
        name: any(entry.printed is not None for entry in entries) for name, entries in cells_by_column.items()
    }
    rows, last = [], ""
    for line in lines:
        cells: list[Any] = [line.dataset if line.dataset != last else "", NAMES[line.solver]] if names else []
        cells.append(_cell("parameter", line.parameter, False, has_print["parameter"]))
        for name in columns:
            entry = line.entries.get(name)
            is_best = entry is not None and _short(entry.value) == leaders.get((line.dataset, name))
            cells.append(_cell(name, entry, is_best, has_print[name]) if entry else "")
        kind = "marked" if line.is_marked else "first" if names and line.dataset != last else ""
        rows.append(html.Row(cells, kind))
        last = line.dataset
    head = ["data set", "solver"] if names else []
    head += ["s (%) or C" if any(line.solver in PEERS for line in lines) else "s (%)"]
    head += [TITLES[name] for name in columns]
    return html.table(head, rows, id=id, kind="wide full")


def _best(lines: Sequence[Line], dataset: str, column: str) -> str:
    values = [line.entries[column].value for line in lines if line.dataset == dataset]
    return _short(max(values))


def _short(value: float) -> str:
    """Four digits where they fit, three of small numbers, an exponent where it must be."""
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.3g}" if abs(value) < 1 else f"{value:.4g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _cell(name: str, entry: Entry, is_best: bool, has_print: bool) -> html.Cell:
    """Ours, and in grey the paper's; a blank in its place keeps the columns straight."""
    text = _short(entry.value)
    aside = _short(entry.printed) if entry.printed is not None else "\u00a0" if has_print else ""
    if entry.differs and name != "seconds":
        hint = f"ours {entry.value:.6g}, the paper's {entry.printed:.6g}; noise {entry.noise:.2g}"
        return html.Cell(text + " ≠", "bad", hint, aside)
    return html.Cell(text, "strong" if is_best else "", aside=aside)


def _figure3(rows: "pd.DataFrame", protocol: str) -> Iterator[str]:
    present = [d for d in DATASETS if d in set(tables.of_crossval(rows, protocol).dataset)]
    order = sorted(present, key=lambda d: d != "TCGA-PANCAN-HiSeq")
    favourite = next((d for d in ("TCGA-PANCAN-HiSeq", "optdigits", "synthetic") if d in order), order[0])
    if favourite != "TCGA-PANCAN-HiSeq":
        yield html.paragraph(
            "The paper shows TCGA-PANCAN-HiSeq, whose file was not available here. These are the same panels "
            "for the data sets that were run."
        )
    for dataset in sorted(order, key=lambda d: d != favourite):
        image = html.svg(figures.figure3(rows, dataset, protocol), dataset)
        plot = html.figure(image, f"{dataset}. {CAPTIONS['figure3']}", f"plot-figure3-{dataset}", wide=True)
        yield html.details(dataset, plot, open=dataset == favourite)


def _differences(by_part: dict[str, list[Line]]) -> Iterator[str]:
    yield '<h2 id="differences">Where our numbers differ, and why</h2>'
    found = reasons(by_part)
    if not found:
        yield html.paragraph("No number of this run differs from the paper's by more than noise.")
    for where, why in found:
        yield html.paragraph(why) + html.bullets(where)


def _settings(manifest: dict[str, Any], protocols: Sequence[str], written: Sequence[str]) -> Iterator[str]:
    yield '<h2 id="settings">Settings, data files, and how to run it again</h2>'
    yield "".join(html.paragraph(f"`{command}`") for command in manifest["commands"])
    files = ["rows.csv", "seconds.csv", *(f"{name}.csv" for name in written), "manifest.json"]
    links = ", ".join(f'<a href="{name}">{name}</a>' for name in files)
    yield f"<p>The files have one row for each fold, start or draw: {links}.</p>"
    if manifest["format"] >= 2:
        yield html.paragraph(
            "Times are processor time. Before anything was timed, each process ran every solver once on "
            "every data set, so that no time includes compilation."
        )
    yield html.paragraph(
        "MM and SD: no ridge; rho starts at 1 and is multiplied by 1.2 at most 100 times; tolerances of 1e-6 "
        "on squared quantities; at most 10,000 inner iterations for each rho, with Nesterov acceleration "
        f"after the first 10. Exchange: a ridge with C = {manifest['settings']['exchange_C']:g}. Protocols: "
        f"{', '.join(protocols)}."
    )
    rows = [[name, json.dumps(value)] for name, value in manifest["settings"].items()]
    for number, one in enumerate(manifest["environments"], 1):
        label = "machine" if len(manifest["environments"]) == 1 else f"machine {number}"
        rows.append([label, ", ".join(f"{name} {value}" for name, value in one.items())])
    rows.append(["kmargin", manifest["kmargin"]])
    cells = [[name, html.Cell(value, "name")] for name, value in rows]
    yield html.table(["setting", html.Cell("value", "name")], cells)
