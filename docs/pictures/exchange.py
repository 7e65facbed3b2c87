"""What each feature costs to drop and would gain if taken, before and after one exchange."""

import matplotlib.pyplot as plt
import numpy as np

from kmargin.core.problem import ArrayProblem
from kmargin.data.design import make_design
from kmargin.displays import palette
from kmargin.solvers.refit.support import refit

rng = np.random.default_rng(11)
n, p, lam = 150, 9, 0.02
X = rng.standard_normal((n, p))
X[:, 4] = 0.75 * X[:, 1] + 0.5 * X[:, 6] + 0.35 * rng.standard_normal(n)  # looks good alone
y = np.where(X[:, 1] + 0.8 * X[:, 6] - 0.6 * X[:, 3] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
problem = ArrayProblem(make_design(X), y, np.ones(n), lam=lam)


def scores(support):
    """Costs, gains and the objective: the formulas of the page, in a few lines."""
    coef, intercept, objective, _ = refit(problem, support)
    beta = np.zeros(p + 1)
    beta[support], beta[p] = coef, intercept
    active = y * (X @ beta[:p] + intercept) < 1
    rows = np.column_stack([X, np.ones(n)])[active]
    H = rows.T @ rows / n + lam * np.diag([1.0] * p + [0.0])
    inside, outside = np.append(support, p), np.setdiff1d(np.arange(p), support)
    gradient = problem.loss_gradient(beta)
    inverse = np.linalg.inv(H[np.ix_(inside, inside)])
    cost = coef**2 / np.diag(inverse)[:-1] / 2
    cross = H[np.ix_(inside, outside)]
    schur = np.diag(H)[outside] - np.einsum("ij,ij->j", cross, inverse @ cross)
    return cost, outside, gradient[outside] ** 2 / schur / 2, objective


strength = np.abs(X.T @ y)
before = np.sort(np.argsort(-strength)[:3])
cost, outside, gain, _ = scores(before)
after = np.sort(np.append(np.delete(before, cost.argmin()), outside[gain.argmax()]))

figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.1), sharey=True)
for ax, support, title in zip(axes, (before, after), ("Before", "After one swap"), strict=True):
    cost, outside, gain, objective = scores(support)
    ax.bar(support, cost, color=palette.CURVE, label="cost of dropping")
    hatched = {"color": "white", "edgecolor": palette.INK, "hatch": "///"}
    ax.bar(outside, gain, **hatched, label="gain from adding")
    ax.set(xticks=range(p), xlabel="feature")
    ax.set_title(f"{title}: objective {objective:.3f}", fontsize=10)
    for j in support:
        ax.get_xticklabels()[j].set(color=palette.CURVE, fontweight="bold")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("change of the objective")
axes[1].legend(frameon=False, fontsize=9)
plt.show()
