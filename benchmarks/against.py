"""Two checkouts of the package in one run: what a change costs, as ratios of time and of objectives.

    git worktree add ../before HEAD~1
    python -m benchmarks.against ../before
    python -m benchmarks.against ../before --case letters,tcga --rounds 5

Both are measured by the code of this checkout, on one thread, each in processes of its own that have
compiled everything beforehand. They take turns; the best processor time of each counts. A ratio above 1 says
that this checkout takes longer, or that its objectives are higher (geometric mean over all fits). Objectives
are computed from the returned coefficients; of kernel classifiers they are as reported, and cross-validation
is compared by the error on test rows. Of small tables the number of fits at the optimum is printed, too.
"""

import argparse
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np

import kmargin
from benchmarks.cases import CASES as FULL_CASES
from benchmarks.cases import costs, crossval, groups, kernels, paths, shared
from benchmarks.cases.distributed import BLOCK
from benchmarks.cases.optimum import EVERY, TOLERANCE
from benchmarks.datasets.files import load_news20
from benchmarks.datasets.simulated import clusters, dense, grouped, hyperplane
from benchmarks.datasets.tables import LAMS, breast_cancer, letter_pairs, simulated, small_tables
from benchmarks.memory import KERNEL_C, KERNEL_GAMMA
from benchmarks.objectives import accuracy, lam_of, objective, objectives_of
from benchmarks.optima import fingerprint, read_optima
from benchmarks.runner import timed
from benchmarks.solvers.fit import unfinished_allowed
from benchmarks.solvers.ours import Exchange, Shared, SharedPerClass, fit_table

HERE = Path(__file__).resolve().parents[1]
MAX_SECONDS = 30.0  # for the rounds of one case

# Each part of a case is a pair of functions: one that is timed, and one that scores what it returns.


def path(name):
    """The path of a data set, one machine per pair of classes."""
    case, solver = FULL_CASES[name], Exchange()
    data, solver.C = case.data("default"), case.C
    fit = partial(solver.path, data.X, data.y, getattr(data, case.ks))
    return fit, lambda fits: np.ravel([objectives_of(fit, data.X, data.y, case.C) for fit in fits])


def single_fits(problems, copies=1):
    """Fits of single sizes of (table, k, lam), some times over."""

    def fit():
        return [Exchange().fixed(t.X, t.y, k, lam) for t, k, lam in problems for _ in range(copies)][::copies]

    def score(fits):
        pairs = zip(fits, problems, strict=True)
        return [objective(t.X, t.y, fit.coef, fit.intercept, lam) for fit, (t, _, lam) in pairs]

    return fit, score


def simulation(n, p, k=50, lams=(1e-2, 1e-3), copies=1):
    tables = [hyperplane(n, p, k, seed, 1, 1) for seed in range(3)]
    return single_fits([(table, k, lam) for table in tables for lam in lams], copies)


def small():
    tables = [simulated(family, 80, 14, (4,), 0) for family in ("gaussian", "AR(.9)", "counts")]
    return single_fits([(table, 4, lam) for table in [*tables, breast_cancer()] for lam in LAMS], copies=3)


def known_optima(tables):
    """Fits of single sizes, scored by their objectives over the optimum."""
    problems = [(table, k, lam) for table in tables for k in table.ks for lam in table.lams]
    known = read_optima()
    best = [known[fingerprint(table), k, lam] for table, k, lam in problems]

    def fit():
        return [fit_table(table, (k,), lam, is_path=False)[0][k] for table, k, lam in problems]

    return fit, lambda found: np.divide(found, best)


def shared_path(name, kind):
    """Sizes of a path whose features all machines share, on the first fold."""
    _, data, _ = next(shared.real_data(shared.Folds((name,), 1, 1, 1000, 1000)))
    data, C = shared.standardised(data), shared.C_TIMED

    def score(fits):
        return [np.sum(objectives_of(fit, data.X, data.y, C)) for fit in fits[C]]

    return partial(kind().shared, data.X, data.y, shared.budgets_of(data), [C]), score


def groups_of_features(n):
    tables = [grouped(n, seed, size=groups.SIZE) for seed in range(5)]
    numbers = np.arange(tables[0].X.shape[1]) // groups.SIZE

    def fit():
        return [Shared().grouped(table.X, table.y, numbers, groups.K, groups.C) for table in tables]

    def score(fits):
        pairs = zip(fits, tables, strict=True)
        return np.ravel([objectives_of(fit, table.X, table.y, groups.C) for fit, table in pairs])

    return fit, score


def cross_validation(shape, n_folds):
    data = hyperplane(*shape, crossval.N_CAUSAL, seed=0)
    folds = crossval.folds_of(data.X, data.y, n_folds)
    fit = partial(Exchange().crossval, data.X, data.y, crossval.KS, crossval.LAMS, folds)
    return fit, lambda fit: [1 - accuracy(fit, data.X_test, data.y_test)]


def sparse_text():
    data = load_news20().of_classes(paths.N_TEXT_CLASSES["quick"])
    fit = partial(paths.fit_text, data.X, data.y)
    return fit, lambda fits: np.ravel([objectives_of(fit, data.X, data.y, C=1.0) for fit in fits])


def many_rows():
    data = dense(*costs.SHAPES["default"], costs.K)
    return single_fits([(data, costs.K, lam_of(costs.C, len(data.y)))])


def kernel(data, k, C, gamma):
    model = kmargin.KernelSparseSVC(k, C=C, gamma=gamma, random_state=0)

    def fit():
        with unfinished_allowed():
            return model.fit(data.X, data.y)

    return fit, lambda model: np.ravel(model.objective_)


def stored_kernel(make):
    settings = kernels.PROBLEMS[make]
    return kernel(make(kernels.ROWS["quick"], 1), settings.k // 5, *settings.ours)


def kernel_in_tiles():
    n, p, k = kernels.LARGE["quick"]
    return kernel(clusters(n, 1, p), k, KERNEL_C, KERNEL_GAMMA)


def rows_in_blocks(n=100_000, p=50, k=10):
    """On a cluster of two workers that are threads of this process, so that their time counts."""
    import dask.array as da
    from distributed import Client

    data = dense(n, p, k)
    X, y = da.from_array(data.X, chunks=(BLOCK, p)), da.from_array(data.y, chunks=BLOCK)
    Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)

    def fit():
        with unfinished_allowed():
            return kmargin.SparseSVC(k).fit(X, y)

    return fit, lambda model: [objective(data.X, data.y, model.coef_, model.intercept_, lam_of(1.0, n))]


CASES = {  # the parts of each case: functions that make the two functions above
    **{name: {name: partial(path, name)} for name in ("letters", "optdigits", "splice", "tcga")},
    "simulation": {f"simulation {n} x {p}": partial(simulation, n, p) for n, p in ((500, 1000), (1000, 500))},
    "shared": {
        f"shared, {name}, {scheme}": partial(shared_path, name, kind)
        for name in ("iris", "srbct", "splice", "optdigits", "tcga")
        for scheme, kind in (("pairs", Shared), ("per class", SharedPerClass))
    },
    "groups": {f"groups, {n} rows": partial(groups_of_features, n) for n in (200, 400, 800)},
    "crossval": {
        f"crossval {n} x {p}": partial(cross_validation, (n, p), 5) for n, p in ((1000, 500), (500, 1000))
    },
    "global_optimum": {
        "optima, small tables": lambda: known_optima(small_tables(2)),
        "optima, letters": lambda: known_optima(list(letter_pairs())[:: EVERY["quick"]]),
    },
    "news20": {"news20": sparse_text},
    "dense_100k": {"dense_100k": many_rows},
    "kernel_blocks": {
        **{f"kernel, {make.__name__}": partial(stored_kernel, make) for make in kernels.PROBLEMS},
        "kernel in tiles": kernel_in_tiles,
    },
    "distributed": {"distributed": rows_in_blocks},
    "micro": {  # fits so short that validation and setup take as long as the search
        f"one fit, {n} x {p}": partial(simulation, n, p, 10, (1e-2,), copies)
        for n, p, copies in ((200, 50, 20), (1000, 500, 10), (100, 5000, 5))
    },
    "small": {"one fit, small tables": small},
}


def measure(checkout, case):
    """Seconds and scores of each part of a case, in a process with this checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-m", "benchmarks.against", "--measure", case, str(checkout)]
    done = subprocess.run(command, cwd=HERE, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # loaders may print, too


def measure_here(case, checkout):
    if not Path(kmargin.__file__).is_relative_to(Path(checkout).resolve()):
        raise SystemExit(f"kmargin comes from {kmargin.__file__}, not from {checkout}.")
    found = {}
    for name, make in CASES[case].items():
        fit, score = make()
        fit()  # compiles
        result, seconds = timed(fit)
        found[name] = seconds, list(map(float, score(result)))
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
        scores = [np.array(found[0][part][1]) for found in turns]
        ratios = np.divide(*scores)
        mean, worst = np.exp(np.mean(np.log(ratios))), ratios.max()
        fits = f"{len(ratios)} fits: objective {mean:.5f}, at most {worst:.5f}, at least {ratios.min():.5f}"
        if case == "global_optimum":
            new, old = (int(np.sum(found <= 1 + TOLERANCE)) for found in scores)
            fits += f", optima {old} -> {new}"
        print(f"{part:<28} {there:8.3f} s -> {here:8.3f} s   time {here / there:.3f}   {fits}", flush=True)


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
