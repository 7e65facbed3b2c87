"""As rho grows the minimum is pulled to the vectors with one nonzero entry."""

import matplotlib.pyplot as plt
import numpy as np

from kmargin.core.problem import ArrayProblem
from kmargin.data.design import make_design
from kmargin.displays import palette
from kmargin.solvers.proximal.penalised import PenalisedProblem
from kmargin.solvers.proximal.reference import MMStep, descend

rng = np.random.default_rng(4)
X = rng.standard_normal((80, 2)) @ np.array([[1.0, 0.35], [0.0, 0.9]])
y = np.where(X @ [1.1, 0.7] + 0.7 * rng.standard_normal(80) > 0, 1.0, -1.0)
problem = ArrayProblem(make_design(X, fit_intercept=False), y, np.ones(80), lam=0.02)

rhos = np.concatenate([[1e-6], 0.02 * 1.35 ** np.arange(25)])
penalised = PenalisedProblem.of_one(problem, 1)
step = MMStep(penalised)
beta, trail = np.zeros((1, 2)), []
for rho in rhos:
    beta = descend(penalised, step, beta, rho, gtol=1e-12, max_inner=5000, delay=10).beta
    trail.append(beta[0])
trail = np.array(trail)
distance = [penalised.squared_distance(point[None]) ** 0.5 for point in trail]

figure, (plane, fall) = plt.subplots(1, 2, figsize=(7.6, 3.4), width_ratios=(1.15, 1))
first, second = np.meshgrid(np.linspace(-0.35, 1.5, 120), np.linspace(-0.45, 1.05, 120))
loss = np.array([problem.loss(point) for point in np.stack([first.ravel(), second.ravel()], 1)])
plane.contour(first, second, loss.reshape(first.shape), levels=14, colors=palette.FAINT, linewidths=0.8)
plane.axhline(0, color=palette.CURVE, linewidth=2.2)
plane.axvline(0, color=palette.CURVE, linewidth=2.2)
plane.plot(*trail.T, "-", color=palette.SOLVERS["mm"].color, linewidth=1)
plane.plot(*trail.T, "s", color=palette.SOLVERS["mm"].color, markersize=3.5)
plane.annotate("minimum of the loss", trail[0], (0, 8), textcoords="offset points", ha="center")
plane.annotate("at most one feature", trail[-1], (-12, -16), textcoords="offset points", color=palette.CURVE)
plane.set(xlabel="first coefficient", ylabel="second", xticks=[], yticks=[], aspect="equal")

fall.plot(rhos[1:], distance[1:], **palette.SOLVERS["mm"]._asdict(), markersize=4)
fall.set(xlabel="ρ, the weight of the distance", ylabel="distance to at most k features")
fall.set(xscale="log", ylim=(0, None))
fall.spines[["top", "right"]].set_visible(False)
plt.show()
