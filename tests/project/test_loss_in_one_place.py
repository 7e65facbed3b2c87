"""No module but `core.squared_hinge` spells out the loss: no other takes the positive part of anything,
compares a residual with 0, squares one, or has the residual 1 - y f of a decision value.
"""

import ast
import re

import pytest
from package_source import MODULES, is_in, tree_of

# Where rows have labels: nowhere else is a positive part one of a residual.
HOMES = ("core", "solvers", "fitting", "data.samples", "data.blocks.problem", "data.blocks.sums")
SCANNED = [name for name in MODULES if is_in(name, HOMES) and name != "core.squared_hinge"]

# What looks like the loss but is a decrease of a quadratic, a number of units, or places without a column.
EXCEPTIONS = {"max(decrease, 0.0)", "max(0, len(found.support) - size)", "np.maximum(columns[:end], 0)"}

ZERO, RESIDUAL = r"0(?:\.0)?", r"[\w.]*(?:resid|short|violation)\w*(?:\[[^][]*\])?"
LOSS = re.compile(
    rf"[\w.]*(max|maximum|fmax|clip|clamp)\({ZERO}, .*\)|[\w.]*(max|maximum|fmax)\(.*, {ZERO}\)"
    rf"|[\w.]*(clip|clamp)\([^,]*, {ZERO}, .*\)|{RESIDUAL} [<>]=? {ZERO}|({RESIDUAL}) [*@] \4"
    rf"|{RESIDUAL} \*\* 2|1(\.0)? - [\w.]*\b(y|f|labels?|decisions?)\b\S* \* .*"
)


def find_losses(tree):
    """Expressions that look like the loss."""
    kinds = ast.Call | ast.BinOp | ast.Compare
    return {
        text
        for node in ast.walk(tree)
        if isinstance(node, kinds) and LOSS.fullmatch(text := ast.unparse(node))
    }


@pytest.mark.parametrize("module", SCANNED)
def test_the_loss_is_spelled_out_in_squared_hinge_alone(module):
    found = find_losses(tree_of(module)) - EXCEPTIONS
    assert not found, f"call core.squared_hinge instead, or add an exception here: {found}"


@pytest.mark.parametrize(
    ("line", "is_loss"),
    [
        ("v = max(rows.resid[i] - rows.delta[i], 0.0)", True),
        ("r = np.clip(x, 0, None)", True),
        ("n = np.count_nonzero(self.resid > 0)", True),
        ("loss = 0.5 * float(short @ short)", True),
        ("loss = resid ** 2", True),
        ("v = 1.0 - y[i] * decision[i]", True),
        ("size = max(k, 1)", False),
        ("active = squared_hinge.is_active(resid)", False),
        ("resid[i] = c[i] - resid[i]", False),
    ],
)
def test_a_loss_is_found_and_what_only_resembles_one_is_left_alone(line, is_loss):
    assert bool(find_losses(ast.parse(line))) == is_loss
