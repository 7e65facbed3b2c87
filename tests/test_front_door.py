"""Applications use the package as anybody could: by public names, and by modules that are open to them."""

import ast
from pathlib import Path

import pytest

import kmargin

PACKAGE = Path(kmargin.__file__).parent
FOLDERS = ("displays", "tables", "experiments")
FILES = (
    "modelfile",
    "models",
    "terminal",
    "option_groups",
    "options",
    "fit_command",
    "path_command",
    "predict_command",
    "stability_command",
    "commands",
    "reproduction",
    "cli",
)

# What is open to applications beside the names of `kmargin` itself, and why.
OPEN = {
    "types": "names for arrays",
    "jit": "functions are compiled before experiments are timed",
    "errors": "what to tell people",
    "intervals": "how far a score can be trusted",
    "honest": "what guessing would reach, and p-values, as `honest_score` has them",
    "outer_folds": "labels permuted with their groups",
    "files": "files replaced as a whole",
    "html": "pages",
    "palette": "colours and lines of pages and plots",
    "progress": "bars",
    "blas": "one thread for each of several processes",
    "blocks.space": "plots want arrays in main memory",
    "datasets": "the data of the paper, documented for users",
    "units": "what k counts, as a stored model holds it",
    "unit_request": "what users say about features, in the words of the estimators",
    "validate": "arguments checked as the estimators check theirs, in the same words",
    "multiclass": "the names of machines, and classes from their decisions",
    "kernels": "a kernel by name and numbers, which is what a stored model holds",
    "calibration": "probabilities, as a stored model holds them",
    "calibration_sums": "what calibrating asks of rows",
    "selection": "folds, scores and the choice of k and C, with a preparation of the application's own",
    "sparsity": "how many features the paper's sparsities keep",
    "losses": "which rows the paper counts as support vectors",
    "problem": "the type of what a solver solves, for experiments that run solvers by themselves",
    "samples.array": "labelled rows in memory, for preparations of the application's own",
    "fitting.blueprint": "the type of what machines decide by",
    "fitting.linear_blueprint": "linear machines without an estimator around them",
    "fitting.kernel_blueprint": "kernel machines without an estimator around them",
    "fitting.grid_fit": "such machines fitted for every C and k, on samples that were prepared elsewhere",
    "fitting.tasks": "the problem of one machine",
    "fitting.stand_ins": "what each feature of a model is worth",
    "fitting.repeats": "features that repeat another one, for a note",
}

OF_NAMED_TUPLES = {"_replace", "_asdict", "_fields"}
BY_NAME = {"getattr", "setattr", "hasattr", "delattr"}


def module_name(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = [PACKAGE / f"{name}.py" for name in FILES]
PATHS += sorted(path for folder in FOLDERS for path in (PACKAGE / folder).glob("*.py"))
APPLICATIONS = {module_name(path) for path in PATHS}


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def private_uses(tree):
    """Private names of others: attributes, spelled out or asked for by name, and imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not own and node.attr not in OF_NAMED_TUPLES:
                yield f"{ast.unparse(node)} in line {node.lineno}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BY_NAME:
            names = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            if any(isinstance(name, str) and is_private(name) for name in names):
                yield f"{ast.unparse(node)} in line {node.lineno}"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            inside = f"{getattr(node, 'module', None) or ''}.".split(".")
            for alias in node.names:
                if any(map(is_private, [*inside, *alias.name.split(".")])):
                    yield f"{ast.unparse(node)} in line {node.lineno}"


def imported_modules(tree):
    """Modules of kmargin; a public name of the package itself counts as the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "kmargin":
            public = {*kmargin.__all__, "__version__"}
            modules = ["kmargin" if a.name in public else f"kmargin.{a.name}" for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        else:
            continue
        for module in modules:
            if module.split(".")[0] == "kmargin":
                yield module.removeprefix("kmargin").removeprefix(".")


@pytest.mark.parametrize("path", PATHS, ids=module_name)
def test_applications_use_no_private_names_of_others(path):
    assert list(private_uses(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize("path", PATHS, ids=module_name)
def test_applications_import_only_what_is_open_to_them(path):
    imported = set(imported_modules(ast.parse(path.read_text(encoding="utf-8"))))
    assert imported <= {"", *OPEN, *APPLICATIONS}


def test_nothing_is_open_that_no_application_uses():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PATHS]
    assert set(OPEN) <= {module for tree in trees for module in imported_modules(tree)}


@pytest.mark.parametrize(
    "source",
    [
        "model._fit(X)",
        "self.model._fit(X)",
        "make()._fit",
        "getattr(model, '_fit')",
        "from kmargin.validate import _shortly",
        "import kmargin._hidden",
        "from kmargin._hidden import name",
    ],
)
def test_a_private_use_is_noticed(source):
    assert len(list(private_uses(ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "source",
    ["self._fit(X)", "cls._fit", "row._replace(k=1)", "type(x).__name__", "from kmargin import __version__"],
)
def test_what_is_ones_own_or_everybodys_is_no_private_use(source):
    assert list(private_uses(ast.parse(source))) == []


def test_a_way_around_the_front_door_is_noticed():
    source = "from kmargin import SparseSVC, vectors\nimport kmargin.solvers.grid\nfrom kmargin.jit import F"
    assert set(imported_modules(ast.parse(source))) == {"", "vectors", "solvers.grid", "jit"}
