"""
How the paper's algorithms converge
===================================

The paper does not search among sets of features. It optimises all coefficients, penalises their distance to
the nearest vector with k nonzero entries, and raises the weight of that penalty, rho, step by step. MM and SD
are two ways to take a step. In the end the distance is so small that a projection costs nothing.

The default solver, exchange, is of another kind: it fits sets of k features exactly, and swaps features as
long as the objective falls. How do the two methods compare on the same problem?
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kmargin import MM, SD, ConvergenceDisplay, Exchange, SparseSVC, sparse_svm_path
from kmargin.datasets import make_sparse_hyperplane
from kmargin.displays.palette import solver_line

X, y, truth = make_sparse_hyperplane(400, 150, 15, random_state=0, return_coef=True)
solvers = {"exchange": Exchange(), "mm": MM(rtol=0.0), "sd": SD(rtol=0.0)}

# %%
# Fit with each of the paper's algorithms. A solution has a ``trace`` with a record for each value of rho.

fits = {name: SparseSVC(k=15, solver=solvers[name]).fit(X, y).solutions_[0] for name in ("mm", "sd")}
fig, axes = plt.subplots(3, 1, figsize=(6.4, 5.6), sharex=True, layout="constrained")
for name, solution in fits.items():
    print(f"{name}: {len(solution.trace)} values of rho, {solution.n_iter} steps, {solution.status.name}")
    ConvergenceDisplay.from_solution(solution, name=name.upper(), solver=name, axes=axes)
axes[0].set_title("")
axes[0].legend(axes[0].lines, [name.upper() for name in fits], frameon=False)
plt.show()

# %%
# The distance falls as rho grows, for either algorithm, and the objective rises to that of k features. Which
# features remain was decided early, while the penalty on the distance was still small.
# Now a whole path with each solver, and its time as a multiple of the shortest. MM and SD warn when they have
# not quite converged; here we ignore the warning.

ks = [60, 40, 30, 20, 15, 10, 5, 3]
objectives, took = {}, {}
for name, solver in solvers.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        sparse_svm_path(X[:40], y[:40], [10, 3], solver=solver)  # compile first
        started = time.process_time()
        path = sparse_svm_path(X, y, ks, solver=solver)
    took[name] = time.process_time() - started
    objectives[name] = path.objectives[:, 0]
for name in solvers:
    excess = np.mean(objectives[name] / objectives["exchange"] - 1)
    ratio = took[name] / min(took.values())
    print(f"{name:>8}: objective {excess:.1%} above that of exchange, {ratio:.1f} times as long")
assert (objectives["exchange"] <= np.minimum(objectives["mm"], objectives["sd"]) * (1 + 1e-6)).all()

# %%
# The exchange works with sets of k features from the start, and its objective is never higher.

fig, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
for name in ("mm", "sd"):
    excess = 100 * (objectives[name] / objectives["exchange"] - 1)
    ax.plot(path.ks, excess, **solver_line(name)._asdict(), label=name.upper())
ax.axhline(0, color=solver_line("exchange").color, label="exchange")
ax.set(xscale="log", xlabel="k, the number of features", ylabel="% above the objective of exchange")
ax.set_xticks(ks, [str(k) for k in ks])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
