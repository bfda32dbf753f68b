"""Texts in their places and targets in their texts, by every tokenizer: each score against one pass a piece.

The brute force here is that of transformers alone. It takes neither tokens nor words from the package: a piece is of a
text if it begins there, where one without a visible character goes to the next that has one.
"""

from functools import cache
from itertools import permutations

import numpy as np
import pytest
import spacy
import torch
from hypothesis import given

from spacy_pll import Choice, Option, choices, make_pipeline
from spacy_pll.metrics import MAX_EXACT
from spacy_pll.span_getters import TEXT_SPAN, named_spans
from spacy_pll.stream.contexts import doc_in_context

from .. import reference
from ..conftest import REAL_TOKENIZERS, TINY_TOKENIZERS, build_transformer, get_tokenizer, odd_text, score_placed

TOKENIZERS = [*TINY_TOKENIZERS, *REAL_TOKENIZERS]
WORD_METRICS = ["word_l2r", "original", "whole_word", "word_r2l", "word_any_order"]
# A context, a text after it, and what follows.
PLACES = [
    ("", "It's over.", ""),
    ("Is it cold? ", "yes", ""),
    *(
        (f"Is it cold?\nAnswer:{white}", "yes", "")
        for white in ("\n", "\t", "\u00a0", "\u202f", "\u3000", "  ", " \n\n")
    ),
    ("Quoi", " !", " Rien."),
    ("Quoi", "\u00a0!", "\n\n"),
    ("He paid", "\n $3", "\t for it."),
    ("Smith  ", "left", "\r\n now"),
    (" \n", "left", " \n"),
    ("A souvenir", " ", "  of it"),
]
# Where context and text have a piece together under some tokenizers, which is then of the context.
SHARED = [
    ("He paid 3", "50 .", ""),
    ("The souv", "enir", ""),
    ("犬も", "歩け", "ば"),
    ("She can", "'t", " go."),
    ("So", "...", " he left"),
]


@cache
def model_of(name, architecture=None):
    tokenizer = get_tokenizer(name)
    architecture = architecture or ("roberta" if name in ("roberta-base", "byte-level") else "bert")
    return build_transformer(architecture, tokenizer), tokenizer


@torch.no_grad()
def give_padding_a_row(model):
    """By default the row of the padding id is zero, so that its place would not show."""
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None:
            module.weight[module.padding_idx] = torch.linspace(-0.5, 0.5, module.weight.shape[1])


def read(tokenizer, before, text, after):
    """Ids, where pieces stand, and for each the character by which it is known: the first visible one in it, or, where
    it has none, the next one; and where it begins.
    """
    whole = before + text + after
    whole = whole[: reference.bounds(whole)[1]]
    encoding = reference.encode(tokenizer, before + text + after)
    kept = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
    visible = [i for i, character in enumerate(whole) if not character.isspace()]
    starts = np.maximum.accumulate([encoding.offsets[i][0] for i in kept] or [0]).tolist()
    ends = [encoding.offsets[i][1] for i in kept]
    known = [reference.first_from(visible, start) for start in starts]
    return encoding.ids, kept, known, starts, [a <= k < max(b, a) for a, b, k in zip(starts, ends, known)]


def own_pieces(tokenizer, before, text, after):
    """The index of each piece of the text among all pieces, as the convention of docs/settings.md has it."""
    ids, kept, known, starts, is_visible = read(tokenizer, before, text, after)
    first, last = len(before), len(before) + len(text)
    # The one space between two tokens is part of neither.
    white_from = first - (before[-1:] == " " and not before[-2:-1].isspace())
    own = [i for i, k in enumerate(known) if first <= k < last and (is_visible[i] or starts[i] >= white_from)]
    return ids, kept, own


def brute_force(model, tokenizer, place, metric, word):
    """The score of each piece of the text. word: of each piece. What is not of the text is never masked."""
    ids, kept, own = own_pieces(tokenizer, *place)

    def ask(target, masked):
        return reference.log_probabilities(model, tokenizer, ids, {kept[i] for i in masked})[kept[target]]

    out = []
    for target in own:
        mine = own if metric.startswith("sentence") else [i for i in own if word[i] == word[target]]
        if metric.endswith("any_order"):
            orders = list(permutations(mine))
            out.append(sum(ask(target, order[order.index(target) :]) for order in orders) / len(orders))
        else:
            masked = [i for i in mine if reference.is_masked(metric, i, target, word)]
            out.append(ask(target, masked))
    return out


def words_of(tokenizer, place):
    """The run of visible characters that each piece is in, where runs that share a piece are one."""
    whole = "".join(place)
    encoding = reference.encode(tokenizer, whole)
    ids, kept, known, _, _ = read(tokenizer, *place)
    run = np.cumsum([a.isspace() != b.isspace() for a, b in zip(" " + whole, whole)] or [0])
    found = [int(run[k]) for k in known]
    for at in kept:
        visible = [p for p in range(*encoding.offsets[at]) if not whole[p].isspace()]
        if visible and run[visible[-1]] != run[visible[0]]:
            low, high = int(run[visible[0]]), int(run[visible[-1]])
            found = [low if low <= f <= high else f for f in found]
    return found


def check(name, metrics, places):
    model, tokenizer = model_of(name)
    nlp = make_pipeline((model, tokenizer), metrics=metrics, words="whitespace", keep_pieces=True)
    docs = score_placed(nlp, [(text, before, after) for before, text, after in places])
    n_scored = 0
    for where, doc in zip(places, docs, strict=True):
        for metric in metrics:
            expected = brute_force(model, tokenizer, where, metric, words_of(tokenizer, where))
            found = doc._.pll_data["scores"][metric] if expected else []
            np.testing.assert_allclose(found, expected, atol=1e-4, err_msg=f"{where} {metric}")
            n_scored += len(expected)
        assert sum(token._.pll_pieces or 0 for token in named_spans(doc, TEXT_SPAN)[0]) == len(expected)
    assert n_scored > len(places)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_white_space_before_a_text_is_of_what_stands_there(name):
    check(name, ["original", "word_l2r"], PLACES)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_nothing_of_what_stands_beside_a_text_is_masked(name):
    _, tokenizer = model_of(name)
    places = [place for place in [*PLACES[:3], *SHARED] if 0 < len(own_pieces(tokenizer, *place)[2]) <= MAX_EXACT - 1]
    assert len(places) > 3
    check(name, [*WORD_METRICS, "sentence_any_order"], places)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_white_space_before_an_option_counts_the_same_whatever_stands_beside_it(name):
    """The other choices of a file have contexts, or have none."""
    model, tokenizer = model_of(name)
    nlp = make_pipeline((model, tokenizer), metrics=["original"])
    texts = [" A souvenir.", "\n\tIt left.", "It left. ", "It."]
    alone = Choice([Option(text) for text in texts])
    expected = [sum(brute_force(model, tokenizer, ("", text.rstrip(), ""), "original", range(99))) for text in texts]
    for others in ([], [Choice([Option("a", "b"), Option(" b", "a ")])]):
        with pytest.warns(UserWarning, match="white space stands before one option"):
            found = choices(nlp, [alone, *others]).scores["original"].sums[: len(texts)]
        np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("architecture", ["roberta", "mpnet", "esm"])
@pytest.mark.parametrize("name", TOKENIZERS)
def test_padding_ids_in_a_text_and_all_masks_in_one_pass(name, architecture):
    """They are masked themselves, and are context of what is. The model counts positions from after the padding id,
    which transformers has as 1 in an MPNet, whatever the configuration says.
    """
    more = {"esm": {"position_embedding_type": "absolute", "token_dropout": True}}.get(architecture, {})
    tokenizer = get_tokenizer(name)
    model = build_transformer(architecture, tokenizer, **more)
    give_padding_a_row(model)
    nlp = make_pipeline((model, tokenizer), metrics=["word_l2r"], mask_margin=1, keep_pieces=True)
    pad, mask = tokenizer.pad_token, tokenizer.mask_token
    texts = [f"The {pad} traveler", f"{pad}{pad} it {pad}.", f"a {mask} b {pad}", "It left.", ""]
    for text, doc in zip(texts, nlp.pipe(texts)):
        if text:
            expected, _ = reference.score_by_states(doc, model, tokenizer, "word_l2r", "spacy", 1, 128)
            np.testing.assert_allclose(doc._.pll_data["scores"]["word_l2r"], expected, atol=1e-4)
            assert (pad in text) == (tokenizer.pad_token_id in doc._.pll_data["ids"])


@given(text=odd_text, before=odd_text, after=odd_text)
def test_the_doc_is_that_of_spacys_own_way_to_join_docs(text, before, after):
    nlp, other = spacy.blank("en"), spacy.blank("en")
    tokenizer = other.tokenizer
    other.tokenizer = lambda text: tokenizer(text)  # of which nothing is known
    before, after = f"I can't {before}", f"{after} isn't"
    ours, theirs = (doc_in_context(one, text, before, after) for one in (nlp, other))
    for attr in ("ORTH", "SPACY", "NORM", "IDX"):
        assert ours.to_array(attr).tolist() == theirs.to_array(attr).tolist()
    assert [token.is_sent_start for token in ours][1:] == [token.is_sent_start for token in theirs][1:]
    (span,), (other_span,) = named_spans(ours, TEXT_SPAN), named_spans(theirs, TEXT_SPAN)
    assert (span.start, span.end) == (other_span.start, other_span.end)
