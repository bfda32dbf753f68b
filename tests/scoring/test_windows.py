import warnings

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_pll.scoring.windows import choose_windows, split_long_words, window_bounds
from spacy_pll.scoring.wordpieces import WORDS, get_wordpieces

from ..conftest import SENTENCES, get_tokenizer, odd_text
from ..reference import window_of, windows
from .reading import read

pytestmark = pytest.mark.core
nlp = spacy.blank("en")
words = st.lists(st.integers(1, 6), min_size=1, max_size=40).map(lambda sizes: np.repeat(np.arange(len(sizes)), sizes))


def test_windows_by_hand():
    assert window_bounds(np.arange(30), 12).tolist() == [[0, 12], [6, 18], [12, 24], [18, 30]]
    # Half a window on lies in the word of three; the window begins at the next word.
    assert window_bounds(np.repeat(range(5), [5, 3, 3, 1, 1]), 12).tolist() == [[0, 12], [8, 13]]
    # Half a window on, the word of eight that comes next would not fit in: the window begins later.
    assert window_bounds(np.array([*range(11), *[11] * 8]), 12).tolist() == [[0, 11], [7, 19]]


@given(word=words, size=st.integers(6, 30))
def test_windows_hold_every_word_whole(word, size):
    bounds = window_bounds(word, size)
    assert (bounds[:, 1] - bounds[:, 0] <= size).all()
    assert bounds[0, 0] == 0 and bounds[-1, 1] == len(word)
    for w in set(word):
        first, last = np.flatnonzero(word == w)[[0, -1]]
        assert any(start <= first and last < end for start, end in bounds)
    for start, end in bounds:  # cut between words
        assert start == 0 or word[start - 1] != word[start]
        assert end == len(word) or word[end - 1] != word[end]
    if len(word) <= size:
        assert bounds.tolist() == [[0, len(word)]]


@given(word=words, size=st.integers(6, 30))
@pytest.mark.parametrize("lookahead", [None, 0, 1, 3])
def test_the_chosen_window_has_the_most_context(word, size, lookahead):
    bounds = window_bounds(word, size)
    assert list(map(tuple, bounds.tolist())) == windows(word.tolist(), size)
    window, room = choose_windows(word, bounds, lookahead)
    for i, (w, r) in enumerate(zip(window, room)):
        start, end = bounds[w].tolist()
        assert (start, end) == window_of(i, word.tolist(), size, lookahead)
        first, last = np.flatnonzero(word == word[i])[[0, -1]]
        left, right = first - start, end - last - 1
        one, other = sorted((left, right)) if lookahead is None else (min(right, lookahead), left)
        assert r == one * 2**32 + other


@pytest.mark.parametrize(("lookahead", "expected"), [(None, 64), (0, 127), (1, 126)])
def test_what_never_sees_what_follows_has_half_a_window_before_it(lookahead, expected):
    word = np.arange(1000)
    bounds = window_bounds(word, 254)
    left = word - bounds[choose_windows(word, bounds, lookahead)[0], 0]
    assert left[:127].tolist() == list(range(127)) and left[127:].min() == expected


def test_overlapping_spans_score_a_token_once_where_it_has_most_before_it():
    doc = Doc(nlp.vocab, words=["The"] * 12)
    spans = [doc[4:], doc[:8]]
    tokenizer = get_tokenizer("wordpiece").backend_tokenizer
    for lookahead, n in [(0, 8), (1, 7)]:
        _, contexts, covered = read(doc, spans, tokenizer, max_length=20, lookahead=lookahead)
        assert [c.scored.sum() for c in contexts] == [12 - n, n] and covered.all()


@given(word=words, size=st.integers(6, 200))
def test_most_words_of_a_long_text_have_a_quarter_window_on_each_side(word, size):
    bounds = window_bounds(word, size)
    room = choose_windows(word, bounds)[1] // 2**32
    n, longest = len(word), np.bincount(word).max()
    inner = (np.arange(n) >= size) & (np.arange(n) < n - size)
    assert (room[inner] >= size // 4 - 2 * longest).all()


@given(word=words, size=st.integers(1, 8))
def test_long_words_are_split(word, size):
    split = split_long_words(word, size)
    assert np.bincount(split).max() <= size
    for i in range(1, len(word)):  # no words are joined, and words that fit are left whole
        if word[i] != word[i - 1]:
            assert split[i] != split[i - 1]
        elif (word == word[i]).sum() <= size:
            assert split[i] == split[i - 1]


def contexts_of(doc, spans, unit="spacy", wanted=None, max_length=20):
    tokenizer = get_tokenizer("wordpiece").backend_tokenizer
    return read(doc, spans, tokenizer, unit, wanted, max_length)


@given(text=odd_text, data=st.data())
def test_every_piece_of_a_doc_is_scored_once(text, data):
    doc = nlp.make_doc(text * 3)
    max_length = data.draw(st.integers(4, 40))
    if not len(doc):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of words that are longer than the window
        pieces, contexts, covered = contexts_of(doc, [doc[:]], data.draw(st.sampled_from(WORDS)), None, max_length)
    seen = np.zeros(pieces[0].n, dtype=int)
    for context in contexts:
        assert context.length <= max_length
        seen[context.offset + np.flatnonzero(context.scored)] += 1
    assert (seen == 1).all() and covered.all()


@given(text=odd_text, data=st.data())
def test_a_window_is_its_pieces_between_the_special_tokens(text, data):
    doc = nlp.make_doc(text * 3)
    if not len(doc):
        return
    cut = data.draw(st.integers(1, len(doc)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of words that are longer than the window
        pieces, contexts, _ = contexts_of(doc, [doc[:cut], doc[cut - 1 :]], max_length=data.draw(st.integers(4, 40)))
    for context in contexts:
        span, own = pieces[context.span], slice(context.offset, context.offset + len(context.word))
        assert context.ids.tolist() == [*span.prefix, *span.ids[own], *span.suffix], "not [CLS], its pieces and [SEP]"


def test_overlapping_spans_score_a_token_once_where_it_has_most_context():
    doc = Doc(nlp.vocab, words=["The"] * 12)
    spans = [doc[0:8], doc[4:12]]
    pieces, contexts, covered = contexts_of(doc, spans)
    scored_in = [{int(pieces[c.span].token[c.offset + i]) for i in np.flatnonzero(c.scored)} for c in contexts]
    assert scored_in == [set(range(6)), set(range(6, 12))]
    assert covered.all()


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_token_of_several_words_has_the_context_of_its_poorest_word(mirrored):
    words = [*["The"] * 10, "The-The-The", *["The"] * 12]
    poor, rich = (7, 23), (0, 15)  # 3 pieces before the token and 12 after; 10 before and 4 after
    if mirrored:
        words = words[::-1]
        poor, rich = ((len(words) - end, len(words) - start) for start, end in (poor, rich))
    doc = Doc(nlp.vocab, words=words)
    spans = [doc[start:end] for start, end in (poor, rich)]
    pieces, contexts, _ = contexts_of(doc, spans, "tokenizer", max_length=100)
    token = words.index("The-The-The")
    assert (pieces[0].token == token).sum() == 5 and len(set(pieces[0].word[pieces[0].token == token])) == 5
    for context in contexts:
        of_token = context.offset + np.flatnonzero(context.scored)
        assert (pieces[context.span].token[of_token] == token).sum() == (5 if context.span == 1 else 0)


def scored_letters(doc, spans, unit="spacy", max_length=100):
    """How often each character of a doc is scored."""
    tokenizer = get_tokenizer("wordpiece").backend_tokenizer
    pieces, contexts, _ = read(doc, spans, tokenizer, unit, max_length=max_length)
    times = np.zeros(len(doc.text), dtype=int)
    for context in contexts:
        for i in context.offset + np.flatnonzero(context.scored):
            times[pieces[context.span].start[i] : pieces[context.span].end[i]] += 1
    return times


@pytest.mark.parametrize("unit", WORDS)
@pytest.mark.parametrize(
    "cuts",
    [
        [(0, 5), (4, 7)],  # only the second holds both tokens, and gives "ca" less context than the first
        [(2, 6), (5, 11)],  # only the first does, and gives "n't" less
        [(5, 11), (2, 6)],
        [(0, 5), (5, 11)],
        [(0, 11), (4, 5)],
        [(0, 5), (4, 7), (5, 11)],
        [(4, 5)],
        [(4, 5), (5, 6)],
    ],
)
def test_spans_that_meet_inside_a_contraction_score_each_letter_once(cuts, unit):
    words = "We said that I ca n't go there at all .".split()
    doc = Doc(nlp.vocab, words=words, spaces=[word != "ca" for word in words])
    whole = get_wordpieces([doc[:]], get_tokenizer("wordpiece").backend_tokenizer, unit)
    inside = doc[5].idx
    assert ((whole.start < inside) & (inside < whole.end)).any()  # a piece reaches from "ca" into "n't"
    inside_some = np.zeros(len(doc.text), dtype=bool)
    for start, end in cuts:
        inside_some[doc[start:end].start_char : doc[start:end].end_char] = True
    expected = inside_some & [not character.isspace() for character in doc.text]
    assert (scored_letters(doc, [doc[start:end] for start, end in cuts], unit) == expected).all()


def test_a_contraction_goes_to_the_span_that_holds_it_whole_however_short_that_is():
    words = [*["We"] * 400, "ca", "n't", "go"]
    doc = Doc(nlp.vocab, words=words, spaces=[word != "ca" for word in words])
    times = scored_letters(doc, [doc[:401], doc[400:]], max_length=1000)
    assert (times == [not character.isspace() for character in doc.text]).all()


def test_of_equal_spans_the_earlier_one_is_scored():
    doc = nlp.make_doc(SENTENCES[0])
    _, [context], _ = contexts_of(doc, [doc[:], doc[:]], max_length=100)
    assert context.span == 0 and context.scored.all()


def test_a_span_without_pieces_does_not_end_the_others():
    doc = Doc(nlp.vocab, words=["\n", "The", "souvenir"], spaces=[False, True, False])
    _, [context], covered = contexts_of(doc, [doc[:1], doc[1:]], max_length=100)
    assert context.span == 1 and context.scored.all() and covered.all()
    _, contexts, covered = contexts_of(doc, [], max_length=100)
    assert contexts == [] and not covered.any() and len(covered) == len(doc)


def test_a_token_at_the_edge_of_two_spans_is_scored_in_the_longer_one():
    doc = nlp.make_doc(SENTENCES[0])
    _, [context], _ = contexts_of(doc, [doc[0:1], doc[:]], max_length=100)
    assert context.span == 1 and context.scored.all()


def test_tokens_that_stand_close_but_share_no_piece_may_be_scored_in_different_spans():
    words = "We said that we know well - known people".split()
    doc = Doc(nlp.vocab, words=words, spaces=[word not in ("well", "-") for word in words])
    pieces, [first, second], _ = contexts_of(doc, [doc[0:6], doc[5:9]], max_length=100)
    owner = {token: c.span for c in (first, second) for token in pieces[c.span].token[c.scored].tolist()}
    assert [owner[i] for i in range(9)] == [0] * 6 + [1] * 3


def test_only_wanted_tokens_are_scored_and_the_rest_is_context():
    doc = nlp.make_doc(SENTENCES[0])
    wanted = np.array([token.text == "souvenir" for token in doc])
    pieces, [context], covered = contexts_of(doc, [doc[:]], wanted=wanted, max_length=100)
    assert (covered == wanted).all()
    assert len(context.word) == pieces[0].n and (context.scored == wanted[pieces[0].token]).all()


@pytest.mark.parametrize(("architecture", "tokenizer"), [("roberta", "byte-level"), ("deberta-v2", "unigram")])
def test_white_space_before_a_target_is_of_the_text_before_it(make_nlp, architecture, tokenizer):
    """Some tokenizers have pieces of it, and one of them may lie at the first piece of the target."""
    nlp = make_nlp(architecture, tokenizer, targets="wanted")
    for before in ("", "  ", " \n ", "The   ", "The old   "):
        doc = nlp.make_doc(f"{before}cats.")
        doc.spans["wanted"] = [doc[-2:]]
        assert [token._.pll_pieces for token in nlp(doc)] == [None] * (len(doc) - 2) + [3, 1], before


def test_a_word_longer_than_the_window_is_scored_in_parts_with_a_warning():
    doc = Doc(nlp.vocab, words=["The", "re" * 45, "end"])
    with pytest.warns(UserWarning, match="token 1, '(re){25}', has more pieces than the model reads at once \\(18\\)"):
        pieces, contexts, _ = contexts_of(doc, [doc[:]])
    assert sum(context.scored.sum() for context in contexts) == pieces[0].n


def test_the_warning_names_the_first_token_of_a_long_word():
    words = ["The", *["a", "-"] * 20, "end"]
    doc = Doc(nlp.vocab, words=words, spaces=[word in ("The", "end") for word in words])
    with pytest.warns(UserWarning, match="token 1, 'a'"):
        contexts_of(doc, [doc[:]], unit="whitespace")


def test_a_word_as_long_as_the_window_is_scored_whole():
    doc = Doc(nlp.vocab, words=["The", "re" * 9])
    size = len(get_wordpieces([doc[1:]], get_tokenizer("wordpiece").backend_tokenizer, "spacy")) + 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pieces, contexts, _ = contexts_of(doc, [doc[:]], max_length=size)
    assert len(contexts) == 2 and pieces[0].n > size - 2
