"""Tables made of data that the package has: `paper-map`."""

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from kmargin.experiments.paper_map import PAPER_MAP
from kmargin.experiments.paper_sections import heading


def paper_map_lines(report: str) -> list[str]:
    """The table as Markdown; `report` is the address of the page with the results."""
    lines = ["| in the paper | what it is | function | results |", "|---|---|---|---|"]
    for item in PAPER_MAP:
        functions = ", ".join(f"`kmargin.{name}`" for name in item.functions)
        results = f'<a href="{report}#{item.section}">{_unbroken(heading(item.section))}</a>'
        lines.append(f"| {_unbroken(item.name)} | {item.what} | {functions} | {results} |")
    return lines


def _unbroken(text: str) -> str:
    return text.replace(" ", "&nbsp;")


class PaperMap(SphinxDirective):
    """Each algorithm, equation, table and figure of the paper, with the function and the result."""

    def run(self) -> list[nodes.Node]:
        holder = nodes.container()
        depth = self.env.docname.count("/")
        lines = ["{.stacked}", *paper_map_lines("../" * depth + "report.html")]
        self.state.nested_parse(StringList(lines, source=self.env.docname), self.content_offset, holder)
        return holder.children


def setup(app):
    app.add_directive("paper-map", PaperMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
