"""
A table that is never loaded as a whole
=======================================

Fit files block by block, with several processes of one computer::

    pip install '.[dask]'
    python examples/out_of_core.py

Writes 1.6 GB of Parquet, 2,000,000 rows with 100 features, into a temporary folder, then fits it with two
worker processes limited to 2 GB each. Each worker reads some of the blocks and holds them; what does not fit
into its memory is written to disk by dask. X is never sent between processes.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from kmargin import SparseSVC

N_FILES, ROWS_PER_FILE, N_FEATURES, K = 80, 25_000, 100, 5
LIMIT = "2GB"
NAMES = [f"x{j}" for j in range(N_FEATURES)]


def write_files(folder: Path) -> int:
    """Write files of random data in which the first five features matter; return their bytes in memory."""
    rng = np.random.default_rng(0)
    for number in range(N_FILES):
        X = rng.standard_normal((ROWS_PER_FILE, N_FEATURES))
        y = X[:, :K] @ np.linspace(1.0, 0.6, K) + rng.standard_normal(ROWS_PER_FILE) > 0
        table = pd.DataFrame(X, columns=NAMES).assign(y=np.where(y, "yes", "no"))
        table.to_parquet(folder / f"part{number:03d}.parquet", index=False)
    return N_FILES * ROWS_PER_FILE * N_FEATURES * 8


def main() -> None:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n_bytes = write_files(folder)
        print(
            f"{N_FILES * ROWS_PER_FILE:,} x {N_FEATURES}: {n_bytes / 1e9:.1f} GB; two workers, {LIMIT} each"
        )
        cluster = LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=LIMIT,
            dashboard_address=":0",
            local_directory=name,
        )
        with cluster, Client(cluster):
            table = dd.read_parquet(folder)
            started = time.perf_counter()
            model = SparseSVC(k=K).fit(table[NAMES], table["y"])
            print(f"fitted in {time.perf_counter() - started:.0f} s")
            for feature, coef in zip(
                model.feature_names_in_[model.support_], model.coef_[0, model.support_], strict=True
            ):
                print(f"  {feature:<4} {coef:+.3f}")
            print(f"training accuracy {model.score(table[NAMES], table['y']):.3f}")


if __name__ == "__main__":  # worker processes import this file, too
    main()
