"""The paper's experiments: what is run, that nothing is lost or done twice, and what is made of it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_runs import TINY

from kmargin import MM, SD, SparseSVC, sparse_svm_path
from kmargin.core.sparsity import count_kept
from kmargin.paper import crossval, protocol, recovery, run, sensitivity, tables
from kmargin.paper.crossval import Classifiers
from kmargin.paper.protocol import (
    QUICK,
    SOLVERS,
    Chain,
    Finished,
    Settings,
    Unit,
    costs,
    recovery_sparsities,
    sparsities,
)
from kmargin.paper.run import Request, reproduce
from kmargin.paper.store import Store, StoreError

KILLED = """
import sys, time
from pathlib import Path
from kmargin.paper.run import Request, reproduce
from kmargin.paper.store import Store

append = Store.append
def slowly(*args):
    append(*args)
    time.sleep(0.2)

Store.append = slowly
request = Request("table3", datasets=["iris"], solvers=("mm", "exchange"), quick=True)
reproduce(request, Path(sys.argv[1]), n_jobs=int(sys.argv[2]), verbose=0)
"""


def rows_of(folder):
    return (folder / "rows.csv").read_bytes()


# what is run


def test_the_grids_are_those_of_the_paper():
    fine = [0, 0.225, 0.45, 0.675, 0.9, 0.91, 0.93, 0.95, 0.97, 0.99, 0.991, 0.993, 0.995, 0.997, 0.999]
    assert list(sparsities("synthetic")) == fine == [round(row.s / 100, 6) for row in tables.TABLE_2]
    assert list(sparsities("iris")) == [0, 0.25, 0.5, 0.75]
    assert len(sparsities("letter-recognition")) == 16
    assert len(sparsities("breast-cancer-wisconsin")) == 10
    assert list(costs("splice")[:2]) == [1, 0.775]
    assert list(costs("letter-recognition")[-2:]) == [0.001, 0.0001]
    assert list(costs("breast-cancer-wisconsin")[-1:]) == [0.01]
    for p in (250, 500, 1000):
        assert 50 in [count_kept(s, p) for s in recovery_sparsities(p)], "the true sparsity is on the grid"
    for (dataset, _), row in tables.TABLE_3.items():
        assert round(row.s / 100, 6) in sparsities(dataset)
    for (dataset, solver), row in tables.TABLE_4.items():
        grid = sparsities(dataset) if solver in SOLVERS else costs(dataset)
        unit = 100 if solver in SOLVERS else 1
        assert round(row.parameter / unit, 6) in grid


def test_the_papers_protocol_takes_rows_as_they_lie():
    data = protocol.read("iris", "paper", 0)
    assert list(data.train) == list(range(120))
    assert set(data.y[data.test]) == {data.y[-1]}  # the last species alone: why iris scores so low
    for fit, validate in protocol.folds(data, 10, 0):
        assert np.all(np.diff(validate) == 1)
        assert set(data.y[fit]) == set(data.y)
    np.testing.assert_allclose(protocol.whole(data).X.mean(axis=0), 0, atol=1e-12)


def test_the_shuffled_protocol_is_stratified_and_scales_by_the_fitted_rows():
    data = protocol.read("iris", "shuffled", 0)
    assert {int((data.y[data.test] == label).sum()) for label in set(data.y)} == {10}
    fold = protocol.fold(data, 10, 0, 3)
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
def test_the_papers_rates_are_shares_of_wrong_discoveries_and_omissions(selected, causal):
    selected, causal = (np.array(list(f"{bits:012b}")) == "1" for bits in (selected, causal))
    fdr, false_omission = recovery.discovery_rates(selected, causal)
    assert fdr == pytest.approx((selected & ~causal).sum() / max(selected.sum(), 1))
    assert false_omission == pytest.approx((~selected & causal).sum() / max((~selected).sum(), 1))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fold_gives_what_the_public_path_gives(solver):
    chain = next(crossval.chains(TINY, ["paper"], ["iris"], [solver]))
    found = list(crossval.walk(chain, TINY, [], []))
    rows = protocol.fold(protocol.read("iris", "paper", TINY.seed), 10, TINY.seed, 0)
    C = TINY.exchange_C if solver == "exchange" else np.inf
    ks = [4, 3, 2, 1]
    public = {"mm": MM(ending="projection"), "sd": SD(ending="projection")}.get(solver, solver)
    path = sparse_svm_path(rows.X[rows.train], rows.y[rows.train], ks, C=C, solver=public, shared=False)
    for k, one in zip(ks, found, strict=True):
        assert one.values["test"] == np.mean(path.predict(rows.X[rows.test], k) == rows.y[rows.test])
        assert one.values["kept"] == np.mean([len(s.support) for s in path.solutions[ks.index(k)]])
        if solver != "exchange":
            assert one.values["iterations"] == sum(s.n_iter for s in path.solutions[ks.index(k)])


def test_a_random_start_is_the_same_whenever_it_is_taken():
    chain = next(sensitivity.chains(TINY, ["paper"], ["iris"], ["sd"]))
    whole = list(sensitivity.walk(chain, TINY, [], []))
    rest = list(sensitivity.walk(chain, TINY, chain.units[:2], []))
    assert [one.values for one in whole[2:]] == [one.values for one in rest]
    assert len({one.values["iterations"] for one in whole}) > 1


def test_exchange_from_a_random_support_keeps_its_size():
    data = protocol.read("iris", "paper", 0)
    machines = Classifiers("iris", protocol.whole(data).X[data.train], data.y[data.train], 1.0, TINY)
    rngs = [np.random.default_rng(number) for number in range(3)]
    assert [len(s.support) for s in machines.improve([2, 2, 1], rngs)] == [2, 2, 1]


def test_support_vectors_and_loss_are_counted_on_the_training_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1, -1)
    machines = Classifiers("synthetic", X, y, np.inf, TINY)
    solutions = machines.anneal(MM(), [2])
    values = machines.describe(solutions)
    model = SparseSVC(2, C=np.inf, solver="mm").fit(X, y)
    margins = y * model.decision_function(X)
    assert values["support_vectors"] == (margins < 1).sum()
    assert values["loss"] == pytest.approx(np.mean(np.maximum(0, 1 - margins) ** 2) / 2)


# nothing is lost, nothing is done twice


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(tmp_path):
    """Killed twice, with and without processes of its own; then it goes on in this one."""
    request = Request("table3", datasets=["iris"], solvers=("mm", "exchange"), quick=True)
    reproduce(request, tmp_path / "whole", n_jobs=1, verbose=0)
    sizes = []
    for wanted, n_jobs in ((3, 2), (10, 1)):
        command = [sys.executable, "-c", KILLED, tmp_path / "killed", str(n_jobs)]
        process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
        rows = tmp_path / "killed" / "rows.csv"
        while process.poll() is None and not (rows.exists() and rows.read_bytes().count(b"\n") > wanted):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        sizes.append(rows.read_bytes().count(b"\n"))
    done = rows_of(tmp_path / "killed").splitlines()
    reproduce(request, tmp_path / "killed", n_jobs=1, verbose=0)
    assert 3 < sizes[0] < sizes[1] < rows_of(tmp_path / "whole").count(b"\n")  # it was killed in the middle
    assert rows_of(tmp_path / "killed") == rows_of(tmp_path / "whole")
    assert set(done) <= set(rows_of(tmp_path / "killed").splitlines())
    manifests = [(tmp_path / name / "manifest.json").read_bytes() for name in ("killed", "whole")]
    assert manifests[0] == manifests[1]
    assert not (tmp_path / "killed" / "state").exists()


class Stopped(Exception):
    """Stands for whatever may end a run."""


@pytest.mark.parametrize("stop_after", [1, 4, 9])
def test_no_unit_is_computed_twice(tmp_path, monkeypatch, stop_after):
    chains = run.plan(["crossval"], TINY, ["paper"], ["iris"], ["mm", "l2r"])
    computed = []
    left = [stop_after]
    walk = crossval.walk

    def counted(chain, settings, done, state):
        for finished in walk(chain, settings, done, state):
            if left[0] == 0:
                raise Stopped
            left[0] -= 1
            computed.append((chain.solver, finished.unit))
            yield finished

    monkeypatch.setattr(run, "warm_up", lambda *_: None)
    monkeypatch.setattr(crossval, "walk", counted)
    with pytest.raises(Stopped), Store(tmp_path, TINY.to_dict(), "") as store:
        run.run(chains, store, TINY, 1, verbose=0)
    left[0] = 1000
    with Store(tmp_path, TINY.to_dict(), "") as store:
        run.run(chains, store, TINY, 1, verbose=0)
    assert len(computed) == len(set(computed)) == sum(len(chain.units) for chain in chains)


def test_a_chain_that_has_lost_its_state_is_walked_again_with_the_same_result(tmp_path):
    chains = run.plan(["crossval"], TINY, ["paper"], ["iris"], ["mm"])
    with Store(tmp_path / "whole", TINY.to_dict(), "") as store:
        run.run(chains, store, TINY, 1, verbose=0)
    with Store(tmp_path / "cut", TINY.to_dict(), "") as store:
        for finished in list(crossval.walk(chains[0], TINY, [], []))[:2]:
            store.append(chains[0], [finished._replace(state=())])
    with Store(tmp_path / "cut", TINY.to_dict(), "") as store:
        run.run(chains, store, TINY, 1, verbose=0)
    assert rows_of(tmp_path / "cut") == rows_of(tmp_path / "whole")


def test_the_number_of_jobs_does_not_change_the_rows(tmp_path):
    chains = run.plan(list(run.EXPERIMENTS), TINY, ["shuffled"], ["iris"], [*SOLVERS, "l1r"])
    for jobs in (1, 2):
        with Store(tmp_path / str(jobs), TINY.to_dict(), "") as store:
            run.run(chains, store, TINY, jobs, verbose=0)
    assert rows_of(tmp_path / "1") == rows_of(tmp_path / "2")
    experiments = pd.read_csv(tmp_path / "1" / "rows.csv").experiment
    assert list(dict.fromkeys(experiments)) == list(run.EXPERIMENTS)


CHAIN = Chain("crossval", "paper", "iris", "mm", (Unit(0, 0.0), Unit(0, 0.25)))


def done(chain, number):
    return Finished(chain.units[number], {"test": 0.5}, 1.0, [np.arange(3.0) + number])


def test_a_line_that_was_cut_off_is_dropped(tmp_path):
    with Store(tmp_path, {}, "") as store:
        store.append(CHAIN, [done(CHAIN, 0)])
        store.append(CHAIN, [done(CHAIN, 1)])
    whole = rows_of(tmp_path)
    (tmp_path / "rows.csv").write_bytes(whole[:-3])
    with Store(tmp_path, {}, "") as store:
        assert store.done(CHAIN) == [CHAIN.units[0]]
        assert len(store.seconds.by_key) == 1  # the second unit's time belongs to no row
        store.append(CHAIN, [done(CHAIN, 1)])
    assert rows_of(tmp_path) == whole


def test_other_settings_never_mix_into_a_run(tmp_path):
    Store(tmp_path, Settings().to_dict(), "").__exit__(None, None, None)
    with pytest.raises(StoreError, match=r"n_draws=10, and this run has n_draws=2\. Give another folder"):
        Store(tmp_path, QUICK.to_dict(), "")


def test_rows_without_a_manifest_are_left_alone(tmp_path):
    (tmp_path / "rows.csv").write_text("something else\n")
    with pytest.raises(StoreError, match="has rows but no manifest"):
        Store(tmp_path, {}, "")
    assert (tmp_path / "rows.csv").read_text() == "something else\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks on Windows")
def test_two_runs_do_not_share_a_folder(tmp_path):
    with Store(tmp_path, {}, ""), pytest.raises(StoreError, match="Another run is writing"):
        Store(tmp_path, {}, "")
    Store(tmp_path, {}, "").__exit__(None, None, None)


def test_parts_datasets_and_solvers_are_checked():
    for arguments, message in (
        (("table9",), "There is no part 'table9'. Use descent, figure1, figure2"),
        (("table3", ["irsi"]), "There is no dataset 'irsi'. Use TCGA-PANCAN-HiSeq"),
        (("table3", ["iris"], ["lasso"]), "There is no solver 'lasso'. Use mm, sd, exchange, l2r"),
    ):
        part, datasets, solvers, *_ = (*arguments, (), ())
        with pytest.raises(ValueError, match=message.replace(".", r"\.")):
            Request(part, datasets=datasets, solvers=solvers)


def test_the_command_in_the_manifest_asks_for_the_same_again():
    request = Request("table3", datasets=["iris"], solvers=["mm", "sd"], protocols=["shuffled"], quick=True)
    assert (
        request.command
        == "kmargin reproduce table3 --datasets iris --solvers mm,sd --protocol shuffled --quick"
    )
    assert Request("all", quick=True).datasets == ("iris", "spiral", "synthetic")


def test_the_manifest_says_how_the_rows_were_made(tmp_path):
    with Store(tmp_path, QUICK.to_dict(), "kmargin reproduce all --quick"):
        manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["settings"]["seed"] == QUICK.seed
    assert manifest["commands"] == ["kmargin reproduce all --quick"]
    assert manifest["environments"][0]["numpy"] == np.__version__
    assert manifest["settings"] == QUICK.to_dict()


def test_states_are_kept_while_a_chain_lasts_and_forgotten_at_its_end(tmp_path):
    chain = Chain("crossval", "paper", "iris", "mm", (Unit(0, 0.0), Unit(0, 0.5)), is_warm=True)
    with Store(tmp_path, Settings().to_dict(), "command") as store:
        store.append(chain, [done(chain, 0)])
        np.testing.assert_array_equal(store.state(chain, store.done(chain))[0], [0, 1, 2])
        store.append(chain, [done(chain, 1)])
        assert not list((tmp_path / "state").iterdir())


def test_rows_end_in_order_and_seconds_without_a_row_are_dropped(tmp_path):
    first, second = (Chain("crossval", "paper", "iris", solver, (Unit(0, 0.0),)) for solver in ("mm", "sd"))
    with Store(tmp_path, Settings().to_dict(), "command") as store:
        for chain in (second, first):
            store.append(chain, [done(chain, 0)])
        store.finish(run.order)
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert list(rows["solver"]) == ["mm", "sd"]
    text = (tmp_path / "rows.csv").read_text().splitlines(keepends=True)
    (tmp_path / "rows.csv").write_text("".join(text[:-1]))  # killed before the last row was written
    with Store(tmp_path, Settings().to_dict(), "command"):
        assert list(pd.read_csv(tmp_path / "seconds.csv")["solver"]) == ["mm"]


# what is timed


def test_the_exchange_records_an_even_share_of_its_path():
    chain = next(crossval.chains(TINY, ["paper"], ["iris"], ["exchange"]))
    found = list(crossval.walk(chain, TINY, [], []))
    assert len({one.values["iterations"] for one in found}) == 1
    assert len({one.seconds for one in found}) == 1
    rows = protocol.fold(protocol.read("iris", "paper", TINY.seed), 10, TINY.seed, 0)
    machines = Classifiers("iris", rows.X[rows.train], rows.y[rows.train], TINY.exchange_C, TINY)
    path = machines.exchange([unit.parameter for unit in chain.units])
    assert sum(one.values["iterations"] for one in found) == sum(s.n_iter for s in path[-1])


def test_nothing_is_compiled_or_run_first_while_the_clock_runs(tmp_path, monkeypatch):
    """Each process runs the beginning of every kind of chain before it times one."""
    calls = []
    walk = crossval.walk

    def noted(chain, *rest):
        calls.append((chain.solver, chain.units[0].replicate, len(chain.units)))
        return walk(chain, *rest)

    run.warm_up.cache_clear()
    monkeypatch.setattr(crossval, "walk", noted)
    chains = run.plan(["crossval"], TINY, ["paper"], ["iris"], ["mm", "exchange"])
    with Store(tmp_path, TINY.to_dict(), "") as store:
        run.run(chains, store, TINY, 1, verbose=0)
    assert sorted(calls[:2]) == [("exchange", 0, 4), ("mm", 0, 2)]
    assert calls[2:] == [("mm", 0, 4), ("mm", 1, 4), ("exchange", 0, 4), ("exchange", 1, 4)]


COLD = """
import sys
from pathlib import Path
from kmargin.paper import run as runner
from kmargin.paper.store import Store
sys.path.insert(0, sys.argv[2])
from small_runs import TINY

chains = runner.plan(["crossval"], TINY, ["paper"], ["iris"], ["sd"])
with Store(Path(sys.argv[1]), TINY.to_dict(), "") as store:
    runner.run(chains, store, TINY, 1, verbose=0)
"""


@pytest.mark.heavy
def test_on_a_fresh_machine_compilation_is_in_no_time(tmp_path):
    """With nothing compiled before, no fit of iris takes longer than it should."""
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-c",
        COLD,
        tmp_path / "run",
        os.path.join(os.path.dirname(os.path.dirname(__file__)), "helpers"),
    ]
    subprocess.run(command, env=env, check=True, capture_output=True)
    seconds = pd.read_csv(tmp_path / "run" / "seconds.csv").seconds
    assert seconds.max() < 0.5  # compiling takes seconds, a fit milliseconds
