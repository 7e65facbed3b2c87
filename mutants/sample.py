"""Draw mutants: copies of a source file with one small fault.

A node of the syntax tree is drawn, and one of its faults:

- a comparison, `and`, `or`, or an arithmetic or bitwise operator becomes another one; `not`, `-` and `~` go;
- a number becomes one more or one less, or twice or half of it; True becomes False;
- a condition is negated; `break` and `continue` are exchanged;
- a slice or a range starts one later or ends one earlier;
- a call or a `raise` that is a statement goes, and so does `+=`; a value is not returned;
- the first two arguments of a call are exchanged, or a keyword argument goes;
- a function is replaced by its opposite (min and max, any and all, floor and ceil, zeros and ones, ...).

Left out are faults that change nothing that a program computes: in strings, f-strings and docstrings, in
annotations and decorators, in the arguments of `raise`, of assertions and of warnings, under `TYPE_CHECKING`,
in representations, in calls on axes and figures, and in the keyword arguments of `HARMLESS_KEYWORDS`: how a
plot looks, whether a copy is made, what is printed on the way, how many threads compute, and the encoding,
which is UTF-8 where the tests run, whether it is given or not.
"""

import ast
import copy
import random
from itertools import islice
from typing import NamedTuple

REPRESENTATIONS = {"__repr__", "__str__", "_repr_html_"}
DRAWN_ON = {"ax", "axes", "axis", "figure", "plt"}
HARMLESS_KEYWORDS = {"alpha", "color", "fontsize", "label", "linewidth", "marker", "stacklevel", "strict"}
HARMLESS_KEYWORDS |= {"copy", "encoding", "n_jobs", "verbose"}
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "msg", "exc", "cause", "pattern"}
OTHER_OPERATORS: dict[type, list[type]] = {
    ast.Lt: [ast.LtE, ast.GtE], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt], ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is], ast.In: [ast.NotIn], ast.NotIn: [ast.In], ast.And: [ast.Or], ast.Or: [ast.And],
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult], ast.Pow: [ast.Mult],
    ast.FloorDiv: [ast.Mult], ast.Mod: [ast.FloorDiv], ast.BitAnd: [ast.BitOr], ast.BitOr: [ast.BitAnd],
}  # fmt: skip
PAIRS = [("min", "max"), ("any", "all"), ("argmin", "argmax"), ("minimum", "maximum"), ("floor", "ceil"),
         ("zeros", "ones"), ("zeros_like", "ones_like"), ("append", "extend")]  # fmt: skip
OTHER_FUNCTIONS = dict(PAIRS) | {b: a for a, b in PAIRS}
SYMMETRIC = {"min", "max", "minimum", "maximum", "dot", "hypot", "array_equal", "shares_memory"}


class Mutant(NamedTuple):
    """A source file with one fault."""

    path: str
    line: int
    original: str  # the lines that are changed
    mutated: str
    source: str  # the whole file, with the fault
    lines: int  # bit mask: a test that executes one of these lines may detect the fault; -1 is any line
    compiled: bool  # in a compiled function, or a constant that one reads
    in_function: bool  # in the body of a function, so that importing the file runs the same code as before


def draw_mutants(sources, n, seed):
    """Draw `n` nodes at random without replacement, and one mutant of each; all nodes if there are fewer."""
    trees = {path: ast.parse(sources[path]) for path in sorted(sources)}
    names = set().union(*(names_in_compiled_functions(tree) for tree in trees.values()))
    candidates = [(path, *c) for path, tree in trees.items() for c in find_candidates(tree, names)]
    rng = random.Random(seed)
    rng.shuffle(candidates)
    drawn = (make_mutant(path, sources[path], *rng.choice(edits), *rest) for path, edits, *rest in candidates)
    return list(islice((m for m in drawn if is_another_program(m.source, sources[m.path])), n))


def is_another_program(source, original):
    try:
        return ast.dump(ast.parse(source)) != ast.dump(ast.parse(original))
    except SyntaxError:
        return False


def make_mutant(path, source, node, replacement, *rest):
    """Replace the text of one node and leave the rest of the file as it is, on the same lines."""
    lines = source.encode().splitlines(keepends=True)  # columns of the syntax tree count bytes
    first, end = node.lineno - 1, node.end_lineno or node.lineno
    changed = lines[first][: node.col_offset] + replacement.encode() + lines[end - 1][node.end_col_offset :]
    blank = [b"\n"] * (end - first - 1)
    mutated = b"".join([*lines[:first], changed, *blank, *lines[end:]]).decode()
    before, after = (" ".join(text.decode().split()) for text in (b"".join(lines[first:end]), changed))
    return Mutant(path, node.lineno, before, after, mutated, *rest)


def find_candidates(tree, compiled_names):
    """For each node that can be mutated: the ways to mutate it, and the last three fields of its mutant."""
    users, inlined = find_users(tree), listed_as_inlined(tree)

    def visit(node, statement, lines, compiled):  # lines: None in functions, where the statement's own count
        if is_skipped(node):
            return
        statement = node if isinstance(node, ast.stmt) else statement
        if edits := [*find_edits(node, lines is None)]:
            end = max(target.lineno for target, _ in edits)  # not the body of a compound statement
            yield edits, bit_mask(statement.lineno, end) if lines is None else lines, compiled, lines is None
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or name in SKIPPED_FIELDS:
                    continue
                inside = lines, compiled
                if isinstance(node, ast.Module):
                    constant = name_assigned(child)
                    inside = users.get(constant, -1), constant in compiled_names
                elif isinstance(node, ast.FunctionDef):  # defaults belong to whatever calls the function
                    own = None if name == "body" else bit_mask(node.body[0].lineno, node.end_lineno)
                    inside = own, compiled or is_compiled(node, inlined)
                yield from visit(child, statement, *inside)

    yield from visit(tree, None, -1, False)


def functions_of(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def names_of(nodes):
    return [node for tree in nodes for node in ast.walk(tree) if isinstance(node, ast.Name)]


def listed_as_inlined(tree):
    """The functions in a tuple `INLINED`, which compiled functions include."""
    return {name.id for node in tree.body if name_assigned(node) == "INLINED" for name in names_of([node])}


def is_compiled(function, inlined):
    decorators = {name.id for name in names_of(function.decorator_list)}
    return bool(decorators & {"compiled", "inlined"}) or function.name in inlined


def names_in_compiled_functions(tree):
    inlined = listed_as_inlined(tree)
    found = [names_of(function.body) for function in functions_of(tree) if is_compiled(function, inlined)]
    return {name.id for names in found for name in names}


def find_users(tree):
    """The lines of functions that read a name, by name."""
    users = {}
    for name in (name for function in functions_of(tree) for name in names_of(function.body)):
        users[name.id] = users.get(name.id, 0) | 1 << name.lineno
    return users


def name_assigned(statement):
    """The name of a constant of the module; None for other statements."""
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    return getattr(targets[0], "id", None)


def bit_mask(first, last):
    return sum(1 << line for line in range(first, last + 1))


def is_skipped(node):
    match node:
        case ast.JoinedStr() | ast.BinOp(left=ast.Constant(value=str())):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.FunctionDef(name=name):
            return name in REPRESENTATIONS
        case ast.keyword(arg=name):
            return name in HARMLESS_KEYWORDS
        case ast.Expr(value=ast.Call() as call):
            return is_skipped(call)
        case ast.Call(func=ast.Attribute(attr=attr, value=owner)):
            return attr == "warn" or ast.unparse(owner).split(".")[0] in DRAWN_ON
    return False


def find_edits(node, in_function):
    """The ways to mutate one node, its children apart: a node, and the text that replaces it."""
    match node:
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                for other in OTHER_OPERATORS[type(op)]:
                    yield change(node, ops=[*ops[:i], other(), *ops[i + 1 :]])
        case ast.BinOp(op=ast.BitOr()) if not in_function:
            return  # a union of types
        case ast.BinOp(op=op) | ast.BoolOp(op=op):
            yield from (change(node, op=other()) for other in OTHER_OPERATORS.get(type(op), []))
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield from ((node, str(other)) for other in (value + 1, value - 1) if other >= 0)
        case ast.Constant(value=float(value)):
            yield from ((node, str(other)) for other in ((2 * value, value / 2) if value else (1.0,)))
        case ast.IfExp(test=test) | ast.If(test=test) | ast.While(test=test):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.comprehension(ifs=ifs):
            yield from ((test, f"(not ({ast.unparse(test)}))") for test in ifs)
        case ast.Slice(lower=lower, upper=upper):
            yield from shift_bounds(lower, upper)
        case ast.AugAssign(op=op):
            yield node, "pass"
            yield from (change(node, op=other()) for other in OTHER_OPERATORS.get(type(op), []))
        case ast.Expr(value=ast.Call()) | ast.Raise():
            yield node, "pass"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield node, "return None"
        case ast.Break() | ast.Continue():
            yield node, "continue" if isinstance(node, ast.Break) else "break"
        case ast.Call(func=func, args=args, keywords=keywords):
            name = getattr(func, "attr", getattr(func, "id", ""))
            if name == "range":
                yield from shift_bounds(*([None, *args] if len(args) == 1 else args[:2]))
            elif len(args) > 1 and name not in SYMMETRIC:
                yield change(node, args=[args[1], args[0], *args[2:]])
            for option in keywords:
                if option.arg and not is_skipped(option):
                    yield change(node, keywords=[other for other in keywords if other is not option])
            if name in OTHER_FUNCTIONS:
                yield func, ast.unparse(func).removesuffix(name) + OTHER_FUNCTIONS[name]


def shift_bounds(lower, upper):
    """Start one later, or end one earlier."""
    for bound, shift in ((lower, "+ 1"), (upper, "- 1")):
        if bound is not None and not isinstance(bound, ast.Starred):
            yield bound, f"({ast.unparse(bound)}) {shift}"


def change(node, **fields):
    twin = copy.copy(node)
    vars(twin).update(fields)
    text = ast.unparse(twin)
    return node, text if isinstance(node, ast.stmt) else f"({text})"
