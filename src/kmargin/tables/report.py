"""The page about an analysis: report.html."""

import shlex
from collections.abc import Iterator

import numpy as np

from kmargin import __version__, html
from kmargin.errors import count
from kmargin.tables.analyse import Analysis
from kmargin.tables.answer_section import answer_section
from kmargin.tables.choice_words import honesty_text
from kmargin.tables.feature_boxes import distributions
from kmargin.tables.machine_section import weights_section
from kmargin.tables.methods import methods_text
from kmargin.tables.points_section import points_section
from kmargin.tables.prepare import Dataset
from kmargin.tables.quality_section import quality_section
from kmargin.tables.sentences import rows_text


def render(analysis: Analysis, source: str, folder: str) -> str:
    """The page. `source` is the name of the table, `folder` that of the results."""
    title = f"{analysis.dataset.target} from {source}"
    return html.page(title, sections(analysis, source, folder))


def sections(analysis: Analysis, source: str, folder: str) -> Iterator[str]:
    yield f"<h1>{html.escape(analysis.dataset.target)}, from {html.escape(source)}</h1>"
    looks = ("points", "rows in the model") if analysis.model.is_kernel else ("features", "features")
    links = (("curve", f"how many {analysis.things}"), looks, ("confusion", "errors"))
    yield html.section_nav((*links, ("made", "how it was made"), ("methods", "methods")))
    yield from answer_section(analysis)
    yield from points_section(analysis) if analysis.model.is_kernel else weights_section(analysis)
    yield from distributions(analysis)
    yield from quality_section(analysis)
    yield from settings_section(analysis, source, folder)
    yield '<h2 id="methods">Methods, to copy into a paper</h2>'
    yield html.paragraph(methods_text(analysis, source))


def settings_section(analysis: Analysis, source: str, folder: str) -> Iterator[str]:
    settings, dataset, table = analysis.settings, analysis.dataset, analysis.choice.table
    n_encoded = len(dataset.encoding.categories)
    at_most = "" if settings.repeats is None else f" (at most {settings.repeats})"
    rows = [
        ["table", f"{source}, {rows_text(analysis)}, {len(dataset.encoding.feature_names)} features"],
        ["target", dataset.target],
        ["model", f"kernel {settings.kernel}" if settings.kernel else "linear"],
        ["k counts", analysis.things + ("" if analysis.is_shared else ", for each binary classifier")],
        *asked_rows(analysis),
        ["k and C", f"{analysis.k} and {analysis.C:g}; C from {', '.join(f'{C:g}' for C in table.Cs)}"],
        ["folds", f"{len(analysis.supports)}, shuffled (seed {settings.seed}) and stratified by class"],
        ["rows kept together", together_text(dataset)],
        ["rounds of folds", str(analysis.choice.n_rounds) + at_most],
        ["score", settings.scoring],
        ["scaling", "standard deviation 1" if settings.standardize else "none"],
        ["missing values", "replaced by medians" if dataset.impute else "none"],
        ["text columns", f"{n_encoded}, one feature per value" if n_encoded else "none"],
        ["row weights", "from a column" if dataset.weights is not None else "none"],
        ["class weights", "balanced" if settings.balanced else "none"],
        ["kmargin", __version__],
    ]
    yield '<h2 id="made">How it was made</h2>'
    made = "Scaling, imputation and fitting were repeated in each fold, from its training rows alone."
    use = (
        f"<p>To use the model on new rows: <code>kmargin predict {html.escape(shlex.quote(folder))} "
        "new.csv</code></p>"
    )
    found = "The columns of new.csv are found by name, in any order; other columns are ignored."
    yield html.columns(
        html.paragraph(f"{made} {honesty_text(analysis)}"), use + html.paragraph(found, "soft")
    )
    cells = [[name, html.Cell(value, "name")] for name, value in rows]
    half = -(-len(cells) // 2)
    heads = ["setting", html.Cell("value", "name")]
    yield html.columns(
        html.table(heads, cells[:half], id="settings", kind="full"),
        html.table(heads, cells[half:], id="more-settings", kind="full"),
    )


def together_text(dataset: Dataset) -> str:
    """Which rows are never on both sides of a fold."""
    if dataset.groups is None:
        return "none"
    if dataset.grouped_by is None:
        return "rows with the same features"
    return f"by column {dataset.grouped_by}: {count(len(np.unique(dataset.groups)), 'group')}"


def asked_rows(analysis: Analysis) -> list[list[str]]:
    """What was asked for of features, as far as something was."""
    counted, said = analysis.counted, analysis.settings.columns
    features = range(len(counted.names))
    signs = {j: counted.sign_of(j).replace("-", "−") for j in features}
    rows = [
        ["always in", ", ".join(counted.labels_of(j for j in features if counted.always_in[j]))],
        ["never in", ", ".join(said.avoid)],
        ["signs", ", ".join(f"{counted.names[j]} {sign}" for j, sign in signs.items() if sign)],
    ]
    return [row for row in rows if row[1]]
