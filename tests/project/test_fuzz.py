"""A small campaign, of the same cases each time; the whole one is `make fuzz`."""

import numpy as np
import pytest
from fuzz import FAMILIES, campaign, make_case
from fuzz.reference import LONG, Task, refit
from fuzz.worker import judge_in_time
from scipy.optimize import minimize


@pytest.fixture(scope="module")
def results():
    """In a process of its own, because a loop without end in compiled code hears no signal."""
    return campaign.run(2000, jobs=1)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_oracle_objects(results, family):
    wrong = [verdict for verdict in results.failures if verdict.family == family]
    assert not wrong, "\n".join(f"make_case({v.number}).run(): {'; '.join(v.failures)}" for v in wrong)


def test_every_family_is_tried(results):
    assert set(results.cases) == set(FAMILIES)
    assert sum(results.cases.values()) == 2000


@pytest.mark.parametrize(
    "number",
    [
        10_001_779,  # a constant column of a sparse matrix, and weights of all sizes
        10_006_771,  # machines beside which others weigh nothing
        10_019_646,  # rows at the margin itself
        10_020_321,  # a ridge beyond all numbers, of one machine
        10_042_400,  # one that only 2 C n is too large for
        20_020_729,  # an inverse whose square overflows
        20_022_784,  # large terms that cancel, in single precision
        30_005_074,  # an annealing that ends with coefficients which only rounding makes good
        50_001_578,  # squares beyond single precision
        50_002_205,  # distances beside others of 1e27
        50_011_119,  # more features than rows, of which the ridge tells the smallest coefficients
        50_015_427,  # ridges further apart than numbers reach
        50_017_255,  # kernel values of 1e64 that differ in their last digits
        50_091_596,  # entries of a sparse matrix that are all the same
        50_092_160,  # a claim about objectives that are a matter of rounding
        50_094_025,  # a claim about copies of columns, which share their ridge
        50_102_746,  # a claim about columns with ridges of their own
        50_105_964,  # huge coefficients come back in the last step
        50_114_787,  # a column that no active row sees
        50_125_828,  # a constant column, standardised
        80_012_527,  # exchanges that gain only by the further steps of a fit that has not ended
        80_016_777,  # kernel values of 1e155, in single precision
        80_096_203,  # coefficients of 1e40 that only seem to be the best of all supports
        81_116_549,  # a huge coefficient that no active row sees stands in the way of all others
        82_040_669,  # squares of coefficients that are no numbers, of machines that share features
        82_061_145,  # objectives that are no numbers, of machines that share features
        90_041_870,  # a column next to nothing, in units of its own
        90_160_538,  # a column whose spread is next to nothing because of the weights
    ],
)
def test_cases_that_failed_once_do_so_no_more(number):
    assert judge_in_time(number).failures == []


def test_a_number_is_a_case():
    for number in range(20):
        one, other = make_case(number), make_case(number)
        np.testing.assert_array_equal(one.data, other.data)
        assert repr(one.params) == repr(other.params)


def test_the_reference_finds_the_minimum_of_scipy():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), np.where(rng.random(30) < 0.5, 1.0, -1.0)
    task = Task(X, y, np.full(30, LONG(1) / 30), np.full(4, LONG(0.01)), True)

    def objective(beta):
        return float(task.objective(beta[:4], beta[4]))

    nothing = np.zeros(4), 0.0
    best = refit(task, np.arange(4), *nothing).value
    assert float(best) == pytest.approx(minimize(objective, np.zeros(5), tol=1e-12).fun, rel=1e-9)


def test_the_reference_sees_through_units():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((30, 3)), np.where(rng.random(30) < 0.5, 1.0, -1.0)
    scale = np.array([1e120, 1e-120, 1.0])
    plain, scaled = (
        Task(A, y, np.full(30, LONG(1) / 30), np.zeros(3, LONG), True) for A in (X, X * scale + 3 * scale)
    )
    values = [refit(task, np.arange(3), np.zeros(3), 0.0).value for task in (plain, scaled)]
    assert float(values[1]) == pytest.approx(float(values[0]), rel=1e-9)
