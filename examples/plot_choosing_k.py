"""
Choosing k, and believing the result
====================================

A cross-validation tries many k and C, and takes the best. The score of the best is partly luck: had nothing
been there to find, some k would still have looked good. How good? Permuted labels tell, because they have
nothing to do with X.

:func:`~kmargin.honest_score` makes the whole choice anew in outer folds, and scores it on rows that had no
part in it. How much the two differ depends on the table, and on how much there was to choose from.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from kmargin import SparseSVCCV, honest_score
from kmargin.errors import GridEdgeWarning
from kmargin.palette import BAD, CURVE, REFERENCE

X, y = load_breast_cancer(return_X_y=True)
rng = np.random.default_rng(0)
rows = np.concatenate([rng.choice(np.flatnonzero(y == c), 30, replace=False) for c in (0, 1)])
X, y = X[rows], y[rows]  # a small study: 30 patients of each kind, so that guessing has one half
model = SparseSVCCV(ks=[10, 5, 3, 2, 1], Cs=[0.01, 0.1, 1.0, 10.0], standardize=True)

# %%
# Twelve times the labels are permuted, and a machine is chosen all the same.

inner, honest = [], []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", GridEdgeWarning)  # where there is nothing to find, any corner may be best
    for _ in range(12):
        permuted = rng.permutation(y)
        inner.append(model.fit(X, permuted).best_score_)
        honest.append(honest_score(model, X, permuted).score)
guessing = 0.5
print(f"on permuted labels the score that chose is {np.mean(inner):.1%} on average")
print(f"the honest one is {np.mean(honest):.1%}")
assert np.mean(inner) > guessing + 0.05
assert np.mean(honest) < guessing + 0.02

# %%
# And with the labels as they are:

chosen = model.fit(X, y)
found = honest_score(model, X, y)
print(f"k = {chosen.k_} was chosen with {chosen.best_score_:.1%}")
print(
    f"the honest score is {found.score:.1%}, between {found.interval.low:.1%} and {found.interval.high:.1%}"
)
print("the outer folds chose k =", [choice["k"] for choice in found.chosen])
assert found.is_better_than_guessing

# %%
# Each permutation is two points with a line between them. Where there is nothing to find, the score that
# chose lies above guessing, and the honest one does not, on average.

fig, ax = plt.subplots(figsize=(6.8, 4.4), layout="constrained")
places = np.arange(len(inner))
order = np.argsort(inner)
ax.vlines(places, np.array(honest)[order], np.array(inner)[order], color="lightgrey", lw=2, zorder=1)
ax.plot(places, np.array(inner)[order], "s", color=BAD, label="the score that chose")
ax.plot(places, np.array(honest)[order], "o", color=CURVE, label="the honest score")
last = len(inner) + 1
ax.plot(last, chosen.best_score_, "s", color=BAD)
low, high = found.interval
ax.errorbar(last, found.score, [[found.score - low], [high - found.score]], fmt="o", color=CURVE, capsize=4)
ax.axhline(guessing, **REFERENCE)
ax.annotate("guessing", (last + 0.4, guessing), xytext=(0, 4), textcoords="offset points", ha="right")
ax.set_xticks([(len(inner) - 1) / 2, last], ["labels permuted", "as they are"])
ax.tick_params(axis="x", length=0)
ax.set(ylabel="accuracy", ylim=(0.36, 1.03))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper left")
plt.show()
