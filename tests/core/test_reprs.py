"""What results say of themselves fits on a screen, and estimators link to their pages."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import kmargin
from kmargin import MM, SparseSVC, SparseSVCCV, honest_score, sparse_svm_path
from kmargin.core.summary import DOCUMENTATION, Facts, as_html, as_text, some

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 30))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)


@pytest.fixture(scope="module")
def results():
    path = sparse_svm_path(X, Y, range(1, 31))
    annealed = SparseSVC(3, solver=MM(), shared=False).fit(X, Y).solutions_
    honest = honest_score(SparseSVCCV([2], cv=2), X, Y > 0, cv=2)
    return {"path": path, "solution": path.solutions[5][0], "annealed": annealed[0], "honest": honest}


@pytest.mark.parametrize("name", ["path", "solution", "annealed", "honest"])
def test_results_fit_on_a_screen_and_have_a_form_for_notebooks(results, name):
    for text in (repr(results[name]), str(results[name])):
        lines = text.splitlines()
        assert len(lines) <= 24
        assert max(map(len, lines)) <= 100
    page = ElementTree.fromstring(f"<p>{results[name]._repr_html_()}</p>")  # fails where a tag is left open
    assert type(results[name]).__name__ in "".join(page.itertext())


def test_a_path_shows_its_first_and_last_k_and_what_they_use(results):
    lines = repr(results["path"]).splitlines()
    assert lines[0] == "<SparsityPath: k from 30 to 1 in 30 steps, k counts features>"
    assert [line.split()[:2] for line in lines[3:5]] == [["30", "30"], ["29", "29"]]
    assert lines[-1].split()[:2] == ["1", "1"]


def test_a_solution_says_why_it_stopped_and_how_it_went(results):
    text = str(results["annealed"])
    solution = results["annealed"]
    assert solution.status.name in text
    assert f"{len(solution.trace)} values of rho, from 1 to" in text
    assert f"<Solution: {len(solution.support)} of 30 coefficients" in text
    assert "regime" in str(results["solution"])


def test_names_are_shown_and_not_obeyed():
    told = Facts("<b>", [("a", "<script>"), ("long", "b")], ["x"], [["&"]])
    page = ElementTree.fromstring(as_html("Kind", told))
    assert [*page.itertext()] == ["Kind", " <b>", "a", "<script>", "long", "b", "x", "&"]
    assert as_html("Kind", Facts("&")) == "<div><p><b>Kind</b> &amp;</p></div>"
    lines = ["<Kind: <b>>", "  a     <script>", "  long  b", "  x", "  &"]
    assert as_text("Kind", told).splitlines() == lines


def test_long_facts_are_wrapped_and_long_tables_cut_in_the_middle():
    text = as_text("Kind", Facts("", [("four", "word " * 18), ("", "")]))
    assert text.split("\n")[1:] == ["  four " + " word" * 16, " " * 8 + "word word", ""]
    for n, kept in [(14, [*range(14)]), (15, [*range(6), "...", *range(9, 15)])]:
        told = Facts("", header=["i", "name"], rows=[[str(i), "a"] for i in range(n)])
        lines = as_text("Kind", told).splitlines()[1:]
        assert [line.split()[0] for line in lines] == ["i", *map(str, kept)]
        assert lines[1] == f"  {'0':>{2 + (n > 14)}}  a"


def test_long_lists_end_in_how_many_more_there_are():
    assert some([]) == "none"
    assert some([1.5, 2], "{:.1f}") == "1.5, 2.0"
    assert some(np.arange(1008)) == "0, 1, 2, 3, 4, 5, 6, 7 and 1,000 more"


PUBLIC = {name: getattr(kmargin, name) for name in kmargin.__all__}
ESTIMATORS = [n for n, v in PUBLIC.items() if isinstance(v, type) and issubclass(v, BaseEstimator)]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_diagram_of_every_estimator_links_to_its_page(name):
    cls = getattr(kmargin, name)
    link = f"{DOCUMENTATION}api/kmargin.{name}.html"
    assert cls()._get_doc_link() == link
    assert re.search(rf'href="{re.escape(link)}', cls()._repr_html_())


def test_who_derives_from_an_estimator_gets_no_link_to_a_page_that_is_not_there():
    assert type("Own", (SparseSVC,), {"__module__": "elsewhere"})()._get_doc_link() == ""
