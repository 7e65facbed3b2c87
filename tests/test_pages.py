"""Reports in a real browser: they open, nothing is missing, nothing is fetched, a phone can show them."""

import json

import pytest
from sklearn.datasets import load_digits, load_iris
from typer.testing import CliRunner

from kmargin import html
from kmargin.commands import app
from kmargin.experiments.reproduce import PARTS

DESKTOP, PHONE = (1200, 900), (390, 844)


def open_page(browser, path, size):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE},
    )
    browser.get_log("performance")  # forget what came before
    browser.get(path.as_uri())


def requests(browser):
    """The addresses that the open page has asked for; the browser's own new tab asks for some, too."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    return [request["request"]["url"] for request in sent if request["documentURL"] == browser.current_url]


def sideways(browser):
    """By how many pixels the page is wider than the window."""
    return browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_report_of_the_experiments_is_whole_and_asks_for_nothing(browser, small_run, size):
    _, report = small_run
    open_page(browser, report, size)
    asked = requests(browser)
    assert asked
    assert {url.split(":")[0] for url in asked} <= {"file", "data"}
    assert sideways(browser) <= 0
    assert "experiments" in browser.title
    for part in PARTS:
        heading = browser.find_element("id", part)
        assert heading.is_displayed()
    for table in ("duels", "table2-mm", "table3", "table3-shuffled", "table4", "table4-shuffled"):
        assert len(browser.find_elements("css selector", f"#{table} tbody tr")) > 1
    for plot in ("figure1", "figure2", "figure3-synthetic", "figureS1", "figureS2"):
        image = browser.find_element("css selector", f"#plot-{plot} svg")
        assert image.is_displayed()
        assert image.size["height"] > 100
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []


def test_the_report_is_read_without_zooming_on_a_phone(browser, small_run):
    _, report = small_run
    open_page(browser, report, PHONE)
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('p, td, figcaption')]"
        ".map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 12
    widths = browser.execute_script(
        "return [...document.querySelectorAll('p, figcaption')].map(e => e.getBoundingClientRect().width)"
    )
    assert max(widths) <= PHONE[0]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize(
    "options", [["--ks", "1,2,4"], ["--kernel", "rbf", "--k", "4"]], ids=["linear", "kernel"]
)
def test_the_report_of_a_fit_is_whole_and_asks_for_nothing(browser, tmp_path, size, options):
    path = tmp_path / "iris.csv"
    load_iris(as_frame=True).frame.to_csv(path, index=False)
    command = ["fit", str(path), "--target", "target", "--cv", "3", "--out", str(tmp_path / "out"), "--quiet"]
    done = CliRunner().invoke(app, [*command, *options])
    assert done.exit_code == 0, done.stderr
    open_page(browser, tmp_path / "out" / "report.html", size)
    asked = requests(browser)
    assert asked
    assert {url.split(":")[0] for url in asked} <= {"file", "data"}
    assert sideways(browser) <= 0
    images = browser.find_elements("css selector", "figure svg")
    assert images
    assert all(image.size["height"] > 100 for image in images)
    assert len(browser.find_elements("css selector", "table")) >= 3
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_report_of_45_machines_shows_each_feature_once(browser, tmp_path, size):
    frame = load_digits(as_frame=True).frame.iloc[:400]
    frame.to_csv(tmp_path / "digits.csv", index=False)
    names = [f"pixel_{i}_{j}" for i in range(8) for j in range(8)]
    rows = [f"{name},row {name[6]}" for name in names]
    (tmp_path / "rows.csv").write_text("\n".join(["feature,group", *rows]))
    command = [
        "fit",
        str(tmp_path / "digits.csv"),
        "--target",
        "target",
        "--k",
        "2",
        "--C",
        "0.1",
        "--cv",
        "2",
    ]
    asked = ["--groups", str(tmp_path / "rows.csv"), "--keep", "row 3", "--sign", "pixel_3_3=+"]
    done = CliRunner().invoke(app, [*command, *asked, "--out", str(tmp_path / "out"), "--quiet"])
    assert done.exit_code == 0, done.stderr
    open_page(browser, tmp_path / "out" / "report.html", size)
    assert sideways(browser) <= 0
    head = browser.find_elements("css selector", "#weights th")
    own = ["feature", "group", "chosen by folds", "", "halves", *"0123456789"]
    assert [cell.text for cell in head] == own
    worths = browser.find_elements("css selector", "#worths td:first-child")
    assert len(worths) == 2, "one row for each group"
    shown = [cell.text.split() for cell in browser.find_elements("css selector", "#weights td:first-child")]
    assert len({name for name, *_ in shown}) == len(shown)
    assert 8 < len(shown) <= 16, "of two rows, pixels that vary"
    assert ["pixel_3_3", "always", "in,", "+"] in shown
    assert browser.find_element("css selector", ".lead").text.startswith("2 of 8 groups (row ")
    assert browser.find_element("css selector", "#curve").text == "How many groups it takes"


def test_the_files_the_report_points_to_are_beside_it(browser, small_run):
    folder, report = small_run
    open_page(browser, report, DESKTOP)
    links = [e.get_attribute("href") for e in browser.find_elements("css selector", "a")]
    files = [link for link in links if "#" not in link]
    assert any(link.endswith("rows.csv") for link in files)
    for link in files:
        assert (folder / link.rsplit("/", 1)[1]).exists()


def test_what_people_call_their_columns_is_text_never_markup(browser, tmp_path):
    nasty = "<script>document.title='owned'</script>"
    body = [html.table([nasty], [[nasty], html.Row([html.Cell(nasty, hint=nasty, aside=nasty)], "marked")])]
    body += [html.paragraph(nasty), html.cards((nasty, nasty)), html.details(nasty, html.paragraph(nasty))]
    path = html.write(tmp_path / "page.html", nasty, body)
    open_page(browser, path, DESKTOP)
    assert browser.title == nasty
    assert browser.find_elements("css selector", "body script") == []
    assert nasty in browser.find_element("css selector", "td").text
