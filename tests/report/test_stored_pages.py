"""Terminals, pages, figures and CSV files show what is stored in `tests/stored/pages`.

After an intended change run `python tests/helpers/pages.py`, and for the page in `results/paper` also
`python tests/helpers/pages.py paper`, which takes half a minute.
"""

import pytest
from pages import NAMES, PAPER, agree, difference, lasting, read_store, see, show


@pytest.mark.parametrize("name", [name for name in NAMES if name != "paper"])
def test_what_people_see_is_what_is_stored(name, tmp_path):
    assert difference(show(name, tmp_path), read_store(name)) == ""


@pytest.mark.skipif(not PAPER.exists(), reason="the rows of the experiments are not here")
def test_the_committed_rows_of_the_paper_make_the_committed_tables_and_page_and_the_stored_figures(tmp_path):
    assert difference(show("paper", tmp_path), read_store("paper")) == ""
    for path in sorted(tmp_path.glob("table*.csv")):
        assert difference(path.read_text(), (PAPER / path.name).read_text()) == "", path.name
    pages = ((folder / "report.html").read_text(encoding="utf-8") for folder in (tmp_path, PAPER))
    assert difference(*(lasting(see(page, has_drawings=False), tmp_path) for page in pages)) == ""


def test_words_are_equal_and_numbers_nearly():
    alike = [("a", "a"), ("1.0", "1.001"), ("0.12", "0.13"), ("−0.001", "0.000")]
    for found, stored in [*alike, ("1000", "1001"), ("1e-9", "0")]:
        assert agree(found, stored), (found, stored)
    for found, stored in (("a", "b"), ("1", "2"), ("0.12", "0.14"), ("−1", "1"), ("+1", "1"), ("1", None)):
        assert not agree(found, stored), (found, stored)
