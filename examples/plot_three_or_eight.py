"""
Which pixels distinguish a 3 from an 8
======================================

Handwritten digits of 8 x 8 pixels. An 8 is a 3 that is closed on the left: a person would look there.
Does a model that may use one pixel, four or sixteen?
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from kmargin import sparse_svm_path
from kmargin.displays.palette import NEGATIVE, POSITIVE

# %%
# scikit-learn ships the test part of ``optdigits``, one of the paper's data sets;
# ``kmargin.datasets.load_optdigits`` downloads all of it.

digits = load_digits()
rows = np.isin(digits.target, (3, 8))
X, y = digits.data[rows] / 16, digits.target[rows]
inked = np.flatnonzero(np.ptp(X, axis=0))  # the others are white on every image
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
path = sparse_svm_path(X_train[:, inked], y_train, [len(inked), 16, 4, 1])

# %%
# Coefficients as images. Each coloured pixel shows which digit it favours; white pixels are not used.

shades = LinearSegmentedColormap.from_list("for 3 or for 8", [NEGATIVE, "white", POSITIVE])
fig, axes = plt.subplots(1, 5, figsize=(10.4, 2.6), layout="constrained")
for ax, digit in zip(axes, (3, 8), strict=False):
    ax.imshow(X_train[y_train == digit].mean(axis=0).reshape(8, 8), cmap="Greys")
    ax.set_title(f"mean {digit}")
images = {}
for ax, k in zip(axes[2:], (1, 4, 16), strict=True):
    images[k] = np.zeros(64)
    images[k][inked] = path.coefs[list(path.ks).index(k), 0]
    heaviest = np.abs(images[k]).max()
    ax.imshow(images[k].reshape(8, 8), cmap=shades, vmin=-heaviest, vmax=heaviest)
    for place in np.flatnonzero(images[k]):
        speaks_for = "8" if images[k][place] > 0 else "3"
        ax.text(place % 8, place // 8, speaks_for, ha="center", va="center", fontsize=9)
    ax.set_title(f"k = {k}: {np.mean(path.predict(X_test[:, inked], k) == y_test):.1%}")
for ax in axes:
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# The titles give the accuracy on new digits. The single pixel, if only one is allowed:

(pixel,) = np.flatnonzero(images[1])
print(f"row {pixel // 8 + 1} of 8, column {pixel % 8 + 1} of 8")
assert pixel % 8 < 4  # in the left half, where an 8 is closed
