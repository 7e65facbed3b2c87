"""The paper's experiments: what is run, that nothing is lost or done twice, and what is made of it."""

import itertools
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from joblib.externals.loky.process_executor import TerminatedWorkerError
from small_runs import TINY

from kmargin import MM, SD, Exchange, sparse_svm_path
from kmargin.datasets import TABLE_1
from kmargin.paper import experiments, protocol, run, tables
from kmargin.paper.experiments import EXPERIMENTS
from kmargin.paper.protocol import QUICK, SOLVERS, Fit, Job, Settings, costs, recovery_sparsities, sparsities
from kmargin.paper.run import Request
from kmargin.paper.store import RECORDED, Store, StoreError, locked


def test_the_grids_are_those_of_the_paper():
    fine = [0, 0.225, 0.45, 0.675, 0.9, 0.91, 0.93, 0.95, 0.97, 0.99, 0.991, 0.993, 0.995, 0.997, 0.999]
    assert (list(sparsities("synthetic")), list(sparsities("iris"))) == (fine, [0, 0.25, 0.5, 0.75])
    assert (len(sparsities("letter-recognition")), len(sparsities("breast-cancer-wisconsin"))) == (16, 10)
    assert (costs("splice")[:2], costs("letter-recognition")[-2:]) == ((1, 0.775), (0.001, 0.0001))
    assert list(costs("breast-cancer-wisconsin")[-1:]) == [0.01]
    assert recovery_sparsities(250) == (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.93, 0.97, 0.99)
    assert set(recovery_sparsities(1000)) == {0.95, *recovery_sparsities(250)}, "with the true one"
    printed = [row["parameter"] / 100 for row in tables.PUBLISHED["table2", "synthetic", "mm"]]
    assert (printed, len(tables.PUBLISHED)) == (pytest.approx(fine, abs=5e-7), 1 + 16 + 31)
    for (_, dataset, solver), rows in tables.PUBLISHED.items():
        grid, unit = (sparsities(dataset), 100) if solver in SOLVERS else (costs(dataset), 1)
        assert {round(row["parameter"] / unit, 6) for row in rows} <= set(grid)


def test_a_quick_run_is_a_part_of_the_full_one():
    full, quick = Settings().to_dict(), QUICK.to_dict()
    for name in ("shapes", "sample_sizes", "feature_sizes"):
        assert quick[name] == full[name][: len(quick[name])] != full[name]
    assert all(1 < quick[name] < full[name] for name in ("n_folds_run", "n_starts", "n_draws"))


def test_a_request_has_the_data_sets_solvers_and_experiments_that_its_parts_need(tmp_path, monkeypatch):
    monkeypatch.setenv("KMARGIN_DATA", str(tmp_path))
    every, both = protocol.DATASETS, (*SOLVERS, *protocol.PEERS)
    assert Request().datasets == every[1:], "without TCGA-PANCAN-HiSeq"
    (tmp_path / TABLE_1[every[0]].files[0].name).touch()
    found = [(one.datasets, one.solvers) for one in map(Request, ("all", "table2", "table4", "figure1"))]
    assert found == [(every, both), (("synthetic",), SOLVERS), (every, both), (every, SOLVERS)]
    assert Request("all", quick=True).datasets == ("iris", "spiral", "synthetic")
    request = Request("figure1", protocols=["shuffled", "paper"], seed=5)
    assert (request.protocols, request.settings) == (("paper", "shuffled"), replace(Settings(), seed=5))
    assert request.command == "kmargin reproduce figure1 --protocol paper,shuffled --seed 5"
    request = Request("table3", datasets=["iris"], solvers=["mm", "sd"], protocols=["shuffled"], quick=True)
    words = "kmargin reproduce table3 --datasets iris --solvers mm,sd --protocol shuffled --quick"
    assert request.command == words, "the command in the manifest asks for the same again"
    for wrong in ({"part": "x"}, {"datasets": ["x"]}, {"solvers": ["mm", "x"]}, {"protocols": ["x"]}):
        what = next(iter(wrong)).removesuffix("s")
        with pytest.raises(ValueError, match=rf"^There is no {what} 'x'\. Use [\w-]+, "):
            Request(**wrong)
    for part, experiment in run.PARTS.items():
        jobs = run.plan(Request(part, datasets=["iris"], solvers=["mm"]))
        assert {job.experiment for job in jobs} == {experiment} - {None}


def test_jobs_are_those_of_the_figures_and_tables_in_their_order():
    few = replace(TINY, n_starts=30, n_draws=2, shapes=((60, 100),), sample_sizes=(70,), feature_sizes=(80,))
    chosen = few, ["paper", "shuffled"], ["iris", "spiral"], ["mm", *protocol.PEERS]
    parts = [tuple(Fit(i, 0.5) for i in part) for part in (range(25), range(25, 30))]
    expected = [Job("sensitivity", "paper", name, "mm", fits) for name in chosen[2] for fits in parts]
    for shape, grid in {"60x100": recovery_sparsities(100), "70x500": [0.9], "500x80": [0.375]}.items():
        expected += [Job("recovery", "paper", shape, "mm", tuple(Fit(i, s) for s in grid)) for i in (0, 1)]
    pairs = [("iris", "mm"), ("iris", "l2r"), ("iris", "l1r"), ("spiral", "mm"), ("spiral", "svc")]
    for name, (dataset, solver) in itertools.product(("paper", "shuffled"), pairs):
        grid = (sparsities if solver == "mm" else costs)(dataset)
        expected += [Job("crossval", name, dataset, solver, tuple(Fit(i, s) for s in grid)) for i in (0, 1)]
    assert [job for experiment in EXPERIMENTS.values() for job in experiment.jobs(*chosen)] == expected


def test_the_papers_protocol_takes_rows_as_they_lie():
    data = protocol.read("iris", "paper", 0)
    assert (len(data.train), [*data.train, *data.test]) == (120, [*range(150)])
    assert set(data.y[data.test]) == {data.y[-1]}  # the last species alone: why iris scores so low
    for fit, validate in protocol.folds(data, 10, 0):
        assert np.all(np.diff(validate) == 1)
        assert set(data.y[fit]) == set(data.y)
    np.testing.assert_allclose(protocol.whole(data).X.mean(axis=0), 0, atol=1e-12)


def test_the_shuffled_protocol_is_stratified_and_scales_by_the_fitted_rows():
    data, again, other = (protocol.read.__wrapped__("iris", "shuffled", seed) for seed in (0, 0, 1))
    assert [*data.test] == [*again.test] == sorted(data.test) != [*other.test]
    assert [*data.train] == sorted({*range(150)} - {*data.test})
    for one, same, other in zip(*(protocol.folds(data, 10, seed) for seed in (0, 0, 1)), strict=True):
        assert [*one[1]] == [*same[1]] != [*other[1]]
        assert ([*Counter(data.y[one[1]]).values()], [*np.sort(np.append(*one))]) == ([4] * 3, [*data.train])
    assert [*Counter(data.y[data.test]).values()] == [10] * 3
    fold = protocol.fold(data, Settings(), 3)
    np.testing.assert_allclose(fold.X[fold.train].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(fold.X[fold.train].std(axis=0), 1)
    assert sorted([*fold.train, *fold.validation, *fold.test]) == [*range(150)]


def test_a_range_becomes_zero_to_one_and_a_constant_feature_survives_scaling():
    X = np.column_stack([np.arange(3.0, 8.0), np.full(5, 7.0)])
    z = (np.arange(5) - 2) / np.sqrt(2)
    scaled = {"zscore": (z, 0), "minmax": (np.arange(5) / 4, 0), "none": (X[:, 0], 7)}
    for scaling, (first, other) in scaled.items():
        np.testing.assert_allclose(protocol.scale(X, X, scaling).T, [first, [other] * 5])


@example(1, 2)
@example(2**12 - 2, 1)
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
    """The first job on iris, its results, and the rows of the first fold."""
    job = next(EXPERIMENTS[experiment].jobs(TINY, ["paper"], ["iris"], [solver]))
    fold = protocol.fold(protocol.read("iris", "paper", TINY.seed), TINY, 0)
    return job, list(EXPERIMENTS[experiment].run(job, TINY)), fold


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fold_gives_what_the_public_path_gives(solver):
    job, found, rows = first_job("crossval", solver)
    C, ks = TINY.exchange_C if solver == "exchange" else np.inf, [4, 3, 2, 1]
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
    if solver == "exchange":  # whose Newton steps for the whole path are shared out evenly
        *_, last = experiments.make_classifiers(job, rows, TINY).solve(Exchange().in_folds(), [ks] * 3)
        assert [one["iterations"] for one in found] == [sum(s.n_iter for s in last) / 4] * 4


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_random_start_has_a_seed_of_its_own_for_each_binary_problem(solver, monkeypatch):
    starts, improve = [], Exchange.improve
    monkeypatch.setattr(Exchange, "improve", lambda *args: starts.extend(args[2]) or improve(*args))
    job, found, _ = first_job("sensitivity", solver)
    rows = protocol.whole(protocol.read("iris", "paper", TINY.seed))
    classifiers = experiments.make_classifiers(job, rows, TINY)
    for fit, row in reversed([*zip(job.fits, found, strict=True)]):
        rngs = [np.random.default_rng([TINY.seed, fit.replicate, number]) for number in range(3)]
        if solver == "exchange":
            for rng, start in zip(rngs, starts[3 * fit.replicate :], strict=False):
                assert [*start.support] == sorted(rng.choice(4, 2, replace=False))
                assert [*start.coef] == [*rng.standard_normal(2)]
            assert row["gradient_sq"] == row["distance_sq"] == 0
            continue
        kind = {"mm": MM, "sd": SD}[solver](start="normal", ending="projection")
        (solutions,) = classifiers.solve(kind, [[2]] * 3, rngs)
        test = classifiers.describe(solutions) | {"test": classifiers.accuracy(rows.X[120:], rows.y[120:])}
        assert row == fit._asdict() | test | {"seconds": row["seconds"]}
    assert {row["kept"] for row in found} == {2}
    assert len({row["iterations"] for row in found}) > 1


JOBS = [Job("crossval", "paper", "iris", solver, (Fit(0, 0.0), Fit(0, 0.25))) for solver in ("mm", "sd")]


def results(job):
    return [fit._asdict() | {"test": 0.5, "seconds": 1.0} for fit in job.fits]


def test_rows_end_in_order_and_a_job_that_was_cut_off_is_run_again(tmp_path):
    store, path = Store(tmp_path, {}, ""), tmp_path / "rows.csv"
    for job in reversed(JOBS):
        store.append(job, results(job))
    store.finish(run.order)
    whole = path.read_bytes()
    assert [line.split(b",")[3] for line in whole.splitlines()[1:]] == [b"mm", b"mm", b"sd", b"sd"]
    path.write_bytes(whole[:-3])
    store = Store(tmp_path, {}, "")
    assert [store.has(job) for job in JOBS] == [True, False]
    store.finish(run.order)
    assert len(pd.read_csv(tmp_path / "seconds.csv")) == 3  # a time that belongs to no row is dropped
    store.append(JOBS[1], results(JOBS[1]))
    store.finish(run.order)
    assert path.read_bytes() == whole


def test_rows_are_in_the_order_of_tables_and_of_numbers():
    keys = """sensitivity paper splice mm 9 0.5, sensitivity paper splice mm 10 0.5,
        recovery paper 500x80 sd 0 0.9, recovery paper 500x100 mm 0 0.9, recovery paper 1000x80 mm 0 0.9,
        crossval paper spiral svc 1 0, crossval paper splice exchange 0 1e-05,
        crossval paper splice exchange 0 0.5, crossval paper splice l2r 0 0, crossval shuffled iris mm 0 0"""
    keys = [tuple(key.split()) for key in keys.split(",")]
    assert sorted(sorted(keys), key=run.order) == keys


@pytest.mark.parametrize("n_jobs", [0, 2, 5])
@pytest.mark.parametrize("error", [KeyboardInterrupt, TerminatedWorkerError])
def test_a_run_that_breaks_off_continues_and_no_job_is_run_twice(tmp_path, monkeypatch, error, n_jobs):
    done, stopped, sizes = [], [], []

    def broken(calls):
        for function, (job, settings), _ in calls:
            assert (function, settings) == (run.run_job, TINY)
            done.append(job)
            yield job, results(job)
            if job == JOBS[0]:
                raise error

    monkeypatch.setattr(run, "Parallel", lambda n_jobs, **how: sizes.append(n_jobs) or broken)
    executor = SimpleNamespace(shutdown=lambda **how: stopped.append(how))
    monkeypatch.setattr(run, "get_reusable_executor", lambda: executor)
    is_stopped = error is KeyboardInterrupt
    with pytest.raises(error if is_stopped else RuntimeError) as caught:
        run.run(JOBS, Store(tmp_path, {}, ""), TINY, n_jobs, verbose=0)
    assert ("Finished results are on disk" in str(caught.value)) == (not is_stopped)
    assert stopped == [{"wait": True, "kill_workers": True}] * is_stopped
    assert run.run(JOBS, Store(tmp_path, {}, ""), TINY, n_jobs, verbose=0) == len(JOBS[1].fits)
    assert (done, sizes) == (JOBS, [2 if n_jobs else 1, 1])


def test_rows_of_others_are_left_alone(tmp_path):
    full, other = Settings().to_dict(), tmp_path / "a"
    Store(other, full, "")
    with pytest.raises(StoreError, match=r"n_folds_run=10, and this run has n_folds_run=3\. Give"):
        Store(other, QUICK.to_dict(), "")
    for folder, message in ((tmp_path, "has rows but no manifest"), (other, "is not a table of results")):
        (folder / "rows.csv").write_text("something else\n")
        with pytest.raises(StoreError, match=message):
            Store(folder, full, "")
        assert (folder / "rows.csv").read_text() == "something else\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks on Windows")
def test_two_runs_do_not_share_a_folder(tmp_path):
    with locked(tmp_path), pytest.raises(StoreError, match="Another run is writing"), locked(tmp_path):
        pass
    with pytest.raises(InterruptedError), locked(tmp_path):
        raise InterruptedError
    assert not list(tmp_path.iterdir())


def test_the_manifest_says_how_the_rows_were_made(tmp_path):
    for command in ("first", "second", "second"):
        Store(tmp_path, QUICK.to_dict(), command)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (manifest["commands"], manifest["settings"]) == (["first", "second"], QUICK.to_dict())
    (environment,) = manifest["environments"]
    assert [*environment] == ["python", "system", "machine", "processors", *RECORDED]
    assert environment["numpy"] == np.__version__
    for name, now in (("format", 2), ("kmargin", repr(manifest["kmargin"]))):
        (tmp_path / "manifest.json").write_text(json.dumps(manifest | {name: "older"}))
        with pytest.raises(StoreError, match=f"rows made with {name}='older', and this run has {name}={now}"):
            Store(tmp_path, QUICK.to_dict(), "")
    committed = Path(__file__).parents[2] / "results" / "paper" / "manifest.json"
    assert json.loads(committed.read_text())["settings"] == Settings().to_dict()


@pytest.mark.parametrize("solver", ["exchange", "sd", "l1r"])
@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_time_of_a_fit_is_from_a_look_at_the_clock_to_the_next(name, solver, monkeypatch):
    looks = itertools.count(5)
    monkeypatch.setattr(experiments, "time", SimpleNamespace(thread_time=lambda: next(looks)))
    for job in list(EXPERIMENTS[name].jobs(TINY, ["paper"], ["iris"], [solver]))[:1]:
        found = [row["seconds"] for row in EXPERIMENTS[name].run(job._replace(fits=job.fits[-2:]), TINY)]
        assert found == [0.5 if (name, solver) == ("crossval", "exchange") else 1] * 2


def test_nothing_is_compiled_or_run_first_while_the_clock_runs(tmp_path, monkeypatch):
    """Each process runs the beginning of every kind of job before it times one."""
    calls, original = [], EXPERIMENTS["crossval"]

    def watch(job, settings):
        calls.append((job.solver, job.fits[0].replicate, len(job.fits)))
        return original.run(job, settings)

    monkeypatch.setitem(EXPERIMENTS, "crossval", original._replace(run=watch))
    run.warm_up.cache_clear()
    jobs = list(original.jobs(TINY, ["paper"], ["iris"], ["mm", "exchange"]))
    run.run(jobs, Store(tmp_path, {}, ""), TINY, 1, verbose=0)
    assert calls[:3] == [("mm", 0, 2), ("mm", 0, 4), ("mm", 1, 4)]
    assert calls[3:] == [("exchange", 0, 4), ("exchange", 0, 4), ("exchange", 1, 4)]
