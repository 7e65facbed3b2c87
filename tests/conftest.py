import os
import shutil
import signal

# scikit-learn dispatches to other arrays only where scipy was told so before it was imported
os.environ["SCIPY_ARRAY_API"] = "1"
# matrices are small: threads of BLAS would only wait for each other, which takes processor time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings
from penalised_problems import PENALISED, PROBLEMS
from selenium import webdriver

from kmargin.datasets import make_sparse_hyperplane
from kmargin.report import html
from kmargin.solvers.exchange import EFFORTS

pytest_plugins = ["dask_fixtures"]

# no deadline, as first calls compile; the same examples each time: `make fuzz` draws new ones
settings.register_profile("compiled", deadline=None, derandomize=True)
settings.load_profile("compiled")


def pytest_collection_modifyitems(items):
    """Mark the tests that need a browser or torch, which `make test` does not install."""
    for item in items:
        params = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if {"browser", "torch"} & {*getattr(item, "fixturenames", ())} or "torch" in map(str, params):
            item.add_marker("optional")


@pytest.fixture
def torch():
    """The library; a test that asks for it is skipped where it is not installed."""
    return pytest.importorskip("torch", reason="torch is not installed, so it is not tested")


@pytest.fixture(autouse=True)
def no_restarts(request, monkeypatch):
    """Fits of most tests are searched without restarts, which take up to .3 s; `test_effort.py` has these."""
    if request.node.path.name != "test_effort.py":
        monkeypatch.setitem(EFFORTS, "normal", EFFORTS["normal"]._replace(restart_seconds=0.0))


@pytest.fixture
def interruptible():
    """SIGINT interrupts, even if a shell has started the tests in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)


@pytest.fixture(params=PROBLEMS.values(), ids=PROBLEMS.keys())
def problem(request):
    return request.param


@pytest.fixture(params=PENALISED.values(), ids=PENALISED.keys())
def penalised(request):
    return request.param


@pytest.fixture
def hyperplane():
    """200 x 30, five causal features, labels of {-1, 1}."""
    return make_sparse_hyperplane(200, 30, 5, random_state=3)


@pytest.fixture
def undrawn(monkeypatch, request):
    """Plots are made, but only drawn into pages for tests marked so: it takes longer than all else."""
    if "drawn" not in request.keywords:
        monkeypatch.setattr(html, "svg", lambda *args, **options: "<svg ></svg>")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A headless Chromium that logs its requests."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no Chromium with chromedriver on this machine (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars "
        "--disable-background-networking --disable-component-update --disable-sync"
    )
    for flag in (*flags.split(), f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield window
    window.quit()
