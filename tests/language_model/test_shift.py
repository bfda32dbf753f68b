"""Masked next-token prediction: a piece is masked, and predicted one position before its mask."""

import numpy as np
import pytest
import spacy

from spacy_pll import PLLError

from .. import reference
from ..conftest import PARAGRAPH, SENTENCES, get_tokenizer


def pipeline(folder, shift=1, **config):
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(folder), "shift": shift}
    nlp.add_pipe("pll", config={"model": model, "keep_pieces": True, **config})
    return nlp


@pytest.mark.parametrize(
    "architecture",
    [
        "bert",
        "roberta",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("albert", "deberta-v2", "modernbert-local", "xlm")),
    ],
)
def test_scores_are_those_of_a_brute_force(model_folder, architecture):
    """With the special token before the text, which predicts its first piece."""
    folder, metrics = model_folder(architecture), ["word_l2r", "original", "whole_word", "sentence_l2r"]
    transformer, tokenizer = reference.load_model(folder)
    for doc in pipeline(folder, metrics=metrics).pipe(SENTENCES):
        ids, kept, word, _ = reference.read(doc, tokenizer, "spacy")
        for metric in metrics:
            expected = []
            for t, position in enumerate(kept):
                hidden = {kept[i] for i in range(len(kept)) if reference.is_masked(metric, i, t, word)}
                row = [tokenizer.mask_token_id if i in hidden else one for i, one in enumerate(ids)]
                expected.append(reference.predict(transformer, tuple(row))[position - 1, ids[position]].item())
            np.testing.assert_allclose(doc._.pll_data["scores"][metric], expected, atol=1e-4)


def test_it_is_saved(model_folder, tmp_path):
    nlp = pipeline(model_folder())
    nlp.to_disk(tmp_path / "saved")
    text = SENTENCES[0]
    assert spacy.load(tmp_path / "saved")(text)._.pll == pytest.approx(nlp(text)._.pll)
    assert pipeline(model_folder(), shift=0)(text)._.pll != pytest.approx(nlp(text)._.pll)
    assert np.isfinite(nlp(PARAGRAPH * 4)._.pll)  # in windows


def test_all_masks_in_one_pass_are_refused(model_folder):
    """In a group, what predicts a piece is not before it."""
    with pytest.raises(PLLError, match="cannot read all masks in one pass"):
        pipeline(model_folder(), mask_margin=1)(SENTENCES[0])
    near, exact = (pipeline(model_folder(), **more)(SENTENCES[0])._.pll for more in ({"mask_spacing": 500}, {}))
    assert near == pytest.approx(exact, abs=1e-4)


def test_what_it_needs(model_folder, tmp_path):
    with pytest.raises(ValueError, match="`shift` must be 0, or 1 .*It is 2"):
        pipeline(model_folder(), shift=2)
    tokenizer = get_tokenizer("wordpiece")
    backend = type(tokenizer.backend_tokenizer).from_str(tokenizer.backend_tokenizer.to_str())
    named = {name: token for name, token in tokenizer.special_tokens_map.items() if name != "cls_token"}
    plain = type(tokenizer)(tokenizer_object=backend, **named)
    from tokenizers.processors import TemplateProcessing

    plain.backend_tokenizer.post_processor = TemplateProcessing(
        single="$A [SEP]", special_tokens=[("[SEP]", tokenizer.sep_token_id)]
    )
    reference.load_model(model_folder())[0].save_pretrained(tmp_path)
    plain.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="no special token before a text.*`shift=1`"):
        pipeline(tmp_path)(SENTENCES[0])
