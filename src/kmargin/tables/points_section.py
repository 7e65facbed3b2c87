"""What a kernel machine remembers, as part of a page: training points and their weights."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kmargin import html
from kmargin.tables.analyse import Analysis
from kmargin.tables.machine_section import MOST_ROWS, signed, weight_cell
from kmargin.tables.results import point_frame


def points_section(analysis: Analysis) -> Iterator[str]:
    """A kernel machine: the rows that it remembers, each with its weight in each machine."""
    frame, machines = point_frame(analysis), analysis.model.machine_names
    own = [name for name in ("row", "id", "class") if name in frame.columns[:3]]
    weights = frame[[f"weight: {name}" for name in machines]].to_numpy()
    largest = max(float(np.abs(weights).max(initial=0.0)), 1e-300)
    rows = [
        [
            *(html.Cell(value, "name") for value in texts),
            *(point_cell(w, largest, machines) for w in of_point),
        ]
        for texts, of_point in zip(frame[own].itertuples(index=False), weights, strict=True)
    ]
    yield '<h2 id="points">The training rows of the model</h2>'
    yield html.paragraph(
        f"A new row is compared only with these {len(rows)} rows of the table (kernel: "
        f"{analysis.settings.kernel}). A positive weight (violet) favours the class named second, a negative "
        "one (green) the first. `points.csv` lists them with all their columns."
    )
    heads: list[Any] = [html.Cell(name, "name") for name in own]
    heads += machines if len(machines) > 1 else [html.Cell(f"weight ({machines[0]})", "bars")]
    kind = "stack full" if len(machines) == 1 else "heat always" if len(machines) > 6 else "heat wrap full"
    yield html.folded_table(heads, rows[:MOST_ROWS], "more of the rows", "kept", kind)


def point_cell(weight: float, largest: float, machines: Sequence[str]) -> html.Cell:
    """A bar in the only machine; a shade in one of several."""
    if len(machines) > 1:
        return weight_cell(weight, largest)
    side = "positive" if weight > 0 else "negative"
    return html.Bar(signed(weight, "+.3f"), weight / largest, side, from_middle=True)
