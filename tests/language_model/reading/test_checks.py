"""Models that are refused."""

import json
import warnings
from contextlib import nullcontext
from copy import deepcopy

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from tokenizers.processors import TemplateProcessing

from spacy_pll import make_pipeline
from spacy_pll.language_model.causal import CausalLanguageModel
from spacy_pll.language_model.reading.checks import choose_another

from ...conftest import ARCHITECTURES, SMALL, build_transformer, get_tokenizer, masked_model
from .test_checkpoint import load


def test_checkpoint_without_head(tmp_path):
    tokenizer = get_tokenizer("wordpiece")
    hf.BertModel(hf.BertConfig(vocab_size=len(tokenizer), **SMALL)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="no trained weights for cls.predictions.*BertForMaskedLM, with its"):
        load(tmp_path)


@pytest.mark.parametrize("single", ["[CLS]:0 $A:1 [SEP]:1", "[CLS]:1 $A:0 [SEP]:0"])
def test_pieces_of_another_type(tmp_path, single):
    """A score was that of a text whose pieces are of the type 0."""
    tokenizer = deepcopy(get_tokenizer("wordpiece"))
    special = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=single, special_tokens=special)
    types = [int(kind) for kind in single if kind in "01"]
    for names, said in ((["input_ids"], None), (["input_ids", "token_type_ids"], r"types \(token_type_ids\) \[0, 1\]")):
        tokenizer.model_input_names = tokenizer.init_kwargs["model_input_names"] = names
        assert tokenizer("a").get("token_type_ids", types) == types
        for architecture in ("bert", "roberta"):  # RoBERTa has one type
            model = build_transformer(architecture, tokenizer, type_vocab_size=2 - (architecture == "roberta"))
            for saved in (model, tokenizer):
                saved.save_pretrained(tmp_path)
            for given in ((model, tokenizer), tmp_path):
                with pytest.raises(ValueError, match=said) if said and architecture == "bert" else nullcontext():
                    make_pipeline(given)


def save_with_config(folder, transformer, tokenizer, **entries):
    """Save a model, and change entries of its config.json."""
    for saved in (transformer, tokenizer):
        saved.save_pretrained(folder)
    settings = json.loads((folder / "config.json").read_text())
    assert settings.keys() >= entries.keys()
    (folder / "config.json").write_text(json.dumps({**settings, **entries}))
    return folder


@pytest.mark.parametrize("left", [1, 0])
@pytest.mark.parametrize(
    ("architecture", "entry"),
    [
        *((name, "num_hidden_layers") for name in ("bert", "roberta", "deberta-v2", "fnet")),
        *((name, "n_layers") for name in ("distilbert", "xlm")),
    ],
)
def test_layers_that_config_leaves_out(tmp_path, architecture, entry, left):
    if architecture == "deberta-v2" and hf.__version__ < "5":
        pytest.skip("transformers 4 does not say which weights of a DeBERTa are left over")
    tokenizer = get_tokenizer(ARCHITECTURES[architecture][3])
    save_with_config(tmp_path, build_transformer(architecture, tokenizer), tokenizer, **{entry: left})
    with pytest.raises(ValueError, match=r"has weights that its config.json leaves out: \S+\.1\.|: \S+\.0\."):
        load(tmp_path)


@pytest.mark.parametrize("with_head", [True, False])
def test_layers_that_the_config_of_a_left_to_right_model_leaves_out(tmp_path, with_head):
    """Some are saved without their head, whose weights are those of the embeddings: the names begin otherwise."""
    tokenizer = get_tokenizer("byte-level")
    config = hf.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=3, n_head=2)
    save_with_config(tmp_path, (hf.GPT2LMHeadModel if with_head else hf.GPT2Model)(config), tokenizer, n_layer=2)
    with pytest.raises(ValueError, match=r"has weights that its config.json leaves out: (transformer\.)?h\.2\."):
        CausalLanguageModel(str(tmp_path)).load()


def test_layers_are_missed_before_sizes_are_compared(tmp_path):
    """ESM's head for contacts has a weight for each layer."""
    tokenizer = get_tokenizer(ARCHITECTURES["esm"][3])
    save_with_config(tmp_path, build_transformer("esm", tokenizer), tokenizer, num_hidden_layers=1)
    with pytest.raises(ValueError, match=r"has weights that its config.json leaves out: esm\.encoder\.layer\.1\."):
        load(tmp_path)


def test_the_bias_of_a_layer_that_config_leaves_out(tmp_path):
    tokenizer = get_tokenizer("byte-level")
    transformer = build_transformer("modernbert", tokenizer, attention_bias=True)
    save_with_config(tmp_path, transformer, tokenizer, attention_bias=False)
    with pytest.raises(ValueError, match=r"leaves out: model.layers.0.attn.\S+bias, "):
        load(tmp_path)


@pytest.mark.parametrize(
    "part",
    [
        *("self.distance_embedding.weight", "self.query.lora_A.default.weight", "output.adapters.a.down.0.weight"),
        *("self.query.lora_A", "self.query.weight_scale", "self.query.weight_scale_inv"),
    ],
)
def test_a_part_that_the_layers_do_not_have(tmp_path, part):
    """Relative positions, which transformers 5 does not know, adapters that are not merged (PEFT's and loralib's), and
    what rounded weights are to be multiplied with.
    """
    tokenizer = get_tokenizer("wordpiece")
    save_with_config(tmp_path, build_transformer("bert", tokenizer), tokenizer)
    more = {f"bert.encoder.layer.0.attention.{part}": torch.ones(2, 32)}
    save_file({**load_file(tmp_path / "model.safetensors"), **more}, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=rf"leaves out: bert.encoder.layer.0.attention.{part}. .* merge them"):
        load(tmp_path)


def test_languages_may_be_left_over(tmp_path):
    tokenizer = get_tokenizer("unigram")
    transformer = build_transformer("xmod", tokenizer, languages=["en_XX", "de_DE"])
    load(save_with_config(tmp_path, transformer, tokenizer, languages=["en_XX"]))


@pytest.mark.skipif(hf.__version__ < "5", reason="transformers 4 has these positions")
@pytest.mark.parametrize("kind", ["relative_key", "relative_key_query", "none"])
def test_positions_that_transformers_takes_for_others(tmp_path, kind):
    tokenizer = get_tokenizer("wordpiece")
    transformer = build_transformer("bert", tokenizer, position_embedding_type=kind)
    save_with_config(tmp_path, transformer, tokenizer)
    with pytest.raises(ValueError, match=f"has the position_embedding_type '{kind}', .* 'transformers<5'"):
        load(tmp_path)
    load(tmp_path, transformer_config={"position_embedding_type": "absolute"})


def test_heads_and_poolers_may_be_left_over(tmp_path):
    tokenizer = get_tokenizer("wordpiece")
    transformer = hf.BertForPreTraining(build_transformer("bert", tokenizer).config)
    transformer.classifier = torch.nn.ModuleList([torch.nn.Linear(32, 2)])
    save_with_config(tmp_path, transformer, tokenizer)
    load(tmp_path)


def test_tokenizer_without_mask_token(tmp_path):
    tokenizer = get_tokenizer("wordpiece")
    build_transformer("bert", tokenizer).save_pretrained(tmp_path)
    hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, unk_token="[UNK]").save_pretrained(
        tmp_path
    )
    with pytest.raises(ValueError, match="has no mask token.*mask_token"):
        load(tmp_path)
    load(tmp_path, tokenizer_config={"mask_token": "[MASK]"})


def test_causal_checkpoint(tmp_path):
    tokenizer = get_tokenizer("byte-level")
    config = hf.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=1, n_head=2)
    hf.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="of type 'gpt2', .* no masked language model"):
        load(tmp_path)


def test_tokenizer_and_model_that_do_not_belong_together(tmp_path):
    build_transformer("bert", get_tokenizer("wordpiece"), vocab_size=50).save_pretrained(tmp_path)
    get_tokenizer("wordpiece").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="tokenizer of .* has [0-9]+ entries and the model 50"):
        load(tmp_path)


def test_gpu_asked_for_but_not_there(monkeypatch, model_folder):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    monkeypatch.setattr("spacy_pll.language_model.base.get_torch_default_device", lambda: torch.device("cuda", 0))
    with pytest.raises(RuntimeError, match="spaCy is set to use cuda:0, but PyTorch .* cannot.*require_cpu"):
        load(model_folder("bert"))


def test_code_that_comes_with_a_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="trust_remote_code.*never run"):
        masked_model("x", transformer_config={"trust_remote_code": True})
    marker = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"open({str(marker)!r}, 'w')")
    config = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.C", "AutoModelForMaskedLM": "evil.M"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    get_tokenizer("wordpiece").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="cannot be read.*not run here unasked"):
        load(tmp_path)
    assert not marker.exists()


def test_left_to_right_models_of_a_masked_class(tmp_path):
    tokenizer = get_tokenizer("wordpiece")
    decoder = hf.BertLMHeadModel(hf.BertConfig(vocab_size=len(tokenizer), is_decoder=True, **SMALL))
    for name, model in {"decoder": decoder, "xlm": build_transformer("xlm", tokenizer, causal=True)}.items():
        model.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
        with pytest.raises(ValueError, match="does not see what follows a piece.*'bert-base-cased'.*CausalLM.v1"):
            load(tmp_path / name)
    CausalLanguageModel(str(tmp_path / "decoder")).load()


def test_a_model_that_sees_both_sides_of_a_left_to_right_class(tmp_path):
    tokenizer = get_tokenizer("byte-level")
    config = hf.XLNetConfig(vocab_size=len(tokenizer), d_model=32, n_layer=2, n_head=2, d_inner=48)
    model = hf.XLNetLMHeadModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="sees what follows a piece.*MaskedLM.v1.*'gpt2'"):
        CausalLanguageModel(str(tmp_path)).load()


def test_weights_that_are_not_finite(tmp_path):
    tokenizer = get_tokenizer("wordpiece")
    transformer = build_transformer("bert", tokenizer)
    with torch.no_grad():
        transformer.bert.encoder.layer[0].output.dense.weight[0, 0] = float("nan")
    transformer.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="not finite, even for a short text.*damaged"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("ignored", "used"),
    [
        ({"do_lower_case": True}, {"model_max_length": 20}),  # a setting of other classes
        ({"cls_tokn": "[MASK]", "padding_side": "left"}, {"bos_token": "[UNK]"}),
        ({}, {"split_special_tokens": True, "use_fast": True, "mask_token": "[MASK]"}),
    ],
)
def test_settings_of_a_tokenizer_that_are_ignored(model_folder, ignored, used):
    model = masked_model(str(model_folder("bert")), tokenizer_config={**used, **ignored})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.load()
    said = [str(warning.message) for warning in caught if "does not change how" in str(warning.message)]
    assert len(said) == len(ignored) and all(any(f"{name!r}" in one for one in said) for name in ignored)


def test_weights_that_are_quantized_are_named():
    linear = torch.nn.Linear(2, 2)
    assert choose_another(torch.nn.Sequential(linear)) == "Choose a model of another architecture."
    linear.weight = torch.nn.Parameter(torch.zeros(2, 2, dtype=torch.int8), requires_grad=False)
    said = choose_another(torch.nn.Sequential(linear))
    assert "quantized" in said and "Linear" in said and "from which it was made" in said
