"""The answer, as the top of a page: a sentence, how far it can be trusted, and the curve behind it."""

from collections.abc import Iterator
from typing import Any

from kmargin import html
from kmargin.displays import CVScoreDisplay
from kmargin.errors import count
from kmargin.palette import REFERENCE
from kmargin.tables.analyse import Analysis, Neighbour
from kmargin.tables.choice_words import choice_text, fold_choices_text, p_value_text
from kmargin.tables.score_words import PERCENT, change_text, error_text, interval_text, score_name, score_text
from kmargin.tables.sentences import (
    all_features_text,
    axis_text,
    class_counts,
    evidence_text,
    headline,
    most_common,
    neighbour_text,
    used_units,
)

ABOVE_LABEL = 0.15  # share of the height of the score plot that the label of the chosen k needs


def answer_section(analysis: Analysis) -> Iterator[str]:
    """The sentence, and why this k, beside the curve and what one feature more or fewer would do.

    Warnings come before the sentence: they say why its score may be too high.
    """
    for warning in analysis.dataset.warnings:
        yield html.paragraph(f"Warning: {warning}".replace(" %", "\u00a0%"), "note warning")
    yield html.columns("".join(answer(analysis)), "".join(curve(analysis)), kind="answer")
    yield from (html.paragraph(f"Note: {note}", "note") for note in analysis.notes)


def answer(analysis: Analysis) -> Iterator[str]:
    yield html.paragraph(headline(analysis).replace(" %", "\u00a0%"), "lead")
    yield score_strip(analysis)
    yield summary(analysis)
    for text in (all_features_text(analysis), evidence_text(analysis)):
        if text:
            yield html.paragraph(text)
    if analysis.assessment.p_value is not None:
        yield html.paragraph(p_value_text(analysis))
    yield html.paragraph(" ".join(filter(None, (choice_text(analysis), fold_choices_text(analysis)))))
    yield html.paragraph(" ".join(neighbour_text(analysis, near) for near in analysis.neighbours))


def score_strip(analysis: Analysis) -> str:
    """The score with its interval, and guessing, on the scale from nothing to all; of such scores alone."""
    assessed, scoring = analysis.assessment, analysis.settings.scoring
    low, high = (min(max(end, 0.0), 1.0) for end in assessed.interval)
    if scoring.startswith("neg_") or not 0 <= assessed.score <= 1:
        return ""
    text = (
        f"{score_name(scoring)} {score_text(scoring, assessed.score)}, 95 % interval "
        f"{interval_text(scoring, assessed.interval)}; guessing {score_text(scoring, assessed.guessing)}"
    )
    ends = ("0 %", "100 %") if scoring in PERCENT else ("0", "1")
    return (
        f'<div class="strip" role="img" aria-label="{html.escape(text)}"><div class="scale">'
        f'<span class="interval" style="left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%"></span>'
        f'<span class="guess" style="left:{100 * assessed.guessing:.1f}%"></span>'
        f'<span class="at" style="left:{100 * assessed.score:.1f}%"></span></div>'
        f'<div class="ends"><span>{ends[0]}</span><span>{ends[1]}</span></div></div>'
    )


def summary(analysis: Analysis) -> str:
    """Numbers to see at once; the first two are the marks of the strip."""
    assessed, scoring = analysis.assessment, analysis.settings.scoring
    n_features = len(analysis.model.machine.support_)
    use = (n_features, "training points kept" if analysis.model.is_kernel else features_text(n_features))
    if not analysis.model.is_kernel and analysis.counted.is_grouped:
        made_of = f"{analysis.things} in use, {count(n_features, 'feature')}"
        use = (len(used_units(analysis)), made_of)
    return html.cards(
        (
            score_text(scoring, assessed.score),
            f"{score_name(scoring)} on held-out rows, {interval_text(scoring, assessed.interval)}",
            "reached",
        ),
        (score_text(scoring, assessed.guessing), f"by guessing{most_common(analysis)}", "guessed"),
        use,
        (f"{len(analysis.dataset.y):,}", f"rows, {class_counts(analysis)}"),
    )


def features_text(number: int) -> str:
    return "feature in use" if number == 1 else "features in use"


def curve(analysis: Analysis) -> Iterator[str]:
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    scores, scoring = analysis.curve, analysis.settings.scoring
    yield f'<h2 id="curve">How many {analysis.things} are needed</h2>'
    with mpl.rc_context(html.FONT):
        figure = Figure(figsize=(5.2, 3.1), layout="constrained")
        name = score_name(scoring)
        shown = CVScoreDisplay(scores.ks, scores.mean, scores.error, analysis.k, name).plot(figure.subplots())
        low, high = shown.ax_.get_ylim()
        if low - (high - low) / 3 < analysis.assessment.guessing:
            draw_guessing(shown.ax_, analysis.assessment.guessing)
            shown.ax_.legend(frameon=False, loc="best")
        shown.ax_.set_xlabel(axis_text(analysis.things, analysis.is_shared))
        if scoring in PERCENT:
            shown.ax_.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        image = html.svg(figure, "scores")
    n_folds = len(analysis.choice.table.scores)
    chose = "" if analysis.highest is None else " These scores chose k and C, so they are optimistic."
    caption = (
        f"At C = {analysis.C:g}, mean of {n_folds} folds; the band is one standard error, the ring is the "
        f"chosen k.{chose}"
    )
    yield html.figure(image, caption, id="scores")
    yield neighbour_table(analysis)


def draw_guessing(axes: Any, score: float) -> None:
    """A line at the score of guessing, above the label of the chosen k at the bottom."""
    axes.axhline(score, label="guessing", **REFERENCE)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, (score - ABOVE_LABEL * high) / (1 - ABOVE_LABEL)), high)


def neighbour_table(analysis: Analysis) -> str:
    """What the next smaller and the next larger k would do."""
    scoring = analysis.settings.scoring
    has_names = not analysis.model.is_kernel
    own = [analysis.k, score_text(scoring, analysis.curve.at(analysis.k)[0]), "chosen"]
    rows = {analysis.k: html.Row([*own, *([""] if has_names else [])], "marked")}
    for near in analysis.neighbours:
        change = change_text(scoring, near.change.value)
        kind = {"+": "good", "−": "bad"}.get(change[0], "")
        shown = f"{change} ± {error_text(scoring, near.change.error)}"
        cells = [near.k, score_text(scoring, near.score), html.Cell(shown, kind)]
        rows[near.k] = html.Row([*cells, *([html.Cell(swap_text(near), "name")] if has_names else [])])
    head = ["k", score_name(scoring), "change ± standard error"]
    names = [html.Cell("enters (+), leaves (−)", "name")] if has_names else []
    return html.table([*head, *names], [rows[k] for k in sorted(rows)], id="neighbours", kind="full")


def swap_text(near: Neighbour, most: int = 4) -> str:
    """What comes in and what goes out: the first few, and how many more."""
    parts = []
    for sign, names in (("+", near.enters), ("−", near.leaves)):
        more = f" and {len(names) - most} more" if len(names) > most else ""
        if names:
            parts.append(f"{sign}\u00a0{', '.join(map(html.shortened, names[:most]))}{more}")
    return "; ".join(parts)
