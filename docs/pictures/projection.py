"""The nearest vector with at most k nonzero entries: drop the smallest."""

import matplotlib.pyplot as plt
import numpy as np

from kmargin.core.sparsity import project
from kmargin.displays import palette

figure, (plane, bars) = plt.subplots(1, 2, figsize=(7.6, 3.4), width_ratios=(1, 1.15))

plane.axhline(0, color=palette.CURVE, linewidth=2.5)
plane.axvline(0, color=palette.CURVE, linewidth=2.5)
for point in np.array([[1.5, 0.6], [-0.5, 1.2], [-1.3, -0.7], [0.55, -1.4]]):
    nearest = project(point, k=1)
    plane.annotate(
        "", nearest, point, arrowprops={"arrowstyle": "->", "color": palette.SOFT, "shrinkA": 4, "shrinkB": 1}
    )
    plane.plot(*point, "o", color=palette.INK)
    plane.plot(*nearest, "o", markerfacecolor="white", markeredgecolor=palette.CURVE, markeredgewidth=1.6)
plane.plot([-1.8, 1.8], [-1.8, 1.8], [-1.8, 1.8], [1.8, -1.8], **palette.REFERENCE)
plane.set(xlim=(-1.8, 1.8), ylim=(-1.8, 1.8), aspect="equal", xlabel="first coefficient", ylabel="second")
plane.set_xticks([])
plane.set_yticks([])
plane.set_title("Two coefficients, k = 1: onto the nearer axis", fontsize=10)

weights = np.array([0.9, -0.25, 0.1, -1.4, 0.45, -0.05, 0.7, -0.3])
kept = project(weights, k=3) != 0
places = np.arange(len(weights))
bars.bar(places[~kept], weights[~kept], color=palette.FAINT, label="becomes 0")
bars.bar(places[kept], weights[kept], color=palette.CURVE, label="stays as it is")
bars.axhline(0, color=palette.INK, linewidth=0.8)
bars.set(xticks=places, xlabel="feature", ylabel="coefficient")
bars.set_title("Eight coefficients, k = 3: the largest stay", fontsize=10)
bars.legend(frameon=False, fontsize=9)
plt.show()
