"""How far one fit walks through the package: `SCIPY_ARRAY_API=1 python benchmarks/walk.py`.

For each kind of data the modules and functions of kmargin that one `fit` enters, and how often the module
changes from one function to the next in the order of their first uses. Compiled functions count where Python
calls them; what they call is not seen.
"""

import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse
import sklearn

import kmargin
from kmargin import SparseSVC

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


def kinds(X, y):
    """The same data, kind by kind; those whose libraries are installed."""
    yield "dense", X, y
    yield "CSR", scipy.sparse.csr_matrix(X), y
    with suppress(ImportError):
        import dask.array as da

        yield "dask", da.from_array(X, chunks=(50, -1)), da.from_array(y, chunks=50)
    with suppress(ImportError):
        import torch

        yield "torch", torch.asarray(X), torch.asarray(y)


def main():
    X = np.random.default_rng(0).standard_normal((200, 30))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    print("| kind | modules | functions | changes of module |\n|---|---|---|---|")
    for name, data, labels in kinds(X, y):
        with sklearn.config_context(array_api_dispatch=name == "torch"):
            entered = functions_entered(lambda data=data, labels=labels: SparseSVC(k=5).fit(data, labels))
        modules = [module for module, *_ in entered]
        n_changes = sum(a != b for a, b in pairwise(modules))
        print(f"| {name} | {len(set(modules))} | {len(entered)} | {n_changes} |")


if __name__ == "__main__":
    main()
