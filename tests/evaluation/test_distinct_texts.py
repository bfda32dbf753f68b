import inspect
import math

import pytest

from spacy_pll import agree, compare_margins, compare_pairs, minimal_pairs, perplexity, score
from spacy_pll.corpus.scored_texts import Scoring
from spacy_pll.evaluation.distinct_texts import TextSums, score_distinct
from spacy_pll.settings import BATCH_SIZE


def test_equal_texts_are_scored_once(make_nlp, monkeypatch):
    nlp = make_nlp("bert", metrics=["word_l2r", "original"])
    names = nlp.get_pipe("pll").names
    seen = []

    def progress(docs, predictor, work, total, n_texts):
        seen.append((total, n_texts))
        return docs

    monkeypatch.setattr("spacy_pll.workers.with_progress", progress)
    texts = ["The traveler.", "", "The souvenir.", "The traveler.", ""]
    scores = score_distinct(nlp, names, texts, show_progress=True)
    work = sum(map(nlp.get_pipe("pll").predictor.estimate, dict.fromkeys(texts)))
    assert seen == [(work, 3)] and list(scores) == ["The traveler.", "", "The souvenir."]
    doc = nlp("The traveler.")
    assert scores["The traveler."].scores == pytest.approx((doc._.pll_word_l2r, doc._.pll_original))
    assert scores["The traveler."].pieces == doc._.pll_pieces
    assert scores[""].pieces == 0 and all(map(math.isnan, scores[""].scores))


def test_per_piece():
    assert TextSums((-6.0, -3.0), 3).per_piece() == ((-2.0, -1.0), 3)
    assert math.isnan(TextSums((math.nan,), 0).per_piece().scores[0])


@pytest.mark.filterwarnings("ignore:A doc has no spans under `targets`")
def test_a_text_of_which_nothing_was_scored(make_nlp):
    nlp = make_nlp("bert", targets="critical")
    with pytest.raises(ValueError, match="Nothing was scored in the text 'The traveler.'.*`targets`"):
        score_distinct(nlp, nlp.get_pipe("pll").names, ["The traveler."])


def test_the_component_is_chosen_by_its_name_and_batches_have_one_size(make_nlp):
    nlp = make_nlp("roberta", nlp=make_nlp("bert"), name="second", attr="other", metrics=["original"])
    alone = make_nlp("roberta", attr="alone", metrics=["original"])
    pairs = [("The cats sleep.", "The cats sleeps.")]
    texts = ["The cats sleep.", "A dog."]
    assert list(minimal_pairs(nlp, pairs, component="second").scores) == ["original"]
    assert perplexity(nlp, texts, component="second") == perplexity(alone, texts)
    assert compare_margins(nlp, texts, (0,), component="second").comparisons[0].scorers[0].metric == "original"
    functions = [score, minimal_pairs, perplexity, agree, compare_margins, compare_pairs, score_distinct, Scoring]
    defaults = {inspect.signature(function).parameters["batch_size"].default for function in functions}
    assert defaults == {BATCH_SIZE}
