from copy import deepcopy

import numpy as np
import pytest
import spacy
from hypothesis import given
from tokenizers.processors import TemplateProcessing

from spacy_pll.scoring.wordpieces import (
    WORDS,
    DocTexts,
    Encoded,
    get_wordpieces,
    join_words,
    joined_units,
    merge_spans,
    pretoken_units,
    read_text,
    trim,
)

from ..conftest import REAL_TOKENIZERS, SENTENCES, TINY_TOKENIZERS, get_tokenizer, odd_text
from ..reference import encode, piece_tokens, word_of_pieces
from .reading import span_of

pytestmark = pytest.mark.core

nlp = spacy.blank("en")


def partition(numbers):
    """Number groups in the order in which they appear, so that two numberings can be compared."""
    seen = {}
    return [seen.setdefault(number, len(seen)) for number in numbers]


def check_alignment(doc, tokenizer, unit):
    encoding = encode(tokenizer, doc.text)
    kept = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
    pieces = get_wordpieces([doc[:]], tokenizer.backend_tokenizer, unit)
    # The pieces are the tokenizer's own, and its special tokens stand around them.
    assert pieces.ids.tolist() == [encoding.ids[i] for i in kept]
    assert [*pieces.encoded.prefix, *pieces.ids, *pieces.encoded.suffix] == encoding.ids
    if not kept:
        return
    assert pieces.token.tolist() == piece_tokens(doc, [encoding.offsets[i] for i in kept])
    assert partition(pieces.word) == partition(word_of_pieces(doc, encoding, unit))
    assert (np.diff(pieces.word) >= 0).all() and (np.diff(pieces.token) >= 0).all()
    for start, end in zip(pieces.start, pieces.end):
        assert doc.text[start:end] == doc.text[start:end].strip()


@pytest.mark.parametrize("unit", WORDS)
@pytest.mark.parametrize("name", [*TINY_TOKENIZERS, *REAL_TOKENIZERS])
def test_alignment_of_odd_text(name, unit):
    tokenizer = get_tokenizer(name)

    @given(text=odd_text)
    def check(text):
        doc = nlp.make_doc(text)
        if len(doc):
            check_alignment(doc, tokenizer, unit)

    check()


@pytest.mark.parametrize("unit", WORDS)
@pytest.mark.parametrize("name", [*TINY_TOKENIZERS, *REAL_TOKENIZERS])
def test_alignment_of_sentences(name, unit):
    for text in SENTENCES:
        check_alignment(nlp.make_doc(text), get_tokenizer(name), unit)


def test_alignment_by_hand():
    tokenizer = get_tokenizer("bert-base-cased")
    doc = nlp.make_doc("I can't lose the souvenir")
    pieces = get_wordpieces([doc[:]], tokenizer.backend_tokenizer, "spacy")
    texts = [tokenizer.backend_tokenizer.id_to_token(i) for i in pieces.ids]
    assert texts == ["I", "can", "'", "t", "lose", "the", "so", "##uve", "##nir"]
    assert [doc[i].text for i in pieces.token] == ["I", "ca", "n't", "n't", "lose", "the", *["souvenir"] * 3]
    # "can" holds letters of "ca" and of "n't", so the two tokens are one word.
    assert partition(pieces.word) == [0, 1, 1, 1, 2, 3, 4, 4, 4]
    by_pretoken = get_wordpieces([doc[:]], tokenizer.backend_tokenizer, "tokenizer")
    assert partition(by_pretoken.word) == [0, 1, 2, 3, 4, 5, 6, 6, 6]


def test_span_inside_a_doc_has_doc_offsets():
    tokenizer = get_tokenizer("wordpiece").backend_tokenizer
    doc = nlp.make_doc("I am here.  The traveler lost it.")
    pieces = get_wordpieces([doc[5:8]], tokenizer, "spacy")
    assert {doc.text[s:e] for s, e in zip(pieces.start, pieces.end)} <= {*"The traveler lost"} | {
        "The traveler lost"[i:j] for i in range(17) for j in range(i, 18)
    }
    assert set(pieces.token) == {5, 6, 7}


def test_special_pieces_in_text_are_text():
    tokenizer = get_tokenizer("wordpiece")
    doc = nlp.make_doc("The [MASK] and [SEP] here")
    pieces = get_wordpieces([doc[:]], tokenizer.backend_tokenizer, "spacy")
    assert tokenizer.mask_token_id in pieces.ids and tokenizer.sep_token_id in pieces.ids


def trimmed(text, offsets):
    n = len(offsets)
    return [x.tolist() for x in trim(text, np.array(offsets), np.zeros(n, dtype=int), np.full(n, len(text)))]


def test_white_space_belongs_to_the_token_that_comes_next():
    begin, start, end, anchor = trimmed("ab  cd ", [[0, 2], [2, 5], [5, 6], [6, 7]])
    assert begin == [0, 2, 5, 6] and start == [0, 4, 5, 7] and end == [2, 5, 6, 7]
    assert anchor == [0, 4, 5, 5]  # the last piece is white space at the end: to the last token
    assert trimmed("a ", [[0, 1], [2, 2]])[1:] == [[0, 2], [1, 2], [0, 0]]  # an empty piece behind the text
    assert trimmed(" ab", [[0, 1], [1, 3]])[1:] == [[1, 1], [1, 3], [1, 1]]


def test_a_piece_without_offsets_stays_where_it_stands():
    # Some tokenizers give (0, 0) to a piece that they insert.
    _, start, _, anchor = trimmed("ab cd", [[0, 2], [0, 0], [3, 5], [0, 0]])
    assert start == [0, 0, 3, 3] and anchor == [0, 0, 3, 3]
    _, start, _, anchor = trimmed("ab cd", [[1, 2], [0, 0], [3, 5]])
    assert start == [1, 1, 3] and anchor == [1, 1, 3]
    _, start, end, _ = trimmed("ab", [[0, 0], [0, 2]])
    assert start == [0, 0] and end == [0, 2]


def test_several_spans_are_read_as_each_is_by_itself():
    """All of them are one text there, so nothing may reach from one into the next."""
    texts = ["I can't lose it", "  ", "\n", " the", "souvenir ", "a\n", "\u00a0b", "x y"]
    docs = [nlp.make_doc(text) for text in texts]
    read = DocTexts.of(docs)
    for name in [*TINY_TOKENIZERS, *REAL_TOKENIZERS]:
        tokenizer = get_tokenizer(name).backend_tokenizer
        for unit in WORDS:
            together = get_wordpieces([doc[:] for doc in docs], tokenizer, unit, read=read, owner=np.arange(len(docs)))
            assert (np.diff(together.word) >= 0).all()
            for s, (doc, first_token) in enumerate(zip(docs, read.tokens_of.starts)):
                own, alone = span_of(together, s), span_of(get_wordpieces([doc[:]], tokenizer, unit), 0)
                for name_of in ("ids", "start", "end", *(("prefix", "suffix") if alone.n else ())):
                    assert getattr(own, name_of).tolist() == getattr(alone, name_of).tolist(), (name, unit, doc.text)
                assert (own.token - first_token).tolist() == alone.token.tolist()
                assert partition(own.word) == partition(alone.word)
            assert len({*together.word}) == sum(len({*span_of(together, s).word}) for s in range(len(docs)))


def test_segments_that_share_a_piece_are_joined():
    starts = np.array([0, 2, 4, 6])
    offsets = np.array([[0, 1], [1, 5], [5, 6], [6, 8]])
    assert partition(joined_units(np.array([0, 0, 2, 3]), offsets[:, 0], offsets[:, 1], starts)) == [0, 0, 0, 1]


def test_words_that_a_unit_reaches_into_are_joined():
    """The second piece reaches into token 2, which has no piece of its own, and no piece lies in token 4."""
    word, first, last = np.array([0, 1, 2, 3]), np.array([0, 1, 3, 5]), np.array([0, 2, 3, 5])
    for bounds, expected in [
        ([(2, 4)], [0, 1, 1, 2]),
        ([(1, 3)], [0, 1, 2, 3]),
        ([(0, 2), (3, 6)], [0, 0, 1, 1]),
        ([(0, 2), (2, 4)], [0, 0, 0, 1]),  # they share a piece
        ([(4, 5), (-3, 1), (6, 9)], [0, 1, 2, 3]),  # nothing to read, or not here
    ]:
        assert partition(join_words(word, first, last, np.array(bounds))) == expected


def test_spans_that_overlap_are_one_unit():
    doc = nlp.make_doc("They live in Los Angeles  and New York")
    bounds = [(7, 9), (3, 6), (5, 7), (5, 5), (0, 2), (2, 3)]  # two of them share only the white space
    assert merge_spans([doc[start:end] for start, end in bounds]) == [(0, 2), (2, 3), (3, 7), (7, 9)]


def test_special_tokens_between_the_pieces_are_refused():
    tokenizer = deepcopy(get_tokenizer("wordpiece").backend_tokenizer)
    special = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP] $A", special_tokens=special)
    with pytest.raises(ValueError, match="special tokens between the pieces of '(re){50}'; only"):
        get_wordpieces([nlp.make_doc("re" * 150)[:]], tokenizer, "spacy")


@pytest.mark.parametrize("name", [*TINY_TOKENIZERS, *REAL_TOKENIZERS])
def test_special_tokens_are_those_that_the_tokenizer_puts_around_each_text(name):
    tokenizer = get_tokenizer(name).backend_tokenizer
    for texts in (["I can't believe that it left.", "", " \n", "[MASK] </s>"], ["", " "], []):
        encoded = Encoded.of(texts, tokenizer)
        for text, own in zip(texts, encoded.pieces_of):
            expected = tokenizer.encode(read_text(text)).ids
            assert [*encoded.prefix, *encoded.ids[own], *encoded.suffix] == expected


def test_pieces_without_a_pretoken_are_each_a_word():
    word_ids = np.array([-1, -1, 0, 0, -1, 0, 1, 2, 2])
    assert partition(pretoken_units(word_ids, np.zeros(9))) == [0, 1, 2, 2, 3, 4, 5, 6, 6]
    assert partition(pretoken_units(word_ids, np.arange(9) > 2)) == [0, 1, 2, 3, 4, 5, 6, 7, 7]  # of two spans


@pytest.mark.parametrize("name", TINY_TOKENIZERS)
def test_a_tokenizer_that_was_told_to_pad_or_to_cut_reads_whole_texts(name):
    texts = ["I can't believe that it left.", "", "It left."]
    expected = Encoded.of(texts, get_tokenizer(name).backend_tokenizer)
    tokenizer = deepcopy(get_tokenizer(name).backend_tokenizer)
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=50)
    assert Encoded.of(texts, tokenizer).ids.tolist() == expected.ids.tolist()
