"""The list of mutants fits the source: none is stale, and each says how it differs and who should notice."""

import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
if not (ROOT / "mutants").is_dir():
    pytest.skip("the list of mutants is not shipped with the package", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from mutants.catalogue import matching, read_catalogue  # noqa: E402

MUTANTS = read_catalogue()


@cache
def source(path):
    return (ROOT / path).read_text(encoding="utf-8")


def test_there_are_enough_of_them_all_over_the_source():
    assert len(MUTANTS) >= 200
    parts = {mutant.file.split("/")[0] for mutant in MUTANTS}
    assert {"blocks", "datasets", "design", "estimators", "experiments", "solvers"} < parts


def test_each_is_found_once_in_the_source():
    stale = [f"{m.file}: {m.name}" for m in MUTANTS if m.applied_to(source(m.path)) is None]
    assert not stale


def test_each_is_another_program():
    assert [m.name for m in MUTANTS if m.mutated.split() == m.original.split()] == []


def test_no_two_have_the_same_name():
    assert [name for name, count in Counter(m.name for m in MUTANTS).items() if count > 1] == []


def test_the_tests_that_should_notice_exist():
    for mutant in MUTANTS:
        assert mutant.tests, mutant.name
        for test in mutant.tests:
            file, _, name = test.partition("::")
            text = source(Path("tests") / file)
            assert not name or f"def {name.split('::')[-1].split('[')[0]}(" in text, f"{mutant.name}: {test}"


def test_mutants_are_chosen_by_name_by_area_and_by_file():
    one = MUTANTS[0]
    assert matching(MUTANTS, [one.name]) == [one]
    assert one in matching(MUTANTS, [one.area])
    assert {m.file for m in matching(MUTANTS, [one.file])} == {one.file}
    assert matching(MUTANTS, []) == MUTANTS
