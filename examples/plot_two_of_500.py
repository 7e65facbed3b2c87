"""
Two features among five hundred
===============================

The paper's ``synthetic`` data have 500 features. Two of them decide the label, and these two are
correlated. The other 498 are noise. How few features can a model use before accuracy drops?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from kmargin import sparse_svm_path
from kmargin.datasets import make_synthetic
from kmargin.displays.palette import CLASS_MARKS, CLASSES, CURVE, INK, REFERENCE, SOFT

X, y, truth = make_synthetic(n_samples=1000, n_features=500, random_state=0, return_coef=True)
X = StandardScaler().fit_transform(X)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=200, random_state=0)

# %%
# One call fits a path from all features to a single one. Each k starts from the supports of its neighbours.

ks = [500, 300, 200, 100, 50, 30, 20, 10, 5, 3, 2, 1]
path = sparse_svm_path(X_train, y_train, ks)
train = np.array([np.mean(path.predict(X_train, k) == y_train) for k in path.ks])
test = np.array([np.mean(path.predict(X_test, k) == y_test) for k in path.ks])
for k, before, after in zip(path.ks, train, test, strict=True):
    print(f"k = {k:>3}: accuracy {before:>6.1%} on training rows, {after:>6.1%} on new rows")

# %%
# With all features the model fits its training rows perfectly. Its accuracy on new rows improves as features
# are removed, and no k does better than k = 2, with the two features that matter. One alone is not enough.

two = path.coefs[list(path.ks).index(2), 0]
print("kept at k = 2:", np.flatnonzero(two), " true:", np.flatnonzero(truth))
assert set(np.flatnonzero(two)) == set(np.flatnonzero(truth))
assert test[list(path.ks).index(2)] == test.max()

fig, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
left.plot(path.ks, train, color=SOFT, marker=".", ls="--", label="training rows")
left.plot(path.ks, test, color=CURVE, marker="o", ms=5, label="new rows")
left.axvline(2, **REFERENCE)
left.annotate("k = 2", (2, 0.9), xytext=(6, 0), textcoords="offset points", color=SOFT)
left.set(xscale="log", xlabel="k, the number of features", ylabel="accuracy")
left.set_xticks([1, 2, 5, 10, 50, 100, 500], ["1", "2", "5", "10", "50", "100", "500"])
left.minorticks_off()
left.legend(frameon=False, loc="lower center")

for label, colour, marker in zip((-1, 1), CLASSES, CLASS_MARKS, strict=False):
    rows = y_test == label
    right.scatter(*X_test[rows, :2].T, c=colour, marker=marker, s=18, alpha=0.8, label=f"class {label}")
line = np.array([-3.0, 3.0])
intercept = path.intercepts[list(path.ks).index(2), 0]
right.plot(line, -(intercept + two[0] * line) / two[1], color=INK, lw=1.5, label="model with k = 2")
right.set(xlabel="feature 0", ylabel="feature 1", xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))
right.legend(frameon=False, fontsize="small", loc="upper left")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
