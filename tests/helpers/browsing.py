"""What tests ask of an open page."""

import json

DESKTOP, PHONE = (1200, 900), (390, 844)


def open_address(browser, address, size):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE},
    )
    browser.get_log("performance")  # forget what came before
    browser.get(address)


def open_page(browser, path, size):
    """Open a page of its own, which asks for no other file, fits the window and has no errors."""
    open_address(browser, path.as_uri(), size)
    asked = requests(browser)
    assert asked
    assert {url.split(":")[0] for url in asked} <= {"file", "data"}
    assert sideways(browser) <= 0
    assert complaints(browser) == []


def requests(browser):
    """The addresses that the open page has asked for; the browser's own new tab asks for some, too."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    here = browser.current_url.partition("#")[0]
    return [event["request"]["url"] for event in sent if event["documentURL"].partition("#")[0] == here]


def sideways(browser):
    """By how many pixels the page is wider than the window."""
    return browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")


def broken_images(browser):
    return browser.execute_script(
        "return [...document.images].filter(i => i.getClientRects().length)"
        ".filter(i => !(i.complete && i.naturalWidth)).map(i => i.src)"
    )


def complaints(browser):
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
