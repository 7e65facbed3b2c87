"""Two checkouts of the package in one run: what a change costs, as ratios of time and of objectives.

    git worktree add ../before HEAD~1
    python -m benchmarks.against ../before
    python -m benchmarks.against ../before --case letters,tcga --rounds 5

Both are measured by the code of this checkout, on one thread, each in processes of its own that have
compiled everything beforehand. They take turns; the best processor time of each counts. A ratio above 1 says
that this checkout takes longer, or that its objectives are higher (geometric mean over all fits).
"""

import argparse
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.datasets.files import load
from benchmarks.datasets.simulated import hyperplane
from benchmarks.datasets.tables import LAMS, breast_cancer, simulated
from benchmarks.objectives import C_of
from benchmarks.runner import timed

HERE = Path(__file__).resolve().parents[1]
MAX_SECONDS = 30.0  # for the rounds of one case


def fit_path(data, ks, C):
    """Return a function that fits a path and returns its objectives."""
    from kmargin import sparse_svm_path

    return lambda: list(np.ravel(sparse_svm_path(data.X, data.y, ks, C=C, shared=False).objectives))


def fit_singly(tables, k, lams, copies=1):
    """Return a function that fits each table at each ridge, some times over, and returns the objectives."""
    from kmargin import SparseSVC

    def fit(table, lam):
        return float(np.ravel(SparseSVC(k, C=C_of(lam, len(table.y))).fit(table.X, table.y).objective_)[0])

    return lambda: [fit(table, lam) for table in tables for lam in lams for _ in range(copies)]


def path(name, ks, C, n_classes=None):
    data = load(name).of_classes(n_classes)
    return fit_path(data, getattr(data, ks), C)


def simulation(n, p, k=50, lams=(1e-2, 1e-3), copies=1):
    return fit_singly([hyperplane(n, p, k, seed, 1, 1) for seed in range(3)], k, lams, copies)


def small():
    tables = [simulated(family, 80, 14, (4,), 0) for family in ("gaussian", "AR(.9)", "counts")]
    return fit_singly([*tables, breast_cancer()], 4, LAMS, copies=3)


CASES = {  # the parts of each case: functions that make the function to be timed
    "letters": {"letters": partial(path, "letters", "every_k", 10.0, 13)},
    "simulation": {f"simulation {n} x {p}": partial(simulation, n, p) for n, p in ((500, 1000), (1000, 500))},
    "tcga": {"tcga": partial(path, "tcga", "paper_ks", 1.0)},
    "micro": {  # fits so short that validation and setup take as long as the search
        f"one fit, {n} x {p}": partial(simulation, n, p, 10, (1e-2,), copies)
        for n, p, copies in ((200, 50, 20), (1000, 500, 10), (100, 5000, 5))
    },
    "small": {"one fit, small tables": small},
}


def measure(checkout, case):
    """Seconds and objectives of each part of a case, in a process with this checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-m", "benchmarks.against", "--measure", case, str(checkout)]
    done = subprocess.run(command, cwd=HERE, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # loaders may print, too


def measure_here(case, checkout):
    import kmargin

    if not Path(kmargin.__file__).is_relative_to(Path(checkout).resolve()):
        raise SystemExit(f"kmargin comes from {kmargin.__file__}, not from {checkout}.")
    found = {}
    for name, make in CASES[case].items():
        work = make()
        work()  # compiles
        objectives, seconds = timed(work)
        found[name] = seconds, objectives
    print(json.dumps(found))


def compare(case, other, rounds):
    """A line per part of the case."""
    turns: list[list[dict]] = [[], []]  # here, there
    spent = 0.0
    while len(turns[0]) < rounds and (spent < MAX_SECONDS or len(turns[0]) < 2):
        for checkout, found in zip((HERE, other), turns, strict=True):
            found.append(measure(checkout, case))
            spent += sum(seconds for seconds, _ in found[-1].values())
    for part in CASES[case]:
        here, there = (min(turn[part][0] for turn in found) for found in turns)
        ratios = np.divide(*(found[0][part][1] for found in turns))
        mean, worst = np.exp(np.mean(np.log(ratios))), ratios.max()
        fits = f"{len(ratios)} fits: objective {mean:.5f}, at most {worst:.5f}, at least {ratios.min():.5f}"
        print(f"{part:<24} {there:8.3f} s -> {here:8.3f} s   time {here / there:.3f}   {fits}", flush=True)


def main():
    if sys.argv[1:2] == ["--measure"]:
        measure_here(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="the checkout to compare with")
    parser.add_argument("--case", default=",".join(CASES), help=f"some of {', '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=9, help="of long ones fewer are run")
    options = parser.parse_args()
    for case in options.case.split(","):
        compare(case, options.other.resolve(), options.rounds)


if __name__ == "__main__":
    main()
