"""Applications use the package as anybody could: by public names, and by modules that are open to them."""

import ast

import pytest
from package_source import MODULES, imported_modules, is_in, tree_of

# What is open to applications beside the names of `kmargin` itself, and why.
OPEN = {
    "core.arrays": "names for arrays; plots want arrays in main memory",
    "core.validation": "messages, and checks of arguments in the words of the estimators",
    "model_selection.scores": "folds, standard errors, and the choice of k and C from a table of scores",
    "model_selection.nested": "the nested score and the permutation test of `honest_score`",
    "estimators.cv": "cross-validation of a grid of C and k, with a preparation for each fold",
    "fitting.progress": "bars",
    "core.linalg": "one thread for each of several processes",
    "datasets": "the data of the paper, documented for users",
    "core.units": "what k counts, as a stored model holds it, and requests about features",
    "core.labels": "the names of binary classifiers, and classes from their decisions",
    "fitting.decisions": "a kernel by name and numbers, which is what a stored model holds",
    "fitting.path": "the decision function of a linear model, which is what a stored model holds",
    "model_selection.calibration": "probabilities, as a stored model holds them",
    "core.sparsity": "how many features the paper's sparsities keep",
    "core.squared_hinge": "which rows the paper counts as support vectors",
    "core.problem": "the type of what a solver solves, for experiments that run solvers by themselves",
    "data.samples.array": "labelled rows in memory, for preparations of the application's own",
    "fitting.spec": "linear and kernel models without an estimator; features that repeat another one",
    "fitting.fit": "such models fitted for every C and k, on samples that were prepared elsewhere",
    "fitting.drop_costs": "how much the objective rises without a feature",
}

OF_NAMED_TUPLES = {"_replace", "_asdict", "_fields"}
BY_NAME = {"getattr", "setattr", "hasattr", "delattr"}


APPLICATIONS = [name for name in MODULES if is_in(name, ("displays", "tables", "report", "cli", "paper"))]


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


@pytest.mark.parametrize("name", APPLICATIONS)
def test_applications_use_no_private_names_of_others(name):
    assert list(private_uses(tree_of(name))) == []


@pytest.mark.parametrize("name", APPLICATIONS)
def test_applications_import_only_what_is_open_to_them(name):
    assert set(imported_modules(ast.walk(tree_of(name)))) <= {"", *OPEN, *APPLICATIONS}


def test_nothing_is_open_that_no_application_uses():
    assert set(OPEN) <= {used for name in APPLICATIONS for used in imported_modules(ast.walk(tree_of(name)))}
