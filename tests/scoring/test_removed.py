"""Metrics whose rows lack pieces of their context, or have more masks: `left_context`, and others like it."""

import numpy as np
import pytest

from spacy_pll import PLLError, make_pipeline
from spacy_pll.metrics import LEFT_CONTEXT_MASKS, MaskRows, Metric, check_mask_rows, get_metric

from .. import reference
from ..conftest import PARAGRAPH, SENTENCES


def near_context(word):
    """Two pieces on each side of the target, and nothing else."""
    far = np.abs(np.arange(len(word)) - np.arange(len(word))[:, None])
    return MaskRows(np.arange(len(word)), far == 0, np.ones(len(word)), far > 2)


def rows_by_hand(metric, ids, kept, t, mask_id):
    """What is read while piece t is scored, and where it stands."""
    first, last = kept[0], kept[-1] + 1
    if metric == "left_context":
        return [*ids[: first + t], *[mask_id] * LEFT_CONTEXT_MASKS, *ids[last:]], first + t
    begin, end = max(0, t - 2), min(len(kept), t + 3)
    pieces = [mask_id if i == t else ids[kept[i]] for i in range(begin, end)]
    return [*ids[:first], *pieces, *ids[last:]], first + t - begin


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["left_context", "near_context"])
@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert", "deberta-v2", "modernbert-local"])
def test_scores_are_those_of_a_brute_force(make_nlp, model_folder, add_metric, architecture, metric):
    add_metric("near_context", near_context)
    nlp = make_nlp(architecture, metrics=[metric, "word_l2r"], keep_pieces=True)
    transformer, tokenizer = reference.load_model(model_folder(architecture))
    for doc in nlp.pipe(SENTENCES[:2]):
        ids, kept, *_ = reference.read(nlp.make_doc(doc.text), tokenizer, "spacy")
        expected = []
        for t in range(len(kept)):
            row, position = rows_by_hand(metric, ids, kept, t, tokenizer.mask_token_id)
            expected.append(reference.predict(transformer, row)[position, ids[kept[t]]].item())
        np.testing.assert_allclose(doc._.pll_data["scores"][metric], expected, atol=1e-4)
        alone = reference.score(doc, transformer, tokenizer, "word_l2r", "spacy")[0]
        np.testing.assert_allclose(doc._.pll_data["scores"]["word_l2r"], alone, atol=1e-4)


def test_windows_leave_room_for_the_masks(make_nlp, language_model):
    """A row of the last piece of a window has two masks more than the window has pieces."""
    nlp = make_nlp("bert", metrics=["left_context"], keep_pieces=True)
    text = PARAGRAPH * 4
    assert len(nlp(text)._.pll_data["ids"]) > 140 and np.isfinite(nlp(text)._.pll)
    added = {name: get_metric(name).n_added_masks for name in ("left_context", "sentence_l2r")}
    assert added == {"left_context": LEFT_CONTEXT_MASKS - 1, "sentence_l2r": 0}
    full = language_model("bert").load().max_length
    contexts = nlp.get_pipe("pll").predictor.tokenize([nlp.make_doc(text)]).contexts
    assert len(contexts) > 1 and contexts.lengths.max() <= full - 2


def test_what_follows_a_piece_changes_nothing(make_nlp):
    nlp = make_nlp("roberta", metrics=["left_context", "sentence_l2r"])
    short, long = nlp("The traveler lost the"), nlp("The traveler lost the souvenir.")
    assert [t._.pll for t in short] == pytest.approx([t._.pll for t in long[:4]], abs=1e-5)
    # Under `sentence_l2r`, the number of masks does.
    assert [t._.pll_sentence_l2r for t in short] != pytest.approx([t._.pll_sentence_l2r for t in long[:4]], abs=1e-3)


@pytest.mark.parametrize("setting", ["mask_spacing", "mask_margin"])
def test_passes_are_not_shared(make_nlp, add_metric, setting):
    add_metric("near_context", near_context)  # which does not say whether it masks within words
    with pytest.raises(PLLError, match=f"'near_context' does not mask each scored piece.*Leave out `{setting}`"):
        make_nlp("bert", metrics=["near_context"], **{setting: 1})("The traveler lost the souvenir.")
    with pytest.raises(PLLError, match="'left_context' does not mask within words"):
        make_nlp("bert", metrics=["left_context"], **{setting: 1})


def test_rows_that_contradict_themselves(make_nlp, add_metric):
    def wrong(word):
        return near_context(word)

    wrong.within_words = True
    add_metric("wrong", wrong)
    with pytest.raises(ValueError, match="says that it masks within words.*`within_words` to False"):
        make_nlp("bert", metrics=["wrong"])("The traveler lost the souvenir.")
    rows = near_context(np.arange(4))
    for removed in (rows.masked, np.ones((4, 4), dtype=bool)):
        with pytest.raises(ValueError, match="masks a piece, .* and removes it"):
            check_mask_rows(rows._replace(removed=removed), 4, Metric(wrong))
    for change in ({"removed": rows.removed[:, 1:]}, {"removed": rows.weight}, {"masked": rows.masked[:, 1:]}):
        with pytest.raises(ValueError, match="and None or the bool array `removed`"):
            check_mask_rows(rows._replace(**change), 4, Metric(wrong))


def test_the_built_in_model_reads_as_it_writes():
    """With the masks that BabyLM's reading task takes, and no text after them."""
    nlp = make_pipeline(None, metrics=["left_context", "sentence_l2r"])
    good, bad = nlp("The cats sleep."), nlp("The cats sleeps.")
    assert good._.pll > bad._.pll
