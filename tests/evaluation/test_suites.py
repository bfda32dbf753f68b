import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import registry

from spacy_pll.component import get_scorer
from spacy_pll.errors import InputError, PLLError
from spacy_pll.evaluation.suites import (
    Measure,
    Suite,
    SuiteText,
    pll_readers,
    read_suite,
    score_suite,
)


class Lengths(Suite):
    """Of another package."""

    def __init__(self, path, sign=1):
        with open(path, encoding="utf8") as file:
            self.texts = [
                SuiteText(line.strip(), parts=[(0, 3), (4, len(line.strip()))]) for line in file if line.strip()
            ]
        self.sign = sign

    def measures(self, scores, per_piece):
        return [
            Measure("pieces", "overall", len(scores), self.sign * sum(part.pieces for one in scores for part in one))
        ]

    def rows(self, scores):
        for one in scores:
            for part in one:
                yield part._asdict()


def test_a_reader_of_another_package(tmp_path, monkeypatch):
    pll_readers.register("lengths", func=Lengths)
    monkeypatch.setattr(registry, "pll_readers", pll_readers)
    (tmp_path / "a.txt").write_text("The cats sleep.\nThe dogs bark.\n")
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"metrics": ["original", "word_l2r"]})
    found = score_suite(nlp, read_suite(str(tmp_path / "a.txt"), "lengths", sign=-1))
    assert [(one.scorer, one.value < 0) for one in found.measures()] == [("original", True), ("word_l2r", True)]
    doc = nlp("The cats sleep.")
    for metric in ("original", "word_l2r"):
        scores = [part.score for part in found.scores[metric][0]]
        attribute = f"pll_{metric}"
        assert scores == pytest.approx([doc[0]._.get(attribute), doc[1:]._.get(attribute)], abs=1e-5)
    assert len(list(found.rows())) == 2 * 4
    with pytest.raises(PLLError, match="There is no `reader` 'nonesuch'. These are there: acceptability, .*lengths"):
        read_suite("x", "nonesuch")
    with pytest.raises(PLLError, match="'stereoset' does not take what is given.*sentence"):
        read_suite("x", "stereoset", sentence="s")
    (tmp_path / "b.txt").write_text("\n")
    with pytest.raises(InputError, match="There is no text in"):
        read_suite(str(tmp_path / "b.txt"), "lengths")


def test_an_error_in_a_reader_is_shown_as_it_is(monkeypatch):
    def broken(path):
        return len(None)

    monkeypatch.setattr(pll_readers, "get_all", lambda: {"broken": broken})
    with pytest.raises(TypeError, match=r"object of type 'NoneType' has no len\(\)"):
        read_suite("x", "broken")


class Parts(Suite):
    """Texts with parts."""

    def __init__(self, *texts):
        self.texts = texts

    def measures(self, scores, per_piece):
        return []

    def rows(self, scores):
        yield from ()


CONTEXTS = ["", "She's here.", "One. "]
TEXTS = ["I can't see.", "They don't  know Mr. O'Neill's souvenir. ", " unbelievably\u200b \u00a0", "don't", " "]


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
    found = score_suite(nlp, Parts(SuiteText(text, context, parts), SuiteText(text, context)))
    for scores in found.scores.values():
        of_parts, [whole] = scores
        assert sum(one.pieces for one in of_parts) == whole.pieces
        assert sum(one.score for one in of_parts) == pytest.approx(whole.score, abs=1e-6)
    if not context and text.strip() == text:
        doc = nlp(text)
        for part, (start, end) in zip(found.scores["word_l2r"][0], parts):
            record = doc._.pll_data
            own = [s for s, at in zip(record["scores"]["word_l2r"], record["start"]) if start <= at < end]
            assert (part.pieces, part.score) == (len(own), pytest.approx(sum(own), abs=1e-4))


def test_a_context_that_would_not_be_read_is_refused(make_nlp):
    nlp = make_nlp("bert", get_spans={"@span_getters": "spacy-pll.sent_spans.v1"})
    nlp.add_pipe("sentencizer", first=True)
    with pytest.raises(PLLError, match="reads each sentence alone.*Set `spans` to 'doc', or leave it out"):
        score_suite(nlp, Parts(SuiteText("It left."), SuiteText("It left.", "He ran.")))
    assert score_suite(nlp, Parts(SuiteText("It left."))).scores
    counts = get_scorer(nlp).predictor.counts
    assert counts.passes == 0


@pytest.mark.parametrize("part", [(-1, 3), (0, 13), (4, 2)])
def test_a_part_outside_of_its_text(several, part):
    nlp = several[0]
    before = get_scorer(nlp).predictor.counts.passes
    with pytest.raises(InputError, match="does not lie in the text .* which ends at 12"):
        score_suite(nlp, Parts(SuiteText("The souvenir."), SuiteText("I can't see.", parts=[(0, 2), part])))
    assert get_scorer(nlp).predictor.counts.passes == before
