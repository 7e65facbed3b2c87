"""A small campaign, of the same cases each time; the whole one is `make fuzz`."""

import numpy as np
import pytest
from fuzz import FAMILIES, campaign
from fuzz.reference import LONG, Task, refit
from scipy.optimize import minimize

N_CASES = 400


@pytest.fixture(scope="module")
def results():
    """In a process of its own, because a loop without end in compiled code hears no signal."""
    return campaign.run(N_CASES, jobs=1)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_oracle_objects(results, family):
    wrong = [verdict for verdict in results.failures if verdict.family == family]
    assert not wrong, "\n".join(f"make_case({v.number}).run(): {'; '.join(v.failures)}" for v in wrong)


@pytest.mark.parametrize(
    "number",
    [
        2617,  # groups that depend on each other, without a ridge: what they cost to drop is not a number
        10_019_646,  # rows at the margin itself
        20_022_784,  # large terms that cancel, in single precision
        50_001_578,  # squares beyond single precision
        50_002_205,  # distances beside others of 1e27
        50_011_119,  # more features than rows, of which the ridge tells the smallest coefficients
        50_091_596,  # entries of a sparse matrix that are all the same
        50_092_160,  # a claim about objectives that are a matter of rounding
        50_094_025,  # a claim about copies of columns, which share their ridge
        50_105_964,  # huge coefficients come back in the last step
        80_096_203,  # coefficients of 1e40 that only seem to be the best of all supports
        200_000_443,  # a Gram matrix that lost all its digits
        200_009_969,  # kernel values of 1e-305
        300_083_305,  # kernel columns of mean 1 and spread 1e-9, whose huge coefficients lose all digits
        300_189_522,  # the same along a path
        300_196_412,  # nearly collinear columns, at which the gradient is small far from the minimum
        81_116_549,  # a huge coefficient that no active row sees stands in the way of all others
    ],
)
def test_cases_that_failed_once_do_so_no_more(number):
    assert campaign.judge_in_time(number).failures == []


def test_the_reference_finds_the_minimum_of_scipy():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), np.where(rng.random(30) < 0.5, 1.0, -1.0)
    task = Task(X, y, np.full(30, LONG(1) / 30), np.full(4, LONG(0.01)), True)

    def objective(beta):
        return float(task.objective(beta[:4], beta[4]))

    nothing = np.zeros(4), 0.0
    best = refit(task, np.arange(4), *nothing).value
    assert float(best) == pytest.approx(minimize(objective, np.zeros(5), tol=1e-12).fun, rel=1e-9)
