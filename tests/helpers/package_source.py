"""The source of the package, module by module, as syntax trees."""

import ast
from functools import cache
from pathlib import Path

import kmargin

ROOT = Path(__file__).parent.parent.parent
PACKAGE = Path(kmargin.__file__).parent


def module_name(path):
    """The name of a module without `kmargin.`; "" is the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree_of(name):
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def is_in(name, folders):
    """Whether a module is one of these or in one of these folders."""
    return any(name == folder or name.startswith(f"{folder}.") for folder in folders)


def imported_modules(nodes):
    """Modules of the package that these statements import; a public name of the package counts as ""."""
    for node in nodes:
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer"
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in found:
            if name.split(".")[0] == "kmargin":
                inside = name.removeprefix("kmargin").removeprefix(".")
                is_module = inside in MODULES or isinstance(node, ast.Import)
                yield inside if is_module else inside.rpartition(".")[0]
