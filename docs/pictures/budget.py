"""Accuracy for a budget of features, from the committed results of the benchmarks.

`python docs/pictures/budget.py --write` writes the picture of the README, `docs/_static/budget.svg`.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from kmargin.displays import palette

HERE = Path(__file__).parent if "__file__" in globals() else Path.cwd()  # as the build runs it
ROOT = HERE.resolve().parent.parent
LABELS = {
    "kmargin": "kmargin",
    "abess": "abess",
    "rfe": "recursive elimination",
    "l1_union": "L1 penalty",
    "f_test": "F-test",
}
TITLES = {"optdigits": "Ten digits, 64 pixels", "splice": "Splice junctions, 180 features"}

plt.rcParams["svg.hashsalt"] = "kmargin"
table = pd.read_csv(ROOT / "benchmarks" / "results" / "shared.csv")
table = table[(table.metric == "accuracy") & table.competitor.isin(LABELS)]
means = table.groupby(["dataset", "competitor", "level"])["value"].mean() * 100
figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for ax, (dataset, title) in zip(axes, TITLES.items(), strict=True):
    for name, label in reversed(LABELS.items()):
        line = means[dataset, name]
        look = palette.SOLVERS["liblinear_l1" if name == "l1_union" else name]
        width = 2.4 if name == "kmargin" else 1.3
        ax.plot(line.index, line, **look._asdict(), linewidth=width, markersize=5, label=label)
    ax.set(xscale="log", xlabel="features in the whole model", title=title)
    ax.set_xticks(line.index, [f"{k:g}" for k in line.index])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("accuracy on held-out rows, %")
axes[0].legend(*(list(reversed(part)) for part in axes[0].get_legend_handles_labels()), frameon=False)
if "--write" in sys.argv:
    figure.savefig(ROOT / "docs" / "_static" / "budget.svg", metadata={"Date": None})
