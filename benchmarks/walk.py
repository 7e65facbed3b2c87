"""How far one fit walks through the package: `SCIPY_ARRAY_API=1 python benchmarks/walk.py`.

For each kind of data the modules and functions of kmargin that one `fit` enters, and how often the module
changes from one function to the next in the order of their first uses. Compiled functions count where Python
calls them; what they call is not seen.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import scipy.sparse
import sklearn

import kmargin
from kmargin import SparseSVC

PACKAGE = str(Path(kmargin.__file__).parent)


class Walk:
    """The functions of kmargin, in the order of their first uses."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str, int], None] = {}

    @contextmanager
    def watch(self) -> Iterator[None]:
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            module = code.co_filename.removeprefix(PACKAGE).strip("/").removesuffix(".py").replace("/", ".")
            self.functions.setdefault((module, code.co_name, code.co_firstlineno))

    @property
    def modules(self) -> list[str]:
        """One for each function."""
        return [module for module, *_ in self.functions]

    @property
    def n_changes(self) -> int:
        return sum(a != b for a, b in zip(self.modules, self.modules[1:], strict=False))


def kinds(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Any, Any]]:
    """The same data, kind by kind; those whose libraries are there."""
    yield "dense", X, y
    yield "CSR", scipy.sparse.csr_matrix(X), y
    try:
        import dask.array as da

        yield "dask", da.from_array(X, chunks=(50, -1)), da.from_array(y, chunks=50)
    except ImportError:
        print("dask is not installed", file=sys.stderr)
    try:
        import torch

        yield "torch", torch.asarray(X), torch.asarray(y)
    except ImportError:
        print("torch is not installed", file=sys.stderr)


def walk(fit: Callable[[], Any]) -> Walk:
    fit()  # what is done once, such as imports and compilation, is not counted
    seen = Walk()
    with seen.watch():
        fit()
    return seen


def main() -> None:
    X = np.random.default_rng(0).standard_normal((200, 30))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    print("| kind | modules | functions | changes of module |\n|---|---|---|---|")
    for name, data, labels in kinds(X, y):
        with sklearn.config_context(array_api_dispatch=name == "torch"):
            seen = walk(lambda data=data, labels=labels: SparseSVC(k=5).fit(data, labels))
        print(f"| {name} | {len(set(seen.modules))} | {len(seen.functions)} | {seen.n_changes} |")


if __name__ == "__main__":
    main()
