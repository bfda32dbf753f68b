"""Left-to-right models: log-likelihood with the beginning-of-sequence token prepended (K&I appendix B)."""

import numpy as np
import pytest
import spacy
import torch
import transformers as hf
from tokenizers import Tokenizer
from tokenizers.processors import ByteLevel, TemplateProcessing

from .conftest import PARAGRAPH, SENTENCES, get_tokenizer, scores
from .test_minicons import sentences

SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=140)
CAUSAL = {
    "gpt2": (hf.GPT2LMHeadModel, hf.GPT2Config, dict(n_embd=32, n_layer=2, n_head=2, n_positions=140)),
    "gpt-neox": (hf.GPTNeoXForCausalLM, hf.GPTNeoXConfig, {**SMALL, "intermediate_size": 48}),
    "opt": (hf.OPTForCausalLM, hf.OPTConfig, {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32}),
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig, {**SMALL, "intermediate_size": 48}),
}


def causal_tokenizer(name):
    """Without special tokens of its own, as GPT-2's, or with one at the beginning, as Llama's."""
    backend = Tokenizer.from_str(get_tokenizer("byte-level").backend_tokenizer.to_str())
    begin = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", backend.token_to_id("<s>"))])
    backend.post_processor = begin if name == "llama" else ByteLevel(trim_offsets=False)
    return hf.PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", model_max_length=128)


@pytest.fixture(scope="module")
def causal_folder(tmp_path_factory):
    def make(name, tokenizer=None):
        folder = tmp_path_factory.mktemp(name)
        tokenizer = tokenizer or causal_tokenizer(name)
        model_cls, config_cls, options = CAUSAL[name]
        torch.manual_seed(0)
        ids = dict(bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=None)
        model = model_cls(config_cls(vocab_size=len(tokenizer), **ids, **options))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 2:
                    parameter.add_(torch.randn(parameter.shape) * 0.1)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return make


def make_nlp(folder, **settings):
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-pll.CausalLM.v1", "name": str(folder)}
    nlp.add_pipe("pll", config={"model": model, "metrics": ["causal"], "keep_pieces": True, **settings})
    return nlp


@torch.inference_mode()
def brute_force(text, folder):
    tokenizer, model = hf.AutoTokenizer.from_pretrained(folder), hf.AutoModelForCausalLM.from_pretrained(folder).eval()
    own = tokenizer(text, add_special_tokens=False)["input_ids"]
    out = []
    for i, target in enumerate(own):
        logits = model(input_ids=torch.tensor([[tokenizer.bos_token_id, *own[:i]]])).logits[0, -1]
        out.append(logits.double().log_softmax(-1)[target].item())
    return out


@pytest.mark.parametrize("name", CAUSAL)
def test_scores_equal_the_brute_force_reference(causal_folder, name):
    folder = causal_folder(name)
    for doc in make_nlp(folder).pipe(["The hooligans can't travel.", "a", SENTENCES[0]]):
        expected = brute_force(doc.text, folder)
        np.testing.assert_allclose(doc._.pll_data["scores"]["causal"], expected, atol=1e-5)
        assert doc._.pll == pytest.approx(sum(expected), abs=1e-4)


@pytest.mark.parametrize("name", CAUSAL)
def test_one_forward_row_a_text_and_padding_changes_nothing(causal_folder, name):
    nlp = make_nlp(causal_folder(name))
    together = [scores(doc) for doc in nlp.pipe(SENTENCES)]
    scorer = nlp.get_pipe("pll")
    # OPT's head is fed by an inner module, past the hook: it runs at every position, and is right all the same.
    assert scorer.model.pads and scorer.model._gathers == (name != "opt")
    assert scorer.counts["rows"] == len(SENTENCES)
    for text, values in zip(SENTENCES, together):
        np.testing.assert_allclose(scores(nlp(text)), values, atol=1e-5)


def test_a_long_text_is_scored_whole(causal_folder):
    nlp = make_nlp(causal_folder("gpt2"))
    doc = nlp(PARAGRAPH * 5)
    tokenizer = nlp.get_pipe("pll").model.tokenizer
    assert doc._.pll_data["pieces"] == tokenizer.encode(doc.text).tokens[1:] and doc._.pll_pieces > 256


def test_round_trip(causal_folder, tmp_path):
    nlp = make_nlp(causal_folder("gpt2"))
    expected = scores(nlp(PARAGRAPH))
    nlp.to_disk(tmp_path)
    assert (scores(spacy.load(tmp_path)(PARAGRAPH)) == expected).all()
    # saved as it came: the prepended token is no part of the tokenizer
    saved = hf.AutoTokenizer.from_pretrained(tmp_path / "pll" / "model")
    assert saved("a").input_ids == causal_tokenizer("gpt2")("a").input_ids


def test_masked_models_and_metrics_are_refused(causal_folder, model_folder):
    with pytest.raises(ValueError, match="'word_l2r' needs a masked language model.*causal one.*of these: causal"):
        make_nlp(causal_folder("gpt2"), metrics=["word_l2r"])
    with pytest.raises(ValueError, match="'bert', a masked language model. Use spacy-pll.MaskedLM.v1"):
        make_nlp(model_folder("bert")).initialize()


def test_no_beginning_of_sequence_token(causal_folder, tmp_path):
    folder = causal_folder("gpt2")
    nameless = hf.PreTrainedTokenizerFast(tokenizer_object=causal_tokenizer("gpt2").backend_tokenizer)
    nameless.save_pretrained(folder)
    with pytest.raises(ValueError, match="no beginning-of-sequence token.*bos_token"):
        make_nlp(folder).initialize()


@pytest.mark.slow
def test_sums_equal_those_of_minicons(causal_folder):
    scorer = pytest.importorskip("minicons.scorer", reason="minicons is not installed: pip install 'spacy-pll[test]'")
    folder = causal_folder("gpt2", get_tokenizer("gpt2"))
    theirs = scorer.IncrementalLMScorer(str(folder), "cpu")
    texts = sentences(500)
    expected = []
    for start in range(0, len(texts), 50):
        batch = texts[start : start + 50]
        expected += theirs.sequence_score(batch, reduction=lambda x: x.sum(0).item(), bos_token=True)
    found = [doc._.pll for doc in make_nlp(folder).pipe(texts)]
    np.testing.assert_allclose(found, expected, atol=1e-4)
