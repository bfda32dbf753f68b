"""What the model expected, on pages: what opens below a token, its label, and where nothing changes."""

import math
import re

import pytest
from spacy.tokens import DocBin

from spacy_pll import compare, score_continuations, visualize
from spacy_pll.attributes.names import Names
from spacy_pll.visualize.text import format_percent, readable_alternatives

from ..conftest import get_tokenizer
from ..made_scores import change_scores
from .test_html import Markup

TEXT = "The hooligans lost a souvenir, zyx!"
BOTH = {"alternatives": 3, "distribution": True}


@pytest.fixture(scope="module")
def names():
    return Names("pll", [])


def opened(markup):
    """The tokens that open something: element and its popover, in turns."""
    return list(zip([e for e in markup.all("t") if "tabindex" in e.attributes], markup.all("exp"), strict=True))


@pytest.mark.parametrize("keep_pieces", [True, False])
def test_a_token_opens_its_alternatives_rank_and_entropy(make_nlp, names, keep_pieces):
    doc = make_nlp("bert", keep_pieces=keep_pieces, **BOTH)(TEXT)
    markup = Markup(visualize.render(doc))
    for token, (element, popover) in zip(doc, opened(markup), strict=True):
        label = element.attributes["aria-label"]
        for text, p in readable_alternatives(token, names):
            assert f"{text} {format_percent(p)}" in label and text in popover.text and format_percent(p) in popover.text
        entropy = f"{token._.pll_entropy:.2f} nats"
        assert f"rank {token._.pll_rank:,}" in popover.text and entropy in popover.text
        assert f"rank {token._.pll_rank:,}, entropy {entropy}" in label and label.startswith(token.text)
        assert "title" not in element.attributes and popover.attributes["aria-hidden"] == "true"
        assert ("Expected as its first piece" in popover.text) == (token._.pll_pieces > 1)
    widths = [float(style) for style in re.findall(r'<i style="width:([\d.]+)%">', visualize.render(doc))]
    expected = [100 * math.exp(log_prob) for token in doc for _, log_prob, _ in token._.pll_alternatives]
    assert widths == pytest.approx(expected, abs=0.051)


@pytest.mark.parametrize("settings", [{"alternatives": 2}, {"distribution": True}])
def test_each_setting_by_itself(make_nlp, settings):
    doc = make_nlp("bert", **settings)(TEXT)
    for element, popover in opened(Markup(visualize.render(doc))):
        assert ("rank" in popover.text) == ("rank" in element.attributes["aria-label"]) == ("distribution" in settings)
        assert ("Expected" in popover.text) == ("alternatives" in settings)


def test_without_the_settings_nothing_is_added(make_nlp):
    doc = make_nlp("bert")(TEXT)
    for page in (visualize.render(doc), visualize.render(doc, page=True)):
        assert 'class="exp"' not in page and "tabindex" not in page and ".exp" not in page and "anchor" not in page


def test_only_the_row_of_the_primary_metric_has_them(make_nlp):
    doc = make_nlp("bert", metrics=["word_l2r", "original"], **BOTH)(TEXT)
    assert (
        len(Markup(visualize.render(doc)).all("exp"))
        == len(Markup(visualize.render(doc, ["word_l2r"])).all("exp"))
        == len(doc)
    )
    assert not Markup(visualize.render(doc, ["original"])).all("exp")


def test_comparisons_and_continuations_have_them(make_nlp):
    nlp = make_nlp("bert", **BOTH)
    comparison = compare(nlp, "The hooligans lost it.", "The souvenir lost it.")
    assert len(Markup(visualize.render_comparison(comparison)).all("exp")) == len(comparison.a) + len(comparison.b)
    candidates = score_continuations(nlp, "The", ["hooligans", "lost souvenir"], ".")
    assert len(Markup(visualize.render_continuations(candidates)).all("exp")) == 3


def test_what_the_model_says_is_escaped_and_isolated(make_nlp):
    doc = make_nlp("bert", **BOTH)("שלום lost")
    bad = '<script>"&'
    made, own = [(bad, -0.5, True), ("שלום", -1.0, True), ("\n", -9.0, None)], doc._.pll_data
    alternatives = [made if token == 1 else of for token, of in zip(own["token"], own["alternatives"])]
    change_scores(doc, alternatives=alternatives)
    html = visualize.render(doc)
    assert "<script>" not in html
    element, popover = opened(Markup(html))[1]
    assert bad in popover.text and f"{bad} 60.7 %" in element.attributes["aria-label"]
    assert popover.attributes["dir"] == "ltr" and "<bdi>שלום</bdi>" in html and "↵ &lt;0.1 %" in html


def test_docs_of_a_file(make_nlp):
    nlp = make_nlp("bert", **BOTH)
    doc = nlp(TEXT)
    [again] = DocBin().from_bytes(DocBin(docs=[doc], store_user_data=True).to_bytes()).get_docs(nlp.vocab)
    assert visualize.render(again) == visualize.render(doc)


def test_how_alternatives_are_read(make_nlp, names):
    doc = make_nlp("bert", **BOTH)(TEXT)
    made = [("s", -1.0, False), ("are", -2.0, True), (".", -3.0, False), ("x", -4.0, None)]
    change_scores(doc, alternatives=[made] * doc._.pll_pieces)
    texts = [[text for text, _ in readable_alternatives(token, names)] for token in doc[:2]]
    # There is nothing before the first token that could be continued.
    assert texts == [["s", "are", ".", "x"], ["-s", "are", ".", "x"]]
    assert [format_percent(p) for p in (1, 0.41, 0.0005, 0.0004, 0)] == [
        "100.0 %", "41.0 %", "0.1 %", "<0.1 %", "0.0 %"
    ]  # fmt: skip


def test_the_token_itself_among_the_alternatives_is_marked(make_nlp):
    doc = make_nlp("bert", **BOTH)("The lost")
    assert get_tokenizer("wordpiece").tokenize("lost") == ["lost"]
    change_scores(doc, alternatives=[[("found", -1.0, True), ("lost", -2.0, True)]] * 2)
    [own] = [e for e in Markup(visualize.render(doc)).all("own") if "lost" in e.text]
    assert own.text.startswith("lost")
