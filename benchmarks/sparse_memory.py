"""Peak memory of a fit to sparse data, in a process that does nothing else: as a multiple of the CSR.

    python -m benchmarks.sparse_memory news20 20 2000,500,100,20

X itself counts as one. Imports, compilation and a small fit come first and are subtracted.
"""

import json
import sys
import warnings

from benchmarks.datasets.text import csr_bytes, load_sparse
from benchmarks.memory import forget_peak, resident
from kmargin import sparse_svm_path


def main(name: str, n_classes: int, ks: list[int]) -> None:
    warnings.simplefilter("ignore", UserWarning)
    data = load_sparse(name).of_classes(n_classes)
    small_X, small_y = data.sample(200)
    sparse_svm_path(small_X, small_y, ks, multi_class="ovr", shared=False)
    before = resident("VmRSS")
    forget_peak()
    path = sparse_svm_path(data.X, data.y, ks, multi_class="ovr", shared=False)
    taken = resident("VmHWM") - before
    assert len(path.ks) == len(ks)
    print(json.dumps({"multiple": 1 + taken / csr_bytes(data.X), "bytes": taken}))


if __name__ == "__main__":
    name, n_classes, ks = sys.argv[1:]
    main(name, int(n_classes), [int(k) for k in ks.split(",")])
