"""
Genes along the path, and which of them are selected again
==========================================================

A study of leukaemia has some seventy patients and thousands of genes, many of which are correlated. A sparse
model finds a few genes that separate the classes. Would it select the same genes with other patients?

The table here is simulated, so that the truth is known: :func:`~kmargin.datasets.make_genes` has the shape
of such a study, 72 x 7129, with modules of forty correlated genes. Three modules are related to the class.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from kmargin import SparseSVC, SparsityPathDisplay, StabilitySelection, sparse_svm_path
from kmargin.datasets import make_genes
from kmargin.displays.palette import CURVE, FAINT, REFERENCE

X, y, modules = make_genes(random_state=0, return_modules=True)
y = np.array(["type 1", "type 2"])[y]
names = [f"{'ABC'[m]}{j}" if 0 <= m < 3 else f"g{j}" for j, m in enumerate(modules)]
X = pd.DataFrame(X, columns=names)  # genes of the informative modules begin with A, B and C

# %%
# The path uses a strong ridge (small C), because there are few rows: among thousands of genes, some separate
# 72 patients by chance.

path = sparse_svm_path(X, y, [30, 20, 15, 10, 8, 6, 5, 4, 3, 2, 1], C=0.005, standardize=True)
SparsityPathDisplay.from_path(path, feature_names=names)
plt.show()

# %%
# Which genes are selected again? Fit a model to each of many random halves of the patients.

selection = StabilitySelection(k=10, n_pairs=25, threshold=0.9, random_state=0).fit(X, y)
genes = selection.summary().head(12)
print(genes[["feature", "frequency", "stable"]].to_string(index=False))

# %%
# Not one gene is stable. The genes of a module can replace each other, so each half selects a different one.
# If the genes of a module form a group and k counts groups, the three modules are selected again. (The signal
# is spread over forty genes, so the ridge is stronger. It matters: with k = 3 and a tenth of that ridge the
# three modules were in 65 to 85 % of the halves, short of the threshold.) In your own data, groups may be
# pathways or clusters of correlated genes.

together = [f"module {'ABC'[m] if m < 3 else m}" if m >= 0 else f"g{j}" for j, m in enumerate(modules)]
by_module = SparseSVC(k=5, C=0.0005, groups=together)
grouped = StabilitySelection(by_module, n_pairs=10, threshold=0.9, random_state=0).fit(X, y)
found = grouped.summary().drop_duplicates("group").head(12)
print(found[["group", "group_frequency", "stable"]].head(5).to_string(index=False))
assert not genes["stable"].any()
assert set(found["group"][found["stable"]]) == {"module A", "module B", "module C"}

# sphinx_gallery_thumbnail_number = 2
fig, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained", sharex=True)
for ax, frame, of, share, title in (
    (axes[0], genes, "feature", "frequency", "single genes"),
    (axes[1], found, "group", "group_frequency", "modules of genes"),
):
    tells = frame[of].str.match("(module )?[ABC]")
    ax.barh(frame[of], frame[share], color=np.where(tells, CURVE, FAINT))
    ax.axvline(0.9, **REFERENCE)
    ax.invert_yaxis()
    ax.set(xlabel="selection frequency", title=title, xlim=(0, 1.02))
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
