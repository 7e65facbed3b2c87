"""kmargin against its peers: datasets, solvers and objectives in separate files, one runner for all.

Importing this package fixes every thread pool to one thread. It has to happen before NumPy, numba
or a peer is imported, which is why it stands here.
"""

import os

N_THREADS = 1

for _variable in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
):
    os.environ[_variable] = str(N_THREADS)
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
