"""What is drawn: of each text a part of its units, each as likely as any other."""

from collections import Counter, namedtuple
from functools import cache

import numpy as np
import pytest
import spacy

from spacy_pll.scoring.sample import draw_words
from spacy_pll.scoring.windows import get_contexts
from spacy_pll.scoring.wordpieces import DocTexts, get_wordpieces

from ..conftest import PARAGRAPH, SENTENCES, get_tokenizer

pytestmark = pytest.mark.core
Draw = namedtuple("Draw", "text n_drawn n_units unit pieces")
NLP = spacy.blank("en")


@cache
def read_all(texts, words, tokenizer):
    read = DocTexts.of([NLP.make_doc(text) for text in texts])
    spans, n = [doc[:] for doc in read.docs], np.arange(len(texts))
    pieces = get_wordpieces(spans, get_tokenizer(tokenizer).backend_tokenizer, words, (), read, n)
    return read, pieces, get_contexts([[span] for span in spans], pieces, read.tokens_of, None, 512)[0]


def draw(*texts, part=0.3, seed=0, words="spacy", tokenizer="wordpiece"):
    """Of each text the tokens, how each was drawn, and whether it is kept."""
    read, pieces, contexts = read_all(texts, words, tokenizer)
    draws, kept = draw_words(read, pieces, contexts, part, seed)
    draws = [one and Draw(*one) for one in draws]
    tokens = [[token.text for token in doc] for doc in read.docs]
    return [(of_doc, draws[own], kept[own].tolist()) for of_doc, own in zip(tokens, read.tokens_of)]


def units_of(one):
    """The numbers of the units that are drawn, and of all."""
    _, draws, kept = one
    return {d.unit for d, k in zip(draws, kept) if d and k}, {d.unit for d in draws if d}


@pytest.mark.parametrize("part", [0.01, 0.15, 0.5, 0.99, 1])
def test_how_many_are_drawn(part):
    for one in draw(*SENTENCES, PARAGRAPH, "A cat", "Cat", "", "   ", part=part):
        some, units = units_of(one)
        assert units == {*range(len(units))}
        assert len(some) == min(len(units), max(2, round(part * len(units))))
        assert all((d.n_drawn, d.n_units) == (len(some), len(units)) for d in one[1] if d)
        assert all(k for d, k in zip(*one[1:]) if d is None)  # white space has no wordpiece to draw


def test_tokens_that_share_a_piece_or_a_word_are_drawn_together():
    tokens, draws, _ = draw("I can't go.")[0]
    assert tokens[1:3] == ["ca", "n't"] and draws[1].unit == draws[2].unit
    assert [d.pieces for d in draws][1:3] == [1, 2]  # "can", "'", "t"
    tokens, draws, _ = draw("The cabinet, which is old.", words="whitespace")[0]
    assert tokens[1:3] == ["cabinet", ","] and draws[1].unit == draws[2].unit != draws[3].unit
    # A token is no smaller than a unit, though it has several words of the tokenizer.
    assert len({d.unit for d in draw("aa-bb-cc-dd", words="piece")[0][1]}) == len(NLP.make_doc("aa-bb-cc-dd"))


def test_the_draw_depends_on_the_text_and_the_seed_alone():
    alone, *_, among = (*draw(PARAGRAPH), *draw(*SENTENCES, PARAGRAPH))
    assert alone == among != draw(PARAGRAPH, seed=1)[0]
    ids = [next(filter(None, one[1])).text for one in draw(*SENTENCES, *SENTENCES[:1])]
    assert ids[0] == ids[-1] and len({*ids}) == len(SENTENCES) and max(ids) < 2**53


def test_this_draw_stays_the_same_in_later_versions():
    assert [t for t, k in zip(*draw(PARAGRAPH, part=0.1)[0][::2]) if k] == ["traveler", "the", ",", "Dr.", "It"]


def test_a_larger_part_has_the_smaller_one_and_other_tokenizers_draw_nearly_the_same():
    for seed in range(20):
        parts = [units_of(draw(PARAGRAPH, part=part, seed=seed)[0])[0] for part in (0.1, 0.3, 0.6)]
        assert parts[0] < parts[1] < parts[2]
        # The one joins "ca" and "n't", the other does not.
        kept = [np.array(draw(PARAGRAPH, seed=seed, tokenizer=name)[0][2]) for name in ("wordpiece", "byte-level")]
        assert (kept[0] & kept[1]).sum() >= 0.6 * kept[0].sum()


def test_each_unit_and_each_pair_is_as_likely_as_any_other():
    """Within five standard deviations of what a draw without replacement has."""
    n, once, twice = 3000, Counter(), Counter()
    for seed in range(n):
        some, units = units_of(draw("A cat sat on the old mat.", part=0.4, seed=seed)[0])
        once.update(some)
        twice.update((a, b) for a in some for b in some if a < b)
    k = len(some)
    for counts, p, of in (
        (once, k / len(units), len(units)),
        (twice, k * (k - 1) / (len(units) * (len(units) - 1)), len(units) * (len(units) - 1) // 2),
    ):
        assert len(counts) == of
        assert max(abs(count - n * p) for count in counts.values()) < 5 * (n * p * (1 - p)) ** 0.5
