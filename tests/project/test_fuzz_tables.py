"""A few hundred of the generated tables and model files; `python -m fuzz` runs as many as one likes."""

import pytest
from fuzz import modelfiles, outputs, tables
from fuzz.files import call, failing
from markupsafe import Markup

N_TABLES, N_MODEL_FILES = 50, 100


@pytest.fixture(scope="module")
def answers():
    """Of some tables those that were answered wrongly, and the codes that all commands ended with."""
    codes = []

    def noted(arguments):
        answer = call(arguments)
        codes.append(answer[0])
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outputs, "call", noted)
        return failing(tables, 0, N_TABLES), codes


def test_tables_are_analysed_or_refused_in_one_sentence(answers):
    assert [(str(case), flaw) for case, flaw in answers[0]] == []


def test_model_files_are_what_was_saved_or_refused():
    assert [(str(case), flaw) for case, flaw in failing(modelfiles, 0, N_MODEL_FILES)] == []


def test_many_tables_are_good_enough_to_be_fitted(answers):
    """Else nothing but refusals would be tried. Each that is fitted is predicted, too."""
    _, codes = answers
    assert codes.count(0) - (len(codes) - N_TABLES) >= 0.3 * N_TABLES


# the oracles see what they are for

PLAIN = tables.Case(
    0, "fit", "data.csv", b"=x,y\n" + b"1,no\n2,yes\n3,no\n4,yes\n" * 6, ["--target", "y", "--cv", "2"]
)


@pytest.mark.parametrize(
    ("patched", "replacement", "flaw"),
    [
        ("kmargin.report.page.protect", lambda value: value, "a formula in a CSV"),
        ("kmargin.report.page.headline", lambda found: Markup("<script>"), "an element <script>"),
        ("kmargin.report.page.feature_frame", lambda found: 1 / 0, "ZeroDivisionError"),
        ("kmargin.cli.terminal.headline", lambda found: "\x1b[31m", None),  # neutralised on its way out
        ("kmargin.cli.terminal.printable", lambda text: text + "\x1b", "control character"),
    ],
)
def test_a_broken_program_is_seen(monkeypatch, patched, replacement, flaw):
    monkeypatch.setattr(patched, replacement)
    found = outputs.check(PLAIN)
    assert found is None if flaw is None else flaw in found
