"""Claim: on at least 98 % of the 325 pairs of letters the support found for k = 2, 4 and 8 of the 16
features is the best there is. On small tables of many kinds a default fit of one k is the best there is
in 99.5 % of cases and never more than 0.5 % above; it is never more than 0.1 % above what a path has for
that k, nor the path above it.

Letters: lam = 1e-4. A support counts as the best if its exact refit is within 1e-6 of what the exhaustive
search found. The fits for one k come from a path over all k, as for any user of the path; fits of a single
k are listed beside them.

Small tables (`datasets/tables.py`): lam = 0.1 to 1e-4, the objective that of the coefficients as they are
returned, against optima of which all but a few are proven (`optima.py`).
"""

import kmargin
from benchmarks.cases.case import Case
from benchmarks.datasets.tables import LETTER_KS, LETTER_LAM, letter_pairs, small_tables
from benchmarks.objectives import C_of, refit
from benchmarks.optima import SEEDS, find_optima, fingerprint
from benchmarks.records import by_competitor, select
from benchmarks.runner import installed
from benchmarks.solvers import HEADLINE, choose
from benchmarks.solvers.ours import Exchange, fit_table

TOLERANCE = 1e-6  # relative: what counts as the optimum
APART = 1e-3  # relative: from here on a path and a single fit count as different
LONGEST_PATH = 30  # k from here down to 1, where a table has more features
WAYS = ("one k", "path", "all swaps")
SMALL = "over the optimum"  # metric of the small tables, followed by the family
EVERY = {"quick": 15, "default": 1, "full": 1}  # which pairs: one in so many
SLOW_EVERY = {"quick": 30, "default": 10, "full": 1}  # the same for all but the headline solver
N_SEEDS = {"quick": 2, "default": SEEDS, "full": SEEDS}  # of each simulated family of small tables


class GlobalOptimum(Case):
    name = "global_optimum"

    def run(self, record, scale):
        pairs = list(letter_pairs())
        optima = find_optima(pairs[:: EVERY[scale]])
        competitors = installed(choose("mm", "sd", "abess", "skscope"), "fixed", record)
        for name, competitor in competitors.items():
            for pair in pairs[:: (EVERY if name == HEADLINE else SLOW_EVERY)[scale]]:
                run_pair(record, competitor, pair, optima)
        tables = list(small_tables(N_SEEDS[scale]))
        optima = find_optima(tables)
        for table, lam in [(t, lam) for t in tables for lam in t.lams]:
            for way, k, objective, seconds in fits_of(table, lam):
                where = {"dataset": table.name, "parameter": f"k, lam = {lam:g}", "level": k}
                ratio = objective / optima[fingerprint(table), k, lam]
                record.add(f"{HEADLINE}, {way}", f"{SMALL}: {table.family}", ratio, **where)
                record.add(f"{HEADLINE}, {way}", "seconds", seconds, **where)

    def reached(self, frame):
        shares = optimal_shares(frame)
        return small_reached(frame) | {
            "share at the optimum": {f"k = {k:g}": s for k, s in shares.loc[HEADLINE].items()},
            "share at the optimum, fits of one k": {
                f"k = {k:g}": s for k, s in shares.loc[f"{HEADLINE}, one k"].items()
            },
        }

    def tables(self, frame):
        """Pairs of letters at the optimum, by competitor and k."""
        shares = (100 * optimal_shares(frame)).round(1).rename_axis("pairs of letters at the optimum, %")
        return [shares.rename(columns="k = {:g}".format)]


def run_pair(record, competitor, pair, optima):
    """Single fits of one competitor; of ours a path, too."""
    data = fingerprint(pair)

    def add(label, k, support):
        found = refit(pair.X, pair.y, support, LETTER_LAM).objective
        best = optima[data, k, LETTER_LAM]
        record.add(label, "objective over optimum", found / best, dataset=pair.name, parameter="k", level=k)

    for k in LETTER_KS:
        add(f"{competitor.name}, one k", k, competitor.fixed(pair.X, pair.y, k, LETTER_LAM).support)
    if isinstance(competitor, Exchange):
        competitor.C = C_of(LETTER_LAM, len(pair.y))
        for fit in competitor.path(pair.X, pair.y, range(pair.X.shape[1], 0, -1)):
            if fit.level in LETTER_KS:
                add(competitor.name, int(fit.level), fit.support)


def fits_of(table, lam):
    """Way, k, objective of the returned coefficients, and processor time of the fit or of the whole path."""
    solvers = {"one k": "exchange", "all swaps": kmargin.Exchange(effort="thorough")}
    for way, solver in solvers.items():
        for k in table.ks:
            found, seconds = fit_table(table, (k,), lam, is_path=False, solver=solver)
            yield way, k, found[k], seconds
    ks = range(min(table.X.shape[1], LONGEST_PATH), 0, -1)
    found, seconds = fit_table(table, ks, lam, is_path=True)
    yield from (("path", k, found[k], seconds) for k in found if k in table.ks)


def optimal_shares(frame):
    """A row per competitor, a column per k."""
    rows = select(frame, metric="objective over optimum")
    hits = rows.assign(value=rows["value"] <= 1 + TOLERANCE)
    return hits.pivot_table(index="competitor", columns="level", values="value", aggfunc="mean")


def small_reached(frame):
    """By family: shares at the optimum, worst excesses, and how far paths and fits of one k are apart."""
    rows = frame[frame["metric"].str.startswith(SMALL)]
    reached = {}
    for metric, group in rows.groupby("metric", sort=False):
        family = str(metric).removeprefix(f"{SMALL}: ")
        wide = by_competitor(group, "dataset", "parameter", "level")
        one, path, swaps = (wide[f"{HEADLINE}, {way}"] for way in WAYS)
        figures = {
            "small tables at the optimum": (one <= 1 + TOLERANCE).mean(),
            "small tables, above the optimum": max(0.0, one.max() - 1),
            "small tables, paths at the optimum": (path <= 1 + TOLERANCE).mean(),
            "small tables, paths above the optimum": max(0.0, path.max() - 1),
            "small tables, all swaps at the optimum": (swaps <= 1 + TOLERANCE).mean(),
            "small tables, paths worse": (path / one > 1 + APART).mean(),
            "small tables, fits of one k worse": (one / path > 1 + APART).mean(),
        }
        for claim, value in figures.items():
            reached.setdefault(claim, {})[family] = float(value)
    return reached
