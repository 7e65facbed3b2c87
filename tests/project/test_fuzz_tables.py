"""A few hundred of the generated tables and model files; `python -m fuzz` runs as many as one likes."""

import io
import zipfile
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from fuzz import modelfiles, outputs, tables
from fuzz.files import Flaw, call, failing
from fuzz.outputs import check_page
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


def test_cases_are_the_same_every_time_and_of_every_kind():
    cases = [tables.make_case(number) for number in range(400)]
    assert cases[7] == tables.make_case(7)
    assert {case.command for case in cases} == {"fit", "path"}
    assert {case.file.rsplit(".", 1)[1] for case in cases} >= {"csv", "tsv", "gz", "parquet", "npz", "svm"}
    given = {option for case in cases for option in case.options}
    assert given >= {"--weights", "--balanced", "--id", "--kernel", "--encode", "--impute", "--seed", "--cv"}
    damages = {modelfiles.make_case(number).damage.split()[0] for number in range(200)}
    assert len(damages) > 10


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


@pytest.mark.parametrize(
    ("page", "flaw"),
    [
        ("<p>text</p>", None),
        ("<p onclick='x()'>", "attribute onclick"),
        ("<img src=x>", "element <img>"),
        ("<a href='http://example.org'></a>", "a link to"),
        ("<p>", "<p> is left open"),
        ("<link href='http://example.org'>", "a link to"),
        ("<p style='background:url(http://x)'></p>", "a style"),
        ("<!-- x -->", "a comment"),
    ],
)
def test_the_page_oracle_knows_markup_that_is_not_ours(page, flaw):
    found = check_page(page.encode())
    assert found is None if flaw is None else flaw in found


REFUSALS = {
    "two lines": (2, "", "Error: a.\nmore.\n"),
    "a traceback": (1, "", "Traceback"),
    "an exception's name": (2, "", "Error: ValueError: no.\n"),
    "no sentence": (2, "", "Error: no\n"),
    "output": (2, "row\n", "Error: no.\n"),
    "escape codes": (2, "", "Error: \x1b[31mno.\n"),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_that_is_not_plain_is_seen(refusal, tmp_path):
    with chdir(str(tmp_path)):
        assert outputs.check_refusal(*refusal, [])
        assert outputs.check_refusal(2, "", "Error: no.\n", []) is None
        Path("left").touch()
        assert outputs.check_refusal(2, "", "Error: no.\n", []) == "a refusal leaves ['left']"


def test_a_hang_is_seen(monkeypatch):
    def wait(*args):
        while True:
            pass

    monkeypatch.setattr("kmargin.cli.commands.read_table", wait)
    with pytest.raises(Flaw, match=r"more than 0\.3 s"):
        call(["fit", "x.csv"], seconds=0.3)


def test_a_reader_without_the_digest_is_seen(monkeypatch):
    cases = [modelfiles.make_case(number) for number in range(150)]
    flipped = [case for case in cases if case.damage.startswith("bits")]
    monkeypatch.setattr(np, "array_equal", lambda one, other: True)
    monkeypatch.setattr(zipfile.ZipExtFile, "_update_crc", lambda file, data: None)
    assert "it is read as another model" in map(modelfiles.check, flipped)


def test_a_reader_that_believes_what_files_claim_is_seen(monkeypatch):
    packed = io.BytesIO()
    np.savez_compressed(packed, header=np.zeros(5 * 10**7, np.uint8))
    case = modelfiles.Case(1, "linear", "much packed into little", packed.getvalue())
    assert modelfiles.check(case) is None
    monkeypatch.setattr(
        "kmargin.tables.model_file._read_members", lambda content: dict(np.load(io.BytesIO(content)))
    )
    assert "MB for" in modelfiles.check(case)
