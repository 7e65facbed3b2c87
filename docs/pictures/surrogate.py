"""The quadratic that touches the loss where we are, and lies above it everywhere else."""

import matplotlib.pyplot as plt
import numpy as np

from kmargin.core.squared_hinge import residual_of, shifted_response, values
from kmargin.displays import palette

figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.1), sharey=True)
decision = np.linspace(-1.6, 2.8, 300)
label = 1.0
for ax, anchor in zip(axes, (-0.5, 1.8), strict=True):
    loss = values(residual_of(decision, label))
    response = shifted_response(np.array(anchor), label)
    pays = values(residual_of(np.array([anchor]), label))[0]
    above = 0.5 * (response - decision) ** 2  # at the anchor this is what the row pays
    ax.plot(decision, above, color=palette.SOLVERS["mm"].color, linestyle="--", label="surrogate")
    ax.plot(decision, loss, color=palette.INK, linewidth=2, label="loss")
    ax.plot(anchor, pays, "o", color=palette.INK)
    ax.plot(response, 0, "v", color=palette.SOLVERS["mm"].color, markersize=8, clip_on=False)
    ax.annotate("now", (anchor, pays), (6, 8), textcoords="offset points")
    ax.set(xlabel="decision value f of a row with y = 1", ylim=(0, 3.2))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_title("Short of the margin: target f = 1", fontsize=10)
axes[1].set_title("Beyond the margin: target is the current f", fontsize=10)
axes[0].set_ylabel("loss of the row")
axes[0].legend(frameon=False)
plt.show()
