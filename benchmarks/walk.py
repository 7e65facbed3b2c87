"""How far one fit walks through the package: `python -m benchmarks.walk`.

For each kind of data the modules and functions of kmargin that one `fit` enters, and how often the module
changes from one function to the next in the order of their first uses. Compiled functions count where Python
calls them; what they call is not seen. Up to Python 3.11 comprehensions count as functions, too; the column
`named` leaves out these and lambdas.
"""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from fuzz import Case

import kmargin

PACKAGE = str(Path(kmargin.__file__).parent)


def functions_entered(fit):
    """Module, name and line of the functions of kmargin that a call enters, in the order of first uses."""
    found = {}

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            module = code.co_filename.removeprefix(PACKAGE).strip("/").removesuffix(".py").replace("/", ".")
            found.setdefault((module, code.co_name, code.co_firstlineno))

    fit()  # what is done once, such as imports and compilation, is not counted
    sys.setprofile(note)
    try:
        fit()
    finally:
        sys.setprofile(None)
    return list(found)


def main():
    X = np.random.default_rng(0).standard_normal((200, 30))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    print("| kind | modules | functions | named | changes of module |\n|---|---|---|---|---|")
    for name, form in {"dense": "c", "CSR": "csr", "dask": "dask", "torch": "torch"}.items():
        if form == name and importlib.util.find_spec(form) is None:
            continue
        entered = functions_entered(Case(1, "", X, y, "SparseSVC", {"k": 5}, form=form).fit)
        modules = [module for module, *_ in entered]
        n_changes = sum(a != b for a, b in pairwise(modules))
        n_named = sum(not function.startswith("<") for _, function, _ in entered)
        print(f"| {name} | {len(set(modules))} | {len(entered)} | {n_named} | {n_changes} |")


if __name__ == "__main__":
    main()
