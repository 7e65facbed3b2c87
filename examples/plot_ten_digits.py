"""
Ten digits from twenty pixels
=============================

With ten classes there are forty-five binary classifiers, one for each pair. They share one set of pixels: k
is the number of pixels that the whole model uses. A scanner with twenty sensors could run it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from kmargin import SparseSVC
from kmargin.displays.palette import CURVE

digits = load_digits()
X, y = digits.data / 16, digits.target
inked = np.ptp(X, axis=0) > 0  # some pixels are white on every image
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)

# %%
# Fit with k for the whole model, and with k for each pair as in the paper.

shared = SparseSVC(k=20, C=0.1).fit(X_train[:, inked], y_train)
own = SparseSVC(k=2, C=0.1, shared=False).fit(X_train[:, inked], y_train)
everything = SparseSVC(k="all", C=0.1).fit(X_train[:, inked], y_train)
for name, model in (("twenty pixels, shared", shared), ("two pixels per pair", own), ("all", everything)):
    score = model.score(X_test[:, inked], y_test)
    print(f"{name:<22} {len(model.support_):>2} pixels in use, {score:.1%} accuracy on new digits")
assert len(shared.support_) == 20

# %%
# The mean image of each digit; pixels that the model uses are framed.

chosen = np.flatnonzero(inked)[shared.support_]
fig, axes = plt.subplots(2, 5, figsize=(9.2, 4.1), layout="constrained")
for digit, ax in enumerate(axes.flat):
    ax.imshow(X_train[y_train == digit].mean(axis=0).reshape(8, 8), cmap="Greys", vmax=1.2)
    for pixel in chosen:
        corner = (pixel % 8 - 0.42, pixel // 8 - 0.42)
        ax.add_patch(plt.Rectangle(corner, 0.84, 0.84, fill=False, ec=CURVE, lw=1.8))
    ax.set(xticks=[], yticks=[])
plt.show()
