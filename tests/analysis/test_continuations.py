"""`score_continuations`, against the plainest implementation and against `targets`."""

import copy
import math
import pickle

import numpy as np
import pytest
import spacy
from spacy.tokenizer import Tokenizer

from spacy_pll import score_continuations

from .. import reference
from ..conftest import get_tokenizer, scores

PREFIX, SUFFIX = "The traveler lost", ", and she left."
CANDIDATES = ["the souvenir", "it", " Smith's co-workers", "carnivore ", "can't believe", "it"]
MODELS = [("bert", "wordpiece"), ("roberta", "byte-level"), ("xlm-roberta", "unigram")]


def parts(nlp):
    return reference.load_model(nlp.get_pipe("pll").model.name)


@pytest.mark.parametrize("metric", ["word_l2r", "original", "whole_word", "sentence_l2r"])
@pytest.mark.parametrize("architecture, tokenizer", MODELS)
def test_scores_are_those_of_brute_force(make_nlp, architecture, tokenizer, metric):
    nlp = make_nlp(architecture, tokenizer, metrics=[metric])
    found = score_continuations(nlp, PREFIX, CANDIDATES, SUFFIX)
    assert [one.text for one in found] == CANDIDATES
    assert [one.span.text for one in found] == [candidate.strip() for candidate in CANDIDATES]
    for one in found:
        doc = one.span.doc
        assert doc.text == f"{PREFIX} {one.text.lstrip()}{SUFFIX}"
        values, tokens = reference.score(doc, *parts(nlp), metric, "spacy", [one.span])
        expected = np.bincount(tokens, weights=values, minlength=len(doc))[one.span.start : one.span.end]
        assert one.token_scores == pytest.approx(expected, abs=1e-5)
        assert one.pieces == sum(one.span.start <= token < one.span.end for token in tokens)
        assert one.score == pytest.approx(sum(expected), abs=1e-5) and one.mean == one.score / one.pieces
    assert found[1].score == found[5].score


@pytest.mark.parametrize("setting", [{}, {"mask_spacing": 2}, {"words": "tokenizer"}, {"metrics": ["causal"]}])
def test_scores_are_those_of_targets(make_nlp, model_folder, setting):
    if "metrics" in setting:
        model = {"@architectures": "spacy-pll.CausalLM.v1", "name": causal_folder(model_folder)}
        setting = {**setting, "model": model}
    nlp = make_nlp(targets="candidate", units="candidate", **setting)
    found = score_continuations(nlp, PREFIX, CANDIDATES, SUFFIX)
    docs = [nlp.make_doc(one.span.doc.text) for one in found]
    for one, doc in zip(found, docs):
        doc.spans["candidate"] = [doc[one.span.start : one.span.end]]
    for one, doc in zip(found, nlp.pipe(docs)):
        assert one.score == pytest.approx(doc._.pll, abs=1e-5)
        np.testing.assert_allclose(scores(one.span.doc), scores(doc), atol=1e-5)  # None outside the candidate


def causal_folder(model_folder):
    import transformers as hf

    folder = model_folder("bert").with_name("tiny-gpt2")
    if not folder.exists():
        tokenizer = copy.deepcopy(get_tokenizer("wordpiece"))
        config = hf.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=140,
                               bos_token_id=tokenizer.cls_token_id, eos_token_id=tokenizer.sep_token_id)  # fmt: skip
        hf.GPT2LMHeadModel(config).save_pretrained(folder)
        tokenizer.bos_token = tokenizer.cls_token
        tokenizer.save_pretrained(folder)
    return str(folder)


def test_probabilities_are_normalised_scores(make_nlp):
    found = score_continuations(make_nlp(), PREFIX, CANDIDATES)
    assert sum(one.probability for one in found) == pytest.approx(1)
    for one in found[1:]:
        ratio = math.log(one.probability) - math.log(found[0].probability)
        assert ratio == pytest.approx(one.score - found[0].score, abs=1e-9)


@pytest.mark.parametrize(
    ("prefix", "candidate", "suffix", "separator", "text"),
    [
        ("The", "cat", "", " ", "The cat"),
        ("The ", "cat", ".", " ", "The cat."),
        ("The", "\tcat \n", "sat", " ", "The\tcat \nsat"),
        ("", "cat", " sat", " ", "cat sat"),
        ("犬も", "歩けば", "棒", "", "犬も歩けば棒"),
        ("The co", "-workers", " left.", "", "The co-workers left."),
        ("It is can", "'t", "", "", "It is can't"),
    ],
)
def test_text_is_put_together(make_nlp, prefix, candidate, suffix, separator, text):
    nlp = make_nlp("roberta")
    (found,) = score_continuations(nlp, prefix, [candidate], suffix, separator=separator)
    assert found.span.doc.text == text and found.span.text == candidate.strip()
    assert found.span.start_char == text.index(candidate.strip(), len(prefix))
    assert found.pieces > 0 and found.probability == 1
    assert [token.i for token in found.span.doc if token._.pll is not None] == [token.i for token in found.span]


def test_a_candidate_inside_a_word_is_scored_by_its_own_pieces(make_nlp):
    """spaCy's token is split where the candidate begins, and the tokenizer's pieces fall to the side they are on."""
    nlp = make_nlp()
    tokenizer = parts(nlp)[1]
    pieces = tokenizer.tokenize("travelers")
    assert len(pieces) > 1
    head = pieces[0]
    (found,) = score_continuations(nlp, f"The {head}", ["travelers"[len(head) :]], separator="")
    assert [token.text for token in found.span.doc] == ["The", head, "travelers"[len(head) :]]
    assert found.pieces == len(pieces) - 1


def test_a_candidate_that_is_no_pieces_of_its_own_is_refused(make_nlp):
    nlp = make_nlp()
    with pytest.raises(
        ValueError,
        match="'aveler' after 'The tr' cannot be scored apart.*makes one piece, .*, of both, which begins before it",
    ):
        score_continuations(nlp, "The tr", ["aveler"], separator="")
    with pytest.raises(
        ValueError, match="'travele' after 'The ' before 'r lost it.' cannot be scored apart.* which begins there"
    ):
        score_continuations(nlp, "The", ["travele"], "r lost it.")
    with pytest.raises(ValueError, match=r"The text '\\u200b' after 'The ' has no wordpiece of its own"):
        score_continuations(nlp, "The", ["\u200b"])


@pytest.mark.parametrize("candidates", [[], "the cat", ()])
def test_candidates_must_be_a_list(make_nlp, candidates):
    with pytest.raises(ValueError, match="`candidates` must be a list of texts"):
        score_continuations(make_nlp(), "The", candidates)


@pytest.mark.parametrize("candidate", ["", " \n"])
def test_a_blank_candidate_is_refused(make_nlp, candidate):
    with pytest.raises(ValueError, match="must be a text .*It is"):
        score_continuations(make_nlp(), "The", ["cat", candidate])


def test_equal_contexts_are_computed_once_and_other_settings_do_not_matter(make_nlp, monkeypatch):
    """The whole text is the context, even where the pipeline reads sentences or scores some spans only."""
    nlp, done = make_nlp(), []
    monkeypatch.setattr(
        "spacy_pll.prediction.asking.WorkDone.add", lambda _, batch: done.append(len(batch.ids)) or batch
    )
    once = score_continuations(nlp, "She left. The traveler lost", ["it", "the souvenir"], ".")
    rows = sum(done)
    score_continuations(nlp, "She left. The traveler lost", ["it", "the souvenir"] * 3, ".")
    assert sum(done) == 2 * rows == 2 * sum(one.pieces for one in once)
    other = make_nlp(get_spans={"@span_getters": "spacy-pll.sent_spans.v1"}, targets="none")
    again = score_continuations(other, "She left. The traveler lost", ["it", "the souvenir"], ".")
    assert [one.score for one in again] == pytest.approx([one.score for one in once], abs=1e-5)


def test_the_pipelines_tokenizer_is_used(make_nlp):
    nlp = make_nlp()
    assert len(score_continuations(nlp, "The", ["well-known"])[0].span) == 3
    nlp.tokenizer = Tokenizer(nlp.vocab)
    assert len(score_continuations(nlp, "The", ["well-known"])[0].span) == 1


def test_the_function_takes_the_pipeline_as_it_is(make_nlp):
    """A copied pipeline and a sourced component are tokenized by the pipeline that is given."""
    nlp = make_nlp()
    expected = [one.score for one in score_continuations(nlp, "The", ["well-known", "cat"], ".")]
    sourced = spacy.blank("en")
    sourced.tokenizer = Tokenizer(sourced.vocab)
    sourced.add_pipe("pll", source=nlp)
    for other in (nlp, copy.deepcopy(nlp), pickle.loads(pickle.dumps(nlp))):
        found = score_continuations(other, "The", ["well-known", "cat"], ".")
        assert [one.score for one in found] == expected
        assert len(found[0].span) == 3 and found[0].span.doc.vocab is other.vocab
    found = score_continuations(sourced, "The", ["well-known", "cat"])
    assert len(found[0].span) == 1 and found[0].span.doc.vocab is sourced.vocab


def test_a_pipeline_without_the_component_is_refused():
    with pytest.raises(ValueError, match="no `pll` component"):
        score_continuations(spacy.blank("en"), "The", ["cat"])


def test_after_loading_from_disk(make_nlp, tmp_path):
    nlp = make_nlp()
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    one, other = (score_continuations(n, "The", ["cat", "souvenir"], ".") for n in (nlp, loaded))
    assert [c.score for c in one] == [c.score for c in other]
