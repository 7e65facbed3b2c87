"""A small run of every experiment: its folder, its page in a real browser, and interrupted runs."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from browsing import DESKTOP, PHONE, open_page
from small_runs import iris_request, read_few, small_request

from kmargin.paper import experiments, protocol
from kmargin.paper.experiments import EXPERIMENTS
from kmargin.paper.protocol import SOLVERS
from kmargin.paper.report import heading
from kmargin.paper.run import PARTS, reproduce


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """The folder and the report of a small run of every experiment, in this process."""
    folder = tmp_path_factory.mktemp("reproduce")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "read", read_few)
        patch.setattr(experiments, "BASE", 100)
        return folder, reproduce(small_request(), folder, n_jobs=1, verbose=0)


def test_a_run_writes_rows_tables_manifest_and_a_page(small_run):
    folder, report = small_run
    expected = {"rows.csv", "seconds.csv", "manifest.json", "report.html"}
    expected |= {f"table{number}.csv" for number in (2, 3, 4)}
    assert {path.name for path in folder.iterdir()} == expected
    assert len(pd.read_csv(folder / "table2.csv")) == 15 * len(SOLVERS)
    page = report.read_text()
    for part in PARTS:
        title = re.search(rf'<h2 id="{part}">([^<]+)</h2>', page)[1]
        assert title.startswith("How MM" if part == "descent" else f"{heading(part)}: ")
    assert not re.search("https?://", page.replace("http://www.w3.org", ""))


KILLED = """
import sys, time
from pathlib import Path
from small_runs import iris_request
from kmargin.paper.run import reproduce
from kmargin.paper.store import Store

append = Store.append
def slowly(*args):
    append(*args)
    time.sleep(0.5)

Store.append = slowly
reproduce(iris_request(), Path(sys.argv[1]), n_jobs=1, verbose=0)
"""


def test_a_killed_run_goes_on_and_has_the_rows_of_a_whole_run(small_run, tmp_path, monkeypatch, undrawn):
    request, rows = iris_request(), tmp_path / "rows.csv"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent / "helpers")}
    process = subprocess.Popen([sys.executable, "-c", KILLED, tmp_path], env=environment)
    while process.poll() is None and not (rows.exists() and rows.read_bytes().count(b"\n") > 3):
        time.sleep(0.01)
    process.kill()
    process.wait()
    n_done = rows.read_bytes().count(b"\n")
    reproduce(request, tmp_path, n_jobs=2, verbose=0)
    paths = small_run[0] / "rows.csv", rows
    whole, found = (path.read_text().splitlines() for path in paths)
    kept = rf"experiment|(sensitivity|crossval),paper,iris,({'|'.join(request.solvers)}),"
    assert found == [line for line in whole if re.match(kept, line)]
    assert 3 < n_done < len(found)  # it was killed in the middle
    assert json.loads((tmp_path / "manifest.json").read_text())["commands"] == [request.command]

    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name, experiment in EXPERIMENTS.items():
        monkeypatch.setitem(EXPERIMENTS, name, experiment._replace(run=None))  # nothing is left to compute
    reproduce(request, tmp_path, n_jobs=1, verbose=0)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_report_of_the_experiments_is_whole_and_asks_for_nothing(browser, small_run, size):
    _, report = small_run
    open_page(browser, report, size)
    assert "experiments" in browser.title
    for part in PARTS:
        assert browser.find_element("id", part).is_displayed()
    for table in ("duels", "table2-mm", "table3", "table3-shuffled", "table4", "table4-shuffled"):
        assert len(browser.find_elements("css selector", f"#{table} tbody tr")) > 1
    for plot in ("figure1", "figure2", "figure3-synthetic", "figureS1", "figureS2"):
        image = browser.find_element("css selector", f"#plot-{plot} svg")
        assert (image.is_displayed(), image.size["height"] > 100) == (True, True)


def test_the_text_fits_a_phone_and_linked_files_are_beside_the_report(browser, small_run):
    folder, report = small_run
    open_page(browser, report, PHONE)
    sizes, widths = browser.execute_script(
        "const all = [...document.querySelectorAll('p, td, figcaption')];"
        "return [all.map(e => parseFloat(getComputedStyle(e).fontSize)),"
        " all.filter(e => e.tagName != 'TD').map(e => e.getBoundingClientRect().width)]"
    )
    assert min(sizes) >= 12
    assert max(widths) <= PHONE[0]
    links = [e.get_attribute("href") for e in browser.find_elements("css selector", "a")]
    files = {link.rsplit("/", 1)[1] for link in links if "#" not in link}
    assert "rows.csv" in files
    assert files <= {path.name for path in folder.iterdir()}
