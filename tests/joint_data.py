"""Machines that share one set of features, for tests."""

from dataclasses import replace

import numpy as np

from conftest import make_problem
from kmargin.solvers.joint_problem import JointProblem
from kmargin.solvers.start import univariate_start
from kmargin.units import Units


def make_units(sizes, n_features=None, *, fixed=(), signs=None, weights=None) -> Units:
    """Units of neighbouring columns; behind the last, columns of none."""
    ends = np.cumsum([0, *sizes])
    n_features = ends[-1] if n_features is None else n_features
    always = np.zeros(len(sizes), bool)
    always[list(fixed)] = True
    signs = np.zeros(n_features) if signs is None else np.asarray(signs, dtype=float)
    return Units(ends, np.arange(ends[-1]), always, signs, machine_weights=weights)


def make_machines(n_machines=3, n_features=8, *, lam=0.01, fit_intercept=True, n_samples=30, alike=False):
    """Problems that are not separable, each with its own rows, weights and ridge, or all with the same X."""
    machines = []
    for m in range(n_machines):
        machine = make_problem(
            n_samples if alike else n_samples + 7 * m,
            n_features,
            lam=lam * (1 + m),
            fit_intercept=fit_intercept,
            seed=0 if alike else m,
        )
        y = np.where(machine.design.X[:, m % n_features] > 0.3, machine.y, -machine.y)
        machines.append(replace(machine, y=y))
    if alike:
        first = machines[0]
        machines = [replace(machine, design=first.design, weights=first.weights) for machine in machines]
    return machines


SIGNS = [1, -1, 0, 1, 0, -1, 1, 0]

JOINTS = {
    "columns": JointProblem.of(make_machines(), make_units([1] * 8), 3),
    "one design": JointProblem.of(make_machines(alike=True), make_units([1] * 8), 3),
    "one machine": JointProblem.of(make_machines(1), make_units([1] * 8), 3),
    "wide": JointProblem.of(make_machines(n_features=60, n_samples=20), make_units([1] * 60), 5),
    "groups": JointProblem.of(make_machines(), make_units([3, 1, 2, 2]), 2),
    "always in": JointProblem.of(make_machines(), make_units([1] * 8, fixed=[2, 7]), 3),
    "signs": JointProblem.of(make_machines(), make_units([1] * 8, signs=SIGNS), 3),
    "signs of all": JointProblem.of(make_machines(), make_units([1] * 8, signs=SIGNS), 8),
    "never in": JointProblem.of(make_machines(), make_units([2, 2, 1], 8), 2),
    "weights": JointProblem.of(make_machines(), make_units([1] * 8, weights=np.array([0.2, 1.0, 3.0])), 3),
    "everything": JointProblem.of(
        make_machines(),
        make_units([2, 2, 1, 3], fixed=[3], signs=SIGNS, weights=np.array([2.0, 0.5, 1.0])),
        2,
    ),
    "no intercept": JointProblem.of(make_machines(fit_intercept=False), make_units([1] * 8), 3),
    "no ridge": JointProblem.of(make_machines(lam=0.0), make_units([1] * 8), 3),
    "k = p": JointProblem.of(make_machines(), make_units([1] * 8), 8),
    "k = p, wide, no ridge": JointProblem.of(
        make_machines(n_features=60, n_samples=20, lam=0.0), make_units([1] * 60), 60
    ),
}


def start_of(joint: JointProblem) -> np.ndarray:
    return np.concatenate([univariate_start(machine) for machine in joint.machines])


def random_point(joint: JointProblem, rng, scale=1.0) -> np.ndarray:
    return scale * rng.standard_normal(sum(machine.design.n_parameters for machine in joint.machines))
