import numpy as np
import pytest

from spacy_pll.language_model.architectures import MaskedLanguageModel
from spacy_pll.scoring.passes import Batch


@pytest.mark.parametrize(("architecture", "expected"), [("bert", 128), ("roberta", 128), ("mpnet", 128)])
def test_max_length_is_the_lesser_of_tokenizer_and_positions(language_model, architecture, expected):
    assert language_model(architecture).load().max_length == expected


@pytest.mark.parametrize(
    ("architecture", "expected"), [("bert", 40), ("roberta", 38), ("xlm-roberta", 38), ("mpnet", 38)]
)
def test_positions_that_count_from_the_padding_id_are_allowed_for(model_folder, architecture, expected):
    # pad is entry 1 of the vocabulary, so two of the 40 positions are never used
    folder = model_folder(architecture, "wordpiece", positions=40)
    model = MaskedLanguageModel(str(folder))
    model.load()
    assert model.load().max_length == expected
    ids = np.full((1, expected), 7)
    batch = Batch.of(ids, np.array([expected]), np.array([0]), np.array([expected - 1]), np.array([7]))
    assert model.log_probabilities(batch)[0].isfinite().all()
