"""
Calibrated probabilities
========================

A decision value tells on which side of the boundary a row lies. A probability tells how often that prediction
is right. :class:`~kmargin.SparseSVCCV` calibrates probabilities on the held-out rows of its folds, without
further fits.

Are they well calibrated? Of all rows with a probability of 70 %, seventy in a hundred should belong to the
class. The data are simulated, so there are plenty of test rows: pairs of genes, five of which separate the
classes, none of them clearly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from kmargin import SparseSVCCV
from kmargin.datasets import make_genes
from kmargin.displays.palette import BAD, CURVE, FAINT, REFERENCE

X, y = make_genes(6000, 100, n_modules=10, genes_per_module=2, n_telling=5, random_state=0, effect=0.9)
train, test = slice(300), slice(300, None)  # 300 training rows, 5,700 test rows
ks, Cs = [50, 20, 10, 5, 3, 2], [0.0001, 0.001, 0.01, 0.1, 1.0]
model = SparseSVCCV(ks, Cs=Cs, scoring="neg_log_loss", standardize=True).fit(X[train], y[train])
print(f"k = {model.k_} and C = {model.C_:g} were chosen by log loss")

# %%
# For comparison, a tempting shortcut: apply the logistic function to the decision values directly.

calibrated = model.predict_proba(X[test])[:, 1]
squashed = 1 / (1 + np.exp(-model.decision_function(X[test])))
constant = np.full(len(calibrated), y[train].mean())
for name, p in (("calibrated", calibrated), ("squashed", squashed), ("base rate", constant)):
    loss, brier = log_loss(y[test], p), brier_score_loss(y[test], p)
    print(f"{name:<11} log loss {loss:.3f}, Brier score {brier:.3f}")
assert log_loss(y[test], calibrated) < log_loss(y[test], squashed)

# %%
# Points on the diagonal are perfectly calibrated. The probabilities calibrated on 300 rows are off by a few
# percentage points, the shortcut by many more. The bars show how many rows have which probability.

fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(5.6, 5.8), layout="constrained", sharex=True, height_ratios=[3.2, 1]
)
top.plot([0, 1], [0, 1], **REFERENCE)
for name, p, colour, marker, style in (
    ("predict_proba", calibrated, CURVE, "o", "-"),
    ("logistic function of decision values", squashed, BAD, "s", "--"),
):
    happened, said = calibration_curve(y[test], p, n_bins=10)
    print(f"{name}: off by {np.mean(np.abs(happened - said)):.1%} on average")
    top.plot(said, happened, color=colour, marker=marker, ls=style, label=name)
top.set(ylabel="observed frequency of the class", ylim=(-0.02, 1.03))
top.legend(frameon=False, loc="upper left")
bottom.hist(calibrated, bins=np.linspace(0, 1, 21), color=FAINT, edgecolor="white")
bottom.set(xlabel="predicted probability of the class", ylabel="rows", xlim=(0, 1))
for ax in (top, bottom):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
