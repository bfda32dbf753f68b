"""The explorer, started by its command and used in a real browser."""

from urllib.parse import urlsplit

import pytest

from ..browser import explorer, find_seen, set_window, start_browser, wait

pytest.importorskip("streamlit", reason="Streamlit is not installed: pip install '.[explore]'")
keys = pytest.importorskip("selenium.webdriver.common.keys", reason="selenium is not installed").Keys


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with explorer(tmp_path_factory.mktemp("explore"), "--metrics", "word_l2r,original") as address:
        yield address


class Page:
    """The page in a browser: fields by their labels."""

    def __init__(self, browser, address, width):
        set_window(browser, width, mobile=width < 600)
        browser.get(address)
        self.browser = browser
        wait(lambda: self.all(".pll-viz .t"))

    def all(self, selector):
        return find_seen(self.browser, selector)

    def open(self, title):
        next(tab for tab in self.all("[data-testid=stTab]") if tab.text == title).click()

    def type(self, label, text, send):
        """Replace the text of a field, and send it with a key, as people do."""
        (field,) = wait(lambda: self.all(f'[aria-label="{label}"]'))
        field.send_keys(keys.CONTROL, "a")
        field.send_keys(text, *send)

    def tokens(self):
        return {e.text.split("\n")[0]: e for e in self.all(".pll-viz .t")}

    def text(self):
        return self.browser.find_element("css selector", "body").text


@pytest.fixture(params=[1200, 390])
def page(request, browser, address):
    return Page(browser, address, request.param)


SUBMIT = (keys.CONTROL, keys.ENTER)


@pytest.mark.slow
def test_the_explorer(page):
    page.type("Texts, one per line", "The keys is here.", SUBMIT)
    wait(lambda: {"The", "keys", "is", "here"} <= set(page.tokens()) and "souvenir" not in page.text())
    colours = {word: e.value_of_css_property("background-color") for word, e in page.tokens().items()}
    assert colours["The"] != colours["keys"] and "rgba(0, 0, 0, 0)" not in colours.values()
    assert len(page.all(".pll-viz .row")) == 2  # two metrics

    # what was expected belongs to the primary metric
    (word,) = [e for e in page.all(".pll-viz .t[tabindex]") if e.text == "is"]
    page.browser.execute_script("arguments[0].focus()", word)
    (opened,) = wait(lambda: page.all(".pll-viz .exp"))
    assert opened.text.startswith("is ") and "Expected here" in opened.text and len(page.all(".exp .alt")) == 5
    box = opened.rect
    assert box["x"] >= 0 and box["x"] + box["width"] <= page.browser.execute_script("return window.innerWidth")

    page.open("Compare")
    page.type("Version a", "The keys are here.", keys.TAB)
    page.type("Version b", "The keys is here.", keys.ENTER)
    wait(lambda: "Version a has the higher score." in page.text() and len(page.all(".seg:not(.equal)")) == 1)

    page.open("Rank")
    page.type("Sentence, with ___ for the slot", "The keys ___ here.", keys.TAB)
    page.type("Candidates, one per line", "is\nare", SUBMIT)
    wait(lambda: len(page.all(".pll-viz .share")) == 2)
    first = page.all(".pll-viz article")[0].text
    assert "are" in first.split() and "is" not in first.split()
    page.type("Sentence, with ___ for the slot", "The keys are here.", keys.ENTER)
    wait(lambda: "one slot, written ___. It has 0" in page.text())

    page.open("Masks")
    page.type("Text", "The keys are here.", keys.ENTER)
    wait(lambda: "[CLS] The keys [MASK] here . [SEP]" in page.text())

    assert page.browser.execute_script("return document.documentElement.scrollWidth") <= page.browser.execute_script(
        "return window.innerWidth"
    )
    loaded = page.browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert loaded and {urlsplit(name).hostname for name in loaded} == {"localhost"}


@pytest.mark.slow
def test_a_bad_model_name(browser, address):
    page = Page(browser, address, 1200)
    page.type("Model", "no/such-model", keys.ENTER)
    wait(lambda: page.all("[data-testid=stAlert]"))
    assert "'no/such-model'" in page.all("[data-testid=stAlert]")[0].text
    assert not page.all(".pll-viz .t")
    page.type("Model", keys.DELETE, keys.ENTER)
    wait(lambda: page.all(".pll-viz .t"))


@pytest.mark.slow
def test_several_people_in_a_class(browser, address):
    """Who waits sees how many are before them, and gets the scores in the end. Limits leave what was typed."""
    others = [start_browser(), start_browser()]
    try:
        first, second, third = (Page(one, address, 1200) for one in (browser, *others))
        first.type("Texts, one per line", "The keys to the cabinet are on the table. " * 25, SUBMIT)
        wait(lambda: "Scoring …" in first.text())
        second.type("Texts, one per line", "The cats sleep.", SUBMIT)
        wait(lambda: ": 1 request before yours." in second.text())
        third.type("Texts, one per line", "A cat sleeps.", SUBMIT)
        wait(lambda: ": 2 requests before yours." in third.text())
        wait(lambda: "cats" in second.tokens() and "before yours" not in second.text())
        wait(lambda: "cat" in third.tokens() and "before yours" not in third.text())
        third.type("Texts, one per line", "The cats sleep. " * 200, SUBMIT)
        wait(lambda: "3,199 characters" in third.text() and "up to 2,000 at once" in third.text())
        wait(lambda: not third.tokens())
    finally:
        for one in others:
            one.quit()


@pytest.mark.slow
def test_the_keyboard_is_enough(browser, address):
    page = Page(browser, address, 1200)
    reached = []
    for _ in range(40):
        browser.switch_to.active_element.send_keys(keys.TAB)
        active = browser.switch_to.active_element
        reached.append(active.get_attribute("aria-label") or active.text)
    for name in (
        "Model",
        "Language",
        "Texts, one per line",
        "Score",
        "Table of the tokens",
    ):
        assert any(name in label for label in reached), (name, reached)
    first = page.all("[data-testid=stTab]")[0]
    first.send_keys(keys.ARROW_RIGHT, keys.ENTER)
    wait(lambda: page.all('[aria-label="Version a"]'))
