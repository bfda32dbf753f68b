import errno
import io
import json
import os
import re

import pytest
import spacy
from spacy.tokens import DocBin

from ..browser import CHROMIUM, DRIVER, find_seen, set_scheme, set_window, start_browser
from .conftest import run

TEXTS = ["The traveler lost  it.", "", "<b>Bold</b> & שלום", "A souvenir"]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf8")
    return path


def texts_of(page):
    return re.findall(r'<article class="doc" lang="en" data-text="([^"]*)"', page)


def test_every_text_is_on_the_page_in_order(corpus, model_folder):
    page = corpus.with_name("page.html")
    run("render", corpus, page, "--model", model_folder("bert"), "--metrics", "word_l2r,original")
    html = page.read_text(encoding="utf8")
    assert texts_of(html) == ["The traveler lost  it.", "", "&lt;b&gt;Bold&lt;/b&gt; &amp; שלום", "A souvenir"]
    assert html.endswith("</html>\n") and "<h1>corpus.txt</h1>" in html
    assert 'class="p"><span class="s' in html  # wordpieces, not their number
    assert html.count('<div class="row">') == 2 * len(TEXTS)


@pytest.mark.parametrize(("option", "note"), [("--mask-margin", "mask_margin 3"), ("--mask-spacing", "mask_spacing 3")])
def test_the_page_says_that_scores_are_approximate(corpus, model_folder, option, note):
    page, exact = corpus.with_name("page.html"), corpus.with_name("exact.html")
    run("render", corpus, page, "--model", model_folder("bert"), option, "3")
    run("render", corpus, exact, "--model", model_folder("bert"))
    assert f"; approximate ({note})" in page.read_text(encoding="utf8")
    assert "approximate" not in exact.read_text(encoding="utf8")


def test_other_inputs(tmp_path, model_folder):
    model = ("--model", model_folder("bert"), "--force")
    page = tmp_path / "page.html"
    table = tmp_path / "table.csv"
    table.write_text("id,sentence\n1,The traveler\n", encoding="utf8")
    run("render", table, page, *model, "--column", "sentence")
    assert texts_of(page.read_text(encoding="utf8")) == ["The traveler"]
    run("render", "-", page, *model, input="One\nTwo\n")
    assert texts_of(page.read_text(encoding="utf8")) == ["One", "Two"]
    assert "<h1>Standard input</h1>" in page.read_text(encoding="utf8")


def test_other_columns_and_names_of_files_are_on_the_page(tmp_path, model_folder):
    folder, page = tmp_path / "texts", tmp_path / "page.html"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"text": "One", "topic": "<b>", "places": ["é", 2]}\n{"text": "Two"}\n', "utf8")
    (folder / "b.csv").write_text("text,id\nNA,1\nThree,2\n", encoding="utf8")
    with pytest.warns(UserWarning, match="1 of 4 texts are missing"):
        run("render", folder, page, "--model", model_folder("bert"))
    fields = re.findall(r'<p class="fields">(.*?)</p>', page.read_text(encoding="utf8"))
    expected = ['file a.jsonl topic &lt;b&gt; places ["é", 2]', "file a.jsonl", "file b.csv id 2"]
    assert [re.sub(r"</?(b|span)>", "", line).replace("&#34;", '"') for line in fields] == expected
    run("render", "-", page, "--force", "--model", model_folder("bert"), input="A\n")
    assert '<p class="fields">' not in page.read_text(encoding="utf8")


def test_docs_of_a_file_are_scored_again(tmp_path, make_nlp, model_folder):
    docs = list(make_nlp("bert", metrics=["original", "whole_word"]).pipe(["The hooligans", "A souvenir"]))
    expected = [doc._.pll_whole_word for doc in docs]
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "docs.spacy")
    page = tmp_path / "page.html"
    run("render", tmp_path / "docs.spacy", page, "--model", model_folder("bert"), "--metrics", "whole_word")
    scores = re.findall(r'data-scores="([^"]*)"', page.read_text(encoding="utf8"))
    assert [float(score) for score in scores] == pytest.approx(expected, abs=1e-4)


def test_a_pipeline_with_an_attribute_of_its_own(corpus, make_nlp, tmp_path):
    make_nlp("bert", attr="tiny").to_disk(tmp_path / "pipeline")
    run("render", corpus, tmp_path / "page.HTML", "--model", tmp_path / "pipeline", "--vmin", "-40")
    html = (tmp_path / "page.HTML").read_text(encoding="utf8")
    assert '<span class="number">1</span> word_l2r</span>' in html and ">−36</span>" in html


def test_without_arguments_it_says_how_it_is_used():
    assert "Usage: " in run("render", code=2).output


def test_an_output_that_exists_is_kept(corpus, model_folder):
    page = corpus.with_name("page.html")
    page.write_text("mine")
    result = run("render", corpus, page, "--model", model_folder("bert"), fails=True)
    assert "already. Add --force to replace it" in result.unwrapped_stderr and page.read_text() == "mine"
    run("render", corpus, page, "--model", model_folder("bert"), "--force")
    assert len(texts_of(page.read_text(encoding="utf8"))) == len(TEXTS)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("page.txt", "must end in .html"),
        ("-", "must end in .html"),
        ("folder.html", "is a folder. Name a file"),
    ],
)
def test_an_output_that_cannot_be(corpus, output, message):
    corpus.with_name("folder.html").mkdir()
    output = output if output == "-" else corpus.with_name("x").parent / output
    assert message in run("render", corpus, output, fails=True).unwrapped_stderr


def test_an_input_that_cannot_be_read(tmp_path, model_folder):
    page = tmp_path / "page.html"
    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps({"text": "Good"}) + "\n{bad\n")
    result = run("render", bad, page, "--model", model_folder("bert"), fails=True)
    assert "bad.jsonl, line 2: not valid JSON" in result.unwrapped_stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]
    assert "no file or folder" in run("render", tmp_path / "none.txt", page, fails=True).unwrapped_stderr
    result = run("render", bad, page, "--vmin", "1", fails=True)
    assert "below 0" in result.unwrapped_stderr


@pytest.mark.parametrize("before", [None, "mine"])
def test_on_a_full_disk_nothing_half_written_remains(corpus, model_folder, monkeypatch, before):
    page = corpus.with_name("page.html")
    if before:
        page.write_text(before)

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    result = run("render", corpus, page, "--force", "--model", model_folder("bert"), fails=True)
    assert "No space left on device" in result.unwrapped_stderr
    left = {path.name for path in corpus.parent.iterdir()}
    assert left == ({"corpus.txt", "page.html"} if before else {"corpus.txt"})
    assert not before or page.read_text() == before


# In a browser

LIKELY = "The dog is in the house."
SENTENCES = [
    "The traveler lost the souvenir.",
    LIKELY,
    "",
    "Hooligans hooligans xylophone carnivore <b>quark</b> & 'zzyzx'!",
    "The word שלום עולם is Hebrew, and Pneumonoultramicroscopicsilicovolcanoconiosis" + "a" * 200 + " is long.",
    "犬も歩けば棒に当たる。" * 8,
    "Two\nlines 👩‍👩‍👧.",
    "What" + "?!" * 40,
    "The carnivore ate.",
    "It rained all day and it was cold.",
    "No." + " No." * 11,  # sentence_l2r does not see the later copies, so its scores are in another order
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    lines = "".join(json.dumps({"text": text, "row": f"ROW{i}."}) + "\n" for i, text in enumerate(SENTENCES))
    (folder / "texts.jsonl").write_text(lines, encoding="utf8")
    run("render", folder / "texts.jsonl", folder / "page.html", "--metrics", "word_l2r,sentence_l2r")
    return folder / "page.html"


@pytest.fixture(scope="module")
def docs():
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"metrics": ["word_l2r", "sentence_l2r"]})
    return list(nlp.pipe(SENTENCES))


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("selenium.webdriver", reason="selenium is not installed (pip install selenium)")
    if not (CHROMIUM and DRIVER):
        pytest.skip("no chromium with its chromedriver is installed (Debian: apt-get install chromium-driver)")
    driver = start_browser()
    yield driver
    driver.quit()


@pytest.fixture(params=["light", "dark"])
def opened(request, browser, page):
    """opened(width): the page, in a window of that width, on a system with a light or a dark theme."""

    def open_page(width=1200):
        set_scheme(browser, request.param)
        set_window(browser, width)
        browser.get(page.as_uri())
        browser.scheme = request.param
        return browser

    return open_page


def brightness(pixel):
    return sum(pixel[:3]) / 3


def main_pixel(element):
    """The commonest colour in a picture of the element: its background."""
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(element.screenshot_as_png)).convert("RGB")
    return max(image.getcolors(image.width * image.height))[1]


def visible(browser):
    """The positions, from 0, of the texts that are seen, from top to bottom."""
    return browser.execute_script("""
        return [...document.querySelectorAll("article")].filter(a => a.getBoundingClientRect().height > 0)
            .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
            .map(a => +a.querySelector(".number").textContent - 1);""")


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 400])
def test_the_page_lays_out(opened, width):
    browser = opened(width)
    boxes = browser.execute_script("""
        return [...document.querySelectorAll("article, .t, .p > span, .sum, .scale span, input, select")].map(
            e => { const b = e.getBoundingClientRect();
                   const clipped = e.matches(".t, .t *, article") ? e.scrollWidth - e.clientWidth : 0;
                   return [e.className, b.left, b.right, b.width, b.height, clipped]; });""")
    assert len(boxes) > 100
    for name, left, right, box_width, height, clipped in boxes:
        assert box_width > 0 and height > 0, name
        assert left >= 0 and right <= width and clipped <= 1, name
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    # tokens of a line stand side by side, and their pieces below them
    first = browser.find_elements("css selector", "article:first-child .row:first-child .t")
    assert first[0].location["x"] < first[1].location["x"] and first[0].location["y"] == first[1].location["y"]
    word = browser.find_element("css selector", "article .split")
    below = word.find_element("css selector", ".p span")
    assert below.location["y"] > word.find_element("css selector", "span").location["y"]
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert not browser.get_log("browser")


@pytest.mark.slow
def test_right_to_left_words_run_right_to_left(opened):
    browser = opened()
    words = browser.find_elements("css selector", "article:nth-child(5) .row:first-child span[dir=rtl] .t")
    assert len(words) == 2 and words[0].location["x"] > words[1].location["x"]


@pytest.mark.slow
def test_an_unlikely_token_has_another_colour_than_a_likely_one(opened):
    browser = opened()
    row = browser.find_elements("css selector", "article:first-child .row:first-child .t")
    tokens = {element.text.split("\n")[0]: element for element in row}
    likely, unlikely = tokens["The"], tokens["souvenir"]
    colours = [e.value_of_css_property("background-color") for e in (likely, unlikely)]
    assert colours[0] != colours[1] and "rgba(0, 0, 0, 0)" not in colours
    pixels = [brightness(main_pixel(element)) for element in (likely, unlikely)]
    background = brightness(main_pixel(browser.find_element("css selector", "h1")))
    # likely text recedes into the page, unlikely text stands out
    assert abs(pixels[1] - background) > abs(pixels[0] - background) + 50
    assert (background > 200) == (browser.scheme == "light") and (background < 60) == (browser.scheme == "dark")
    # the two metrics differ on a word of several pieces, and their scores are seen
    sums = [e.text for e in browser.find_elements("css selector", "article:first-child .sum b")]
    assert len(set(sums)) == 2
    assert likely.get_attribute("title").startswith("The  −")


@pytest.mark.slow
def test_the_search_box_filters(opened):
    browser = opened()
    box, count = browser.find_element("id", "search"), browser.find_element("id", "count")
    assert visible(browser) == list(range(len(SENTENCES))) and count.text == f"{len(SENTENCES)} texts"
    box.send_keys("HOOL")
    assert visible(browser) == [3] and count.text == f"1 of {len(SENTENCES)} texts"
    for query, found in [("the ", [0, 1, 4, 8]), ("<b>", [3]), ("שלום", [4]), ("棒", [5]), ("nothing has this", [])]:
        box.clear()
        box.send_keys(query)
        assert [i for i, text in enumerate(SENTENCES) if query.strip().lower() in text.lower()] == found
        assert visible(browser) == found
    box.clear()
    box.send_keys("row1.")  # another column
    assert visible(browser) == [1]
    box.clear()
    box.send_keys(" ")
    assert visible(browser) == list(range(len(SENTENCES)))


@pytest.mark.slow
def test_sorting_sorts(opened, docs):
    select = pytest.importorskip("selenium.webdriver.support.ui").Select
    browser = opened()
    order = select(browser.find_element("id", "order"))
    orders = set()
    for metric in ("word_l2r", "sentence_l2r"):
        select(browser.find_element("id", "metric")).select_by_visible_text(metric)
        scored = [i for i, doc in enumerate(docs) if doc._.pll is not None]
        score = {i: docs[i]._.get(f"pll_{metric}") for i in scored}
        mean = {i: score[i] / docs[i]._.pll_pieces for i in scored}
        for by, values in (("score", score), ("mean", mean)):
            expected = sorted(scored, key=values.get)
            orders.add(tuple(expected))
            order.select_by_value(f"{by} up")
            assert visible(browser) == [*expected, 2]  # the empty text last, in either direction
            order.select_by_value(f"{by} down")
            assert visible(browser) == [*reversed(expected), 2]
    assert len(orders) == 4  # each choice has an order of its own
    order.select_by_value("position")
    assert visible(browser) == list(range(len(SENTENCES)))


@pytest.mark.slow
def test_numbers_can_be_shown(opened):
    browser = opened(400)
    token = browser.find_element("css selector", "article .t")
    before = token.size["height"]
    browser.find_element("id", "numbers").click()
    assert token.size["height"] > before
    content = browser.execute_script("return getComputedStyle(arguments[0], '::after').content", token)
    assert content == '"' + token.get_attribute("data-v") + '"'
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400


SINGULAR = "The keys to the cabinet is on the table."


@pytest.fixture(scope="module")
def page_of_expectations(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expected")
    lines = "".join(
        f"{line}\n" for line in (SINGULAR, "The word שלום עולם is Hebrew.", *["A souvenir."] * 30, SINGULAR)
    )
    (folder / "texts.txt").write_text(lines, encoding="utf8")
    run("render", folder / "texts.txt", folder / "page.html", "--alternatives", 5, "--distribution")
    return folder / "page.html"


def find_token(browser, article, text):
    tokens = browser.find_elements("css selector", f"article:nth-child({article}) .t")
    return next(token for token in tokens if token.text.split("\n")[0] == text)


def is_inside(browser, element):
    return browser.execute_script(
        "const b = arguments[0].getBoundingClientRect();"
        "return b.left >= 0 && b.top >= 0 && b.right <= innerWidth && b.bottom <= innerHeight && b.width > 100;",
        element,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("opened", "width"), [("light", 1200), ("dark", 390)], indirect=["opened"])
def test_what_was_expected_opens_for_the_pointer_and_for_the_keyboard(opened, page_of_expectations, width):
    keys = pytest.importorskip("selenium.webdriver").Keys
    actions = pytest.importorskip("selenium.webdriver").ActionChains
    browser = opened(width)
    browser.get(page_of_expectations.as_uri())
    assert not find_seen(browser, ".exp")
    for article, word in ((1, "is"), (1, "table"), (2, "שלום"), (33, "cabinet")):
        token = find_token(browser, article, word)
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", token)
        actions(browser).move_to_element(token).perform()
        [shown] = find_seen(browser, ".exp")
        assert shown == token.find_element("css selector", ".exp") and is_inside(browser, shown)
        if word == "is":
            assert shown.text.startswith("is −") and {"were", "are"} & set(shown.text.split())
        if width > 640:  # it can be pointed at itself (WCAG 1.4.13)
            actions(browser).move_to_element(shown).perform()
            assert shown.is_displayed()
    actions(browser).move_to_element(browser.find_element("css selector", "h1")).perform()
    browser.execute_script("document.getElementById('numbers').focus()")
    for word in ("The", "keys"):
        browser.switch_to.active_element.send_keys(keys.TAB)
        token = browser.switch_to.active_element
        [shown] = find_seen(browser, ".exp")
        assert token.text.startswith(word) and shown.text.startswith(f"{word} −") and is_inside(browser, shown)
        assert token.get_attribute("aria-label").startswith(f"{word}  −")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert not browser.get_log("browser")


def test_the_bar_knows_how_many_texts_there_are(model_folder, tmp_path):
    (tmp_path / "in.txt").write_text("One.\nTwo.\nThree.\n")
    arguments = ("render", tmp_path / "in.txt", tmp_path / "out.html", "--model", model_folder("bert"), "--force")
    assert "3/3 texts [" in run(*arguments).stderr
    result = run("render", "-", tmp_path / "other.html", "--model", model_folder("bert"), input="One.\n")
    assert "1 texts [" in result.stderr
