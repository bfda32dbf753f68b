import pytest

from ...conftest import masked_model
from ...scoring.planned import make_batch


@pytest.mark.parametrize(("architecture", "expected"), [("bert", 128), ("roberta", 128), ("mpnet", 128)])
def test_max_length_is_the_lesser_of_tokenizer_and_positions(language_model, architecture, expected):
    assert language_model(architecture).load().max_length == expected


@pytest.mark.parametrize(
    ("architecture", "expected"), [("bert", 40), ("roberta", 38), ("xlm-roberta", 38), ("mpnet", 38)]
)
def test_positions_that_count_from_the_padding_id_are_allowed_for(model_folder, architecture, expected):
    # pad is entry 1 of the vocabulary, so two of the 40 positions are never used
    folder = model_folder(architecture, "wordpiece", positions=40)
    model = masked_model(str(folder))
    model.load()
    assert model.load().max_length == expected
    batch = make_batch([[7] * expected], [(0, expected - 1, 7)])
    assert model.log_probabilities(batch)[0].isfinite().all()
