"""The setting `units`: what is scored as one word, from text to scores."""

import warnings

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import score_continuations

from .. import reference
from ..conftest import SENTENCES, UNITS, odd_text, scores
from ..test_metrics import METRICS

MODELS = [("bert", "wordpiece"), ("roberta", "byte-level"), ("xlm-roberta", "unigram")]


def with_units(nlp, text, *bounds, key="units"):
    """A doc with the spans of tokens that begin and end there."""
    doc = nlp.make_doc(text)
    doc.spans[key] = [doc[start:end] for start, end in bounds]
    return doc


@pytest.mark.slow
@pytest.mark.parametrize(
    "architecture, tokenizer, setting",
    [*((*model, {}) for model in MODELS), (*MODELS[1], {"mask_spacing": 3}), (*MODELS[2], {"mask_margin": 1})],
)
def test_scores_are_those_of_a_doc_whose_units_are_tokens(make_nlp, architecture, tokenizer, setting):
    """All that is read is the same, and so is every bit of the scores; spans that overlap are one token there."""
    metrics = [metric for metric in METRICS if not setting or metric != "sentence_l2r"]
    nlp = make_nlp(architecture, tokenizer, metrics=metrics, units="units", keep_pieces=True, **setting)
    other = make_nlp(architecture, tokenizer, metrics=metrics, attr="other", keep_pieces=True, **setting)

    @given(odd_text, st.sampled_from(SENTENCES), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=5))
    def check(odd, sentence, bounds):
        doc = with_units(nlp, odd + sentence, *[(start, start + length) for start, length in bounds])
        merged = nlp.make_doc(doc.text)
        joined = np.zeros(len(doc) + 1, dtype=bool)  # whether a token is in one unit with the token before it
        for span in doc.spans["units"]:
            joined[span.start + 1 : span.end] = True
        begins = np.flatnonzero(~joined).tolist()
        with merged.retokenize() as retokenizer:
            for start, end in zip(begins, begins[1:]):
                retokenizer.merge(merged[start:end])
        data, expected = nlp(doc)._.pll_data, other(merged)._.other_data
        assert (data["ids"], data["scores"]) == (expected["ids"], expected["scores"])

    check()


@pytest.mark.parametrize("words", ["spacy", "tokenizer", "whitespace"])
def test_units_of_one_word_each_change_nothing(make_nlp, words):
    nlp = make_nlp(words=words, units="units", metrics=METRICS, keep_pieces=True)
    for text in ["The traveler lost the old souvenir", *(SENTENCES if words == "spacy" else [])]:
        doc = with_units(nlp, text, *[(i, i + 1) for i in range(len(nlp.make_doc(text)))])
        assert nlp(doc)._.pll_data == nlp(with_units(nlp, text))._.pll_data


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("words", UNITS)
def test_scores_are_those_of_brute_force(make_nlp, metric, words):
    """The words that a unit reaches into are one: "Smith's co-workers" takes in the parts of "co-workers", and, where
    white space separates words, "Smith" takes in "'s".
    """
    nlp = make_nlp(words=words, metrics=[metric], units="units")
    doc = with_units(nlp, "Dr. Smith's co-workers can't lose the souvenir, it was said.", (1, 4), (7, 8), (9, 11))
    assert [span.text for span in doc.spans["units"]] == ["Smith's co", "n't", "the souvenir"]
    transformer, tokenizer = reference.load_model(nlp.get_pipe("pll").model.name)
    values, tokens = reference.score(doc, transformer, tokenizer, metric, words, doc.spans["units"])
    expected = np.bincount(tokens, weights=values, minlength=len(doc))
    np.testing.assert_allclose(scores(nlp(doc)), expected, atol=1e-5)


def test_a_unit_is_scored_by_the_chain_rule():
    """log P(Los Angeles) = log P(Los | They live in _ _.) + log P(Angeles | They live in Los _.)"""
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"units": "places"})
    doc = nlp(with_units(nlp, "They live in Los Angeles.", (3, 5), key="places"))
    model = nlp.get_pipe("pll").model.load()
    ids = model.tokenizer.encode(doc.text).ids
    los, angeles = 4, 5
    assert [model.tokenizer.id_to_token(ids[i]) for i in (los, angeles)] == ["Los", "Angeles"]
    transformer = model.checkpoint.transformer

    def log_p(target, *masked):
        given = [model.mask_id if i in masked else id for i, id in enumerate(ids)]
        return reference.predict(transformer, given)[target, ids[target]].item()

    expected = log_p(los, los, angeles) + log_p(angeles, angeles)
    assert doc[3:5]._.pll == pytest.approx(expected, abs=1e-5)
    first, second = score_continuations(nlp, "They live in", ["Los Angeles", "Boston"], ".")
    assert first.score == pytest.approx(expected, abs=1e-5) and second.score > first.score
    # By words, each of the two is given away by the other.
    assert log_p(los, los) + log_p(angeles, angeles) > -0.1 > -5 > expected


def test_a_unit_is_read_in_one_span_if_there_is_one(make_nlp):
    """As with tokens that share a piece: otherwise a part would be scored beside the other, unmasked."""
    strided = {"@span_getters": "spacy-pll.strided_spans.v1", "window": 6, "stride": 4}
    nlp = make_nlp(units="units", get_spans=strided, keep_pieces=True)
    merged = make_nlp(attr="merged")
    doc = nlp(with_units(nlp, "The traveler lost the old souvenir and she left it", (3, 6)))  # it ends with doc[:6]
    context = doc[:6].as_doc()
    with context.retokenize() as retokenizer:
        retokenizer.merge(context[3:6])
    assert doc[3:6]._.pll == pytest.approx(merged(context)[3]._.merged, abs=1e-5)


def test_a_unit_of_a_later_sentence():
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    sentences = {"@span_getters": "spacy-pll.sent_spans.v1"}
    nlp.add_pipe("pll", config={"units": "units", "get_spans": sentences})
    with warnings.catch_warnings():  # a unit that one context holds is not warned of
        warnings.simplefilter("error")
        doc = nlp(with_units(nlp, "The traveler lost it. They live in Los Angeles.", (8, 10)))
    alone = nlp(with_units(nlp, "They live in Los Angeles.", (3, 5)))
    assert scores(doc)[5:] == pytest.approx(scores(alone), abs=1e-4)
    assert doc[8:10]._.pll < -5  # read by words, it is near 0: see above


def test_tokens_of_a_unit_that_are_contexts_of_their_own_are_scored(make_nlp):
    alone = {"@span_getters": "spacy-pll.strided_spans.v1", "window": 1, "stride": 1}
    nlp = make_nlp(units="units", get_spans=alone)
    plain = make_nlp(get_spans=alone, attr="plain")("The traveler lost it.")
    with pytest.warns(UserWarning, match="token 1, 'traveler lost', is not read"):
        doc = nlp(with_units(nlp, "The traveler lost it.", (1, 3)))
    assert scores(doc) == pytest.approx([token._.plain for token in plain], abs=1e-5)


def test_a_unit_that_no_context_holds_is_scored_in_parts_with_a_warning(make_nlp):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    make_nlp(nlp=nlp, units="units", get_spans={"@span_getters": "spacy-pll.sent_spans.v1"})
    with pytest.warns(UserWarning, match="token 3, 'the souvenir. She', is not read"):
        doc = nlp(with_units(nlp, "The traveler lost the souvenir. She left.", (3, 7)))
    first = nlp(with_units(nlp, "The traveler lost the souvenir.", (3, 6)))
    assert doc[3:6]._.pll == pytest.approx(first[3:6]._.pll, abs=1e-5)
    assert doc[6:]._.pll == pytest.approx(nlp(with_units(nlp, "She left."))._.pll, abs=1e-5)


def test_a_unit_longer_than_the_model_reads_is_scored_in_parts_with_a_warning(make_nlp):
    nlp = make_nlp(units="units")
    text = "The traveler lost the souvenir " * 40
    with pytest.warns(UserWarning, match="token 5, 'The', has more pieces"):
        doc = nlp(with_units(nlp, text, (5, 200)))
    assert all(token._.pll is not None for token in doc)


def test_a_doc_without_the_key_is_scored_by_words_with_a_warning(make_nlp):
    nlp = make_nlp(units="units")
    with pytest.warns(UserWarning, match="no spans under `units`, doc.spans\\['units'\\], so it is scored by words"):
        found = nlp(SENTENCES[0])
    assert scores(found).tolist() == scores(make_nlp()(SENTENCES[0])).tolist()
    assert nlp.get_pipe("pll").settings.record["units"] == "units"


def test_each_doc_of_a_batch_has_its_own_units(make_nlp):
    nlp = make_nlp(units="units", keep_pieces=True)
    some = [(0, 2)], [], [(1, 4)]

    def docs():
        return [with_units(nlp, text, *bounds) for text, bounds in zip(SENTENCES, some)]

    together, alone = list(nlp.pipe(docs())), list(map(nlp, docs()))
    assert len({len({*doc._.pll_data["word"]}) - len(doc) for doc in alone}) > 1
    for one, other in zip(together, alone, strict=True):
        assert one._.pll_data["word"] == other._.pll_data["word"]
        assert scores(one) == pytest.approx(scores(other), abs=1e-5)
