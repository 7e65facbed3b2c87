"""
The same model from blocks of rows
==================================

A table that is too large for memory, or that is spread over several computers, comes as blocks of rows: a
dask array or dataframe. :class:`~kmargin.SparseSVC` accepts it directly. Each step of the search sends a
request to every block, and adds up the answers in the order of the blocks. X is never moved.

The coefficients should therefore equal those of the fit in memory. Do they?
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from kmargin import SparseSVC
from kmargin.datasets import make_sparse_hyperplane
from kmargin.displays.palette import CURVE, FAINT, INK, REFERENCE, SOFT

X, y, truth = make_sparse_hyperplane(12_000, 60, 8, random_state=0, return_coef=True)
in_memory = SparseSVC(k=8).fit(X, y)

# %%
# Blocks of three sizes, processed by the threads of this process. With a ``distributed.Client``, the workers
# of a cluster would process them; ``examples/out_of_core.py`` in the repository does that, with 1.6 GB of
# data and two workers.

models = {}
for rows in (6000, 2000, 500):
    blocks = da.from_array(X, chunks=(rows, -1))
    models[rows] = SparseSVC(k=8).fit(blocks, da.from_array(y, chunks=rows))
    difference = np.abs(models[rows].coef_ - in_memory.coef_).max()
    print(f"{blocks.numblocks[0]:>2} blocks of {rows:>4} rows: largest difference {difference:.0e}")
    assert np.array_equal(models[rows].support_, in_memory.support_)
    assert difference < 1e-6 * np.abs(in_memory.coef_).max()

# %%
# The model is the same, however the rows are divided into blocks.

fig, ax = plt.subplots(figsize=(7.2, 4.0), layout="constrained")
places = np.arange(X.shape[1])
ax.bar(places, in_memory.coef_[0], color=FAINT, width=0.9, label="in memory")
for (rows, model), marker, size, colour in zip(
    models.items(), "os^", (11, 7, 4), (SOFT, CURVE, INK), strict=True
):
    at = model.support_
    label = f"{len(X) // rows} blocks"
    ax.plot(at, model.coef_[0, at], marker, ms=size, mfc="none", mec=colour, mew=1.5, label=label)
ax.axhline(0, **REFERENCE)
ax.set(xlabel="feature", ylabel="coefficient")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, fontsize="small")
plt.show()
