"""Two checkouts of the package in one run: what a change costs, as ratios of time and of objectives.

    git worktree add ../before HEAD~1
    python -m benchmarks.against ../before
    python -m benchmarks.against ../before --case letters,tcga --rounds 5

Both are measured by the code of this checkout, on one thread, each in a process of its own that has
compiled everything beforehand. They take turns; the best processor time of each counts. A ratio above 1 says
that this checkout takes longer, or that its objectives are higher (geometric mean over all fits).
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.datasets import Dataset, hyperplane, load
from benchmarks.datasets.small import LAMS, breast_cancer, simulated
from benchmarks.grids import C_of, ks_all, ks_of_sparsities

HERE = Path(__file__).resolve().parents[1]
PATIENCE = 30.0  # seconds for the rounds of one case
Work = Callable[[], list[float]]  # some fits; returns their objectives


def each_by_itself() -> dict[str, bool]:
    """Machines with features of their own, in checkouts that know others, too."""
    from kmargin import SparseSVC

    return {"shared": False} if "shared" in SparseSVC().get_params() else {}


def path_over(data: Dataset, ks: list[int], C: float) -> Work:
    from kmargin import sparse_svm_path

    given = each_by_itself()
    return lambda: list(np.ravel(sparse_svm_path(data.X, data.y, ks, C=C, **given).objectives))


def single_fits(data: list[Dataset], k: int, lams: tuple[float, ...], copies: int = 1) -> Work:
    from kmargin import SparseSVC

    def fit_all() -> list[float]:
        fits = [
            SparseSVC(k, C=C_of(lam, len(d.y))).fit(d.X, d.y)
            for d in data
            for lam in lams
            for _ in range(copies)
        ]
        return [float(np.ravel(fit.objective_)[0]) for fit in fits]

    return fit_all


def letters() -> Work:
    data = load("letters").of_classes(13)
    return path_over(data, ks_all(data.X.shape[1]), C=10.0)


def tcga() -> Work:
    data = load("tcga")
    return path_over(data, ks_of_sparsities(data.X.shape[1]), C=1.0)


def simulation(n: int, p: int) -> Work:
    return single_fits([hyperplane(n, p, 50, seed, 1, 1) for seed in range(3)], 50, (1e-2, 1e-3))


def micro(n: int, p: int, copies: int) -> Work:
    """Where what surrounds a fit takes as long as the fit."""
    return single_fits([hyperplane(n, p, 10, seed, 1, 1) for seed in range(3)], 10, (1e-2,), copies)


def small() -> Work:
    from kmargin import SparseSVC

    tables = [simulated(family, 80, 14, (4,), 0) for family in ("gaussian", "AR(.9)", "counts")]
    tables.append(breast_cancer())

    def fit_all() -> list[float]:
        return [
            float(np.ravel(SparseSVC(4, C=C_of(lam, len(t.y))).fit(t.X, t.y).objective_)[0])
            for t in tables * 3
            for lam in LAMS
        ]

    return fit_all


CASES: dict[str, dict[str, Callable[[], Work]]] = {
    "letters": {"letters": letters},
    "simulation": {
        f"simulation {n} x {p}": lambda n=n, p=p: simulation(n, p) for n, p in ((500, 1000), (1000, 500))
    },
    "tcga": {"tcga": tcga},
    "micro": {
        f"one fit, {n} x {p}": lambda n=n, p=p, copies=copies: micro(n, p, copies)
        for n, p, copies in ((200, 50, 20), (1000, 500, 10), (100, 5000, 5))
    },
    "small": {"one fit, small tables": small},
}


class Worker:
    """A process with one of the checkouts."""

    def __init__(self, checkout: Path, case: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
        command = [sys.executable, "-m", "benchmarks.against", "--serve", case, str(checkout)]
        self.process = subprocess.Popen(
            command, cwd=HERE, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def round(self) -> tuple[dict[str, float], dict[str, list[float]]]:
        """Seconds and objectives of each part of the case."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print("go", file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(map(str, self.process.args))} ended with {self.process.wait()}.")
        answer = json.loads(line)
        return answer["seconds"], answer["objectives"]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def serve(case: str, checkout: str) -> None:
    """One round for each line that comes in."""
    import kmargin

    if not Path(kmargin.__file__).is_relative_to(Path(checkout).resolve()):
        raise SystemExit(f"kmargin comes from {kmargin.__file__}, not from {checkout}.")
    out, sys.stdout = sys.stdout, sys.stderr  # what the loaders print is not an answer
    parts = {name: make() for name, make in CASES[case].items()}
    for _ in sys.stdin:
        seconds, objectives = {}, {}
        for name, work in parts.items():
            started = time.process_time()
            objectives[name] = work()
            seconds[name] = time.process_time() - started
        print(json.dumps({"seconds": seconds, "objectives": objectives}), file=out, flush=True)


def compare(case: str, other: Path, rounds: int) -> None:
    """A line per part of the case."""
    workers = {"here": Worker(HERE, case), "there": Worker(other, case)}
    times: dict[str, dict[str, list[float]]] = {}
    values: dict[str, dict[str, list[float]]] = {}
    spent = 0.0
    for number in range(rounds + 1):
        if spent > PATIENCE and number > 2:
            break
        for place, worker in workers.items():
            seconds, objectives = worker.round()
            spent += sum(seconds.values()) if number > 0 else 0.0
            for part in seconds:
                values.setdefault(part, {})[place] = objectives[part]
                if number > 0:  # the first one compiles
                    times.setdefault(part, {}).setdefault(place, []).append(seconds[part])
    for worker in workers.values():
        worker.close()
    for part, by_place in times.items():
        here, there = min(by_place["here"]), min(by_place["there"])
        ratios = np.array(values[part]["here"]) / np.array(values[part]["there"])
        mean, worst = np.exp(np.mean(np.log(ratios))), ratios.max()
        fits = f"{len(ratios)} fits: objective {mean:.5f}, at most {worst:.5f}, at least {ratios.min():.5f}"
        print(f"{part:<24} {there:8.3f} s -> {here:8.3f} s   time {here / there:.3f}   {fits}", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
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
