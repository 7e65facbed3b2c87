"""Every way through the solver, on every kind of data that can take it: see `frozen.py`."""

import re

import pytest
from frozen import DEAR, KINDS, REACH, REGIMES, VARIANTS, cells, differences, find, make_data, read_store

REMAKE = "If that is meant, store it with: python tests/frozen.py --write"
UNREACHED = [(regime, kind) for regime, reach in REACH.items() for kind in reach.others if kind not in DEAR]


@pytest.fixture(autouse=True)
def _installed(request):
    if "kind" in request.fixturenames and request.getfixturevalue("kind") == "torch":
        request.getfixturevalue("torch")


@pytest.mark.parametrize(("regime", "kind", "variant"), list(cells()))
def test_the_same_is_found_as_ever_and_in_the_same_way(regime, kind, variant):
    found, taken = find(regime, kind, variant)
    assert taken == {REGIMES[regime].way, *REGIMES[regime].besides}
    words = differences(found, read_store(), kind)
    assert not words, "\n".join([*words, REMAKE])


@pytest.mark.parametrize(("regime", "kind"), UNREACHED)
def test_other_kinds_of_data_take_another_way(regime, kind):
    assert REGIMES[regime].way not in find(regime, kind, "plain")[1]


def test_the_table_knows_every_regime_and_every_kind_of_data():
    assert set(REACH) == set(REGIMES)
    for reach in REACH.values():
        assert sorted([*reach.kinds, *reach.others]) == sorted(KINDS)
        assert all(reach.others.values()), "a reason is missing"


def test_every_problem_is_stored():
    names = {re.sub(r", lam .*", "", name) for name in read_store()}
    assert names == {f"{regime}, {variant}" for regime in REGIMES for variant in VARIANTS}


def test_data_are_what_their_variant_says():
    for regime in REGIMES:
        plain, weights, bare, several = (make_data(regime, variant) for variant in VARIANTS)
        assert plain.weights is None
        assert weights.weights.std() > 0
        assert [data.fit_intercept for data in (plain, weights, bare, several)] == [True, True, False, True]
        assert [len(data.lams) for data in (plain, weights, bare, several)] == [1, 1, 1, 2]


def test_what_differs_is_noticed():
    """A feature, the sixth digit of a coefficient or of the intercept, the eighth of an objective."""
    stored = read_store()
    name, model = next(iter(stored.items()))
    assert differences(stored, stored, "C order") == []
    for other, word in [
        (model._replace(support=[*model.support[:-1], 7]), "support"),
        (model._replace(coef=[model.coef[0] + 2e-6, *model.coef[1:]]), "coefficient"),
        (model._replace(intercept=model.intercept - 2e-6), "intercept"),
        (model._replace(objective=model.objective * (1 + 2e-8)), "objective"),
    ]:
        (found,) = differences({name: other}, stored, "C order")
        assert word in found
