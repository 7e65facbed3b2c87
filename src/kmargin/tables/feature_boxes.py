"""Each chosen feature by class, as part of a page: where the rows of a class lie."""

from collections.abc import Iterator

import numpy as np

from kmargin import html
from kmargin.tables.analyse import Analysis
from kmargin.tables.results import order_features
from kmargin.tables.sentences import class_list
from kmargin.types import Vector

MOST_DRAWN = 9  # features, each with its distribution
MOST_CLASSES = 12
MARKS = ("negative", "positive")  # the colours that weights for two classes have; more are told by name alone


def distributions(analysis: Analysis) -> Iterator[str]:
    """Each chosen feature by class: its values as boxes, the most important features first."""
    machine, names = analysis.model.machine, class_list(analysis)
    if analysis.model.is_kernel:
        return
    used = [int(j) for j in order_features(analysis) if machine.coef_[:, j].any()]
    if not used or len(names) > MOST_CLASSES:
        return
    drawn = used[:MOST_DRAWN]
    boxes = "".join(feature_box(analysis, j) for j in drawn)
    more = f" The first {len(drawn)} of {len(used)}." if len(drawn) < len(used) else ""
    yield f'<div class="boxes" id="distributions">{boxes}</div>'
    yield html.paragraph(
        "Each feature by class, in the units of the table: the box holds the middle half of the rows, the "
        f"line is the median, and nine of ten rows lie between the ends.{more}",
        "soft",
    )


def feature_box(analysis: Analysis, feature: int) -> str:
    """A line per class, all on the scale of the feature."""
    values, y = analysis.dataset.X[:, feature], analysis.dataset.y
    of_class = [values[(y == name) & ~np.isnan(values)] for name in analysis.assessment.classes]
    marks = [quantiles(own) for own in of_class]
    known = np.concatenate([m for m in marks if m is not None])
    low, high = float(known.min()), float(known.max())
    names = class_list(analysis)
    lines = "".join(
        class_line(name, mark, low, high, MARKS[code] if len(names) == len(MARKS) else "soft")
        for code, (name, mark) in enumerate(zip(names, marks, strict=True))
    )
    ends = f'<div class="ends"><span>{number(low)}</span><span>{number(high)}</span></div>'
    title = html.escape(str(analysis.counted.names[feature]))
    return f'<div class="box"><h3>{title}</h3>{lines}<div class="line"><span></span>{ends}</div></div>'


def quantiles(values: Vector) -> Vector | None:
    """Ends, quarters and median; None without values."""
    return np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)) if len(values) else None


def class_line(name: str, mark: Vector | None, low: float, high: float, colour: str) -> str:
    label = f'<span class="of">{html.escape(name)}</span>'
    if mark is None:
        return f'<div class="line">{label}<span class="soft">no values</span></div>'
    at = 100 * (mark - low) / (high - low) if high > low else np.full(5, 50.0)
    said = f"median {number(mark[2])}, middle half {number(mark[1])} to {number(mark[3])}"
    return (
        f'<div class="line" style="--mark:var(--{colour})" title="{said}">{label}'
        f'<span class="span" role="img" aria-label="{said}">'
        f'<i class="whisker" style="left:{at[0]:.1f}%;width:{at[4] - at[0]:.1f}%"></i>'
        f'<i class="half" style="left:{at[1]:.1f}%;width:{at[3] - at[1]:.1f}%"></i>'
        f'<i class="median" style="left:{at[2]:.1f}%"></i></span></div>'
    )


def number(value: float) -> str:
    """Four digits; large numbers whole, without an exponent."""
    text = f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    return text.replace("-", "−", 1)
