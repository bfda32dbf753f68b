import inspect
import io
import math
from contextlib import redirect_stderr
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import agree, compare_margins, compare_pairs, minimal_pairs, perplexity, score
from spacy_pll.corpus.scored_texts import Scoring
from spacy_pll.settings import BATCH_SIZE
from spacy_pll.stream.known import KeptScores, TextSums, in_batches, score_places
from spacy_pll.stream.workers import Work

from ..conftest import change


def test_equal_texts_in_equal_contexts_are_scored_once(make_nlp):
    nlp = make_nlp("bert", metrics=["word_l2r", "original"])
    pairs = [("The traveler.", "", ""), ("", "", ""), ("The souvenir.", "It left. ", "")]
    pairs += pairs[:2]
    with redirect_stderr(io.StringIO()) as shown:
        found = score_places(nlp, pairs, Work(show_progress=True))
    assert list(found) == list(dict.fromkeys(pairs)) and "3/3 texts" in shown.getvalue()
    doc = nlp("The traveler.")
    assert found[pairs[0]].scores == pytest.approx((doc._.pll_word_l2r, doc._.pll_original))
    assert found[pairs[0]].pieces == doc._.pll_pieces
    span = nlp("It left. The souvenir.")[3:]
    assert found[pairs[2]].scores == pytest.approx((span._.pll_word_l2r, span._.pll_original), abs=1e-5)
    assert found["", "", ""].pieces == 0 and all(map(math.isnan, found["", "", ""].scores))


def test_per_piece():
    assert TextSums((-6.0, -3.0), 3).per_piece() == TextSums((-2.0, -1.0), 3)
    assert math.isnan(TextSums((math.nan,), 0).per_piece().scores[0])


def test_a_text_of_which_nothing_was_scored(make_nlp):
    nlp = make_nlp("bert")
    change(nlp.get_pipe("pll"), get_spans=lambda docs: [[] for _ in docs])
    nothing = pytest.raises(ValueError, match="Nothing was scored in the text 'The traveler.'")
    with nothing, pytest.warns(UserWarning, match="3 of 3 tokens .*'The traveler.'"):
        score_places(nlp, [("The traveler.", "", "")])


def test_targets_have_no_effect_and_that_is_said(make_nlp):
    expected = score_places(make_nlp("bert"), [("The traveler.", "", "")])
    with pytest.warns(UserWarning, match=r"The setting `targets` \('critical'\) has no effect here"):
        assert score_places(make_nlp("bert", targets="critical"), [("The traveler.", "", "")]) == expected


def test_batches_have_one_size():
    functions = [score, minimal_pairs, perplexity, agree, compare_margins, compare_pairs, Work, Scoring]
    defaults = {inspect.signature(function).parameters["batch_size"].default for function in functions}
    assert defaults == {BATCH_SIZE}


@given(st.lists(st.integers(1, 4), max_size=5), st.data())
def test_what_is_known_is_not_found_again_and_parts_have_whole_batches(sizes, data):
    """Of a run that goes on behind any batch, and of things that come behind others."""
    batches = [[(batch, number) for number in range(size)] for batch, size in enumerate(sizes)]
    things, kept = [thing for batch in batches for thing in batch], KeptScores()
    n_batches, first = data.draw(st.integers(0, len(sizes))), data.draw(st.integers(0, 2))
    n_known, asked, added = sum(sizes[:n_batches]), [], []
    kept.earlier = ["other"] * first + things[:n_known]
    kept.add = lambda results, ends_batch: added.append((*results, ends_batch))

    def find(n):
        asked.append(n)
        yield from in_batches(batches[n_batches:])

    assert list(kept.each(find, len(things), first)) == things and asked == [n_known]
    assert [thing for thing, _ in added] == things[n_known:]
    ends = [number for number, (_, ends_batch) in enumerate(added, n_known + 1) if ends_batch]
    assert ends == list(accumulate(sizes))[n_batches:]
