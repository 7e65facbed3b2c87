"""Iterated local search for the problems of `policies.py`; compiled, and shares nothing with the package.

    python -m benchmarks.long_search --restarts 60 --minutes 20          # the problems of fewest rows first
    python -m benchmarks.long_search --restarts 400 --seed 1 --only genes

The first support comes down to its ridge from stronger ones. From the best support, drop some features at
random, add as many drawn among those with the largest gain, exchange single features while that lowers the
objective, first with a ridge drawn among some stronger ones, then with the problem's own, and keep what is
better. What is found goes to the store of `policies.py`, after each problem.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numba import njit
from threadpoolctl import threadpool_limits

from benchmarks import N_THREADS
from benchmarks.bounds import fold, solve
from benchmarks.policies import Problem, Store, problems

START_RIDGES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)  # those above the problem's own are passed on the way to it
BETTER = 1e-10  # relative: a decrease by less is rounding


class Perturbation(NamedTuple):
    """How a restart leaves the best support."""

    drop_share: float = 1.0  # of the features, at most; the number is drawn from 1 to that
    drop_cheap: bool = False  # with probabilities that fall with the cost of dropping, else equal ones
    pool: float = 3.0  # what is added is drawn among so many times as many features of largest gain
    least_pool: int = 0  # and among no fewer than this
    may_return: bool = True  # those that were dropped can be among them
    greedy: bool = False  # add one by one, with a refit between
    ridges: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)  # of these multiples of lam one is searched with first
    max_trials: int = 10  # failed exchanges, by predicted decrease, after which a support is left


class Support(NamedTuple):
    """A support and its minimum."""

    features: np.ndarray
    beta: np.ndarray  # the intercept last
    margins: np.ndarray
    objective: float


@njit(cache=True)
def minimise_from(rows, gram, moment, active, idx, beta, lam):
    """The minimum over the columns idx of `rows`, the last one being the intercept, from `beta`.

    `gram` and `moment` are sums over the rows active at another minimum; rows that are on the other side of
    the margin now are added or taken away. `beta` becomes the minimiser. Returns margins and objective.
    """
    n, m = rows.shape[0], len(idx)
    A, b, inside = np.empty((m, m)), np.empty(m), active.copy()
    for r in range(m):
        b[r] = moment[idx[r]]
        for c in range(m):
            A[r, c] = gram[idx[r], idx[c]]
    own = np.empty((n, m))
    for i in range(n):
        for r in range(m):
            own[i, r] = rows[i, idx[r]]
    margins = own @ beta
    value = np.inf
    for _ in range(100):
        loss = 0.0
        n_changed = 0
        for i in range(n):
            if margins[i] < 1.0:
                loss += (1.0 - margins[i]) ** 2
            if (margins[i] < 1.0) != inside[i]:
                n_changed += 1
                sign = -1.0 if inside[i] else 1.0
                inside[i] = not inside[i]
                for r in range(m):
                    b[r] += sign * own[i, r]
                    for c in range(m):
                        A[r, c] += sign * own[i, r] * own[i, c]
        new = 0.5 * loss / n + 0.5 * lam * (beta[:-1] @ beta[:-1])
        if value < np.inf and (n_changed == 0 or new >= value * (1 - 1e-12)):
            value = min(value, new)
            break
        value = new
        H, target = A / n, b / n
        for r in range(m):
            H[r, r] += lam if r < m - 1 else 1e-12
        direction = solve(H, target) - beta
        step = own @ direction
        size = 1.0
        while size > 1e-8:
            loss = 0.0
            for i in range(n):
                violation = 1.0 - margins[i] - size * step[i]
                if violation > 0.0:
                    loss += violation**2
            moved = beta[:-1] + size * direction[:-1]
            if 0.5 * loss / n + 0.5 * lam * (moved @ moved) <= value:
                break
            size /= 2
        beta += size * direction
        margins += size * step
    return margins, value


@njit(cache=True)
def drop_costs(gram, idx, beta, lam, n):
    """The inverse Hessian of the columns idx, and what each of them costs to drop, to second order."""
    m = len(idx)
    H = np.empty((m, m))
    for r in range(m):
        for c in range(m):
            H[r, c] = gram[idx[r], idx[c]] / n
        H[r, r] += lam if r < m - 1 else 1e-9
    inverse = np.linalg.inv(H)
    return inverse, beta[:-1] ** 2 / (2 * np.diag(inverse)[:-1])


@njit(cache=True)
def search_panel(rows, idx, beta, lam, max_trials):
    """Exchange columns of `rows` for those at idx while that lowers the objective; idx and beta change.

    Predicted changes are those of the quadratic piece, with all other coefficients refitted.
    """
    n, q = rows.shape[0], rows.shape[1] - 1
    margins = np.zeros(n)
    for r in range(len(idx)):
        margins += rows[:, idx[r]] * beta[r]
    active = margins < 1.0
    part = rows[active]
    gram, moment = part.T @ part, part.sum(axis=0)
    margins, value = minimise_from(rows, gram, moment, active, idx, beta, lam)
    k, n_trials, stuck = len(idx) - 1, 0, False
    while not stuck and k > 0:
        for i in range(n):
            if (margins[i] < 1.0) != active[i]:
                sign = -1.0 if active[i] else 1.0
                active[i] = not active[i]
                for r in range(q + 1):
                    moment[r] += sign * rows[i, r]
                    for c in range(q + 1):
                        gram[r, c] += sign * rows[i, r] * rows[i, c]
        inverse, costs = drop_costs(gram, idx, beta, lam, n)
        is_out = np.ones(q + 1, np.bool_)
        for j in idx:
            is_out[j] = False
        outside = np.flatnonzero(is_out)
        changes = np.empty(len(outside) * k)
        for o in range(len(outside)):
            j = outside[o]
            cross = np.empty(k + 1)
            slope = -moment[j] / n
            for r in range(k + 1):
                cross[r] = gram[j, idx[r]] / n
                slope += cross[r] * beta[r]
            moves = inverse @ cross
            schur = gram[j, j] / n + lam - cross @ moves
            for r in range(k):
                own = moves[r] / inverse[r, r]
                gain = (slope - own * beta[r]) ** 2 / (2 * max(schur + own * moves[r], 1e-12))
                changes[o * k + r] = costs[r] - gain
        stuck = True
        order = np.argsort(changes)
        for number in range(min(max_trials, len(changes))):
            at = order[number]
            r, j = at % k, outside[at // k]
            new_idx, new_beta = idx.copy(), beta.copy()
            new_idx[r] = j
            new_beta -= inverse[:, r] * (beta[r] / inverse[r, r])
            new_beta[r] = 0.0
            n_trials += 1
            new_margins, new = minimise_from(rows, gram, moment, active, new_idx, new_beta, lam)
            if new < value * (1 - BETTER):
                idx[:], beta[:] = new_idx, new_beta
                margins, value, stuck = new_margins, new, False
                break
    return value, n_trials


class Searcher:
    """One problem: its supports, and the ways from one to another."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.Z = fold(problem.table.X, problem.table.y, True)
        self.p, self.n = len(self.Z) - 1, self.Z.shape[1]
        (self.k,), self.lam = problem.ks, problem.lam
        centred = self.Z[:-1] - np.outer(self.Z[:-1] @ self.Z[-1] / self.n, self.Z[-1])
        self.variance = (centred**2).mean(axis=1)
        self.rng = np.random.default_rng(seed)
        self.n_trials = 0

    def rows(self, features: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self.Z[np.append(features, self.p)].T)

    def fit(self, features: np.ndarray, beta: np.ndarray) -> Support:
        """The minimum on a support, from `beta`, which is used up."""
        rows = self.rows(features)
        search_panel(rows, np.arange(len(features) + 1), beta, self.lam, 0)
        margins = rows @ beta
        value = 0.5 * np.mean(np.maximum(0, 1 - margins) ** 2) + 0.5 * self.lam * beta[:-1] @ beta[:-1]
        return Support(features, beta, margins, float(value))

    def most_gainful(self, support: Support, count: int, excluded: np.ndarray | None = None) -> np.ndarray:
        gradient = self.Z[:-1] @ np.maximum(0.0, 1 - support.margins) / self.n
        gain = gradient**2 / (self.variance + self.lam)
        gain[support.features] = -1.0
        if excluded is not None:
            gain[excluded] = -1.0
        count = min(count, self.p - len(support.features))
        best = np.argpartition(-gain, count - 1)[:count]
        return best[np.argsort(-gain[best])]

    @contextmanager
    def with_ridge(self, lam: float) -> Iterator[None]:
        """The same problem with another ridge."""
        own, self.lam = self.lam, lam
        try:
            yield
        finally:
            self.lam = own

    def descend(self, features: np.ndarray, beta: np.ndarray, max_trials: int) -> Support:
        """Single exchanges within the most gainful features, which are chosen anew until nothing helps."""
        found = self.fit(features, beta)
        while True:
            outside = self.most_gainful(found, max(32, self.k))
            members = np.append(found.features, outside)
            idx, beta = np.append(np.arange(self.k), len(members)), found.beta.copy()
            rows = self.rows(members)
            value, n_trials = search_panel(rows, idx, beta, self.lam, max_trials)
            self.n_trials += n_trials
            if not value < found.objective * (1 - BETTER):
                return found
            found = Support(members[idx[:-1]], beta, rows[:, idx] @ beta, value)

    def grow(self, support: Support, excluded: np.ndarray | None, how: Perturbation) -> Support:
        """Add features until there are k."""
        while (missing := self.k - len(support.features)) > 0:
            count = 1 if how.greedy else missing
            new = self.most_gainful(support, max(round(how.pool * count), how.least_pool), excluded)
            if len(new) > count:
                new = self.rng.permutation(new)[:count]
            beta = np.concatenate([support.beta[:-1], np.zeros(len(new)), support.beta[-1:]])
            support = self.fit(np.append(support.features, new), beta)
        return support

    def first(self, how: Perturbation) -> Support:
        """Grown one by one with the strongest ridge, and searched with weaker and weaker ones."""
        stronger = [ridge for ridge in START_RIDGES if ridge > 1.5 * self.lam]
        found = self.fit(np.empty(0, np.int64), np.zeros(1))
        for ridge in [*stronger, self.lam]:
            with self.with_ridge(ridge):
                found = self.grow(found, None, how._replace(pool=1, least_pool=0, greedy=True))
                found = self.descend(found.features, found.beta.copy(), how.max_trials)
        return found

    def restart(self, best: Support, how: Perturbation) -> Support:
        count = self.rng.integers(1, max(1, round(how.drop_share * self.k)) + 1)
        chances = None
        if how.drop_cheap:
            rows = self.rows(best.features)
            active = rows[best.margins < 1.0]
            _, costs = drop_costs(active.T @ active, np.arange(self.k + 1), best.beta, self.lam, self.n)
            chances = 1 / (1.0 + np.argsort(np.argsort(costs)))
            chances /= chances.sum()
        lost = self.rng.choice(self.k, count, replace=False, p=chances)
        rest = np.delete(np.arange(self.k), lost)
        ridge = self.lam * self.rng.choice(how.ridges)
        with self.with_ridge(ridge):
            left = self.fit(best.features[rest], best.beta[np.append(rest, self.k)])
            found = self.grow(left, None if how.may_return else best.features[lost], how)
            found = self.descend(found.features, found.beta.copy(), how.max_trials)
        return found if ridge == self.lam else self.descend(found.features, found.beta.copy(), how.max_trials)


def search(searcher: Searcher, restarts: int, how: Perturbation) -> tuple[Support, list[float]]:
    """The best support found, and the objective after each restart."""
    best = searcher.first(how)
    trace = [best.objective]
    for _ in range(restarts):
        found = searcher.restart(best, how)
        if found.objective < best.objective * (1 - BETTER):
            best = found
        trace.append(best.objective)
    return best, trace


def single_problems(only: str) -> list[Problem]:
    """Every size of every problem by itself, those of fewest rows first."""
    by_key = {
        problem._replace(ks=(k,)).keys[0]: problem._replace(ks=(k,), is_path=False)
        for problem in problems(only=only)
        for k in problem.ks
    }
    return sorted(by_key.values(), key=lambda problem: len(problem.table.y) * max(problem.ks))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_search")
    parser.add_argument("--restarts", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=20.0, help="of processor time, in all")
    parser.add_argument("--only", default="", help="tables with this text in their name")
    options = parser.parse_args()
    with threadpool_limits(N_THREADS):
        for problem in single_problems(options.only):
            if time.process_time() > 60 * options.minutes:
                break
            started = time.process_time()
            how = Perturbation()
            best, _ = search(Searcher(problem, options.seed), options.restarts, how)
            store, (key,) = Store(), problem.keys
            known = store.get(key, "best")
            earlier = store.get(key, "long search")
            long = best.objective if earlier != earlier else min(earlier, best.objective)
            total = options.restarts + np.nan_to_num(store.get(key, "restarts"))
            store.put(key, problem.table.name, **{"long search": long, "restarts": total})
            store.lower(key, problem.table.name, best.objective)
            store.write()
            seconds = time.process_time() - started
            change = f"{100 * (best.objective / known - 1):+.3f} %"
            where = f"{problem.table.name}, k = {key[1]}, lam = {key[2]:g}"
            print(f"{where}: {change}, {seconds:.2f} s", flush=True)


if __name__ == "__main__":
    main()
