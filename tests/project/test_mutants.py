"""The sampler of mutants, on a package of one module."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
if not (ROOT / "mutants").is_dir():
    pytest.skip("the sampler of mutants is not shipped with the wheel", allow_module_level=True)

from mutants.sample import draw_mutants  # noqa: E402

CLAMP = '''
def clamp(x: int, low: int = 0, high: int | None = None):
    """Not 2 > 1."""
    if x < low:
        raise ValueError(f"{x + 1} is less than {low + 1}")
    return x if high is None else min(x, high)


class Point:
    def __repr__(self):
        return "a" * 3


def untested(values):
    for i in range(len(values)):
        values[i] += 1
    return values[1:]
'''
TESTS = """
import pytest
from tiny import clamp, untested

done = []

def test_clamp():
    assert [clamp(x, 0, 2) for x in (0, 1, 3)] == [0, 1, 2]
    assert [clamp(x) for x in (0, 5)] == [0, 5]
    with pytest.raises(ValueError, match="is less"):
        clamp(-1)
    done.append(1)

def test_that_fails_by_itself():
    assert done
    untested([1, 2])
"""


def test_mutants_parse_and_differ_and_are_the_same_for_the_same_seed():
    paths = sorted((ROOT / "src").glob("**/*.py"))[::20]
    files = {path.as_posix(): path.read_text("utf-8") for path in paths}
    mutants = draw_mutants(files, 20, seed=1)
    assert len(mutants) == 20
    for mutant in mutants:
        assert ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(files[mutant.path]))
        assert mutant.original != mutant.mutated
    assert mutants == draw_mutants(files, 20, seed=1)
    assert mutants != draw_mutants(files, 20, seed=2)


def test_messages_annotations_and_representations_are_left_alone():
    mutants = draw_mutants({"tiny.py": CLAMP}, 1000, seed=0)
    for mutant in mutants:
        for kept in ("{x + 1} is less than {low + 1}", "high: int | None", "Not 2 > 1.", 'return "a" * 3'):
            assert kept in mutant.source or mutant.mutated == "pass"
    assert any(m.mutated == "if (not (x < low)):" for m in mutants)


def test_a_fault_in_tested_code_is_killed_and_one_in_untested_code_survives(tmp_path):
    for name, text in {"src/tiny/__init__.py": CLAMP, "tests/test_tiny.py": TESTS}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    out = tmp_path / "table.md"
    command = [sys.executable, "-m", "mutants", "--root", tmp_path, "--n", "8", "--jobs", "1", "--out", out]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    first_untested = CLAMP[: CLAMP.index("def untested")].count("\n") + 1
    n_mutants = 0
    for line in done.stdout.splitlines():
        if line.strip()[:1].isdigit() and "tiny" in line:
            n_mutants += 1
            _, status, place, *_ = line.split()
            assert (status == "survived") == (int(place.split(":")[1]) >= first_untested), line
    assert n_mutants == 8
    assert "`` for i in range((len(values)) - 1): ``" in out.read_text()
