"""The page in a minute: does the paper hold up, and where does the exchange solver beat it?"""

from collections.abc import Iterator, Sequence

import numpy as np

from kmargin import html
from kmargin.experiments.settings import DATASETS
from kmargin.experiments.tables import NAMES, Line


def verdict(lines: Sequence[Line]) -> Iterator[str]:
    """Two answers and the table behind the second."""
    printed = [line for line in lines if line.entries["test"].printed is not None]
    if printed:
        met = sum(not line.entries["test"].differs for line in printed)
        chosen = sum(not line.parameter.differs for line in printed)
        yield "<h2>In a minute</h2>"
        yield html.paragraph(
            f"Does the paper hold up? {_mostly(met, len(printed))}: of its {len(printed)} printed test "
            f"accuracies of MM and SD on these data, {met} are met within noise, and {chosen} of the "
            f"sparsities it selects are selected here or tie with ours.",
            "lead",
        )
    duels = _duels(lines)
    if duels:
        wins = sum(
            theirs.entries["test"].value <= ours.entries["test"].value + 0.05 for ours, theirs in duels
        )
        speed = np.median([t.entries["seconds"].value / o.entries["seconds"].value for o, t in duels])
        sparser = sum(o.parameter.value >= t.parameter.value for o, t in duels)
        yield html.paragraph(
            f"Where does exchange beat it? Against the better of MM and SD on each data set it predicts the "
            f"test set at least as well on {wins} of {len(duels)}, selects a machine at least as sparse on "
            f"{sparser}, and walks the whole path in {1 / speed:.2g} of the time (median)."
        )
        yield html.cards(
            *([(f"{met} of {len(printed)}", "printed test accuracies met within noise")] if printed else []),
            (
                f"{wins} of {len(duels)}",
                "data sets where exchange tests at least as well as the better of MM, SD",
            ),
            (f"{speed:.1f} ×", "faster along the path (median)"),
        )
        yield _duel_table(duels)


def _mostly(met: int, of: int) -> str:
    share = met / of
    return "Yes" if share == 1 else "Mostly" if share >= 0.7 else "In part" if share >= 0.4 else "Not here"


def _duels(lines: Sequence[Line]) -> list[tuple[Line, Line]]:
    """Exchange and the better of MM and SD by validation accuracy, per data set."""
    found = []
    for dataset in DATASETS:
        mine = {line.solver: line for line in lines if line.dataset == dataset}
        rivals = [mine[name] for name in ("mm", "sd") if name in mine]
        if "exchange" in mine and rivals:
            found.append((mine["exchange"], max(rivals, key=lambda line: line.entries["validation"].value)))
    return found


def _duel_table(duels: Sequence[tuple[Line, Line]]) -> str:
    rows = []
    for ours, theirs in duels:
        gain = ours.entries["test"].value - theirs.entries["test"].value
        noise = max(ours.entries["test"].noise, theirs.entries["test"].noise)
        kind = "good" if gain > noise else "bad" if gain < -noise else ""
        ratio = theirs.entries["seconds"].value / ours.entries["seconds"].value
        rows.append(
            [
                ours.dataset,
                NAMES[theirs.solver],
                f"{theirs.parameter.value:g}",
                f"{theirs.entries['test'].value:.2f}",
                f"{ours.parameter.value:g}",
                f"{ours.entries['test'].value:.2f}",
                html.Cell(f"{gain:+.2f}", kind),
                html.Cell(f"{ratio:.3g} ×", "good" if ratio > 1 else "bad"),
            ]
        )
    columns = (
        "data set",
        "better of MM, SD",
        "s (%)",
        "test (%)",
        "exchange: s (%)",
        "test (%)",
        "gain",
        "faster",
    )
    caption = "Exchange against the paper's algorithms. Green and brown mark gains and losses beyond noise."
    return html.table(columns, rows, caption, id="duels")
