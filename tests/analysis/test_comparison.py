import math
from itertools import combinations, count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.util import ignore_error

from spacy_pll import compare, compare_pairs, visualize

from ..conftest import SENTENCES, odd_text


@pytest.fixture
def nlp(make_nlp):
    return make_nlp(metrics=["word_l2r", "original"])


def test_segments_say_what_was_done(nlp):
    found = compare(nlp, "The traveler lost the souvenir.", "The young traveler lost it")
    segments = [(segment.kind, segment.a.text, segment.b.text) for segment in found.segments]
    assert segments == [
        ("equal", "The", "The"),
        ("insert", "", "young"),
        ("equal", "traveler", "traveler"),
        ("equal", "lost", "lost"),
        ("replace", "the souvenir.", "it"),
    ]


@pytest.mark.parametrize("metric", [None, "word_l2r", "original"])
def test_differences_are_those_of_the_tokens(nlp, metric):
    a, b = "The traveler lost the souvenir.", "The young traveler lost it"
    found = compare(nlp, a, b, metric)
    name = f"pll_{metric}" if metric else "pll"
    doc_a, doc_b = nlp.pipe([a, b])

    def total(doc, span):
        return sum(token._.get(name) for token in doc[span.start : span.end])

    for segment in found.segments:
        expected = total(doc_b, segment.b) - total(doc_a, segment.a)
        assert segment.difference == pytest.approx(expected, abs=1e-5)
    assert found.segments[0].difference != 0  # the same word, in another context
    assert found.difference == pytest.approx(found.b._.get(name) - found.a._.get(name), abs=1e-9)
    assert (found.a.text, found.b.text) == (a, b)


def test_segments_cover_both_texts_and_sum_to_the_difference(nlp):
    @given(odd_text, odd_text, st.booleans())
    def check(a, b, related):
        b = a[: len(a) // 2] + b + a[len(a) // 2 :] if related else b
        if not a + b:
            return
        found = compare(nlp, a, b)
        for doc, side in ((found.a, "a"), (found.b, "b")):
            tokens = [token.i for segment in found.segments for token in getattr(segment, side)]
            assert tokens == list(range(len(doc)))
        if found.a._.pll_pieces and found.b._.pll_pieces:
            assert found.difference == pytest.approx(found.b._.pll - found.a._.pll, abs=1e-9)

    check()


@pytest.mark.parametrize("blank", ["", "  ", "\u200b"])
def test_a_version_without_a_wordpiece_comes_last(nlp, blank):
    """Its empty sum, 0.0, is not the better score."""
    assert compare(nlp, blank, SENTENCES[0]).difference == math.inf
    assert compare(nlp, SENTENCES[0], blank).difference == -math.inf
    assert compare(nlp, " ", "\n").difference == 0
    html = visualize.render_comparison(compare(nlp, SENTENCES[0], blank))
    assert "one version has no wordpiece" in html and "inf" not in html
    assert html.count("<small>not scored</small>") == 1


def test_a_text_and_itself(nlp):
    found = compare(nlp, SENTENCES[0], SENTENCES[0])
    assert {segment.kind for segment in found.segments} == {"equal"} and found.difference == 0
    assert compare(nlp, nlp.make_doc(SENTENCES[0]), SENTENCES[0]).difference == 0
    assert compare(nlp, SENTENCES[0], SENTENCES[1]).difference == -compare(nlp, SENTENCES[1], SENTENCES[0]).difference


def test_docs_with_units_are_compared_by_units(make_nlp):
    nlp = make_nlp(units="phrases")
    a, b = (nlp.make_doc(text) for text in ("The traveler lost it", "The traveler lost the old souvenir"))
    a.spans["phrases"], b.spans["phrases"] = [a[3:4]], [b[3:6]]
    merged = b.copy()
    with merged.retokenize() as retokenizer:
        retokenizer.merge(merged[3:6])
    found = compare(nlp, a, b)
    assert (found.segments[-1].a.text, found.segments[-1].b.text) == ("it", "the old souvenir")
    assert found.difference == pytest.approx(make_nlp()(merged)._.pll - make_nlp()(a.text)._.pll, abs=1e-5)


def test_scores_that_are_not_there(nlp, make_nlp):
    with pytest.raises(ValueError, match="no scores under 'whole_word'. Set `metrics`.*: word_l2r, ori"):
        compare(nlp, "The cat", "A cat", "whole_word")


# In some, parts of the words that differ are the same wordpiece, or there are several ways to align them.
TEMPLATES = [
    ("The {} waited in the rain for the last bus.", "cats", "dogs", "umbrellas", "hooligans", "carnivore"),
    ("My {} said that it was too late, and that the {} should sleep.", "uncle", "neighbours", "Norwegians"),
    ("{}", "The traveler lost the souvenir.", "The travelers lost their souvenirs!", "Nobody slept.", "the the", "the"),
    ("I {} it", "can't believe", "couldn't have believed", "will never, ever misunderstand"),
    ("a b {} a b", "a", "b", "a b", "b a"),
]
VERSIONS = [
    (template.replace("{}", a), template.replace("{}", b))
    for template, *words in TEMPLATES
    for a, b in combinations(words, 2)
]


def test_the_scores_of_what_both_have(nlp):
    for found in compare_pairs(nlp, VERSIONS, "original"):
        same = [segment for segment in found.segments if segment.kind == "equal"]
        for metric in (None, "original", "word_l2r"):
            expected = [sum(getattr(s, side)._.get(f"pll_{metric or 'original'}") for s in same) for side in ("a", "b")]
            assert found.shared_scores(metric) == pytest.approx(expected, abs=1e-5)
    assert compare(nlp, "The cat", "A dog").shared_scores() == (0, 0)
    assert compare(nlp, "", "A dog").shared_scores() == (0, 0)
    with pytest.raises(ValueError, match="no scores under 'whole_word'"):
        found.shared_scores("whole_word")


def test_pairs_are_compared_as_each_is(nlp):
    doc = nlp.make_doc(SENTENCES[0])
    pairs = [*VERSIONS[:5], (doc, SENTENCES[1]), (doc, doc), (SENTENCES[2], ""), *VERSIONS[:5]]
    for pair, found in zip(pairs, compare_pairs(nlp, pairs, "original", batch_size=3), strict=True):
        alone = compare(nlp, *pair, "original")
        assert (found.a.text, found.b.text) == (alone.a.text, alone.b.text)
        assert found.attribute == "pll_original"
        assert found.difference == pytest.approx(alone.difference, abs=1e-4)
    assert list(compare_pairs(nlp, [])) == []


def test_pairs_are_read_as_they_are_needed(nlp):
    endless = ((f"The cat {n}", f"The dog {n}") for n in count())
    found = list(islice(compare_pairs(nlp, endless, batch_size=2), 3))
    assert [comparison.b.text for comparison in found] == ["The dog 0", "The dog 1", "The dog 2"]
    assert next(endless) == ("The cat 4", "The dog 4")


@Language.component("fails_on_dogs")
def fails_on_dogs(doc):
    if doc.text == "dogs":
        raise ValueError("no dogs")
    return doc


def test_a_text_that_the_pipeline_leaves_out_is_an_error(make_nlp):
    nlp = make_nlp()
    nlp.add_pipe("fails_on_dogs", first=True)
    nlp.set_error_handler(ignore_error)
    pairs = [("The cat", "dogs"), ("dogs", "A cat"), ("The cat", "A cat")]
    with pytest.raises(ValueError, match="ValueError: no dogs"):
        next(compare_pairs(nlp, pairs))


@pytest.mark.parametrize("pair", ["ab", ["a", "b", "c"], ["a"]])
def test_a_pair_that_is_not_two_texts(make_nlp, pair):
    with pytest.raises(ValueError, match="Each pair must be two texts.* One is"):
        next(compare_pairs(make_nlp("bert"), [pair]))
