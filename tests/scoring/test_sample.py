"""What is drawn: of each text a part of its units, each as likely as any other."""

from collections import Counter, namedtuple
from functools import cache
from itertools import compress

import numpy as np
import pytest
import spacy

from spacy_pll.scoring.sample import draw_words
from spacy_pll.scoring.windows import get_contexts
from spacy_pll.scoring.wordpieces import DocTexts, get_wordpieces

from ..conftest import PARAGRAPH, SENTENCES, get_tokenizer

pytestmark = pytest.mark.core
OneText = namedtuple("OneText", "tokens text n_drawn n_units unit is_drawn")
NLP = spacy.blank("en")


@cache
def read_all(texts, words, tokenizer):
    docs = [NLP.make_doc(text) for text in texts]
    read = DocTexts.of(docs)
    spans, n = [doc[:] for doc in docs], np.arange(len(texts))
    pieces = get_wordpieces(spans, get_tokenizer(tokenizer).backend_tokenizer, words, (), read, n)
    return docs, read, pieces, get_contexts([[span] for span in spans], pieces, read.tokens_of, None, 512)[0]


def draw(*texts, part=0.3, seed=0, words="spacy", tokenizer="wordpiece"):
    """Of each text the tokens, its draw, and of each token the unit, and whether it is kept."""
    docs, read, pieces, contexts = read_all(texts, words, tokenizer)
    drawn = draw_words(read, pieces, contexts, part, seed)
    assert len(drawn.draws) == len(texts)
    return [
        OneText([token.text for token in doc], *of_text, drawn.unit[own].tolist(), drawn.is_drawn[own].tolist())
        for doc, of_text, own in zip(docs, drawn.draws, read.tokens_of)
    ]


def units_of(one):
    """The numbers of the units that are drawn, and of all."""
    return {unit for unit, kept in zip(one.unit, one.is_drawn) if kept and unit >= 0}, {*one.unit} - {-1}


@pytest.mark.parametrize("part", [0.01, 0.15, 0.5, 0.99, 1])
def test_how_many_are_drawn(part):
    for one in draw(*SENTENCES, PARAGRAPH, "A cat", "Cat", "", "   ", part=part):
        some, units = units_of(one)
        assert units == {*range(len(units))}
        assert len(some) == min(len(units), max(2, round(part * len(units))))
        assert (one.n_drawn, one.n_units) == (len(some), len(units))
        # All tokens of a unit are drawn, or none; white space has no wordpiece to draw.
        assert one.is_drawn == [unit == -1 or unit in some for unit in one.unit]
        assert [unit == -1 for unit in one.unit] == [token.isspace() for token in one.tokens]


def test_tokens_that_share_a_piece_or_a_word_are_drawn_together():
    one = draw("I can't go.")[0]
    assert one.tokens[1:3] == ["ca", "n't"] and one.unit[1] == one.unit[2]  # "can", "'", "t"
    one = draw("The cabinet, which is old.", words="whitespace")[0]
    assert one.tokens[1:3] == ["cabinet", ","] and one.unit[1] == one.unit[2] != one.unit[3]
    # A token is no smaller than a unit, though it has several words of the tokenizer.
    assert len({*draw("aa-bb-cc-dd", words="piece")[0].unit}) == len(NLP.make_doc("aa-bb-cc-dd"))


def test_the_draw_depends_on_the_text_and_the_seed_alone():
    alone, *_, among = (*draw(PARAGRAPH), *draw(*SENTENCES, PARAGRAPH))
    assert alone == among != draw(PARAGRAPH, seed=1)[0]
    ids = [one.text for one in draw(*SENTENCES, *SENTENCES[:1])]
    assert ids[0] == ids[-1] and len({*ids}) == len(SENTENCES) and max(ids) < 2**53


def test_this_draw_stays_the_same_in_later_versions():
    [one] = draw(PARAGRAPH, part=0.1)
    assert [*compress(one.tokens, one.is_drawn)] == ["traveler", "the", ",", "Dr.", "It"]


def test_a_larger_part_has_the_smaller_one_and_other_tokenizers_draw_nearly_the_same():
    for seed in range(20):
        parts = [units_of(draw(PARAGRAPH, part=part, seed=seed)[0])[0] for part in (0.1, 0.3, 0.6)]
        assert parts[0] < parts[1] < parts[2]
        # The one joins "ca" and "n't", the other does not.
        both = (draw(PARAGRAPH, seed=seed, tokenizer=name)[0] for name in ("wordpiece", "byte-level"))
        kept = [np.array(one.is_drawn) for one in both]
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
