import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import InputError, PLLError, Suite, get_scorer, score_suite
from spacy_pll.stream.contexts import TextInContext


class Parts(Suite):
    """Texts with parts."""

    def __init__(self, *texts):
        self.texts = texts

    def measurements(self, scores):
        return []

    def rows(self, scores):
        yield from ()


CONTEXTS = ["", "She's here.", "One. "]
TEXTS = ["I can't see.", "They don't  know Mr. O'Neill's souvenir. ", " unbelievably\u200b \u00a0", "don't"]


@pytest.fixture(scope="module")
def several(model_folder):
    def make(architecture):
        nlp = spacy.blank("en")
        model = {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(model_folder(architecture))}
        nlp.add_pipe("pll", config={"model": model, "metrics": ["word_l2r", "original"], "keep_pieces": True})
        return nlp

    return [make("bert"), make("roberta"), make("xlm-roberta")]


@given(st.integers(0, 2), st.sampled_from(CONTEXTS), st.sampled_from(TEXTS), st.data())
def test_each_wordpiece_is_in_one_part(several, which, context, text, data):
    """Wherever the text is cut, the parts have the sum of the whole, and the pieces that begin there."""
    ends = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    parts = list(zip([0, *ends], [*ends, len(text)]))
    nlp = several[which]
    found = score_suite(nlp, Parts(TextInContext(text, context, parts=parts), TextInContext(text, context)))
    for scores in found.scores.values():
        of_parts, whole = scores.of_text
        assert scores.pieces[of_parts].sum() == scores.pieces[whole]
        assert scores.sums[of_parts].sum() == pytest.approx(scores.sums[whole], abs=1e-6)
    if not context and text.strip() == text:
        doc = nlp(text)
        scores = found.scores["word_l2r"]
        for score, pieces, (start, end) in zip(scores.sums, scores.pieces, parts):
            record = doc._.pll_data
            own = [s for s, at in zip(record["scores"]["word_l2r"], record["start"]) if start <= at < end]
            assert (pieces, score) == (len(own), pytest.approx(sum(own), abs=1e-4))


def test_a_text_without_a_wordpiece_is_an_error(several):
    """It had 0.0, the best score there is."""
    with pytest.raises(InputError, match="has no wordpiece of its own"):
        score_suite(several[0], Parts(TextInContext("The souvenir."), TextInContext(" ")))


def test_a_context_that_would_not_be_read_is_refused(make_nlp):
    nlp = make_nlp("bert", get_spans={"@span_getters": "spacy-pll.sent_spans.v1"})
    nlp.add_pipe("sentencizer", first=True)
    with pytest.raises(PLLError, match="reads each sentence alone.*Set `spans` to 'doc', or leave it out"):
        score_suite(nlp, Parts(TextInContext("It left."), TextInContext("It left.", "He ran.")))
    assert score_suite(nlp, Parts(TextInContext("It left."))).scores
    counts = get_scorer(nlp).predictor.counts
    assert counts.passes == 0


@pytest.mark.parametrize("part", [(-1, 3), (0, 13), (4, 2)])
def test_a_part_outside_of_its_text(several, part):
    nlp = several[0]
    before = get_scorer(nlp).predictor.counts.passes
    with pytest.raises(InputError, match="does not lie in the text .* which ends at 12"):
        score_suite(nlp, Parts(TextInContext("The souvenir."), TextInContext("I can't see.", parts=[(0, 2), part])))
    assert get_scorer(nlp).predictor.counts.passes == before
