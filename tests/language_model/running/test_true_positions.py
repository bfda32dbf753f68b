import numpy as np
import pytest
import spacy

from spacy_pll import PLLError, make_pipeline

from ... import reference
from ...architectures import worst_difference
from ...conftest import SENTENCES, build_transformer, get_tokenizer, scores


@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
def test_local_attention_is_by_the_positions_that_are_stood_for(model_folder, make_nlp, architecture):
    """A row has three times as many ids as its content, so a window of slots would be another one."""
    if architecture == "modernbert":
        folder = model_folder(architecture, global_attn_every_n_layers=2, local_attention=8)
    else:
        folder = model_folder(architecture, attn_implementation="eager")
    config = {"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(folder)}}
    nlp = spacy.blank("en")
    scorer = nlp.add_pipe("pll", config=config)
    scorer.model.load()
    assert worst_difference(scorer.model, ["word_l2r"]) <= 1e-5


@pytest.mark.parametrize("architecture", ["roberta", "ibert", "esm"])
@pytest.mark.parametrize("role", ["cls", "sep", "mask"])
def test_a_checkpoint_whose_padding_id_is_that_of_another_token(architecture, role):
    """A model counts its positions from there, whatever its configuration says later on."""
    tokenizer = get_tokenizer("byte-level")
    model = build_transformer(architecture, tokenizer, pad_token_id=getattr(tokenizer, f"{role}_token_id"))
    try:
        nlp = make_pipeline((model, tokenizer), mask_margin=1)
    except PLLError as error:
        assert role == "mask" and "cannot read all masks in one pass" in str(error)
        return
    for doc in nlp.pipe([SENTENCES[0], "a </s> b <s><pad> c"]):
        values, tokens = reference.score_by_states(doc, model, tokenizer, "word_l2r", "spacy", 1, 128)
        np.testing.assert_allclose(scores(doc), np.bincount(tokens, values, len(doc)), atol=1e-5)


def test_hooks_of_which_one_cannot_be_set_are_all_taken_away():
    tokenizer = get_tokenizer("wordpiece")
    model = build_transformer("bert", tokenizer)
    model.bert.embeddings.word_embeddings.register_forward_hook = None  # as a module that takes none
    model.bert.embeddings.token_dropout, model.bert.embeddings.mask_token_id = True, tokenizer.mask_token_id
    nlp = make_pipeline((model, tokenizer))

    def hooks():
        return [[*module._forward_hooks, *module._forward_pre_hooks] for module in model.modules()]

    before = hooks()
    with pytest.raises(PLLError, match="cannot read all masks in one pass"):
        nlp.get_pipe("pll").model.load(groups=True)
    assert hooks() == before
