"""Links of a page that leave `docs/`: to the page of the site that shows the file, else to the repository.

So the same Markdown can be read on the site and where the repository is browsed. A link to a file that
does not exist is a warning, and so ends the build.
"""

import os
import re
from pathlib import Path

from sphinx.util import logging

log = logging.getLogger(__name__)
DOCS = Path(__file__).parent.parent
ROOT = DOCS.parent
BLOB = "https://github.com/kmargin/kmargin/blob/main/"

# files of the repository that a page of the site shows
SHOWN = {
    "CONTRIBUTING.md": "contributing/index.md",
    "CHANGELOG.md": "contributing/changelog.md",
    "benchmarks/README.md": "evidence/benchmarks.md",
    "benchmarks/results/README.md": "evidence/results.md",
    "README.md": "index.md",
}
# the page of the full run, which the site has as it is
REPORT = "results/paper/report.html"
LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s:]+)\)")


def rewritten(text: str, home: Path, page: str) -> str:
    """The text of a file in folder `home` with links that are right where page `page` shows it."""
    folder = (DOCS / page).parent

    def target(found: re.Match) -> str:
        label, address = found.groups()
        path, _, anchor = address.partition("#")
        if not path or path.startswith("/"):
            return found.group()
        file = Path(os.path.normpath(home / path))
        if file.is_relative_to(DOCS):
            shown = file
        else:
            name = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else ""
            if not name or not file.exists():
                log.warning("%s: the link to %s leads nowhere", page, address)
                return found.group()
            if name == REPORT:
                top = os.path.relpath(DOCS, folder).replace(os.sep, "/")
                end = f"#{anchor}" if anchor else ""
                return f'<a href="{top}/report.html{end}">{label[1:-1]}</a>'
            if label.startswith("!"):
                shown = file
            elif name in SHOWN:
                shown = DOCS / SHOWN[name]
            else:
                return f"{label}({BLOB}{name})"
        relative = os.path.relpath(shown, folder).replace(os.sep, "/")
        return f"{label}({relative}{'#' + anchor if anchor else ''})"

    return LINK.sub(target, text)


def on_page(app, name, source):
    path = app.env.doc2path(name)
    if str(path).endswith(".md"):
        source[0] = rewritten(source[0], Path(path).parent, name)


def on_include(app, path, _, content):
    if str(path).endswith(".md"):
        content[0] = rewritten(content[0], (DOCS / path).resolve().parent, app.env.docname)


def setup(app):
    app.connect("source-read", on_page)
    app.connect("include-read", on_include)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
