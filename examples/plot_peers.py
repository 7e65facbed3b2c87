"""
Accuracy against the number of features
=======================================

Four methods that fit a classifier with few features, on the same splits, with C tuned for each of them:
kmargin; an L1 penalty, then a classifier on the features with the largest weights; recursive elimination
(RFE); and the best single features (SelectKBest). All fit one classifier for each class against the rest.

This is an illustration on one table, small enough for a page: two splits, two values of C, and an RFE that
drops two features at a time. On this table the choice of features matters. On scikit-learn's breast cancer
table, whose 30 columns are highly correlated, none of the four is best throughout: kmargin was best at 3 and
20 features, L1 at 1, 5, 8 and 12, RFE at 2. :doc:`/evidence/results` has the full comparison on six data
sets, including where other methods win.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from kmargin import SparseSVC
from kmargin.displays.palette import SOLVERS

X, y = load_digits(return_X_y=True)  # ten classes, 8 x 8 pixels
X = X[:, np.mean(X > 0, axis=0) > 0.1] / 16  # the others are white on most images
ks = [3, 5, 8, 12, 20]
Cs = [0.1, 1.0]


def with_selector(selector):
    """Select, then fit; C is tuned for the classifier, and for that of the selector if there is one."""
    steps = [("select", selector), ("svc", LinearSVC(dual=False))]
    grid = [{"svc__C": [C]} for C in Cs]
    if "estimator" in selector.get_params():
        grid = [{"svc__C": [C], "select__estimator__C": [C]} for C in Cs]
    return GridSearchCV(Pipeline(steps), grid, cv=3)


def make_models(k):
    l1 = LinearSVC(penalty="l1", dual=False, max_iter=10_000)
    return {
        "kmargin": GridSearchCV(SparseSVC(k=k, multi_class="ovr"), {"C": Cs}, cv=3),
        "L1": with_selector(SelectFromModel(l1, max_features=k, threshold=-np.inf)),
        "RFE": with_selector(RFE(LinearSVC(dual=False), n_features_to_select=k, step=2)),
        "SelectKBest": with_selector(SelectKBest(k=k)),
    }


# %%
# Each split has 300 rows for training, including tuning. The other rows are scored.

splits = list(StratifiedShuffleSplit(2, train_size=300, random_state=0).split(X, y))
scores = {name: np.zeros((len(ks), len(splits))) for name in make_models(1)}
for i, k in enumerate(ks):
    for j, (train, test) in enumerate(splits):
        for name, model in make_models(k).items():
            scores[name][i, j] = model.fit(X[train], y[train]).score(X[test], y[test])

# %%
# The fewer features, the more their choice matters. kmargin is best at three and at five pixels, RFE at
# eight; at twenty there is little difference between the four.

print("  k", *(f"{name:>12}" for name in scores))
for i, k in enumerate(ks):
    print(f"{k:>3}", *(f"{scores[name][i].mean():>12.1%}" for name in scores))

means = {name: score.mean(axis=1) for name, score in scores.items()}
others = np.max([means[name] for name in means if name != "kmargin"], axis=0)
assert (means["kmargin"] > others)[:2].all()
assert means["RFE"][2] > means["kmargin"][2]
assert np.ptp([mean[-1] for mean in means.values()]) < 0.02

fig, ax = plt.subplots(figsize=(6.8, 4.4), layout="constrained")
lines = ("kmargin", "liblinear_l1", "rfe", "f_test")
for (name, mean), line in zip(means.items(), lines, strict=True):
    ax.plot(ks, mean, **SOLVERS[line]._asdict(), label=name)
ax.set(xscale="log", xlabel="number of features", ylabel="accuracy on held-out rows")
ax.set_xticks(ks, [str(k) for k in ks])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
plt.show()
