"""kmargin against its peers: datasets, solvers and objectives in separate files, one runner for all.

Importing this package fixes every thread pool to one thread. It has to happen before NumPy, numba
or a peer is imported, which is why it stands here.
"""

import os

N_THREADS = 1

for _library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = str(N_THREADS)
os.environ["VECLIB_MAXIMUM_THREADS"] = str(N_THREADS)
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
