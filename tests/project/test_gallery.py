"""Examples are short scripts for everybody: a title, public names, no network. The tour runs."""

import ast
import re
import warnings
from pathlib import Path

import pytest

import kmargin

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
DRAWN = [path for path in EXAMPLES if path.name.startswith("plot_")]
OPEN = {  # what scripts may import of the package beside `kmargin` itself
    "kmargin.datasets": "data that come with it",
    "kmargin.displays.palette": "the colours of all plots",
}
TITLE = '"""\nTitle\n=====\n\nText.\n"""\n'  # for what stands on a page of its own
NETWORK = re.compile(r"^(fetch_|load_(letter|opt|splice|tcga|breast_cancer_wisconsin))")


def imports(tree):
    """Each imported name with its module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)


def faults(source):
    """What would make a script unfit for the gallery."""
    tree = ast.parse(source)
    lines = (ast.get_docstring(tree) or "").splitlines()
    if len(lines) < 3 or set(lines[1]) != {"="} or len(lines[1]) < len(lines[0]):
        yield "no title"
    for module, name in imports(tree):
        if module == "kmargin" and name not in kmargin.__all__:
            yield f"{name} is not public"
        elif module.startswith("kmargin.") and module not in OPEN:
            yield f"{module} is not open to scripts"
        elif name is not None and NETWORK.match(name):
            yield f"{name} needs a network"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match(r"_(?!asdict\b).*(?<!__)$", node.attr):
            yield f"{node.attr} is private"  # _asdict is a public method of every NamedTuple


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_and_uses_public_names_without_a_network(path):
    assert list(faults(path.read_text(encoding="utf-8"))) == []


def test_every_example_of_the_gallery_has_a_place_in_its_order(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    assert sorted(pytest.importorskip("gallery_order").ORDER) == [path.stem for path in DRAWN]


def test_the_tour_runs_and_is_stored_without_output():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "docs" / "start" / "tour.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert not any(list(faults(TITLE + cell.source)) for cell in code)
    with warnings.catch_warnings():  # of what runs the kernel, not of what runs in it
        warnings.simplefilter("ignore")
        nbclient.NotebookClient(notebook, timeout=120).execute()
    shown = {output.output_type for cell in code for output in cell.outputs}
    assert shown == {"execute_result", "display_data", "stream"}
    assert not [out for cell in code for out in cell.outputs if out.get("name") == "stderr"]
