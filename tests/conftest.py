import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

# scikit-learn dispatches to other arrays only where scipy was told so before it was imported
os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import pytest
from hypothesis import settings
from selenium import webdriver

from kmargin.core.problem import ArrayProblem
from kmargin.data.design.dense import DenseDesign
from kmargin.datasets import make_sparse_hyperplane
from kmargin.report import html
from kmargin.solvers.exchange import EFFORTS

pytest_plugins = ["dask_fixtures"]

# the first call of a compiled function takes as long as its compilation; examples are the same each time,
# new ones are the business of the campaign (`make fuzz`)
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
    """Fits of most tests are searched without restarts, which take .2 s; `test_effort.py` tests these."""
    if request.node.path.name != "test_effort.py":
        monkeypatch.setitem(EFFORTS, "normal", EFFORTS["normal"]._replace(restart_flops=0.0))


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)


@dataclass(frozen=True)
class SizedProblem(ArrayProblem):
    """A binary problem, and how many of its features may be used."""

    k: int


def make_problem(
    n_samples=40, n_features=12, k=4, *, lam=0.01, fit_intercept=True, weighted=True, seed=0
) -> SizedProblem:
    """A random problem that is not separable."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) + 0.3
    y = np.where(X[:, 0] - X[:, -1] + rng.standard_normal(n_samples) > 0.2, 1.0, -1.0)
    weights = rng.uniform(0.2, 3.0, n_samples) if weighted else np.ones(n_samples)
    return SizedProblem(DenseDesign(X, fit_intercept), y, weights * n_samples / weights.sum(), lam, k)


# tall, wide, without an intercept, without a ridge, without weights, everything allowed, nothing allowed
PROBLEMS = {
    "tall": make_problem(60, 8, 3),
    "wide": make_problem(20, 50, 5),
    "wide, most kept": make_problem(20, 50, 40),
    "no intercept": make_problem(40, 12, 4, fit_intercept=False),
    "no ridge": make_problem(40, 12, 4, lam=0.0),
    "no weights": make_problem(40, 12, 4, weighted=False),
    "k = p": make_problem(40, 12, 12),
    "k = p, wide, no ridge": make_problem(20, 50, 50, lam=0.0),
    "k = 0": make_problem(40, 12, 0),
}


@pytest.fixture(params=PROBLEMS.values(), ids=PROBLEMS.keys())
def problem(request):
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


FIT = """
import sys
import numpy as np
from kmargin import SparseSVC, sparse_svm_path
SparseSVC(k=1).fit(np.eye(4), [0, 1, 0, 1]).predict(np.eye(4))
print(*sys.modules)
"""


@pytest.fixture(scope="session")
def imported():
    """The modules that a fit needs, in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


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
