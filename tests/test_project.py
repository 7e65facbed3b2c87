"""The house is in order: layers, addresses, docstrings, compiled code on disk."""

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import kmargin
from kmargin.addresses import DOCUMENTATION

PACKAGE = Path(kmargin.__file__).parent
ROOT = Path(__file__).parent.parent

# each may import from those before it
LAYERS = [
    "types",
    "inline",
    "tiers",
    "jit",
    "blas",
    "progress",
    "files",
    "palette",
    "page_style",
    "html_cells",
    "html",
    "errors",
    "addresses",
    "facts",
    "arguments",
    "intervals",
    "datasets.errors",
    "datasets.registry",
    "datasets.fetch",
    "datasets.parsers",
    "datasets.simulate",
    "datasets.loaders",
    "datasets",
    "losses.squared_hinge",
    "losses",
    "units",
    "sparsity",
    "unit_request",
    "unit_request",
    "vectors",
    "blocks.protocol",
    "blocks",
    "blocks.space",
    "weights",
    "blocks.view",
    "blocks.sums",
    "blocks.panel_sums",
    "blocks.local",
    "blocks.kinds",
    "blocks.memory",
    "blocks.scratch",
    "blocks.recipes",
    "blocks.graphs",
    "blocks.rows",
    "blocks.examine",
    "blocks.threads",
    "blocks.worker_tasks",
    "blocks.cluster",
    "design.protocol",
    "design.affine",
    "design.passes",
    "design.csr",
    "design.stored",
    "design.distinct",
    "design.subset",
    "design.dense",
    "design.sparse",
    "design.tiles",
    "design.kernel",
    "design",
    "problem",
    "blocks.design",
    "solvers.regime",
    "solvers.result",
    "solvers.solver",
    "solvers.start",
    "solvers.knobs",
    "solvers.linalg",
    "solvers.panel",
    "solvers.rows",
    "solvers.newton",
    "solvers.ending",
    "solvers.bounded_quadratic",
    "solvers.bounded",
    "solvers.scores",
    "solvers.search",
    "solvers.every_support",
    "solvers.sizes",
    "solvers.dual",
    "solvers.conjugate",
    "solvers.signed",
    "solvers.remote",
    "solvers.measures",
    "solvers.refit",
    "solvers.refit_signs",
    "solvers.working_set",
    "solvers.fitted",
    "solvers.dual_exchange",
    "solvers.product_exchange",
    "solvers.supports",
    "solvers.one_size",
    "solvers.grid",
    "solvers.unit_blocks",
    "solvers.unit_scores",
    "solvers.promise",
    "solvers.joint_found",
    "solvers.machine_stack",
    "solvers.machine_panel",
    "solvers.joint_search",
    "solvers.joint_panels",
    "solvers.joint_set",
    "solvers.refit_set",
    "solvers.joint_grid",
    "solvers.exchange",
    "solvers.proximal",
    "solvers.proximal.penalised",
    "solvers.proximal.reference",
    "solvers.proximal.compiled",
    "solvers.proximal.anneal",
    "solvers.mm",
    "solvers.sd",
    "solvers",
    "validate",
    "chance",
    "multiclass",
    "calibration_sums",
    "calibration",
    "blocks.confusion_counts",
    "blocks.unseen",
    "blocks.ingest",
    "blocks.dask",
    "blocks.lazy",
    "samples",
    "samples.protocol",
    "selection",
    "samples.folds",
    "samples.uncopied",
    "samples.designs",
    "samples.array",
    "samples.blocks",
    "samples.block_folds",
    "samples.device",
    "samples.dask",
    "samples.inputs",
    "samples.read",
    "fitting",
    "fitting.repeats",
    "fitting.precision",
    "fitting.tasks",
    "fitting.batches",
    "fitting.pools",
    "fitting.convergence",
    "kernels",
    "kernel_designs",
    "linear_decisions",
    "path",
    "fitting.blueprint",
    "fitting.linear_blueprint",
    "fitting.kernel_blueprint",
    "fitting.grid_fit",
    "fitting.stand_ins",
    "fitting.halves",
    "fitting.sparse_path",
    "estimators.classifier",
    "estimators.selector",
    "estimators.summary",
    "estimators.linear",
    "estimators.kernel",
    "estimators.probabilities",
    "estimators.cross_validated",
    "estimators.cv",
    "estimators.half_model",
    "estimators.stable_features",
    "estimators.stability",
    "estimators",
    "outer_folds",
    "nested",
    "honest",
    "displays.found",
    "displays.drawing",
    "displays.paths",
    "displays.scores",
    "displays.coefficients",
    "displays.convergence",
    "displays",
    "",  # the package itself
    "experiments.settings",
    "experiments.protocol",
    "experiments.work",
    "experiments.machines",
    "experiments.sensitivity",
    "experiments.recovery",
    "experiments.crossval",
    "experiments.store",
    "experiments.worker",
    "experiments.runner",
    "experiments.published",
    "experiments.paper_map",
    "experiments.tables",
    "experiments.figures",
    "experiments.differences",
    "experiments.verdict",
    "experiments.paper_sections",
    "experiments.report",
    "experiments.reproduce",
    "experiments",
    "tables",
    "tables.spreadsheet",
    "tables.packed",
    "tables.content",
    "tables.dialect",
    "tables.columns",
    "tables.text",
    "tables.read",
    "tables.labels",
    "tables.row_names",
    "tables.features",
    "tables.given",
    "tables.seen",
    "tables.column_request",
    "tables.machine",
    "tables.model",
    "modelfile",
    "tables.export",
    "models",
    "tables.pitfalls",
    "tables.prepare",
    "tables.told",
    "tables.settings",
    "tables.fold_machines",
    "tables.row_folds",
    "tables.trial",
    "tables.choice",
    "tables.assess",
    "tables.stability",
    "tables.analyse",
    "tables.results",
    "tables.score_words",
    "tables.choice_words",
    "tables.class_quality",
    "tables.sentences",
    "tables.methods",
    "tables.quality_section",
    "tables.machine_section",
    "tables.points_section",
    "tables.feature_boxes",
    "tables.answer_section",
    "tables.report",
    "tables.write",
    "terminal",
    "option_groups",
    "options",
    "fit_command",
    "path_command",
    "predict_command",
    "stability_command",
    "reproduction",
    "commands",
    "cli",
    "__main__",
]


def module_name(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path):
    tree = ast.parse(path.read_text())
    if path == PACKAGE / "__init__.py":  # names are imported when they are asked for, from any layer
        tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "kmargin":
            assert node.level == 0, "relative imports hide the layer"
            for alias in node.names:
                inside = f"{node.module}.{alias.name}".removeprefix("kmargin").removeprefix(".")
                parent = (node.module or "").removeprefix("kmargin").removeprefix(".")
                yield inside if inside in LAYERS else parent


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=module_name)
def test_layers_import_only_from_those_before_them(path):
    name = module_name(path)
    assert name in LAYERS, f"give {name!r} a place among the layers"
    for other in imported_modules(path):
        assert LAYERS.index(other) < LAYERS.index(name), f"{name} imports {other}"


def test_the_core_needs_four_packages():
    core = [r for r in requires("kmargin") if "extra ==" not in r]
    assert {re.split(r"[><=~!]", r)[0] for r in core} == {"numpy", "scipy", "scikit-learn", "numba"}


def installed_by_make_test():
    """The import names of everything that the `test` extra brings, its requirements' requirements too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    waiting = [Requirement(text) for text in (*project["dependencies"], *extras["test"])]
    done = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras}:
            if (name, extra) not in done:
                done.add((name, extra))
                below = extras.get(extra, ()) if name == "kmargin" else requires_if_installed(name)
                found = [Requirement(text) for text in below]
                waiting += [r for r in found if r.marker is None or r.marker.evaluate({"extra": extra})]
    names = {name for name, _ in done}
    return {
        module
        for module, owners in packages_distributions().items()
        if names & {canonicalize_name(owner) for owner in owners}
    }


def requires_if_installed(name):
    try:
        return requires(name) or ()
    except PackageNotFoundError:  # on another platform, say
        return ()


def imports_at_the_top(tree):
    """The libraries imported when a file is, wherever outside functions the statement stands."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from imports_at_the_top(node)


def test_tests_import_at_their_top_only_what_make_test_installs():
    tests = ROOT / "tests"
    own = {path.stem for path in tests.glob("*.py")} | {"kmargin", "fuzz", "mutants", "benchmarks"}
    known = installed_by_make_test() | own | sys.stdlib_module_names
    assert {"numpy", "pytest", "dask", "sklearn", "selenium"} <= known
    assert not {"torch", "cupy", "jax"} & known
    wrong = {
        f"{path.name} imports {name}"
        for path in sorted(tests.rglob("*.py"))
        for name in imports_at_the_top(ast.parse(path.read_text(encoding="utf-8")))
        if name not in known
    }
    assert not wrong, "import it inside the tests that need it, by a fixture that skips without it"


def test_a_test_that_needs_torch_asks_for_the_fixture():
    """Which also marks it, so that CI can run these alone once torch is installed."""
    call = 'importorskip("{}"'.format("torch")
    asking = [path.name for path in (ROOT / "tests").glob("*.py") if call in path.read_text()]
    assert asking == ["conftest.py"]


def test_ci_runs_make_test_before_it_installs_anything_else():
    script = (ROOT / ".ci" / "run").read_text()
    first = script.index("make VENV=$VENV test")
    assert (
        script.index('rm -rf "$VENV"') < first < min(script.index(f"install {w}") for w in ("-y", "--quiet"))
    )
    assert script.index("torch==") < script.index("-m optional")


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < 250


def test_the_addresses_of_the_project_are_the_same_everywhere():
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert given["Documentation"] == DOCUMENTATION
    for name in ("README.md", "SECURITY.md", "docs/conf.py", "docs/_ext/repository.py"):
        written = re.findall(r"https://[^\s<>()\"']*kmargin[^\s<>()\"']*", (ROOT / name).read_text())
        assert all(url.startswith((given["Homepage"], given["Documentation"])) for url in written), name


FIT = """
import numpy as np
from kmargin import SparseSVC
from kmargin.jit import meter
from kmargin.solvers import search
from kmargin.solvers.proximal import compiled
X = np.random.default_rng(0).standard_normal((200, 30))
with meter.forced(True):
    for solver in ("mm", "sd", "exchange"):
        SparseSVC(k=9, solver=solver).fit(X, X[:, 0] > 0)
for loop in (compiled.descend_mm, compiled.descend_sd, search.search):
    stats = loop.for_python.stats
    print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def test_compiled_code_is_kept_on_disk():
    """In the cache of this very package: what one process had to compile, if anything, the next one finds.

    That an empty cache has nothing to be found is the next test's.
    """
    found = []
    while len(found) < 2 and found[-1:] != [["1", "0"] * 3]:
        last = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, check=True)
        found.append(last.stdout.split())
    assert found[-1] == ["1", "0"] * 3


def test_what_is_not_in_the_cache_is_compiled_and_put_there(tmp_path, monkeypatch):
    from numba.core import config

    from kmargin.jit import compiled

    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    source = tmp_path / "doubling.py"
    source.write_text("def double(x):\n    return x + x\n")

    def hits_and_misses():
        double = compiled(runpy.run_path(str(source))["double"])  # with nothing in memory
        assert double(2.0) == 4.0
        return tuple(sum(c.values()) for c in double.for_python.stats[1:])

    assert not (tmp_path / "cache").exists()
    assert [hits_and_misses() for _ in range(2)] == [(0, 1), (1, 0)]
    assert {path.suffix for path in (tmp_path / "cache").rglob("*.nb*")} == {".nbi", ".nbc"}
    for path in (tmp_path / "cache").rglob("*.nb*"):
        path.unlink()
    assert hits_and_misses() == (0, 1)


def test_without_a_writable_cache_it_still_works(monkeypatch):
    import numba

    import kmargin.jit

    def no_cache(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)

    monkeypatch.setattr(kmargin.jit, "njit", no_cache)
    assert kmargin.jit.compiled(lambda x: x + 1)(1) == 2
