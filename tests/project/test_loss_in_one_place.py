"""Nobody spells out the loss but `core.squared_hinge`: the source is read, what looks like one is reported.

Four things look like one: the positive part of anything, where rows have labels; a residual compared with 0;
a residual squared; and the residual 1 - y f of a decision value. A residual is what is called one, or was
computed from one by arithmetic; what a function returns is its own business.
"""

import ast
import re

import pytest
from package_source import MODULES, tree_of

# What these know of rows has no labels in it, so that a positive part is none of a residual.
WITHOUT_LABELS = ("core.design", "data.design", "data.blocks.dask_blocks")
WITHOUT_LABELS += ("datasets.", "tables.", "displays", "report.")

# Where something looks like the loss and is none, and why.
EXCEPTIONS = {
    ("solvers.refit.dual", "scores"): "a predicted gain, not a value",
    ("solvers.refit.signs", "constrained_direction"): "the decrease of a quadratic, rounding left out",
    ("solvers.search.path", "_trim"): "a number of units",
    ("data.blocks.sums", "make_panel"): "columns, not residuals: places without one ask for the first",
    ("model_selection.scores", "wilson"): "ends of an interval, which lie within 0 and 1",
    ("model_selection.scores", "mean_interval"): "the same",
    ("model_selection.scores", "mean_of_rates"): "the same",
    ("estimators.stability", "summary"): "places, not residuals: features of no unit ask for the first",
    ("model_selection.calibration", "_without_offsets"): "slopes, which never fall",
    ("model_selection.calibration", "couple"): "probabilities, rounding left out",
}

RESIDUAL = re.compile(r"resid|shortfall|violation|^short$", re.IGNORECASE)
DECISION = re.compile(r"decision|^f$")
LABEL = re.compile(r"^(y|labels?|signs?)$")


NAMES = [name for name in MODULES if name not in ("core.loss", "core.squared_hinge")]


def own_names(node):
    """Names in an expression, but for those inside of calls: what these return has another meaning."""
    if isinstance(node, ast.Call):
        return
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
        return
    elif isinstance(node, ast.Subscript):
        yield from own_names(node.value)
        return
    for child in ast.iter_child_nodes(node):
        yield from own_names(child)


def is_zero(node):
    if isinstance(node, ast.Call):  # zeros_like(...)
        return called(node) == "zeros_like"
    return isinstance(node, ast.Constant) and not isinstance(node.value, bool) and node.value == 0


def called(node):
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def is_positive_part(node):
    """max(x, 0), np.maximum(0, x), np.clip(x, 0, None), where(x > 0, x, 0), x if x > 0 else 0."""
    if isinstance(node, ast.Call) and called(node) in ("max", "maximum", "fmax"):
        return any(map(is_zero, node.args)) and len(node.args) == 2
    if isinstance(node, ast.Call) and called(node) in ("clip", "clamp"):
        lower = [*node.args[1:2], *(word.value for word in node.keywords if word.arg in ("min", "a_min"))]
        return any(map(is_zero, lower))
    if isinstance(node, ast.IfExp):
        test, one, other = node.test, node.body, node.orelse
    elif isinstance(node, ast.Call) and called(node) == "where" and len(node.args) == 3:
        test, one, other = node.args
    else:
        return False
    compared = is_zero_comparison(test)
    return compared is not None and any(
        is_zero(zero) and ast.dump(kept) == ast.dump(compared) for kept, zero in ((one, other), (other, one))
    )


def is_zero_comparison(node):
    """What is compared with 0 by order, if this is such a comparison."""
    order = ast.Gt | ast.GtE | ast.Lt | ast.LtE
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], order):
        left, right = node.left, node.comparators[0]
        if is_zero(right) or is_zero(left):
            return left if is_zero(right) else right
    return None


def is_margin(node):
    """1 - y f."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)):
        return False
    if not (isinstance(node.left, ast.Constant) and node.left.value == 1):
        return False
    product = node.right
    if not (isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult)):
        return False
    names = [list(own_names(side)) for side in (product.left, product.right)]
    return any(LABEL.search(name) or DECISION.search(name) for side in names for name in side)


def functions(tree):
    """Each outermost function with its name, and what is outside of all."""
    rest = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node)
        elif isinstance(node, ast.FunctionDef):
            yield node.name, [node]
        else:
            rest.append(node)
    yield "", rest


def residuals_in(nodes):
    """Names that stand for residuals: by what they are called, or by what they were computed from."""
    known = set()
    while True:
        before = len(known)
        for node in (found for top in nodes for found in ast.walk(top)):
            if isinstance(node, ast.Assign | ast.NamedExpr | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target, value in pairs(targets, node.value):
                    if mentions_residual(value, known) and not isinstance(value, ast.Compare):
                        known.update(own_names(target))
        if len(known) == before:
            return known


def pairs(targets, value):
    for target in targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            yield from zip(target.elts, value.elts, strict=False)
        elif isinstance(target, ast.Name):
            yield target, value


def mentions_residual(node, known):
    return any(name in known or RESIDUAL.search(name) for name in own_names(node))


def is_square_of_residual(node, known):
    if not isinstance(node, ast.BinOp) or not mentions_residual(node.left, known):
        return False
    if isinstance(node.op, ast.Pow):
        return isinstance(node.right, ast.Constant) and node.right.value == 2
    return isinstance(node.op, ast.Mult | ast.MatMult) and ast.dump(node.left) == ast.dump(node.right)


def spelled_out(tree, with_labels=True):
    """Pairs: the function, and what in it looks like a loss."""
    for name, nodes in functions(tree):
        known = residuals_in(nodes)
        for node in (found for top in nodes for found in ast.walk(top)):
            compared = is_zero_comparison(node)
            if (
                (with_labels and is_positive_part(node))
                or (compared is not None and mentions_residual(compared, known))
                or is_margin(node)
                or is_square_of_residual(node, known)
            ):
                yield name, f"line {node.lineno}: {ast.unparse(node)}"


def found_in(module):
    return list(spelled_out(tree_of(module), not module.startswith(WITHOUT_LABELS)))


@pytest.mark.parametrize("module", NAMES)
def test_the_loss_is_spelled_out_in_losses_alone(module):
    found = [f"{name}, {what}" for name, what in found_in(module) if (module, name) not in EXCEPTIONS]
    assert not found, (
        f"{module} spells out a loss: {'; '.join(found)}. Call core.squared_hinge instead (is_active, "
        "slope, twice_value, curvature, residual_of, ...), or add an exception here and say why it is none."
    )


def test_no_exception_is_made_in_vain():
    assert {(module, name) for module in NAMES for name, _ in found_in(module)} == set(EXCEPTIONS)


@pytest.mark.parametrize(
    "line",
    [
        "v = max(rows.resid[i] - rows.delta[i], 0.0)",
        "v = max(0, x)",
        "r = np.maximum(resid, 0.0)",
        "r = xp.maximum(xp.zeros_like(x), x)",
        "r = np.clip(x, 0, None)",
        "v = v if v > 0.0 else 0.0",
        "v = 0.0 if v < 0 else v",
        "v = xp.where(x > 0, x, xp.zeros_like(x))",
        "active = rows.resid[i] > 0.0",
        "n = np.count_nonzero(self.resid > 0)",
        "n = np.count_nonzero(0 < self.resid)",
        "if resid[rows[r]] >= 0: pass",
        "r = resid[i] - t * delta[i]\n    if r > 0.0: pass",
        "r, s = c - residual, 1.0\n    active = r > 0",
        "loss = 0.5 * float(short @ short)",
        "loss = resid * resid",
        "r = c - self.resid\n    loss = r**2",
        "v = 1.0 - y[i] * decision[i]",
        "v = 1 - decision * self.y",
    ],
)
def test_a_loss_is_found(line):
    assert list(spelled_out(ast.parse(f"def somewhere():\n    {line}\n")))


@pytest.mark.parametrize(
    "line",
    [
        "size = max(k, 1)",
        "largest = s.max(initial=0.0)",
        "step = exact_step(resid, delta)\n    if step > 0.0: pass",
        "if curvature > 0.0: pass",
        "kept = weights > 0",
        "slope -= column[i] * squared_hinge.slope(resid[i])",
        "active = squared_hinge.is_active(resid)",
        "share = 1.0 - k / n",
        "length = slope / curvature if curvature > 0.0 else 0.0",
        "resid[i] = c[i] - resid[i]",
        "value = total_loss(resid) + 0.5 * lam * np.dot(w, w)\n    if value > 0: pass",
    ],
)
def test_what_only_resembles_a_loss_is_left_alone(line):
    assert not list(spelled_out(ast.parse(f"def somewhere():\n    {line}\n")))
