"""Models that are in memory already: scored as they are, and left as they were."""

import gc
from copy import deepcopy
from functools import partial
from types import MethodType
from weakref import ref

import numpy as np
import pytest
import spacy
import torch
import transformers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Sequence, Split
from tokenizers.processors import TemplateProcessing

from spacy_pll import PLLError, get_scorer, make_pipeline, score
from spacy_pll.language_model.in_memory import use_loaded

from .. import reference
from ..conftest import ARCHITECTURES, SENTENCES, build_transformer, get_tokenizer, scores

TEXT = SENTENCES[0]


def build(architecture="bert", **more):
    tokenizer = deepcopy(get_tokenizer(ARCHITECTURES[architecture][3]))  # other tests use the same one
    return build_transformer(architecture, tokenizer, **more), tokenizer


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["bert", "roberta", "deberta-v2", "mpnet", "roformer", "esm"])
def test_the_scores_are_those_of_the_saved_model_and_nothing_is_changed(architecture, make_nlp):
    model, tokenizer = build(architecture)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    inputs = tokenizer([TEXT], return_tensors="pt")
    outputs = model(inputs["input_ids"]).logits  # some take no `token_type_ids`
    for margin in (None, 1):
        nlp = make_pipeline((model, tokenizer), mask_margin=margin)
        expected = make_nlp(architecture, mask_margin=margin, attr="saved")(TEXT)
        assert scores(nlp(TEXT)).tolist() == scores(expected, "saved").tolist()
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert torch.equal(model(inputs["input_ids"]).logits, outputs)
    tokenizer([TEXT], truncation=True, max_length=3)
    assert nlp(TEXT)._.pll_pieces == expected._.saved_pieces  # the tokenizer is a copy


@pytest.mark.parametrize("architecture", ["bert", "esm", "roformer"])
def test_a_model_is_scored_between_steps_of_training(architecture):
    model, tokenizer = build(architecture)
    nlp = make_pipeline((model, tokenizer))
    before = nlp(TEXT)._.pll
    modes = []
    model.base_model.register_forward_hook(lambda *_: modes.append(torch.is_inference_mode_enabled()))
    for _ in range(2):
        model.train()
        inputs = tokenizer([TEXT], return_tensors="pt")
        model(input_ids=inputs["input_ids"], labels=inputs["input_ids"]).loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * (parameter.grad if parameter.grad is not None else 0)
        doc = nlp(TEXT)
        assert model.training and doc._.pll != before
        before = doc._.pll
    # What a model keeps from a pass in inference mode could not be used in training.
    assert modes and not any(modes)
    assert scores(doc).tolist() == scores(make_pipeline((model, tokenizer))(TEXT)).tolist()


@pytest.mark.parametrize("margin", [None, 1])
@pytest.mark.parametrize("mode", ["training", "evaluation", "mixed"])
def test_each_part_has_the_mode_that_it_had(mode, margin):
    model, tokenizer = build()
    model.train(mode == "training")
    if mode == "mixed":  # as where a part is frozen
        model.bert.encoder.layer[0].train()
        model.cls.training = True
    expected = {name: module.training for name, module in model.named_modules()}
    pair = deepcopy(model).eval(), tokenizer

    def modes():
        return {name: module.training for name, module in model.named_modules()}

    nlp = make_pipeline((model, tokenizer), mask_margin=margin)
    assert modes() == expected
    # Without dropout, whatever the mode.
    assert scores(nlp(TEXT)).tolist() == scores(make_pipeline(pair, mask_margin=margin)(TEXT)).tolist()
    assert modes() == expected
    with pytest.raises(ValueError, match="broken"):  # in the trial of a model that may have changed
        with model.cls.register_forward_pre_hook(lambda *_: (_ for _ in ()).throw(RuntimeError("broken"))):
            nlp("Another one.")
    assert modes() == expected


def test_a_thread_that_is_done_leaves_the_mode_to_one_that_is_not():
    model, tokenizer = build()
    model.train()
    first, second = (make_pipeline((model, tokenizer)) for _ in range(2))
    seen = []

    def score_again(*_):
        if not seen:
            seen.append(None)
            second("Another one.")
            seen.append(model.cls.training)

    with model.bert.register_forward_pre_hook(score_again):
        first(TEXT)
    assert seen == [None, False] and model.training


def n_hooks(model):
    replaced = {"get_rel_pos", "compute_position_bias"}
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks) + len(replaced & vars(module).keys())
        for module in model.modules()
    )


def test_a_model_that_is_refused_has_no_hooks():
    """Also as long as the error is kept, as a notebook does."""
    model, tokenizer = build("bert", is_decoder=True)
    with pytest.raises(ValueError, match="does not see what follows a piece") as caught:
        make_pipeline((model, tokenizer))
    assert n_hooks(model) == 0 and caught


@pytest.mark.parametrize(
    "architecture",
    ["bert", *(pytest.param(name, marks=pytest.mark.slow) for name in ("roformer", "deberta-v2", "mpnet"))],
)
def test_the_hooks_go_with_the_pipeline(architecture):
    model, tokenizer = build(architecture)

    def count():
        gc.collect()
        return n_hooks(model)

    assert count() == 0
    nlp = make_pipeline((model, tokenizer), mask_margin=0)
    with_one = count()
    assert with_one > 0
    for _ in range(2):
        score([TEXT], (model, tokenizer), mask_margin=0)
    assert count() == with_one
    expected = nlp(TEXT)._.pll
    score([TEXT], (model, tokenizer))
    gc.collect()
    assert nlp(TEXT)._.pll == expected
    del nlp
    assert count() == 0


def test_two_pipelines_with_one_model():
    model, tokenizer = build()
    first, second = (make_pipeline((model, tokenizer), words=words) for words in ("spacy", "tokenizer"))
    expected = first(TEXT)._.pll
    second(TEXT)
    assert first(TEXT)._.pll == expected


def fused_step(model, tokenizer):
    """The Trainer's default. It changes weights without a new `Tensor._version`."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
    inputs = tokenizer([TEXT], return_tensors="pt")
    model(input_ids=inputs["input_ids"], labels=inputs["input_ids"]).loss.backward()
    optimizer.step()
    optimizer.zero_grad()


@torch.no_grad()
def copied_into_data(model, tokenizer):
    for weight in model.parameters():
        weight.data.copy_(weight + 0.05 * torch.randn_like(weight))


def other_data(model, tokenizer):
    for weight in model.parameters():
        weight.data = weight.data + 0.05 * torch.randn_like(weight)


def more_pieces(model, tokenizer):
    """Those of the text, so that it is divided in another way."""
    assert tokenizer.add_tokens(["traveler lost", "souvenir", f"the{len(tokenizer)}"])
    model.resize_token_embeddings(len(tokenizer))


CHANGES = [
    *(fused_step, copied_into_data, other_data, more_pieces),
    *(lambda model, tokenizer, dtype=dtype: model.to(dtype) for dtype in (torch.bfloat16, torch.float16)),
    lambda model, tokenizer: model.float(),
    lambda model, tokenizer: model.train(not model.training),
]


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 10)
@given(st.sampled_from([torch.float32, torch.bfloat16]), st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3))
@example(torch.bfloat16, [fused_step])
@example(torch.bfloat16, [copied_into_data])
@example(torch.bfloat16, [more_pieces, fused_step])
@example(torch.float32, [more_pieces])
@example(torch.float32, [CHANGES[4], fused_step])
def test_whatever_is_done_to_a_model_is_followed(dtype, changes):
    model, tokenizer = build()
    model.to(dtype)
    nlp = make_pipeline((model, tokenizer))
    before = nlp(TEXT)._.pll
    for change in changes:
        change(model, tokenizer)
        expected = make_pipeline(deepcopy((model, tokenizer)))(TEXT)
        assert scores(*nlp.pipe([TEXT])).tolist() == scores(expected).tolist()
    change(model, tokenizer)
    expected = make_pipeline(deepcopy((model, tokenizer)))(TEXT)
    saved = spacy.blank("en")
    saved.add_pipe("pll").from_bytes(nlp.get_pipe("pll").to_bytes())  # before anything is scored
    assert scores(saved(TEXT)).tolist() == scores(nlp(TEXT)).tolist() == scores(expected).tolist()
    assert score([TEXT], nlp)[0].score == expected._.pll
    assert expected._.pll != before or not {*changes} & {*CHANGES[:4]}


def test_pieces_without_embeddings_are_an_error_until_there_are_some():
    model, tokenizer = build()
    nlp = make_pipeline((model, tokenizer))
    tokenizer.add_tokens(["souvenir"])
    for _ in range(2):
        with pytest.raises(ValueError, match="entries and the model"):
            nlp(TEXT)
    model.resize_token_embeddings(len(tokenizer))
    assert nlp(TEXT)._.pll == make_pipeline((model, tokenizer))(TEXT)._.pll


def remove_the_last(layers, config):
    del layers[-1]


def exchange(layers, config):
    layers[0], layers[1] = layers[1], layers[0]


def replace_the_last(layers, config):
    layers[-1] = deepcopy(layers[-1])


def append(layers, config):
    layers.append(deepcopy(layers[0]))
    config.num_hidden_layers += 1


def change_what_is_no_weight(layers, config):
    layers[0].output.LayerNorm.eps = 1.0


def check_against_brute_force(nlp, model, tokenizer):
    for text in (TEXT, "I a."):
        doc = nlp(text)
        expected, of_token = reference.score(doc, deepcopy(model).float().eval(), tokenizer, "word_l2r", "spacy")
        assert scores(doc) == pytest.approx(np.bincount(of_token, expected), abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("change", [remove_the_last, exchange, replace_the_last, append, change_what_is_no_weight])
def test_a_model_whose_layers_are_changed(change, dtype):
    model, tokenizer = build()
    nlp = make_pipeline((model.to(dtype), tokenizer))
    nlp(TEXT)
    change(model.bert.encoder.layer, model.config)
    check_against_brute_force(nlp, model, tokenizer)


def without_the_fourth_piece(module, args, output):
    """As in studies of what a position contributes."""
    if isinstance(output, tuple):  # transformers 4
        return without_the_fourth_piece(module, args, output[0]), *output[1:]
    return output.index_fill(1, torch.tensor([3]), 0.0)


def set_a_hook(module):
    module.register_forward_hook(without_the_fourth_piece)


def replace_its_function(module):
    def forward(self, *args, **kwargs):
        return without_the_fourth_piece(self, args, type(self).forward(self, *args, **kwargs))

    module.forward = MethodType(forward, module)


@pytest.mark.cpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("change", [set_a_hook, replace_its_function])
def test_what_is_set_on_a_layer_later(change, layer, dtype):
    """The last layer was run at the targets alone, as had been found to be right before."""
    model, tokenizer = build()
    nlp = make_pipeline((model.to(dtype), tokenizer))
    before = nlp(TEXT)._.pll
    change(model.bert.encoder.layer[layer])
    assert nlp(TEXT)._.pll != pytest.approx(before, abs=0.1)
    loaded = get_scorer(nlp).model.load()
    assert get_scorer(nlp).model.load() is loaded  # what was found is kept
    check_against_brute_force(nlp, model, tokenizer)


def test_a_tokenizer_whose_steps_are_changed():
    model, tokenizer = build()
    special = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("[CLS]", "[SEP]")]
    steps = {
        "normalizer": Lowercase(),
        "pre_tokenizer": Sequence([tokenizer.backend_tokenizer.pre_tokenizer, Split("e", "isolated")]),
        "post_processor": TemplateProcessing(single="[CLS] [CLS] $A [SEP]", special_tokens=special),
    }
    changes = [
        *(partial(setattr, tokenizer.backend_tokenizer, name, step) for name, step in steps.items()),
        partial(setattr, tokenizer, "model_max_length", 16),
        partial(setattr, tokenizer, "split_special_tokens", True),
    ]
    nlp, text = make_pipeline((model, tokenizer)), "The traveler [UNK] lost the souvenir."
    for change in changes:
        before = nlp(text)._.pll
        change()
        assert nlp(text)._.pll == make_pipeline((model, tokenizer))(text)._.pll != before


@pytest.mark.filterwarnings("ignore:Already found a `peft_config` attribute")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_with_adapters_is_scored_with_those_in_use(dtype):
    peft = pytest.importorskip("peft")
    model, tokenizer = build()
    for name in ("a", "b"):
        model.add_adapter(peft.LoraConfig(target_modules=["query", "value"], init_lora_weights=False), name)
    nlp, found = make_pipeline((model.to(dtype), tokenizer)), set()
    for change in (lambda: model.set_adapter("a"), lambda: model.set_adapter("b"), model.disable_adapters):
        change()
        check_against_brute_force(nlp, model, tokenizer)
        found.add(nlp(TEXT)._.pll)
    assert len(found) == 3


def test_weights_of_several_types_are_read_in_float32():
    model, tokenizer = build()
    for part in (model.bert.encoder, model.bert.embeddings, model):  # `model.dtype` is that of the embeddings
        part.bfloat16()
        nlp = make_pipeline((model, tokenizer))
        expected = make_pipeline((deepcopy(model).float(), tokenizer))
        assert scores(nlp(TEXT)).tolist() == scores(expected(TEXT)).tolist()


def test_a_model_in_half_precision_is_copied():
    model, tokenizer = build()
    expected = make_pipeline((model.bfloat16(), tokenizer))
    assert model.dtype == torch.bfloat16 and get_scorer(expected).model.load().checkpoint.dtype == torch.bfloat16
    found = make_pipeline((model.float(), tokenizer))
    assert scores(found(TEXT)).tolist() == scores(expected(TEXT)).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nothing_is_kept_of_what_a_model_was_before_it_changed(dtype):
    model, tokenizer = build()
    nlp = make_pipeline((model.to(dtype), tokenizer))
    before = []
    for step in range(3):
        model.config_of_a_schedule = step  # any plain attribute of a module
        model.resize_token_embeddings(len(tokenizer) + step)
        nlp(TEXT)
        forward = nlp.get_pipe("pll").model.loaded.forward
        before.append((ref(forward), *([] if forward.model is model else [ref(forward.model)])))
        del forward
    gc.collect()
    *earlier, now = before
    assert all(one() is not None for one in now) and not any(one() for refs in earlier for one in refs)
    del nlp
    gc.collect()
    assert n_hooks(model) == 0 and not any(one() for one in now)


@pytest.mark.cpu
def test_it_is_saved_as_any_other(tmp_path):
    nlp = make_pipeline(build(), ["original"])
    expected = scores(nlp(TEXT)).tolist()
    nlp.to_disk(tmp_path)
    assert scores(spacy.load(tmp_path)(TEXT)).tolist() == expected
    assert [scores(doc).tolist() for doc in nlp.pipe([TEXT] * 2, n_process=2, batch_size=1)] == [expected] * 2
    # A model without a name is not taken for the built-in one.
    assert nlp.config["components"]["pll"]["model"]["name"] == "BertForMaskedLM"


def test_a_model_with_adapters_is_not_saved():
    """transformers would save them alone, or PEFT's names of the weights, which it does not read."""
    model, tokenizer = build()
    nlp = make_pipeline((model, tokenizer))
    model.bert.encoder.layer[0].adapter = PeftModel()
    with pytest.raises(ValueError, match="has adapters beside its weights, .*merge_and_unload"):
        nlp.to_bytes()


class WithTemperature(transformers.BertForMaskedLM):
    def forward(self, *args, **kwargs):
        output = super().forward(*args, **kwargs)
        output.logits = output.logits / 2
        return output


class SameAsBefore(transformers.BertForMaskedLM):
    pass


def untie_its_head(model):
    model.set_output_embeddings(torch.nn.Linear(32, model.config.vocab_size).to(model.dtype))


def change_its_activation(model):
    model.bert.encoder.layer[1].intermediate.intermediate_act_fn = torch.nn.ReLU()


def set_a_hook_on_a_layer(model):
    set_a_hook(model.bert.encoder.layer[1])


@pytest.mark.cpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model, "__class__", WithTemperature),
        *(untie_its_head, change_its_activation, set_a_hook_on_a_layer),
        lambda model: remove_the_last(model.bert.encoder.layer, model.config),
    ],
)
def test_a_model_that_a_folder_would_not_have_is_not_saved(change, dtype, tmp_path):
    """A pipeline was saved, and gave other scores when it was loaded."""
    model, tokenizer = build()
    change(model)
    nlp = make_pipeline((model.to(dtype), tokenizer))
    assert nlp(TEXT)._.pll < 0
    state = torch.random.get_rng_state()
    with pytest.raises(ValueError, match="cannot be saved: .* would make a model with other scores"):
        nlp.to_disk(tmp_path)
    assert not (tmp_path / "pll" / "model").exists() and torch.equal(torch.random.get_rng_state(), state)


class OwnConfig(transformers.BertConfig):
    model_type = "of_its_own"


class OwnModel(transformers.BertForMaskedLM):
    config_class = OwnConfig


def test_nobody_is_asked_whether_code_may_be_run(monkeypatch, tmp_path):
    """transformers asks at the keyboard, where a model came with code and its configuration is read again."""
    monkeypatch.setattr("builtins.input", lambda *args: pytest.fail("a question"))
    model, tokenizer = build()
    model.__class__, model.config.__class__ = OwnModel, OwnConfig
    model.config.auto_map = {"AutoConfig": "own.OwnConfig", "AutoModelForMaskedLM": "own.OwnModel"}
    mapping = transformers.AutoModelForMaskedLM._model_mapping
    monkeypatch.setitem(mapping._extra_content, OwnConfig, OwnModel)  # as after `trust_remote_code=True`
    make_pipeline((model, tokenizer)).to_disk(tmp_path)
    assert (tmp_path / "pll" / "model" / "config.json").is_file()


@pytest.mark.parametrize(
    ("step", "value"),
    [("normalizer", Lowercase()), ("post_processor", TemplateProcessing("[CLS] $A", None, [("[CLS]", 0)]))],
)
def test_a_tokenizer_that_a_folder_would_not_have_is_not_saved(step, value, tmp_path):
    """transformers 5 makes the steps of some classes anew. As a tokenizer without a class, it is saved."""
    plain = get_tokenizer("wordpiece")
    vocab = sorted(plain.get_vocab(), key=plain.get_vocab().get)
    (tmp_path / "vocab.txt").write_text("\n".join(vocab), encoding="utf8")
    tokenizer = transformers.BertTokenizerFast.from_pretrained(tmp_path, model_max_length=128, do_lower_case=False)
    model = build_transformer("bert", tokenizer)
    make_pipeline((model, tokenizer)).to_disk(tmp_path / "as it was")
    setattr(tokenizer.backend_tokenizer, step, value)
    tokenizer.sep_token = None
    nlp = make_pipeline((model, tokenizer))
    if transformers.__version__ >= "5":
        with pytest.raises(ValueError, match="a BertTokenizer.*, cannot be saved: .* as they are in this class"):
            nlp.to_disk(tmp_path / "changed")
    own = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer, model_max_length=128, **tokenizer.special_tokens_map
    )
    other = make_pipeline((model, own))
    other.to_disk(tmp_path / "own")
    assert nlp(TEXT)._.pll == other(TEXT)._.pll == spacy.load(tmp_path / "own")(TEXT)._.pll


@pytest.mark.cpu
def test_a_class_that_changes_nothing_is_saved(tmp_path):
    model, tokenizer = build()
    model.__class__ = SameAsBefore
    model.train()
    nlp = make_pipeline((model, tokenizer))
    nlp.to_disk(tmp_path)
    assert model.training and scores(spacy.load(tmp_path)(TEXT)).tolist() == scores(nlp(TEXT)).tolist()


def test_a_left_to_right_model():
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = get_tokenizer("byte-level")
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=64)
    nlp = make_pipeline((GPT2LMHeadModel(config), tokenizer))
    assert get_scorer(nlp).settings.metrics == ("causal",) and nlp(TEXT)._.pll < 0
    assert nlp.config["components"]["pll"]["model"]["@architectures"] == "spacy-pll.CausalLM.v1"


@pytest.mark.parametrize("given", [5, ("a", "b"), build()[:1], build()[::-1], (*build(), 1)])
def test_what_is_no_model_with_its_tokenizer(given):
    with pytest.raises(TypeError, match=r"`model` must be the name or folder of a model.*\(model, tokenizer\). It is"):
        make_pipeline(given)


def as_pipeline(model, tokenizer):
    return transformers.FillMaskPipeline(model=model, tokenizer=tokenizer)


class PeftModel(torch.nn.Module):
    """What PEFT has; it is not installed for the tests."""


PeftModel.__module__ = "peft.peft_model"


@pytest.mark.parametrize(
    ("wrap", "said"),
    [
        (
            lambda m, t: (torch.compile(m, backend="eager"), t),
            "OptimizedModule.*model._orig_mod, tokenizer",
        ),
        (lambda m, t: (torch.nn.DataParallel(m), t), "DataParallel.*give the one inside: .model.module, tokenizer"),
        (lambda m, t: (PeftModel(), t), "PeftModel.*model.merge_and_unload"),
        (as_pipeline, "FillMaskPipeline.*give .pipeline.model, pipeline.tokenizer"),
        (lambda m, t: (as_pipeline(m, t), t), "give .pipeline.model, pipeline.tokenizer"),
        (lambda m, t: (t, m), "The model comes first"),
        (lambda m, t: m, "BertForMaskedLM.*Give its tokenizer, too"),
        (lambda m, t: (m, t.backend_tokenizer), "PreTrainedTokenizerFast.tokenizer_object"),
        (lambda m, t: (torch.nn.Linear(1, 1), t), "Linear.*of a class of transformers"),
    ],
)
def test_a_model_in_a_wrapper(wrap, said):
    with pytest.raises(TypeError, match=said) as caught:
        make_pipeline(wrap(*build()))
    assert len(str(caught.value)) < 400


@pytest.mark.slow
def test_a_model_that_is_compiled_in_place():
    model, tokenizer = build()
    expected = scores(make_pipeline((model, tokenizer))(TEXT))
    model.compile(backend="eager")
    assert scores(make_pipeline((model, tokenizer))(TEXT)) == pytest.approx(expected, abs=1e-5)


def test_models_that_cannot_be_used():
    from transformers import BertForSequenceClassification, BertModel

    model, tokenizer = build()
    for cls in (BertModel, BertForSequenceClassification):
        with pytest.raises(ValueError, match=f"is a {cls.__name__}, which is no masked.*Load it with AutoModelForMas"):
            use_loaded((cls(model.config), tokenizer))
    with pytest.raises(ValueError, match="is no left-to-right language model.*Load it with AutoModelForCausalLM"):
        use_loaded((model, tokenizer), causal=True)
    with pytest.raises(ValueError, match="entries and the model"):
        model.resize_token_embeddings(50)
        use_loaded((model, tokenizer))


@pytest.mark.parametrize("margin", [None, 0])
@pytest.mark.parametrize("place", ["model", "layer"])
@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_a_model_that_opens_autocast_is_scored_in_float32(architecture, place, margin):
    """Around its own `forward`, as accelerate's `prepare` does, or in a layer."""
    model, tokenizer = build(architecture)
    expected = scores(make_pipeline((model, tokenizer), mask_margin=margin)(SENTENCES[0]))
    opening = deepcopy(model)
    part = opening if place == "model" else opening.base_model.encoder.layer[0].attention
    part.forward = torch.autocast("cpu", torch.bfloat16)(part.forward)
    found = scores(make_pipeline((opening, tokenizer), mask_margin=margin)(SENTENCES[0]))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_model_in_bfloat16_whose_forward_is_wrapped_is_refused():
    """A copy in float32 would call the function that reads the weights of the model."""
    model, tokenizer = build("bert")
    model = model.to(torch.bfloat16)
    model.forward = torch.autocast("cpu", torch.bfloat16)(model.forward)
    with pytest.raises(PLLError, match="autocast around it.*model.float"):
        make_pipeline((model, tokenizer))(SENTENCES[0])
