"""The one-pass model that comes with the package."""

import numpy as np
import pytest
import spacy
from safetensors.torch import load_file

from spacy_pll.language_model import BUILTIN, BUILTIN_ONE_PASS
from spacy_pll.language_model.card import card_languages
from spacy_pll.language_model.student_card import read_card
from spacy_pll.pipelines import PipelineSettings, describe_model, get_scorer, make_pipeline

TEXTS = [
    "The traveler lost the souvenir.",
    "The keys to the cabinet is on the table.",
    "In the morning, the children walked to school with their teacher, and it began to rain.",
    "She asked him whether he had ever seen anything like it before, but he did not answer.",
    "The committee will publish its report on the health of the rivers in the spring.",
]


def test_it_was_distilled_from_the_built_in_model():
    """If the built-in model has other weights, distil it again (docs/one-pass.md)."""
    card = read_card(str(BUILTIN_ONE_PASS))
    assert card.teacher["digest"] == describe_model(None)["digest"]
    assert (card.metric, card.words, card.mask_spacing) == ("word_l2r", "spacy", None)


def test_size_and_documents():
    assert (BUILTIN_ONE_PASS / "model.safetensors").stat().st_size <= 15_000_000
    assert {str(tensor.dtype) for tensor in load_file(BUILTIN_ONE_PASS / "model.safetensors").values()} == {
        "torch.float16"
    }
    assert (BUILTIN_ONE_PASS / "LICENSE").read_text() == (BUILTIN / "LICENSE").read_text()
    assert card_languages(str(BUILTIN_ONE_PASS), None) == {"en"}


def test_its_scores_are_close_to_exact_ones():
    exact, fast = make_pipeline(PipelineSettings()), make_pipeline(PipelineSettings(one_pass=True))
    docs = list(fast.pipe(TEXTS))
    assert get_scorer(fast).counts["rows"] == len(TEXTS)
    found, wanted = ([token._.pll for doc in some for token in doc] for some in (docs, exact.pipe(TEXTS)))
    assert np.corrcoef(found, wanted)[0, 1] > 0.95
    assert np.abs(np.subtract(found, wanted)).mean() < 1


def test_a_saved_pipeline_has_it(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.OnePass.v1"}})
    score = nlp(TEXTS[-1])._.pll
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path)(TEXTS[-1])._.pll == pytest.approx(score, abs=1e-4)
    assert read_card(str(tmp_path / "pll" / "model")) == read_card(str(BUILTIN_ONE_PASS))
