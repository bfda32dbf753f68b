"""The page, as Streamlit runs it, without a browser."""

import importlib
import json
import re
from contextlib import suppress

import pytest

testing = pytest.importorskip("streamlit.testing.v1", reason="Streamlit is not installed: pip install '.[explore]'")
app = pytest.importorskip("spacy_pll.explorer.app")
APP = app.__file__


@pytest.fixture
def open_page(monkeypatch, model_folder):
    """open_page(page, **settings): the page, opened with these settings of the command line."""
    import streamlit

    streamlit.cache_resource.clear()
    with suppress(
        ImportError
    ):  # each new page looks for parts of pages in all installed packages; older versions do not
        scanner = importlib.import_module("streamlit.components.v2.manifest_scanner")
        monkeypatch.setattr(scanner, "scan_component_manifests", list)

    def open_it(page=None, **settings):
        start = {"model": str(model_folder("bert")), "alternatives": 5, **settings}
        monkeypatch.setattr("sys.argv", ["app.py", json.dumps({"start": start, **(page or {})})])
        return check(testing.AppTest.from_file(APP, default_timeout=120).run())

    return open_it


def check(page):
    assert [error.value for error in page.exception] == []
    return page


def tab(page, label):
    return next(tab for tab in page.tabs if tab.label == label)


def html(part):
    return "".join(element.proto.body for element in part.get("html"))


def said(part):
    return " ".join(text.value for text in part.markdown)


def errors(part):
    return " ".join(error.value.replace("\\", "") for error in part.error)


def test_the_examples_are_scored(open_page):
    page = open_page()
    assert not page.error
    shown = tab(page, "Score")
    assert html(shown).count("<article") == 2 and "souvenir" in html(shown)
    (tokens,) = (table.value for table in shown.dataframe)
    assert "souvenir" in list(tokens["text"]) and {"rank", "entropy", "alternatives", "pll_pieces"} <= set(tokens)
    assert all(len(texts) == 5 for texts in tokens["alternatives"])
    compared = tab(page, "Compare")
    assert "Version **a** has the higher score." in compared.markdown[0].value and "<article" in html(compared)
    probabilities = list(tab(page, "Rank").dataframe[0].value["probability"])
    assert len(probabilities) == 4 and probabilities == sorted(probabilities, reverse=True)


def test_warnings_are_shown_with_the_texts_that_they_are_about(open_page):
    page = open_page()
    for text, shown in [("x" * 999, True), ("the", False), ("符", True), ("x" * 999, True)]:
        page.text_area(key="texts").set_value(text)
        check(page.button(key="score").click().run())
        warnings = [warning.value.replace("\\", "") for warning in tab(page, "Score").warning]
        assert len(warnings) == shown and all("1 of 1 wordpieces are unknown" in warning for warning in warnings)


def test_texts_are_scored(open_page):
    page = open_page()
    page.text_area(key="texts").set_value("A cat.\n\nThe <b>house</b>.")
    page.button(key="score").click()
    shown = tab(check(page.run()), "Score")
    assert html(shown).count("<article") == 2 and "&lt;b" in html(shown) and "<b>house" not in html(shown)
    page.text_area(key="texts").set_value(" \n")
    page.button(key="score").click()
    shown = tab(check(page.run()), "Score")
    assert shown.info[0].value == "Type or paste a text." and not shown.get("html")


def test_metrics_and_words_can_be_chosen(open_page):
    page = open_page(metrics=["original", "word_l2r"], words="whitespace")
    metrics, words = page.sidebar.multiselect[0], page.sidebar.selectbox[0]
    assert metrics.value == ["original", "word_l2r"] and words.value == "whitespace" and "causal" not in metrics.options
    assert html(tab(page, "Score")).count('class="row"') == 4
    metrics.set_value(["whole_word", "original", "word_l2r"])
    words.set_value("tokenizer")
    shown = tab(check(page.run()), "Score")
    assert html(shown).count('class="row"') == 6
    page.text_input(key="a").set_value("The unhappiest house.")  # a word of several pieces
    shown = []
    for metric in ("whole_word", "original"):
        page.selectbox(key="compared").set_value(metric)
        page.button(key="compare").click()
        shown.append(html(tab(check(page.run()), "Compare")))
    assert shown[0] != shown[1]
    page.sidebar.multiselect[0].set_value([])
    assert "No metric is chosen." in errors(check(page.run())) and not html(page)
    page.sidebar.multiselect[0].set_value(["original"])
    assert html(tab(check(page.run()), "Score")).count('class="row"') == 2 and not page.error
    assert page.sidebar.selectbox[0].value == "tokenizer"


def test_a_margin_of_the_command_line(open_page):
    shown = [html(tab(open_page(mask_margin=margin), "Score")) for margin in (None, 0)]
    assert shown[0] != shown[1]


def test_versions_are_compared(open_page):
    page = open_page()
    page.text_input(key="a").set_value("A cat sat.")
    page.text_input(key="b").set_value("A cat sat.")
    page.button(key="compare").click()
    shown = tab(check(page.run()), "Compare")
    assert "Both versions have the same score." in [text.value for text in shown.markdown]
    page.text_input(key="b").set_value("\u200b")
    page.button(key="compare").click()
    shown = tab(check(page.run()), "Compare")
    assert "Version **b** has no wordpiece, so it has no score." in [text.value for text in shown.markdown]
    page.text_input(key="b").set_value("")
    page.button(key="compare").click()
    assert tab(check(page.run()), "Compare").info[0].value == "Type two versions of a text."


def test_candidates_are_ranked(open_page):
    page = open_page()
    page.text_input(key="slot").set_value("A ___ sat.")
    page.text_area(key="candidates").set_value("cat\nhouse")
    page.button(key="rank").click()
    shown = tab(check(page.run()), "Rank")
    assert set(shown.dataframe[0].value["candidate"]) == {"cat", "house"} and html(shown).count("<article") == 2
    probabilities = list(shown.dataframe[0].value["probability"])
    assert probabilities == sorted(probabilities, reverse=True) and sum(probabilities) == pytest.approx(1)
    page.text_input(key="slot").set_value("The cat.")
    page.button(key="rank").click()
    assert "one slot, written ___. It has 0: 'The cat.'" in errors(tab(check(page.run()), "Rank"))
    assert html(tab(page, "Score"))  # the other tabs work
    page.text_area(key="candidates").set_value("")
    page.button(key="rank").click()
    assert tab(check(page.run()), "Rank").info[0].value == "Type some candidates."


def test_candidates_that_share_a_wordpiece(open_page):
    """The message names the box that it advises, as it is called on the page."""
    page = open_page()
    page.text_input(key="slot").set_value("The ___ler lost it.")
    page.text_area(key="candidates").set_value("trave")
    shown = tab(check(page.button(key="rank").click().run()), "Rank")
    assert "where it begins, with “Shared wordpieces”." in errors(shown) and "shared_pieces" not in errors(shown)
    assert page.checkbox(key="shared").label == "Shared wordpieces"
    page.checkbox(key="shared").set_value(True)
    shown = tab(check(page.button(key="rank").click().run()), "Rank")
    assert not shown.error and html(shown).count("<article") == 1 and "100.0 % among these" in html(shown)
    assert "probability among these" in shown.dataframe[0].proto.columns


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Set `words` to 'piece', or `lang='zh'`.", "Set “Words” to 'piece', or “Language”: zh."),
        ("Leave out `causal`.", "Leave out causal (set when the page is started)."),
        ("Give `precision='float32'`.", "Give precision (set when the page is started): float32."),
        ("The `pll` component.", "The `pll` component."),
    ],
)
def test_messages_name_the_fields_of_the_page(message, shown):
    assert app.on_page(message) == shown


def test_the_page_says_which_metric_it_is_and_whether_it_is_approximate(open_page):
    page = open_page(mask_margin=0, metrics=["whole_word", "original"])
    assert all("; approximate (mask_margin 0)" in html(tab(page, name)) for name in ("Score", "Compare", "Rank"))
    note = "Metric: `whole_word`; approximate (mask_margin 0)."
    assert all(note in said(tab(page, name)) for name in ("Compare", "Rank"))
    page.selectbox(key="compared").set_value("original")
    page = check(page.button(key="compare").click().run())
    assert "Metric: `original`; approximate" in said(tab(page, "Compare"))
    assert note in said(tab(page, "Rank"))
    page = open_page()
    assert "approximate" not in html(page) and "Metric: `word_l2r`." in said(tab(page, "Rank"))


def test_what_the_model_reads(open_page):
    page = open_page(metrics=["original", "word_any_order"])
    page.text_input(key="masked").set_value("The souvenir.")
    shown = tab(check(page.button(key="show").click().run()), "Masks")
    assert "Metric: `original`." in said(shown)
    table = shown.table[0].value
    texts = [text.replace("\\", "") for text in table["what the model reads"]]
    assert list(table.columns) == ["probability", "score", "what the model reads"]
    assert texts[:2] == ["[CLS] [MASK] souveni ##r . [SEP]", "[CLS] The [MASK] ##r . [SEP]"]
    assert r"\[MASK\]" in table["what the model reads"].iloc[0]  # the page reads Markdown
    page.selectbox(key="masked under").set_value("word_any_order")
    table = tab(check(page.button(key="show").click().run()), "Masks").table[0].value
    assert "weight" in table and any(">[MASK]<" in text.replace("\\", "") for text in table["what the model reads"])
    page.text_input(key="masked").set_value(" ")
    shown = tab(check(page.button(key="show").click().run()), "Masks")
    assert shown.info[0].value == "Type a text." and not shown.table
    assert "With mask_margin (set when the page is started), " in errors(tab(open_page(mask_margin=0), "Masks"))


def test_versions_of_other_lengths(open_page):
    page = open_page()
    for b, says in [("A sat cat.", False), ("A cat sat in the house.", True)]:
        page.text_input(key="a").set_value("A cat sat.")
        page.text_input(key="b").set_value(b)
        shown = said(tab(check(page.button(key="compare").click().run()), "Compare"))
        assert ("the longer one tends to have the lower score" in shown) == says
    assert re.search(r"Version a has \d+ pieces, and b \d+ pieces: ", shown)


def test_what_was_typed_and_chosen_is_kept_while_there_is_no_model(open_page):
    """And its fields stay, so that the browser keeps what was not sent yet."""
    page = open_page(metrics=["word_l2r", "original"])
    fields = {field.key for kind in (page.text_area, page.text_input, page.checkbox) for field in kind}
    page.sidebar.multiselect[0].set_value(["original", "whole_word"])
    page.sidebar.selectbox[0].set_value("whitespace")
    check(page.run())
    page.text_area(key="texts").set_value("A cat.")
    check(page.button(key="score").click().run())
    page.text_input(key="b").set_value("The cat sleeps.")
    page.selectbox(key="compared").set_value("whole_word")
    check(page.button(key="compare").click().run())
    model = page.text_input(key="model").value
    page.text_input(key="model").set_value("no/such_model")
    for _ in range(2):  # once more, as when something else is typed
        assert "no/such_model" in errors(check(page.run())) and not html(page)
        assert {one.key for kind in (page.text_area, page.text_input, page.checkbox) for one in kind} == fields
    page.text_input(key="model").set_value(model)
    check(page.run())
    assert page.text_area(key="texts").value == "A cat." and page.text_input(key="b").value == "The cat sleeps."
    assert html(tab(page, "Score")).count("<article") == 1
    assert page.sidebar.multiselect[0].value == ["original", "whole_word"]
    assert page.sidebar.selectbox[0].value == "whitespace" and page.selectbox(key="compared").value == "whole_word"
    assert not [one.value for one in page.warning if "Session State" in one.value]


def test_names_in_messages_are_code_and_the_rest_is_as_it_is():
    assert app.as_markdown("Give a `model` that *fits*.") == r"Give a `model` that \*fits\*\."
    assert app.as_markdown("one ` alone") == r"one \` alone"


def test_a_bad_model_name_is_an_error_in_words(open_page):
    page = open_page()
    page.text_input(key="model").set_value("no/such_model")
    check(page.run())
    assert "no/such_model" in errors(page) and not html(page)
    page.text_input(key="model").set_value(str(page.text_input(key="model").proto.default))
    assert html(tab(check(page.run()), "Score"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metrics": ["speed"]}, "Unknown PLL metric 'speed'"),
        ({"metrics": ["sentence_l2r"], "mask_spacing": 8}, "does not mask within words"),
        ({"lang": "klingon"}, "klingon"),
    ],
)
def test_settings_that_are_wrong(open_page, settings, message):
    assert message in errors(open_page(**settings))


def test_texts_that_are_too_long(open_page):
    """The limit is on what a tab scores at once. What was typed stays, and the message says what to do."""
    page = open_page({"max_characters": 250})
    assert not page.error
    for kind, key, button, of in [
        ("text_area", "texts", "score", "Score"),
        ("text_input", "a", "compare", "Compare"),
        ("text_input", "masked", "show", "Masks"),
        ("text_area", "candidates", "rank", "Rank"),
    ]:
        field = getattr(page, kind)(key=key)
        field.set_value("A cat.\n" * 50)
        shown = tab(check(page.button(key=button).click().run()), of)
        assert "up to 250 at once" in errors(shown) and "pll score" in errors(shown) and not html(shown)
        assert "The limit is max_characters (set when the page is started)." in errors(shown)
        assert getattr(page, kind)(key=key).value == "A cat.\n" * 50
    assert "2,200 characters in 50 texts are too many." in errors(tab(page, "Rank"))
    page.text_area(key="texts").set_value("A cat.")
    assert html(tab(check(page.button(key="score").click().run()), "Score"))


def test_the_model_of_a_page_that_others_can_open(open_page, model_folder):
    """It is as the page was started. Metrics and words can still be chosen."""
    page = open_page({"any_model": False}, lang="de")
    keys = [one.key for one in page.text_input]
    assert "model" not in keys and "lang" not in keys and html(tab(page, "Score"))
    assert page.sidebar.text[0].value == f"Model: {model_folder('bert')}\nLanguage: de"
    page.sidebar.multiselect[0].set_value(["original", "whole_word"])
    assert html(tab(check(page.run()), "Score")).count('class="row"') == 4


def test_lines():
    assert app.split_lines(" one \n\n\ttwo\r\n") == ["one", "two"]


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("The ___ sat.", ("The ", " sat.")),
        ("un____", ("un", "")),
        ("__ snake_case", ("", " snake_case")),
    ],
)
def test_a_slot(sentence, parts):
    assert app.split_at_slot(sentence) == parts


@pytest.mark.parametrize(("sentence", "number"), [("No slot_here.", 0), ("___ and ___", 2)])
def test_a_sentence_without_one_slot(sentence, number):
    with pytest.raises(ValueError, match=f"one slot, written ___. It has {number}: '{sentence}'"):
        app.split_at_slot(sentence)
