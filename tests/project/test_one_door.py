"""Kinds of data are told apart where they come in, and by those that are such a kind; by nobody else."""

import ast

import pytest
from package_source import MODULES, is_in, tree_of

# These work on tables and models of their own; `test_front_door` says what else they may use.
APPLICATIONS = ("datasets", "paper", "tables", "report", "cli")

# Where kinds are told apart, and why there.
ALLOWED = {
    "fitting.spec": "columns that repeat each other are the rule in sparse matrices",
    "data.samples.read": "the door",
    "data.samples.blocks": "labels and weights of any kind are brought to where X is",
    "data.samples.array": "rows that are its own, or already copied",
    "data.blocks": "what makes a thing dask's, without dask",
    "core.arrays": "the libraries of arrays",
    "fitting.fit": "models of float32 are rounded where the rows are in memory",
    "solvers.proximal.penalised": "compiled loops take rows in memory",
    "solvers.refit.rows": "rows in memory, or in blocks",
    "solvers.search.panels": "covariances within groups are taken where rows are in memory",
    "solvers.search.path": "rows in memory have more kinds of linear algebra",
    "data.blocks.dask_input": "dask arrays and dataframes, refused or taken",
    "data.blocks.dask_blocks": "the same, computed block by block",
    "data.blocks.sums": "a block that is no array of NumPy's is refused",
    "data.design": "arrays and CSR matrices; the same for compiled loops",
    "solvers.proximal.compiled": "the same, the rows of several binary problems stacked",
    "fitting.decisions": "one product instead of distances, for arrays",
    "core.linalg": "asks a library of threads, not data",
}

ASKING = {"hasattr", "is_dask", "is_foreign", "device_space", "issparse", "isspmatrix"}

# Implementations of the protocols are defined here; whoever is given one asks it, and not which it is.
HOMES = ("data", "core.problem", "solvers.refit.rows", "core.design")
FROM_OUTSIDE = {
    "Array", "DataFrame", "MaskedArray", "Series", "Tensor", "csc_array", "csc_matrix", "csr_array",
    "csr_matrix", "ndarray", "sparray", "spmatrix",
}  # fmt: skip


def find_kinds():
    """The names of all classes that are a kind of data, or of what is made of one."""
    trees = [tree_of(name) for name in MODULES if is_in(name, HOMES)]
    own = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return {name for name in own if not name.startswith("_")} | FROM_OUTSIDE


KINDS = find_kinds()


def names_in(node):
    """The last part of every name."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute):
            yield part.id if isinstance(part, ast.Name) else part.attr


def branches(tree):
    """Every place where kinds of data are told apart."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
            continue
        called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        is_of_kind = called in ("isinstance", "issubclass") and KINDS & set(names_in(node.args[1]))
        if called in ASKING or is_of_kind:
            yield f"{ast.unparse(node)} in line {node.lineno}"


@pytest.mark.parametrize(
    "name", [name for name in MODULES if name not in ALLOWED and not is_in(name, APPLICATIONS)]
)
def test_nobody_else_asks_which_kind_of_data_it_has(name):
    found = list(branches(tree_of(name)))
    assert not found, f"ask the object itself, or say in ALLOWED why {name} tells kinds apart: {found}"


@pytest.mark.parametrize("name", ALLOWED)
def test_the_list_of_those_who_do_is_no_longer_than_it_has_to_be(name):
    assert list(branches(tree_of(name)))
