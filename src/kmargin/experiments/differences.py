"""Why numbers differ from the printed ones, where they do."""

from collections.abc import Mapping, Sequence

from kmargin.experiments.tables import NAMES, Line

LABELS = {"table3": "Table 3", "table4": "Table 4"}


def reasons(by_part: Mapping[str, Sequence[Line]]) -> list[tuple[str, str]]:
    """What differs beyond noise, each with the reason known for it."""
    found = []
    for part, lines in by_part.items():
        for line in lines:
            names = line.differing()
            if names:
                what = f"{LABELS[part]}, {line.dataset}, {NAMES[line.solver]}: {', '.join(names)}"
                found.append((what, ""))
    return found
