"""Outcomes as a page."""

from collections import Counter
from collections.abc import Sequence

from mutants.runner import Outcome

KILLED = ("killed", "timeout")


def summarize(outcomes: Sequence[Outcome]) -> str:
    """The score of each area, the survivors with their reasons, and who killed whom."""
    lines = ["# Mutants", "", *_scores(outcomes), ""]
    survivors = [o for o in outcomes if o.status not in KILLED]
    if survivors:
        lines += ["## Not killed", "", "| mutant | file | what became of it | why |", "|---|---|---|---|"]
        lines += [
            f"| {o.mutant.name} | {o.mutant.file} | {o.status} | {o.mutant.reason or o.detail} |"
            for o in survivors
        ]
        lines.append("")
    lines += ["## Killed", "", "| mutant | file | by |", "|---|---|---|"]
    for o in outcomes:
        if o.status in KILLED:
            by = o.detail if o.status == "killed" else f"taking too long ({o.detail})"
            lines.append(f"| {o.mutant.name} | {o.mutant.file} | {by.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def _scores(outcomes: Sequence[Outcome]) -> list[str]:
    by_area: dict[str, Counter[str]] = {}
    for o in outcomes:
        by_area.setdefault(o.mutant.area, Counter())[o.status] += 1
    everything = sum(by_area.values(), Counter())
    lines = ["| area | mutants | killed | by taking too long | survived | stale or in error | score |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for area, counts in [*by_area.items(), ("**all**", everything)]:
        n, killed = counts.total(), sum(counts[status] for status in KILLED)
        lines.append(
            f"| {area} | {n} | {counts['killed']} | {counts['timeout']} | {counts['survived']} "
            f"| {counts['stale'] + counts['error']} | {killed / n:.0%} |"
        )
    return lines
