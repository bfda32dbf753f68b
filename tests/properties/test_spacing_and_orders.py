"""`mask_spacing`, `word_any_order` and `word_r2l` from text to scores, against the plainest implementation."""

import random
from itertools import permutations

import numpy as np
import pytest
import spacy

from spacy_pll.metrics import MAX_EXACT, MaskRows

from .. import reference
from ..conftest import PARAGRAPH, SENTENCES, UNITS, get_tokenizer, scores

MODELS = [("bert", "wordpiece"), ("roberta", "byte-level"), ("modernbert", "byte-level"), ("xlm-roberta", "unigram")]
TEXT = "The carnivore lost the souvenir, and Smith's travelers can't believe it."


def by_token(doc, values, tokens):
    return np.bincount(tokens, weights=values, minlength=len(doc))


def parts(nlp):
    return reference.load_model(nlp.get_pipe("pll").model.name)


@pytest.mark.slow
@pytest.mark.parametrize("words", UNITS)
@pytest.mark.parametrize("architecture, tokenizer", MODELS)
def test_word_r2l_and_any_order_are_those_of_brute_force(make_nlp, architecture, tokenizer, words):
    nlp = make_nlp(architecture, tokenizer, words=words, metrics=["word_any_order", "word_r2l"])
    longest = []
    for text in [TEXT, SENTENCES[0]]:
        doc = nlp(text)
        values, tokens = reference.score(doc, *parts(nlp), "word_r2l", words)
        np.testing.assert_allclose(scores(doc, "pll_word_r2l"), by_token(doc, values, tokens), atol=1e-5)
        longest.append(max(np.bincount(reference.read(doc, get_tokenizer(tokenizer), words)[2])))
        if longest[-1] <= MAX_EXACT:
            values, tokens = reference.score_any_order(doc, *parts(nlp), words)
            np.testing.assert_allclose(scores(doc, "pll_word_any_order"), by_token(doc, values, tokens), atol=1e-5)
    assert min(longest) <= MAX_EXACT


@pytest.mark.parametrize("architecture, tokenizer", MODELS)
def test_sentence_any_order_takes_all_orders_of_a_short_text(make_nlp, architecture, tokenizer):
    """The mean over all orders of the chain of conditionals; and of a longer text, `word_any_order` with one word."""
    nlp = make_nlp(architecture, tokenizer, metrics=["sentence_any_order"])
    transformer, its_tokenizer = parts(nlp)
    for text in ("the lost a.", "the a.", "a a", "a"):
        ids, kept, *_ = reference.read(nlp.make_doc(text), its_tokenizer, "spacy")
        if len(kept) <= MAX_EXACT:
            break
    assert 2 <= len(kept) <= MAX_EXACT
    sums = []
    for order in permutations(kept):
        sums.append(0.0)
        for n, position in enumerate(order):
            log_probs = reference.log_probabilities(transformer, its_tokenizer, ids, frozenset(order[n:]))
            sums[-1] += log_probs[position]
    assert nlp(text)._.pll == pytest.approx(np.mean(sums), abs=1e-4)
    assert nlp(text)._.pll <= np.log(np.mean(np.exp(sums))) + 1e-4  # a lower bound, by Jensen's inequality
    as_one = make_nlp(architecture, tokenizer, metrics=["word_any_order"], units="all", attr="as_one")
    doc = as_one.make_doc(SENTENCES[0])
    doc.spans["all"] = [doc[:]]
    assert nlp(SENTENCES[0])._.pll == pytest.approx(as_one(doc)._.as_one, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("spacing", [1, 3, 8])
@pytest.mark.parametrize("architecture, tokenizer", MODELS)
def test_spaced_scores_are_those_of_brute_force(make_nlp, architecture, tokenizer, spacing):
    for metric in ("original", "word_l2r", "word_r2l", "whole_word"):
        nlp = make_nlp(architecture, tokenizer, metrics=[metric], mask_spacing=spacing)
        scorer = nlp.get_pipe("pll")
        for text in (TEXT, SENTENCES[1]):
            scorer.predictor.counts.clear()
            doc = nlp(text)
            values, tokens, n_passes = reference.score_spaced(doc, *parts(nlp), metric, "spacy", spacing)
            np.testing.assert_allclose(scores(doc), by_token(doc, values, tokens), atol=1e-5)
            assert scorer.predictor.counts.rows == n_passes


def test_spaced_scores_do_not_depend_on_company(make_nlp):
    texts = [TEXT, *SENTENCES, "The.", "", PARAGRAPH]
    alone = list(map(make_nlp(mask_spacing=4, max_batch_tokens=1), texts))
    nlp = make_nlp(mask_spacing=4, metrics=["original", "word_l2r", "word_any_order"], attr="many")
    for doc, expected in zip(nlp.pipe(texts[::-1]), alone[::-1]):
        np.testing.assert_allclose(scores(doc, "many_word_l2r"), scores(expected), atol=1e-5)


def test_a_wide_spacing_gives_the_exact_scores(make_nlp):
    for exact, spaced in zip(make_nlp().pipe(SENTENCES), make_nlp(mask_spacing=1000).pipe(SENTENCES)):
        np.testing.assert_allclose(scores(spaced), scores(exact), atol=1e-5)
    assert abs(scores(make_nlp(mask_spacing=2)(SENTENCES[0])) - scores(make_nlp()(SENTENCES[0]))).max() > 1e-4


def test_cost_grows_linearly(make_nlp):
    nlp = make_nlp(mask_spacing=8)
    scorer = nlp.get_pipe("pll")
    words = random.Random(0).choices(PARAGRAPH.split(), k=5000)
    cost = {}
    for n in (1000, 5000):
        scorer.predictor.counts.clear()
        doc = nlp(" ".join(words[:n]))
        assert scorer.predictor.counts.targets == doc._.pll_pieces > 2 * n
        cost[n] = scorer.predictor.counts.ids / doc._.pll_pieces
    # Each window of 128 ids scores some 63 of them, in 8 passes and a few for its long words; exact: 128 ids a piece.
    assert cost[5000] == pytest.approx(cost[1000], rel=0.05) and cost[5000] < 30


def test_the_record_says_which_it_was(make_nlp):
    for spacing in (None, 8):
        doc = make_nlp(mask_spacing=spacing, keep_pieces=True)(SENTENCES[0])
        assert doc._.pll_data["mask_spacing"] == spacing
        assert doc.to_json(underscore=["pll_data"])


def test_the_setting_survives_a_round_trip(make_nlp, tmp_path):
    nlp = make_nlp(mask_spacing=8)
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("pll").settings.mask_spacing == 8
    assert make_nlp().get_pipe("pll").settings.mask_spacing is None


def test_settings_that_cannot_be(make_nlp):
    for value in (0, -1):
        with pytest.raises(ValueError, match=f"`mask_spacing` must be 1 or more. It is {value}"):
            make_nlp(mask_spacing=value)
    with pytest.raises(ValueError, match="'sentence_l2r' does not mask within words.*`metrics` to some of these: orig"):
        make_nlp(mask_spacing=8, metrics=["word_l2r", "sentence_l2r"])


def test_a_metric_of_another_package_that_masks_across_words_is_refused_with_the_first_text(make_nlp, add_metric):
    def blocks(word):
        n = len(word)
        return MaskRows(np.arange(n), np.arange(n)[:, None] // 3 == np.arange(n) // 3, np.ones(n))

    add_metric("blocks_for_test", blocks)
    nlp = make_nlp(mask_spacing=8, metrics=["blocks_for_test"])
    with pytest.raises(ValueError, match="'blocks' does not mask each scored piece.*Leave out `mask_spacing`"):
        nlp(SENTENCES[0])
    assert make_nlp(metrics=["blocks_for_test"])(SENTENCES[0])._.pll < 0
