"""The paper's experiments: what is run, that nothing is lost or done twice, and what is made of it."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_runs import TINY

from kmargin import MM, SD, Exchange, sparse_svm_path
from kmargin.paper import experiments, protocol, run, tables
from kmargin.paper.experiments import EXPERIMENTS, Classifiers
from kmargin.paper.protocol import QUICK, SOLVERS, Fit, Job, Settings, costs, recovery_sparsities, sparsities
from kmargin.paper.run import Request
from kmargin.paper.store import Store, StoreError, locked


def rows_of(folder):
    return (folder / "rows.csv").read_bytes()


# what is run


def test_the_grids_are_those_of_the_paper():
    fine = [0, 0.225, 0.45, 0.675, 0.9, 0.91, 0.93, 0.95, 0.97, 0.99, 0.991, 0.993, 0.995, 0.997, 0.999]
    assert list(sparsities("synthetic")) == fine
    assert list(sparsities("iris")) == [0, 0.25, 0.5, 0.75]
    assert len(sparsities("letter-recognition")) == 16
    assert len(sparsities("breast-cancer-wisconsin")) == 10
    assert list(costs("splice")[:2]) == [1, 0.775]
    assert list(costs("letter-recognition")[-2:]) == [0.001, 0.0001]
    assert list(costs("breast-cancer-wisconsin")[-1:]) == [0.01]
    assert recovery_sparsities(250) == (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.93, 0.97, 0.99)
    assert set(recovery_sparsities(1000)) == {0.95, *recovery_sparsities(250)}, "with the true one"
    assert [round(row["parameter"], 4) for row in tables.PUBLISHED["table2", "synthetic", "mm"]] == [
        round(100 * s, 4) for s in fine
    ]
    assert len(tables.PUBLISHED) == 1 + 16 + 31
    for (_, dataset, solver), rows in tables.PUBLISHED.items():
        grid, unit = (sparsities(dataset), 100) if solver in SOLVERS else (costs(dataset), 1)
        assert {round(row["parameter"] / unit, 6) for row in rows} <= set(grid)


def test_a_quick_run_is_a_part_of_the_full_one():
    full, quick = Settings().to_dict(), QUICK.to_dict()
    for name in ("shapes", "sample_sizes", "feature_sizes"):
        assert quick[name] == full[name][: len(quick[name])] != full[name]
    for name in ("n_folds_run", "n_starts", "n_draws"):
        assert 1 < quick[name] < full[name]


def test_the_papers_protocol_takes_rows_as_they_lie():
    data = protocol.read("iris", "paper", 0)
    assert (len(data.train), [*data.train, *data.test]) == (120, [*range(150)])
    assert set(data.y[data.test]) == {data.y[-1]}  # the last species alone: why iris scores so low
    for fit, validate in protocol.folds(data, 10, 0):
        assert np.all(np.diff(validate) == 1)
        assert set(data.y[fit]) == set(data.y)
    np.testing.assert_allclose(protocol.whole(data).X.mean(axis=0), 0, atol=1e-12)


def test_the_shuffled_protocol_is_stratified_and_scales_by_the_fitted_rows():
    data = protocol.read("iris", "shuffled", 0)
    assert {int((data.y[data.test] == label).sum()) for label in set(data.y)} == {10}
    fold = protocol.fold(data, Settings(), 3)
    np.testing.assert_allclose(fold.X[fold.train].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(fold.X[fold.train].std(axis=0), 1)
    assert not set(fold.train) & set(fold.validation)
    assert not set(fold.test) & (set(fold.train) | set(fold.validation))


def test_a_range_becomes_zero_to_one_and_a_constant_feature_survives_scaling():
    X = np.column_stack([np.arange(5.0), np.full(5, 7.0)])
    for scaling in ("zscore", "minmax", "none"):
        scaled = protocol.scale(X, X, scaling)
        assert np.isfinite(scaled).all()
        assert np.ptp(scaled[:, 1]) == 0
    np.testing.assert_allclose(protocol.scale(X, X, "minmax")[:, 0], [0, 0.25, 0.5, 0.75, 1])


@given(st.integers(0, 2**12 - 1), st.integers(1, 2**12 - 2))
def test_rates_of_wrong_discoveries_and_omissions_are_those_of_the_papers_formulas(selected, causal):
    selected, causal = (np.array(list(f"{bits:012b}")) == "1" for bits in (selected, causal))
    q, sensitivity, specificity = causal.mean(), selected[causal].mean(), 1 - selected[~causal].mean()
    discovered = (1 - specificity) * (1 - q) + sensitivity * q
    omitted = (1 - sensitivity) * q + specificity * (1 - q)
    fdr, false_omission = experiments.discovery_rates(selected, causal)
    assert fdr == pytest.approx((1 - specificity) * (1 - q) / (discovered or 1))
    assert false_omission == pytest.approx((1 - sensitivity) * q / (omitted or 1))


def first_job(experiment, solver):
    """The first job on iris, and its rows."""
    job = next(EXPERIMENTS[experiment].jobs(TINY, ["paper"], ["iris"], [solver]))
    return job, list(EXPERIMENTS[experiment].run(job, TINY))


def first_fold():
    return protocol.fold(protocol.read("iris", "paper", TINY.seed), TINY, 0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fold_gives_what_the_public_path_gives(solver):
    _, found = first_job("crossval", solver)
    rows = first_fold()
    C = TINY.exchange_C if solver == "exchange" else np.inf
    ks = [4, 3, 2, 1]
    public = {"mm": MM(ending="projection"), "sd": SD(ending="projection")}.get(solver, solver)
    path = sparse_svm_path(rows.X[rows.train], rows.y[rows.train], ks, C=C, solver=public, shared=False)
    for k, one, solutions in zip(ks, found, path.solutions, strict=True):
        for part in ("train", "validation", "test"):
            at = getattr(rows, part)
            assert one[part] == np.mean(path.predict(rows.X[at], k) == rows.y[at])
        assert one["kept"] == np.mean([len(s.support) for s in solutions])
        if solver == "exchange":
            assert one["objective"] == pytest.approx(np.mean([s.objective for s in solutions]), rel=1e-6)
            assert one["objective"] > one["loss"] + 1e-4  # it has a ridge
        else:
            assert one["iterations"] == sum(s.n_iter for s in solutions)


def test_a_random_start_is_the_same_whenever_it_is_taken():
    job, rows = first_job("sensitivity", "sd")
    values = [{name: value for name, value in row.items() if name != "seconds"} for row in rows]
    rest = experiments.run_sensitivity(job._replace(fits=job.fits[2:]), TINY)
    assert [row | {"seconds": 0} for row in values[2:]] == [row | {"seconds": 0} for row in rest]
    assert len({row["iterations"] for row in rows}) > 1


def test_exchange_from_a_random_support_keeps_its_size():
    rows = first_fold()
    classifiers = Classifiers("iris", rows.X[rows.train], rows.y[rows.train], 1.0, TINY)
    rngs = [np.random.default_rng(number) for number in range(3)]
    assert [len(s.support) for s in classifiers.improve([2, 2, 1], rngs)] == [2, 2, 1]


# nothing is lost, nothing is done twice


def crossval_jobs(solvers):
    return list(EXPERIMENTS["crossval"].jobs(TINY, ["paper"], ["iris"], solvers))


@pytest.fixture
def watched(monkeypatch):
    """The jobs of the cross-validation that were run, and how many may still run before one fails."""
    jobs, left = [], [1000]
    original = EXPERIMENTS["crossval"]

    def watch(job, settings):
        left[0] -= 1
        if left[0] < 0:
            raise InterruptedError
        jobs.append(job)
        return original.run(job, settings)

    monkeypatch.setitem(EXPERIMENTS, "crossval", original._replace(run=watch))
    run.warm_up.cache_clear()
    return jobs, left


def test_no_job_is_run_twice(tmp_path, monkeypatch, watched):
    done, left = watched
    monkeypatch.setattr(run, "warm_up", lambda *_: None)
    jobs = crossval_jobs(["mm", "l2r"])
    left[0] = 3
    with pytest.raises(InterruptedError):
        run.run(jobs, Store(tmp_path, {}, ""), TINY, 1, verbose=0)
    left[0] = 1000
    assert run.run(jobs, Store(tmp_path, {}, ""), TINY, 1, verbose=0) == len(jobs[-1].fits)
    assert done == jobs


JOBS = [Job("crossval", "paper", "iris", solver, (Fit(0, 0.0), Fit(0, 0.25))) for solver in ("mm", "sd")]


def results(job):
    return [fit._asdict() | {"test": 0.5, "seconds": 1.0} for fit in job.fits]


def test_rows_end_in_order_and_a_job_that_was_cut_off_is_run_again(tmp_path):
    store = Store(tmp_path, {}, "")
    for job in reversed(JOBS):
        store.append(job, results(job))
    store.finish(run.order)
    whole = rows_of(tmp_path)
    assert [line.split(b",")[3] for line in whole.splitlines()[1:]] == [b"mm", b"mm", b"sd", b"sd"]
    (tmp_path / "rows.csv").write_bytes(whole[:-3])
    store = Store(tmp_path, {}, "")
    assert [store.has(job) for job in JOBS] == [True, False]
    store.finish(run.order)
    assert len(pd.read_csv(tmp_path / "seconds.csv")) == 3  # a time that belongs to no row is dropped
    store.append(JOBS[1], results(JOBS[1]))
    store.finish(run.order)
    assert rows_of(tmp_path) == whole


def test_rows_of_others_are_left_alone(tmp_path):
    Store(tmp_path / "a", Settings().to_dict(), "")
    with pytest.raises(StoreError, match=r"n_folds_run=10, and this run has n_folds_run=3\. Give"):
        Store(tmp_path / "a", QUICK.to_dict(), "")
    (tmp_path / "rows.csv").write_text("something else\n")
    with pytest.raises(StoreError, match="has rows but no manifest"):
        Store(tmp_path, {}, "")
    (tmp_path / "a" / "rows.csv").write_text("something else\n")
    with pytest.raises(StoreError, match="is not a table of results"):
        Store(tmp_path / "a", Settings().to_dict(), "")
    assert (tmp_path / "rows.csv").read_text() == (tmp_path / "a" / "rows.csv").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks on Windows")
def test_two_runs_do_not_share_a_folder(tmp_path):
    with locked(tmp_path), pytest.raises(StoreError, match="Another run is writing"), locked(tmp_path):
        pass
    with pytest.raises(InterruptedError), locked(tmp_path):
        raise InterruptedError
    assert not list(tmp_path.iterdir())


def test_the_command_in_the_manifest_asks_for_the_same_again():
    request = Request("table3", datasets=["iris"], solvers=["mm", "sd"], protocols=["shuffled"], quick=True)
    words = "kmargin reproduce table3 --datasets iris --solvers mm,sd --protocol shuffled --quick"
    assert request.command == words
    assert Request("all", quick=True).datasets == ("iris", "spiral", "synthetic")


def test_the_manifest_says_how_the_rows_were_made(tmp_path):
    Store(tmp_path, QUICK.to_dict(), "kmargin reproduce all --quick")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["settings"]["seed"] == QUICK.seed
    assert manifest["commands"] == ["kmargin reproduce all --quick"]
    assert manifest["environments"][0]["numpy"] == np.__version__
    assert manifest["settings"] == QUICK.to_dict()
    committed = Path(__file__).parents[2] / "results" / "paper" / "manifest.json"
    assert json.loads(committed.read_text())["settings"] == Settings().to_dict()


# what is timed


def test_the_exchange_records_an_even_share_of_its_path():
    _, found = first_job("crossval", "exchange")
    assert len({row["iterations"] for row in found}) == len({row["seconds"] for row in found}) == 1
    rows = first_fold()
    classifiers = Classifiers("iris", rows.X[rows.train], rows.y[rows.train], TINY.exchange_C, TINY)
    *_, last = classifiers.solve(Exchange().in_folds(), [[4, 3, 2, 1]] * 3)
    assert sum(row["iterations"] for row in found) == sum(s.n_iter for s in last)


def test_nothing_is_compiled_or_run_first_while_the_clock_runs(tmp_path, watched):
    """Each process runs the beginning of every kind of job before it times one."""
    run.run(crossval_jobs(["mm", "exchange"]), Store(tmp_path, {}, ""), TINY, 1, verbose=0)
    calls = [(job.solver, job.fits[0].replicate, len(job.fits)) for job in watched[0]]
    assert calls[:3] == [("mm", 0, 2), ("mm", 0, 4), ("mm", 1, 4)]
    assert calls[3:] == [("exchange", 0, 4), ("exchange", 0, 4), ("exchange", 1, 4)]
