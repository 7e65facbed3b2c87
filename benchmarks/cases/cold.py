"""Claim: the first fit on a machine takes at most 12 s of processor time, compilation included.

A process each for a single fit of an array, a path, a fit of a CSR matrix, a kernel machine and a fit by MM,
with a cache folder that is empty; then the same again with the folder as it was left. Processor time of
the fit alone, without imports.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.cases.case import Case
from benchmarks.solvers import HEADLINE

FITS = {
    "array": "SparseSVC(5).fit(X, y)",
    "path": "sparse_svm_path(X, y, [10, 5, 2])",
    "CSR": "SparseSVC(5).fit(sp.csr_matrix(X * (abs(X) > 1)), y)",
    "kernel": "KernelSparseSVC(5).fit(X, y)",
    "MM": "SparseSVC(5, solver='mm').fit(X, y)",
}
PROGRAM = """
import time
import numpy as np
import scipy.sparse as sp
from kmargin import KernelSparseSVC, SparseSVC, sparse_svm_path
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 40))
y = (X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(200) > 0).astype(int)
started = time.process_time()
{fit}
print(time.process_time() - started)
"""


class Cold(Case):
    name = "cold"

    def run(self, record, scale):
        for what in list(FITS)[:1] if scale == "quick" else FITS:
            with tempfile.TemporaryDirectory() as cache:
                for metric in ("seconds, cold", "seconds, warm"):
                    seconds = processor_time(what, Path(cache))
                    record.add(HEADLINE, metric, seconds, parameter="fit", level=what)
                    print(f"    {what:<8} {metric:<14} {seconds:6.2f}", flush=True)

    def reached(self, frame):
        seconds = frame.groupby(["metric", "level"])["value"].min()
        return {f"processor time, {when}": seconds[f"seconds, {when}"].to_dict() for when in ("cold", "warm")}


def processor_time(what, cache):
    """Of one fit in a process of its own."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    program = [sys.executable, "-W", "ignore", "-c", PROGRAM.format(fit=FITS[what])]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)
