"""A campaign that is run in pieces is told as one, and no case of it counts twice."""

import pytest
from fuzz import campaign, pieces, report
from fuzz.__main__ import main
from fuzz.families import make_case
from fuzz.judge import Verdict


def part(code, first, end, *, cases=None, failures=(), family=None, slowest=1.0):
    """Results as in a file."""
    cases = {"gaussian": end - first} if cases is None else cases
    piece = {"code": code, "first": first, "end": end, "family": family, "seconds": 60.0}
    return {
        "pieces": [piece | {"cases": sum(cases.values())}],
        "cases": cases,
        "complaints": {"gaussian": 1},
        "skips": {"gaussian": {"rounding": 2}},
        "failures": [{"number": n, "family": "gaussian", "failures": ["swaps: x"]} for n in failures],
        "slowest": [slowest, first],
        "memory_growth_mb": slowest,
    }


def test_counts_of_pieces_are_added_up():
    whole = pieces.merge(
        [part("a", 0, 10), part("b", 10, 40, cases={"gaussian": 20, "zero": 10}, slowest=3.0)]
    )
    assert whole["cases"] == {"gaussian": 30, "zero": 10}
    assert whole["complaints"] == {"gaussian": 2}
    assert whole["skips"] == {"gaussian": {"rounding": 4}}
    assert whole["slowest"] == [3.0, 10]
    assert whole["memory_growth_mb"] == 3.0
    assert pieces.by_version(whole) == {"b": 30, "a": 10}
    assert "| all | 40 | 2 | 4 | 0 | 0 |" in report.table(whole)
    assert "40 cases, of the numbers 0 to 39, in 2 minutes" in report.summary(whole)
    assert "30 by source b, 10 by source a. No failures." in report.summary(whole)


def test_the_next_piece_begins_where_the_last_one_ended():
    assert pieces.after(pieces.merge([part("a", 100, 140), part("a", 0, 10)])) == 140


def test_failures_of_every_piece_are_kept():
    whole = pieces.merge([part("a", 0, 10, failures=[3]), part("a", 10, 20, failures=[12])])
    assert [verdict["number"] for verdict in whole["failures"]] == [3, 12]


def test_no_case_counts_twice():
    with pytest.raises(ValueError, match="counted twice: 0 to 9 and 9 to 19"):
        pieces.merge([part("a", 0, 10), part("b", 9, 20)])
    with pytest.raises(ValueError, match="counted twice"):
        pieces.merge([part("a", 0, 10), part("b", 5, 8, family="zero")])
    pieces.merge([part("a", 0, 10, family="zero"), part("a", 0, 10, family="wide")])


def test_every_change_of_the_source_is_another_version(tmp_path):
    for folder in pieces.SOURCES:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "one.py").write_text("x = 1\n")
    before = pieces.code_version(tmp_path)
    assert pieces.code_version(tmp_path) == before
    (tmp_path / "src/kmargin/one.py").write_text("x = 2\n")
    changed = pieces.code_version(tmp_path)
    (tmp_path / "src/kmargin/one.py").rename(tmp_path / "src/kmargin/two.py")
    assert len({before, changed, pieces.code_version(tmp_path)}) == 3


def judged_at_once(monkeypatch, wrong):
    """In place of workers: cases fail with what `wrong` has for their numbers."""

    def run(results, waiting, *_):
        for number in waiting:
            results.add(Verdict(number, "gaussian", wrong.get(number, [])))
        return results

    monkeypatch.setattr(campaign, "_run", run)


def test_failing_cases_are_run_again_and_what_is_left_of_them_is_told(monkeypatch):
    whole = part("a", 0, 20, failures=[3, 12, 15])
    assert "3 failures, not run again since." in report.summary(whole)
    judged_at_once(monkeypatch, {12: ["support: y"]})
    again = campaign.run_again(whole)
    code = pieces.code_version()
    assert [verdict["again"] for verdict in again["failures"]] == [
        {"code": code, "failures": []},
        {"code": code, "failures": ["support: y"]},
        {"code": code, "failures": []},
    ]
    assert [verdict["failures"] for verdict in again["failures"]] == [["swaps: x"]] * 3
    assert [verdict["number"] for verdict in pieces.left(again)] == [12]
    assert "| all | 20 | 1 | 2 | 3 | 1 |" in report.table(again)
    assert report.kinds(again) == {"support": [(12, "gaussian", "support: y")]}
    assert f"3 failures, 1 of which are left in source {code}." in report.summary(again)


def test_failures_of_a_piece_that_was_not_run_again_are_left(monkeypatch):
    judged_at_once(monkeypatch, {})
    again = campaign.run_again(part("a", 0, 10, failures=[3]))
    both = pieces.merge([again, part("b", 10, 20, failures=[12])])
    assert [verdict["number"] for verdict in pieces.left(both)] == [12]
    assert "2 failures, 1 of which are left in source" in report.summary(both)
    assert ", 1 of them not run again." in report.summary(both)
    assert campaign.run_again(part("c", 0, 5)) == part("c", 0, 5)


def test_a_command_runs_the_failing_cases_again(monkeypatch, tmp_path, capsys):
    path = tmp_path / "results.json"
    report.save(part("a", 0, 20, failures=[3]), path)
    written = []
    monkeypatch.setattr(report, "write_failures", lambda results: written.append(len(pieces.left(results))))
    monkeypatch.setattr("sys.argv", ["fuzz", "--again", "--out", str(path)])
    judged_at_once(monkeypatch, {3: ["support: y"]})
    assert main() == 1
    assert "1 of which are left" in capsys.readouterr().out
    judged_at_once(monkeypatch, {})
    assert main() == 0
    assert report.load(path)["failures"][0]["again"]["failures"] == []
    assert written == [1, 0]


def test_every_swap_is_asked_for_where_a_fit_has_time_for_all_of_them():
    def solvers(*numbers):
        return [make_case(number).params["solver"] for number in numbers]

    few, path = solvers(80_012_161, 80_012_181)  # 1 of 16 features; 1, 2 and all of 2
    assert few.effort == "thorough"
    assert path.effort == "thorough"
    # 175 of 201, 183 of 283, and sizes to 175 of 542: thousands of swaps, with systems of some milliseconds
    assert solvers(50_032_155, 80_012_213, 80_006_373) == ["exchange"] * 3
