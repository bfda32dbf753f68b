import builtins
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.resources import files
from types import ModuleType, SimpleNamespace

import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st
from spacy import displacy
from spacy.tokens import Doc, DocBin

from spacy_pll import compare, score_continuations, visualize
from spacy_pll.attributes.registration import find_names
from spacy_pll.visualize.html import N_STEPS, VMIN, View, colour_step, page_parts

from ..conftest import odd_text
from ..made_scores import change_scores
from .conftest import METRICS, shown


class Markup(HTMLParser):
    """The elements of a piece of HTML as (tag, attributes, own text), every one of them closed."""

    VOID = {"br", "meta", "input"}

    def __init__(self, html):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attributes):
        element = SimpleNamespace(tag=tag, attributes=dict(attributes), text="")
        self.elements.append(element)
        if tag not in self.VOID:
            self._open.append(element)

    def handle_endtag(self, tag):
        assert self._open.pop().tag == tag

    def handle_data(self, data):
        for element in self._open:
            element.text += data

    def all(self, cls):
        return [e for e in self.elements if cls in (e.attributes.get("class") or "").split()]


def split_words(doc):
    words = [token for token in doc if token._.pll_pieces > 1]
    assert words
    return words


def test_a_row_a_metric_and_the_numbers_on_hover(doc):
    markup = Markup(visualize.render(doc))
    assert [e.text for e in markup.all("metric")] == METRICS
    assert [e.text for e in markup.all("sum")] == [
        f"{metric}{shown(doc._.get(f'pll_{metric}'))}{shown(doc._.get(f'pll_{metric}') / doc._.pll_pieces)} per piece"
        for metric in METRICS
    ]
    assert f"pseudo-perplexity {doc._.pppl:,.4g}" in markup.all("sum")[0].attributes["title"]
    tokens = markup.all("t")
    assert len(tokens) == len(METRICS) * len(doc)
    for element, (metric, token) in zip(tokens, [(metric, token) for metric in METRICS for token in doc]):
        score = token._.get(f"pll_{metric}")
        line = f"{token.text}  {shown(score)} nats"
        assert element.attributes["title"].splitlines()[0] == line
        assert element.attributes["data-v"] == shown(score)
        assert element.text.startswith(token.text)
        assert f"s{min(9, int(score / -2))}" in element.attributes["class"].split()
    assert Markup(visualize.render(doc, ["original"])).all("metric")[0].text == "original"


def test_pieces_stand_under_split_words_in_their_own_colour(doc):
    record = doc._.pll_data
    markup = Markup(visualize.render(doc))
    words = split_words(doc)
    expected = []
    for metric in METRICS:
        for token in words:
            own = [i for i, index in enumerate(record["token"]) if index == token.i]
            expected.append([(record["pieces"][i], record["scores"][metric][i]) for i in own])
    assert [e.text for e in markup.all("p")] == ["".join(piece for piece, _ in pieces) for pieces in expected]
    swatches = [e for e in markup.elements if e.tag == "span" and re.fullmatch(r"s\d", e.attributes.get("class") or "")]
    pieces = swatches[N_STEPS:]  # the legend comes first
    for element, (piece, score) in zip(pieces, [pair for pieces in expected for pair in pieces], strict=True):
        assert element.attributes["title"].startswith(f"{piece}  {shown(score)} nats")
        assert element.attributes["class"] == f"s{min(9, int(score / -2))}"


def test_hovering_tells_what_a_piece_stands_for_that_does_not_show_it(doc):
    assert doc._.pll_data["pieces"][-2] == "[UNK]"
    lines = Markup(visualize.render(doc)).all("t")[len(doc) - 2].attributes["title"].splitlines()
    assert lines[0].startswith("zyx  ") and lines[1].startswith("[UNK]  ") and lines[1].endswith(" nats for zyx")


def test_without_their_record_the_number_of_pieces_is_shown(make_nlp):
    doc = make_nlp("bert")("The hooligans lost a souvenir.")
    markup = Markup(visualize.render(doc))
    assert [e.text for e in markup.all("p")] == [f"{token._.pll_pieces} pieces" for token in split_words(doc)]
    assert [e.text for e in markup.all("metric")] == ["word_l2r"]


def test_pieces_stay_with_their_tokens_when_tokens_are_merged(nlp):
    doc = nlp("The hooligans lost a souvenir.")
    assert Markup(visualize.render(doc)).all("p")[0].text == "hool##ig##an##s"
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    assert Markup(visualize.render(doc)).all("p")[0].text == "Thehool##ig##an##s"


def pieces_shown(doc, metric="original"):
    return [e.text for e in Markup(visualize.render(doc, [metric])).all("p")]


def test_pieces_of_a_joined_doc_are_shown_if_those_of_all_docs_are_known(nlp, make_nlp):
    kept = nlp("The hooligans lost a souvenir.")
    cut = kept[1:3].as_doc(copy_user_data=True)
    assert pieces_shown(cut) == pieces_shown(kept)[:1] == ["hool##ig##an##s"]
    for docs in ([kept, cut], [cut, kept, kept], [kept, nlp("It sat."), cut, cut]):
        joined = Doc.from_docs(docs)
        assert pieces_shown(joined) == [text for doc in docs for text in pieces_shown(doc)]
    without = make_nlp("bert", metrics=METRICS).get_pipe("pll")(nlp.make_doc("The hooligans sat."))
    for docs in ([kept, without], [without, cut]):
        shown = pieces_shown(Doc.from_docs(docs))
        assert len(shown) == len([*split_words(docs[0]), *split_words(docs[1])])
        assert all(text.endswith(" pieces") for text in shown)


def test_pieces_of_a_doc_that_was_not_scored_under_the_metric(nlp, make_nlp):
    """Beside one that was. Its tokens have no score, and so its wordpieces have none."""
    kept, scorer = nlp("The hooligans sat."), make_nlp("bert", keep_pieces=True).get_pipe("pll")
    other = scorer(nlp.make_doc("A hooligan."))
    joined = Doc.from_docs([kept, other])
    assert pieces_shown(joined, "word_l2r") == pieces_shown(kept, "word_l2r") + pieces_shown(other, "word_l2r")
    assert pieces_shown(joined) == pieces_shown(kept)
    titles = [e.attributes["title"] for e in Markup(visualize.render(joined, ["original"])).all("t")]
    assert [title == "not scored" for title in titles] == [token.i >= len(kept) for token in joined]
    with joined.retokenize() as retokenizer:  # one token with pieces of both
        retokenizer.merge(joined[len(kept) - 1 : len(kept) + 2])
    assert pieces_shown(joined, "word_l2r")[-1] == ".[UNK]" + pieces_shown(other, "word_l2r")[0]
    assert pieces_shown(joined)[-1] == "."


@given(odd_text)
@example("A <script>alert('x')</script> & \"b\" &amp; </article>")
@example("")
@example(" \n\t ")
@example("The words שלום עולם mean peace, مرحبا!")
def test_any_text_is_text(nlp, text):
    doc = nlp(text)
    markup = Markup(visualize.render(doc))
    (article,) = markup.all("doc")
    # an HTML parser takes "\r" for a line end
    assert article.attributes["data-text"] == doc.text
    tags = {e.tag for e in markup.elements}
    assert tags <= {"div", "style", "article", "span", "b", "small", "p", "br"}
    tokens = markup.all("t")
    assert len(tokens) == len(METRICS) * len(doc)
    for element, token in zip(tokens, doc):
        assert token.text in element.text or token.is_space
        assert element.text or not token.text.strip("\r")


def test_white_space_tokens_are_seen_and_lines_end_where_the_text_has_it(nlp):
    doc = nlp("One.\n\nTwo\tand  three.")
    markup = Markup(visualize.render(doc, ["original"]))
    spaces = [e for e, token in zip(markup.all("t"), doc) if token.is_space]
    assert [e.text for e in spaces] == ["↵↵", "⇥", "␣"]
    assert {e.attributes["title"] for e in spaces} == {"no piece"}
    assert sum(e.tag == "br" for e in markup.elements) == 1


def test_what_was_not_scored_has_no_colour_and_empty_docs_say_so(make_nlp):
    nlp = make_nlp("bert", targets="critical")
    doc = nlp.make_doc("The traveler lost it.")
    doc.spans["critical"] = [doc[1:2]]
    with pytest.warns(UserWarning, match="no spans under `targets`"):
        docs = [nlp(doc), nlp(""), nlp("Nothing asked")]
    markup = Markup(visualize.render(docs))
    coloured = ["data-v" in e.attributes for e in markup.all("t")]
    assert coloured == [False, True, False, False, False, False, False]
    assert [e.attributes["title"] for e in markup.all("t")][2] == "not scored"
    assert [e.text for e in markup.all("sum")][1:] == ["word_l2rnot scored"] * 2
    assert markup.all("none")[0].text == "(empty text)"
    assert [e.attributes["data-scores"] for e in markup.all("doc")] == [repr(doc._.pll), "", ""]
    assert Markup(visualize.render([])).all("doc") == []


@pytest.mark.parametrize(
    ("text", "base", "embedded"),
    [
        ("All of it goes one way.", "ltr", []),
        ("שלום עולם, זה computer טוב.", "rtl", ["computer"]),
        ("The words שלום, 12 עולם! mean peace", "ltr", ["שלום, 12 עולם!"]),
        ("ends in מר", "ltr", ["מר"]),
        ("... 12", "ltr", []),
    ],
)
def test_direction(nlp, text, base, embedded):
    markup = Markup(visualize.render(nlp(text), ["original"]))
    assert markup.all("text")[0].attributes["dir"] == base
    spans = [e for e in markup.elements if e.tag == "span" and "dir" in e.attributes]
    assert {e.attributes["dir"] for e in spans} <= {"ltr", "rtl"} - {base}
    words = [[word.split("#")[0][:2] for word in text.split()] for text in embedded]
    assert len(spans) == len(embedded)
    for element, expected in zip(spans, words):
        found = [word[:2] for word in element.text.split()]
        assert found == expected


def test_spans_and_generators(doc):
    assert len(Markup(visualize.render(doc[1:3], ["original"])).all("t")) == 2
    markup = Markup(visualize.render(item for item in [doc, doc[4:5]]))
    assert float(markup.all("doc")[1].attributes["data-scores"].split()[1]) == doc[4]._.pll_original


def test_docs_from_a_file_where_no_pipeline_was_made(make_nlp, unregistered):
    doc = make_nlp("bert", attr="filed", keep_pieces=True)("The hooligans")
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    html = visualize.render(doc, attr="filed")
    unregistered("filed")
    (doc,) = DocBin().from_bytes(data).get_docs(spacy.blank("en").vocab)
    assert visualize.render(doc, attr="filed") == html


def test_scores_of_a_model_that_finds_a_text_impossible(make_nlp):
    doc = make_nlp("bert")("The traveler")
    change_scores(doc, scores={"word_l2r": [-5000.0] * doc._.pll_pieces})
    title = Markup(visualize.render(doc)).all("sum")[0].attributes["title"]
    assert "pseudo-perplexity inf" in title


def test_the_legend_names_the_score_at_which_each_colour_begins(doc):
    scale = Markup(visualize.render(doc, vmin=-5)).all("scale")[0]
    assert scale.text == "0−0.5−1−1.5−2−2.5−3−3.5−4−4.5"


# Notebooks and pages


@pytest.fixture
def displayed(monkeypatch):
    """What a notebook was given to display."""
    shown = []
    module = ModuleType("IPython.display")
    module.HTML, module.display = (lambda html: html), shown.append
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return shown


@pytest.mark.parametrize(
    ("jupyter", "in_notebook", "is_displayed"),
    [(None, False, False), (None, True, True), (True, False, True), (False, True, False)],
)
def test_in_a_notebook_it_is_displayed(doc, displayed, monkeypatch, jupyter, in_notebook, is_displayed):
    # how spaCy recognises a notebook
    shell = type("ZMQInteractiveShell" if in_notebook else "TerminalInteractiveShell", (), {})
    monkeypatch.setattr(builtins, "get_ipython", shell, raising=False)
    html = visualize.render(doc, jupyter=jupyter)
    assert (html is None) == is_displayed and len(displayed) == is_displayed
    # MathJax would take two dollar signs for a formula
    assert "tex2jax_ignore" in (displayed[0] if is_displayed else html)


def test_displacys_wrapper_applies(doc, monkeypatch):
    monkeypatch.setattr(displacy, "RENDER_WRAPPER", lambda html: f"<section>{html}</section>")
    assert visualize.render(doc).startswith("<section>")


def test_a_page_is_whole_and_loads_nothing(doc):
    fragment, page = visualize.render(doc), visualize.render([doc, doc], page=True)
    assert "<html" not in fragment and "<script" not in fragment
    markup = Markup(page.removeprefix("<!DOCTYPE html>"))
    assert [e.text for e in markup.all("number")] == ["1", "2"]
    assert not {"link", "img", "iframe"} & {e.tag for e in markup.elements}
    assert not {"src", "href"} & {name for e in markup.elements for name in e.attributes}
    assert "url(" not in page and "@import" not in page
    policy = [e.attributes["content"] for e in markup.elements if e.attributes.get("http-equiv")]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"]


def test_a_page_is_written_while_its_docs_are_scored(doc):
    scored = []

    def docs():
        for i in range(3):
            scored.append(i)
            yield doc

    names = find_names([doc])
    shown = 0
    for part in page_parts(docs(), View(names, names.metrics, VMIN), "<b>Title</b>", 'about "<i>"'):
        shown += "<article" in part
        assert len(scored) in (shown, shown + 1)
        assert "<b>Title" not in part and "<i>" not in part
    assert shown == 3


@pytest.mark.slow
def test_importing_the_package_imports_no_optional_library():
    code = (
        "import sys, spacy; before = set(sys.modules); import spacy_pll; spacy_pll.visualize.render; "
        "print(sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    new = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "'spacy_pll'" in new
    assert not any(f"'{library}'" in new for library in ("matplotlib", "pandas", "torch", "transformers", "IPython"))


# Candidates and comparisons


@pytest.fixture
def tiny(make_nlp):
    return make_nlp(metrics=["word_l2r", "original"], keep_pieces=True, attr="two")


@pytest.mark.parametrize(("name", "value"), [("mask_margin", 0), ("mask_margin", 2), ("mask_spacing", 8), (None, 0)])
@pytest.mark.parametrize("keep_pieces", [False, True])
def test_pages_say_that_scores_are_approximate(make_nlp, name, value, keep_pieces):
    nlp = make_nlp(keep_pieces=keep_pieces, **({name: value} if name else {}))
    note, texts = f"; approximate ({name} {value})", ["The traveler lost it.", "The traveler lost them."]
    docs = list(nlp.pipe(texts))
    ranked = score_continuations(nlp, "The traveler lost", ["it", "them"])
    shown = [
        *(visualize.render(docs, page=page, jupyter=False) for page in (False, True)),
        visualize.render(docs[0][1:], jupyter=False),
        visualize.render_continuations(ranked, jupyter=False),
        visualize.render_comparison(compare(nlp, *texts), jupyter=False),
    ]
    assert all((note in html) is (name is not None) and html.count("approximate") == bool(name) for html in shown)


@pytest.mark.parametrize("page", [False, True])
def test_continuations_are_shown_best_first_with_their_scores(tiny, page):
    candidates = ["the souvenir", "it", "<b>&", "carnivore"]
    found = score_continuations(tiny, 'The "traveler" lost', candidates, " & left.")
    html = visualize.render_continuations(found, attr="two", page=page, jupyter=False)
    markup = Markup(html)
    ranked = sorted(found, key=lambda one: -one.score)
    assert len(markup.all("doc")) == 4 and len(markup.all("row")) == 8
    assert [e.text for e in markup.all("percent")] == [f"{100 * one.probability:.1f} % among these" for one in ranked]
    assert [row.text.split("−")[0] for row in markup.all("row")[::2]] == [f"{n} word_l2r" for n in (1, 2, 3, 4)]
    for one, row in zip(ranked, markup.all("row")[::2]):
        assert shown(one.score) in row.text and shown(one.mean) in row.text
    # what is not in the candidate is there, without a score
    off = ["off" in e.attributes["class"].split() for e in markup.all("t")]
    expected = [token._.two is None for one in ranked for _ in range(2) for token in one.span.doc]
    assert off == expected and True in off and False in off
    assert ("<title>" in html) == page and "<b>&" not in html and "<script" not in html


@pytest.mark.parametrize("page", [False, True])
def test_a_comparison_shows_both_versions_and_what_each_segment_adds(tiny, page):
    found = compare(tiny, "The traveler lost the <b>souvenir.", 'The "young" traveler lost it', "original")
    html = visualize.render_comparison(found, page=page, jupyter=False)
    markup = Markup(html)
    segments = markup.all("seg")
    assert [e.attributes["class"].split()[1] for e in segments] == [segment.kind for segment in found.segments]
    deltas = [e.text for e in markup.all("delta")]
    assert deltas == [f"{round(s.difference, 2) + 0.0:+.2f}".replace("-", "−") for s in found.segments]
    bars = [e for e in markup.elements if e.tag == "i"]
    heights = [float(re.fullmatch(r"height:(.*)em", e.attributes["style"])[1]) for e in bars]
    highest = max(abs(segment.difference) for segment in found.segments)
    assert heights == pytest.approx([2 * abs(s.difference) / highest for s in found.segments], abs=0.006)
    assert [e.attributes["class"] for e in bars] == ["loss" if s.difference < 0 else "gain" for s in found.segments]
    tokens = [e.attributes.get("data-v", "–") for e in markup.all("t")]
    expected = [
        shown(token._.two_original)
        for s in found.segments
        for side in (s.a, s.b)
        for token in (side or [None])
        if token
    ]
    assert [v for v in tokens if v != "–"] == expected
    sums = [e.text for e in markup.all("sum")]
    assert shown(found.a._.two_original) in sums[0] and shown(found.b._.two_original) in sums[1]
    assert f"{found.difference:+.2f}".replace("-", "−") in sums[2]
    assert ("<title>" in html) == page and "<b>souvenir" not in html and "<script" not in html


@pytest.mark.parametrize("metric", [None, "word_l2r", "original"])
def test_a_comparison_shows_wordpieces_whichever_metric_is_compared(tiny, metric):
    found = compare(tiny, "The hooligans lost it", "The souvenir lost it", metric)
    record = found.a._.two_data
    pieces = [piece for piece, token in zip(record["pieces"], record["token"]) if token == 1]
    assert len(pieces) > 1
    assert Markup(visualize.render_comparison(found, jupyter=False)).all("p")[0].text == "".join(pieces)


def test_comparisons_of_odd_text_are_well_formed(tiny):
    @given(odd_text, odd_text)
    def check(a, b):
        if (a + b).strip():
            found = compare(tiny, a, b)
            assert len(Markup(visualize.render_comparison(found, jupyter=False)).all("seg")) == len(found.segments)

    check()


# The colour scale


@pytest.mark.parametrize(
    ("score", "step"), [(0.0, 0), (0.5, 0), (-1.99, 0), (-2.0, 1), (-17.9, 8), (-18.0, 9), (-1000.0, 9)]
)
def test_equal_steps_and_what_lies_below_has_the_last(score, step):
    assert colour_step(score, -20.0) == step


@given(st.floats(-100, 0), st.floats(-100, 0), st.floats(-50, -0.1))
def test_a_less_likely_token_never_has_a_more_likely_ones_colour(a, b, vmin):
    low, high = sorted([a, b])
    assert colour_step(low, vmin) >= colour_step(high, vmin)


def luminance(colour):
    """Relative luminance (WCAG 2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("theme", "sign"), [(0, -1), (1, 1)], ids=["light", "dark"])
def test_every_colour_can_be_read_and_told_from_the_next_by_lightness_alone(theme, sign):
    css = files("spacy_pll.visualize").joinpath("style.css").read_text(encoding="utf8")
    rules = re.findall(r"\.s(\d+) \{ background: light-dark\((.*?)\); color: light-dark\((.*?)\) \}", css)
    assert [int(number) for number, _, _ in rules] == list(range(N_STEPS))
    backgrounds, inks = ([luminance(rule[i].split(", ")[theme]) for rule in rules] for i in (1, 2))
    for background, ink in zip(backgrounds, inks):
        low, high = sorted([background, ink])
        assert (high + 0.05) / (low + 0.05) >= 4.5
    assert all((after - before) * sign > 0.005 for before, after in zip(backgrounds, backgrounds[1:]))


@pytest.mark.parametrize("page", [False, True])
@pytest.mark.parametrize("vmin", [0.0, 3.0, math.nan, -math.inf])
def test_a_scale_without_an_end(doc, vmin, page):
    with pytest.raises(ValueError, match="`vmin` must be a number below 0.* It is "):
        visualize.render(doc, vmin=vmin, page=page)
