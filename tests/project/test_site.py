"""The site as `make docs` built it: no link is dead, nothing is asked of others, a phone can show it."""

import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from browsing import DESKTOP, PHONE, broken_images, complaints, open_address, requests, sideways

SITE = Path(__file__).parent.parent.parent / "docs" / "_build" / "html"
# the report of the experiments is there, too, and has tests of its own
PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    if "_static" not in path.parts and path.name != "report.html"
)
# of many pages of one kind some are opened; all are read
OPENED = [name for name in PAGES if not name.startswith("api/")] + [
    f"api/{name}.html"
    for name in ("index", "kmargin.SparseSVC", "kmargin.SparseSVCCV", "kmargin.MM", "kmargin.sparse_svm_path")
]

pytestmark = pytest.mark.skipif(not PAGES, reason="the site has not been built (make docs)")


class Read(HTMLParser):
    """What a page has, and what it points to."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.parts = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        for name in {"link": ["href"], "script": ["src"], "img": ["src"], "iframe": ["src"]}.get(tag, []):
            if given.get(name) and given.get("rel") != "canonical":
                self.parts.append(given[name])


@pytest.fixture(scope="module")
def read():
    return {name: Read((SITE / name).read_text(encoding="utf-8")) for name in [*PAGES, "report.html"]}


def test_every_link_within_the_site_leads_to_a_page_and_a_place_on_it(read):
    lost = []
    for name, page in read.items():
        for link in page.links + page.parts:
            address = urlsplit(link)
            if address.scheme:
                continue
            target = (SITE / name).parent / unquote(address.path) if address.path else SITE / name
            found = target.resolve()
            if not found.is_file():
                lost.append(f"{name}: {link}")
            elif found.suffix == ".html" and address.fragment:
                other = read[found.relative_to(SITE).as_posix()]
                if unquote(address.fragment) not in other.anchors:
                    lost.append(f"{name}: {link}")
    assert lost == []


def test_no_page_is_made_of_parts_from_elsewhere(read):
    assert [part for page in read.values() for part in page.parts if urlsplit(part).netloc] == []


@pytest.fixture(scope="module")
def served():
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_pages_are_whole_fit_the_window_and_ask_nobody_else(browser, served, size):
    for name in OPENED:
        open_address(browser, served + name, size)
        asked = requests(browser)
        assert asked, name
        assert [url for url in asked if not url.startswith((served, "data:"))] == [], name
        assert sideways(browser) <= 0, name
        assert broken_images(browser) == [], name
        assert browser.find_elements("css selector", "main h1"), name
        assert complaints(browser) == [], name
