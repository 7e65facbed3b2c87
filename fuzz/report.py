"""The table of families, and what failed, for people and for the documentation."""

import json
from pathlib import Path

from fuzz.pieces import after, by_version, left
from fuzz.reproduce import few_lines

FOLDER = Path(__file__).parent / "failures"
BEGIN, END = "<!-- results of the campaign: begin -->", "<!-- results of the campaign: end -->"


def table(results):
    """A row for each family, in Markdown; `results` as in the JSON file."""
    failed, still = ([v["family"] for v in verdicts] for verdicts in (results["failures"], left(results)))
    lines = [
        "| family | cases | ended with a sentence | undecided | failures | left |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    rows = []
    for family in sorted(results["cases"]):
        undecided = sum(results["skips"].get(family, {}).values())
        counts = (
            results["cases"][family],
            results["complaints"].get(family, 0),
            undecided,
            failed.count(family),
            still.count(family),
        )
        rows.append(counts)
        lines.append(f"| {family.replace('_', ' ')} | " + " | ".join(f"{count:,}" for count in counts) + " |")
    lines.append("| all | " + " | ".join(f"{sum(column):,}" for column in zip(*rows, strict=True)) + " |")
    return "\n".join(lines)


def summary(results):
    """A sentence about the run as a whole, and which source has run how much of it."""
    n_cases, pieces = sum(results["cases"].values()), results["pieces"]
    first, end = min(piece["first"] for piece in pieces), after(results)
    minutes = sum(piece["seconds"] for piece in pieces) / 60
    sentence = (
        f"{n_cases:,} cases, of the numbers {first:,} to {end - 1:,}, in {minutes:.0f} minutes; "
        f"the slowest took {results['slowest'][0]:.1f} s; memory of a process grew by "
        f"{max(0.0, results['memory_growth_mb']):.0f} MB."
    )
    told = [f"{count:,} by source {code}" for code, count in by_version(results).items()]
    return f"{sentence} Of these, {', '.join(told)}. {what_is_left(results)}"


def what_is_left(results):
    """How many failures there were, and how many of them are left in a later source."""
    failures, still = results["failures"], left(results)
    again = sorted({verdict["again"]["code"] for verdict in failures if "again" in verdict})
    if not failures:
        return "No failures."
    if not again:
        return f"{len(failures):,} failures, not run again since."
    unasked = sum("again" not in verdict for verdict in failures)
    rest = f", {unasked:,} of them not run again" if unasked else ""
    return f"{len(failures):,} failures, {len(still):,} of which are left in source {', '.join(again)}{rest}."


def write_failures(results, folder=FOLDER):
    """A file for each failing case that is left; those of earlier runs go."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("case_*.py"):
        old.unlink()
    for verdict in left(results):
        path = folder / f"case_{verdict['number']}.py"
        path.write_text(few_lines(verdict["number"], verdict["failures"]))


def kinds(results):
    """The failing cases that are left, by the first word of what is wrong with them."""
    found = {}
    for verdict in left(results):
        for failure in verdict.get("again", verdict)["failures"]:
            found.setdefault(failure.split(":")[0], []).append(
                (verdict["number"], verdict["family"], failure)
            )
    return found


def show(results):
    """What a person sees at the end."""
    lines = [table(results), "", summary(results)]
    for kind, cases in sorted(kinds(results).items()):
        lines.append(f"\n{kind}: {len(cases)}")
        lines += [f"    {number:>9} {family:<18} {failure[:160]}" for number, family, failure in cases[:8]]
    if left(results):
        lines.append(f"\nEach in a few lines: {FOLDER}")
    return "\n".join(lines)


def write_docs(results, path):
    """Put table and summary between the two marks of a page."""
    path = Path(path)
    before, rest = path.read_text().split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n\n{summary(results)}\n\n{table(results)}\n\n{END}{after}")


def save(results, path):
    Path(path).write_text(json.dumps(results, indent=1) + "\n")


def load(path):
    return json.loads(Path(path).read_text())
