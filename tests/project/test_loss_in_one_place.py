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


def is_positive_part(test, *cases):
    """Whether a choice between two cases is that of x where x > 0, and of 0 elsewhere."""
    if not isinstance(test, ast.Compare):
        return False
    sides, kept = [test.left, test.comparators[0]], [case for case in cases if not is_zero(case)]
    return any(map(is_zero, sides)) and len(kept) == 1 and ast.dump(kept[0]) in map(ast.dump, sides)


def looks_like_the_loss(node):
    match node:
        case ast.Call(args=[one, other]) if called(node) in ("max", "maximum", "fmax"):
            return is_zero(one) or is_zero(other)
        case ast.Call(args=[_, low, *_]) if called(node) in ("clip", "clamp"):
            return is_zero(low)
        case ast.Call(args=[test, one, other]) if called(node) == "where":
            return is_positive_part(test, one, other)
        case ast.IfExp(test, one, other):
            return is_positive_part(test, one, other)
        case ast.Compare(left, [ast.Gt() | ast.GtE() | ast.Lt() | ast.LtE()], [right]):
            return (is_zero(left) or is_zero(right)) and mentions(RESIDUAL, node)
        case ast.BinOp(ast.Constant(value=1), ast.Sub(), ast.BinOp(_, ast.Mult(), _) as product):
            return mentions(DECISION_OR_LABEL, product)
        case ast.BinOp(base, ast.Pow(), ast.Constant(value=2)):
            return mentions(RESIDUAL, base)
        case ast.BinOp(one, ast.Mult() | ast.MatMult(), other):
            return mentions(RESIDUAL, one) and ast.dump(one) == ast.dump(other)
    return False


def spelled_out(tree):
    """Pairs: the innermost function, and what in it looks like the loss."""
    function_of = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            function_of |= dict.fromkeys(ast.walk(function), function.name)
    for node in ast.walk(tree):
        if looks_like_the_loss(node):
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


LOSSES = [
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
]
OTHERS = [
    "size = max(k, 1)",
    "if curvature > 0.0: pass",
    "slope -= column[i] * squared_hinge.slope(resid[i])",
    "active = squared_hinge.is_active(resid)",
    "length = slope / curvature if curvature > 0.0 else 0.0",
    "resid[i] = c[i] - resid[i]",
]


@pytest.mark.parametrize("line", LOSSES + OTHERS)
def test_a_loss_is_found_and_what_only_resembles_one_is_left_alone(line):
    assert bool(list(spelled_out(ast.parse(line)))) == (line in LOSSES)
