"""The rules of the project: layers, sizes, dependencies, addresses, recipes, compiled code on disk."""

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter

import pytest
from package_source import MODULES, PACKAGE, ROOT, imported_modules, tree_of

import kmargin
from kmargin.core.summary import DOCUMENTATION

# Folders, or parts of them; each may import from those before it, and from itself. "" is `kmargin` itself.
LAYERS = ["core", "data.design", "model_selection.calibration", "model_selection.scores", "data.blocks"]
LAYERS += ["solvers", "data.samples", "data", "fitting", "model_selection", "estimators"]
LAYERS += ["displays", "datasets", ""]
LAYERS += ["tables", "report", "paper", "cli", "__main__"]
MAX_ENTRIES, MAX_MODULES = 15, 110
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def imports_of(name, at_the_top=False):
    """Modules of the package that a module imports, anywhere or when it is imported itself."""
    body = tree_of(name).body
    if name == "":  # names are imported when they are asked for, from any layer
        body = [node for node in body if not isinstance(node, ast.If)]
    return imported_modules(body if at_the_top else [sub for node in body for sub in ast.walk(node)])


def layer(name):
    """The most specific of the layers that a module is in."""
    found = [entry for entry in LAYERS if name == entry or (entry and name.startswith(f"{entry}."))]
    assert found, f"{name} is in no layer: move it to a folder"
    return LAYERS.index(max(found, key=len))


@pytest.mark.parametrize("name", MODULES)
def test_layers_import_only_from_those_before_them(name):
    for other in imports_of(name):
        assert layer(other) <= layer(name), f"{name} imports {other}"


def test_modules_of_a_layer_do_not_import_each_other_in_circles():
    needs = {name: set(imports_of(name, at_the_top=True)) - {name} for name in MODULES}
    TopologicalSorter(needs).prepare()  # raises CycleError, which names the circle


def test_the_package_has_few_folders_and_few_modules():
    entries = [path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= MAX_ENTRIES, sorted(entries)
    assert len(MODULES) <= MAX_MODULES


def test_the_page_for_contributors_has_the_first_sentence_of_every_module():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([\w/.]+)` \| (.*) \|$", page, re.MULTILINE))
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in MODULES.values()}
    empty = {name for name in texts if name.endswith("__init__.py") and len(texts[name].splitlines()) < 3}
    docs = {name: ast.get_docstring(ast.parse(texts[name])) or "" for name in texts.keys() - empty}
    assert listed == {name: " ".join(doc.split("\n\n")[0].split()) for name, doc in docs.items()}


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 200


def test_the_conda_recipe_agrees_with_the_wheel():
    """Version, Python, dependencies with their bounds, entry point and licence, read as the text they are."""
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    assert f'version: "{kmargin.__version__}"' in recipe
    run = recipe[recipe.index("  run:") : recipe.index("tests:")]
    names = {"numba", "numpy", "python", "scikit-learn", "scipy"}
    wanted = {f"python {PROJECT['requires-python']}"}
    wanted |= {re.sub(r"(?=[<>=~!])", " ", text, count=1) for text in PROJECT["dependencies"]}
    assert set(re.findall(r"    - (.+)", run)) == wanted
    assert {line.split()[0] for line in wanted} == names
    ((command, target),) = PROJECT["scripts"].items()
    assert f"{command} = {target}" in recipe
    assert f"license: {PROJECT['license']}" in recipe
    assert PROJECT["description"] in recipe


def test_the_addresses_of_the_project_are_the_same_everywhere():
    given = PROJECT["urls"]
    assert given["Documentation"] == DOCUMENTATION
    for name in ("README.md", "SECURITY.md", "docs/conf.py", "docs/_ext/repository.py"):
        written = re.findall(r"https://[^\s<>()\"']*kmargin[^\s<>()\"']*", (ROOT / name).read_text())
        assert all(url.startswith((given["Homepage"], given["Documentation"])) for url in written), name


FIT = """
import numpy as np
from kmargin import SparseSVC
from kmargin.solvers.search import panels
from kmargin.solvers.proximal import compiled
X = np.random.default_rng(0).standard_normal((200, 30))
for solver in ("mm", "sd", "exchange"):
    SparseSVC(k=9, solver=solver).fit(X, X[:, 0] > 0)
for loop in (compiled.descend_mm, compiled.descend_sd, panels.try_exchanges):
    stats = loop.stats
    print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def test_compiled_code_is_kept_on_disk():
    """In the cache of this very package: what one process had to compile, if anything, the next one finds."""
    found = []
    while len(found) < 2 and found[-1:] != [["1", "0"] * 3]:
        last = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, check=True)
        found.append(last.stdout.split())
    assert found[-1] == ["1", "0"] * 3


def test_what_is_not_in_the_cache_is_compiled_and_put_there(tmp_path, monkeypatch):
    from numba.core import config

    from kmargin.core.jit import compiled, has_cached_code, inlined

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))  # as if numba read it anew
    source = tmp_path / "doubling.py"
    source.write_text("def double(x):\n    return from_another_file(x)\n")

    def hits_and_misses(from_another_file=lambda x: x + x):
        names = {"from_another_file": inlined(from_another_file)}
        as_written = runpy.run_path(str(source), names, __name__)["double"]
        double = compiled(as_written)  # with nothing in memory
        was_cached = has_cached_code(double)
        assert double(2.0) == 4.0
        assert was_cached == bool(double.stats.cache_hits)
        assert has_cached_code(double)
        assert has_cached_code(as_written)  # interpreted, where compilation is switched off
        return tuple(sum(c.values()) for c in double.stats[1:])

    assert not (tmp_path / "cache").exists()
    assert [hits_and_misses() for _ in range(2)] == [(0, 1), (1, 0)]
    assert hits_and_misses(lambda x: x * 2.0) == (0, 1), "a change in another file is noticed"
    assert {path.suffix for path in (tmp_path / "cache").rglob("*.nb*")} == {".nbi", ".nbc"}
    for path in (tmp_path / "cache").rglob("*.nb*"):
        path.unlink()
    assert hits_and_misses() == (0, 1)


def test_ci_runs_make_test_before_it_installs_anything_else():
    script = (ROOT / ".ci" / "run").read_text()
    assert script.index('rm -rf "$VENV"') < script.index("make VENV=$VENV test") < script.index("install ")


def test_without_a_writable_cache_it_still_works(monkeypatch):
    import numba

    import kmargin.core.jit

    def no_cache(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)

    monkeypatch.setattr(kmargin.core.jit, "njit", no_cache)
    assert kmargin.core.jit.compiled(lambda x: x + 1)(1) == 2
