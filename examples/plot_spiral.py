"""
Three spirals separated by nine points
======================================

A kernel support vector machine stores training points, and a prediction needs one kernel value for each of
them. With :class:`~kmargin.KernelSparseSVC` you decide how many points may be stored: k counts points, for
all classes together.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kmargin import KernelSparseSVC
from kmargin.datasets import make_spiral
from kmargin.displays.palette import CLASS_MARKS, CLASSES, INK

X, y = make_spiral(random_state=0)  # three noisy arms, 1000 points
X = StandardScaler().fit_transform(X)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=200, stratify=y, random_state=0)

# %%
# The same kernel and the same C for both. SVC keeps every point within its margin.

nine = KernelSparseSVC(k=9, C=100.0, gamma=1.0).fit(X_train, y_train)
svc = SVC(C=100.0, gamma=1.0).fit(X_train, y_train)
models = {
    f"KernelSparseSVC: {len(nine.support_vectors_)} points": nine,
    f"SVC: {len(svc.support_vectors_)} points": svc,
}
for title, model in models.items():
    print(f"{title}, {model.score(X_test, y_test):.1%} accuracy on new rows")
assert len(nine.support_vectors_) == 9 < len(svc.support_vectors_)

# %%
# Regions show the predictions of each model; circles are the points that it stores.

a, b = np.meshgrid(np.linspace(-2.4, 2.4, 300), np.linspace(-2.4, 2.4, 300))
fig, axes = plt.subplots(1, 2, figsize=(9.6, 4.9), layout="constrained", sharey=True)
for ax, (title, model) in zip(axes, models.items(), strict=True):
    said = model.predict(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
    ax.pcolormesh(a, b, said, cmap=ListedColormap(CLASSES), alpha=0.18, shading="auto", rasterized=True)
    ax.contour(a, b, said, levels=[0.5, 1.5], colors=INK, linewidths=0.6)
    for label, (colour, marker) in enumerate(zip(CLASSES, CLASS_MARKS, strict=True)):
        ax.scatter(*X_train[y_train == label].T, c=colour, marker=marker, s=7, lw=0)
    ax.scatter(*model.support_vectors_.T, s=90, facecolors="none", edgecolors=INK, linewidths=1.6)
    ax.set(title=title, xticks=[], yticks=[], xlim=(-2.4, 2.4), ylim=(-2.4, 2.4), aspect="equal")
plt.show()
