"""No module but `core.squared_hinge` spells out the loss: the source is read, what looks like it is reported.

Four things look like it: the positive part of anything, a residual compared with 0, a residual squared, and
the residual 1 - y f of a decision value. Residuals, labels and decision values are recognised by their names.
"""

import ast
import re

import pytest
from package_source import MODULES, is_in, tree_of

# Where rows have labels: nowhere else is a positive part one of a residual.
HOMES = ("core", "solvers", "fitting", "data.samples", "data.blocks.problem", "data.blocks.sums")
SCANNED = [name for name in MODULES if is_in(name, HOMES) and name != "core.squared_hinge"]

# Functions in which something looks like the loss but is something else.
EXCEPTIONS = {
    ("solvers.refit.signs", "constrained_direction"): "the decrease of a quadratic, rounding left out",
    ("solvers.search.path", "_trim"): "a number of units",
    ("data.blocks.sums", "make_panel"): "columns: empty places ask for the first",
}

RESIDUAL = re.compile(r"resid|shortfall|violation|^short$", re.IGNORECASE)
DECISION_OR_LABEL = re.compile(r"decision|^f$|^(y|labels?|signs?)$")


def own_names(node):
    """Names in an expression, but for those inside of calls, whose results mean something else."""
    if isinstance(node, ast.Call):
        return
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    else:
        children = [node.value] if isinstance(node, ast.Subscript) else ast.iter_child_nodes(node)
        for child in children:
            yield from own_names(child)


def mentions(pattern, node):
    return any(pattern.search(name) for name in own_names(node))


def called(node):
    return getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""


def is_zero(node):
    is_number = isinstance(node, ast.Constant) and not isinstance(node.value, bool)
    return called(node) == "zeros_like" or (is_number and node.value == 0)


def compared_with_zero(node):
    """What is compared with 0 by order, if this is such a comparison."""
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE):
        return None
    left, right = node.left, node.comparators[0]
    return left if is_zero(right) else right if is_zero(left) else None


def is_positive_part(node):
    """max(x, 0), np.maximum(0, x), np.clip(x, 0, None), where(x > 0, x, 0), x if x > 0 else 0."""
    if called(node) in ("max", "maximum", "fmax"):
        return len(node.args) == 2 and any(map(is_zero, node.args))
    if called(node) in ("clip", "clamp"):
        return any(map(is_zero, node.args[1:2]))
    if isinstance(node, ast.IfExp):
        test, *cases = node.test, node.body, node.orelse
    elif called(node) == "where" and len(node.args) == 3:
        test, *cases = node.args
    else:
        return False
    compared = compared_with_zero(test)
    kept = [ast.dump(case) for case in cases if not is_zero(case)]
    return compared is not None and kept == [ast.dump(compared)]


def is_margin(node):
    """1 - y f."""
    is_difference = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
    if not is_difference or not isinstance(node.left, ast.Constant) or node.left.value != 1:
        return False
    product = node.right
    is_product = isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult)
    return is_product and mentions(DECISION_OR_LABEL, product)


def is_square_of_residual(node):
    if not isinstance(node, ast.BinOp) or not mentions(RESIDUAL, node.left):
        return False
    if isinstance(node.op, ast.Pow):
        return isinstance(node.right, ast.Constant) and node.right.value == 2
    return isinstance(node.op, ast.Mult | ast.MatMult) and ast.dump(node.left) == ast.dump(node.right)


def spelled_out(tree):
    """Pairs: the innermost function, and what in it looks like the loss."""
    function_of = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            function_of |= dict.fromkeys(ast.walk(function), function.name)
    for node in ast.walk(tree):
        compared = compared_with_zero(node)
        is_active = compared is not None and mentions(RESIDUAL, compared)
        if is_positive_part(node) or is_active or is_margin(node) or is_square_of_residual(node):
            yield function_of.get(node, ""), f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("module", SCANNED)
def test_the_loss_is_spelled_out_in_squared_hinge_alone(module):
    found = [
        f"{name}, {what}" for name, what in spelled_out(tree_of(module)) if (module, name) not in EXCEPTIONS
    ]
    assert not found, (
        f"{module} spells out a loss: {'; '.join(found)}. Call core.squared_hinge instead (is_active, "
        "slope, twice_value, curvature, residual_of, ...), or add an exception here and say why it is none."
    )


@pytest.mark.parametrize(
    "line",
    [
        "v = max(rows.resid[i] - rows.delta[i], 0.0)",
        "r = np.maximum(resid, 0.0)",
        "r = xp.maximum(xp.zeros_like(x), x)",
        "r = np.clip(x, 0, None)",
        "v = v if v > 0.0 else 0.0",
        "v = xp.where(x > 0, x, xp.zeros_like(x))",
        "active = rows.resid[i] > 0.0",
        "n = np.count_nonzero(self.resid > 0)",
        "if resid[rows[r]] >= 0: pass",
        "loss = 0.5 * float(short @ short)",
        "loss = resid * resid",
        "v = 1.0 - y[i] * decision[i]",
    ],
)
def test_a_loss_is_found(line):
    assert list(spelled_out(ast.parse(f"def somewhere():\n    {line}\n")))


@pytest.mark.parametrize(
    "line",
    [
        "size = max(k, 1)",
        "if curvature > 0.0: pass",
        "slope -= column[i] * squared_hinge.slope(resid[i])",
        "active = squared_hinge.is_active(resid)",
        "length = slope / curvature if curvature > 0.0 else 0.0",
        "resid[i] = c[i] - resid[i]",
    ],
)
def test_what_only_resembles_a_loss_is_left_alone(line):
    assert not list(spelled_out(ast.parse(f"def somewhere():\n    {line}\n")))
