"""
Choosing k, and validating the result
=====================================

A cross-validation evaluates many k and C and takes the best. The score of the best is partly due to chance:
even if no feature were related to the labels, some k would look good. Permuted labels, which are independent
of X, show how good.

:func:`~kmargin.honest_score` repeats the whole choice in outer folds, and scores it on rows that had no part
in it. How much the two scores differ depends on the data and on the number of candidates.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from kmargin import GridEdgeWarning, SparseSVCCV, honest_score
from kmargin.displays.palette import BAD, CURVE, REFERENCE

X, y = load_breast_cancer(return_X_y=True)
rng = np.random.default_rng(0)
rows = np.concatenate([rng.choice(np.flatnonzero(y == c), 30, replace=False) for c in (0, 1)])
X, y = X[rows], y[rows]  # a small study: 30 patients per class, so the baseline is one half
model = SparseSVCCV(ks=[10, 5, 3, 2, 1], Cs=[0.01, 0.1, 1.0, 10.0], standardize=True)

# %%
# Permute the labels twelve times, and choose a model each time.

inner, honest = [], []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", GridEdgeWarning)  # without any signal, any corner may be best
    for _ in range(12):
        permuted = rng.permutation(y)
        inner.append(model.fit(X, permuted).best_score_)
        honest.append(honest_score(model, X, permuted).score)
guessing = 0.5
print(f"on permuted labels the best cross-validation score is {np.mean(inner):.1%} on average")
print(f"the honest score is {np.mean(honest):.1%}")
assert np.mean(inner) > guessing + 0.05
assert np.mean(honest) < guessing + 0.02

# %%
# Now the original labels:

chosen = model.fit(X, y)
found = honest_score(model, X, y)
print(f"k = {chosen.k_} was chosen with a cross-validation score of {chosen.best_score_:.1%}")
low, high = found.interval
print(f"the honest score is {found.score:.1%} (95 % interval {low:.1%} to {high:.1%})")
print("the outer folds chose k =", [choice["k"] for choice in found.chosen])
assert found.is_better_than_guessing

# %%
# Each permutation is two points with a line between them. With permuted labels, the best cross-validation
# score lies above the baseline on average, and the honest score does not.

fig, ax = plt.subplots(figsize=(6.8, 4.4), layout="constrained")
places = np.arange(len(inner))
order = np.argsort(inner)
ax.vlines(places, np.array(honest)[order], np.array(inner)[order], color="lightgrey", lw=2, zorder=1)
ax.plot(places, np.array(inner)[order], "s", color=BAD, label="best cross-validation score")
ax.plot(places, np.array(honest)[order], "o", color=CURVE, label="honest score")
last = len(inner) + 1
ax.plot(last, chosen.best_score_, "s", color=BAD)
ax.errorbar(last, found.score, [[found.score - low], [high - found.score]], fmt="o", color=CURVE, capsize=4)
ax.axhline(guessing, **REFERENCE)
ax.annotate("baseline", (last + 0.4, guessing), xytext=(0, 4), textcoords="offset points", ha="right")
ax.set_xticks([(len(inner) - 1) / 2, last], ["permuted labels", "original labels"])
ax.tick_params(axis="x", length=0)
ax.set(ylabel="accuracy", ylim=(0.36, 1.03))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper left")
plt.show()
