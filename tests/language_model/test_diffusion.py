"""Models of the shapes of masked diffusion, written anew from the papers: LLaDA (Nie et al. 2025) is a Llama that sees
both sides; Dream (Ye et al. 2025) is one that predicts a masked piece one position before it; A2D is a left-to-right
model of transformers, such as a Qwen, whose subclass sees both sides; MDLM (Sahoo et al. 2024) is told the time of the
diffusion, and never predicts its mask. Their tokenizers have no mask token of that name, and put nothing around a text.
"""

import shutil
import sys
from copy import deepcopy
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from tokenizers.processors import TemplateProcessing
from torch import nn
from torch.nn import functional as F
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    PretrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers.modeling_outputs import MaskedLMOutput

from spacy_pll import Choice, Option, PLLError, choices, log_probability_bounds, make_pipeline, perplexity

from .. import reference
from ..cli.conftest import run
from ..conftest import get_tokenizer

ROOT = Path(__file__).parents[2]

NAMES = ("mask_token", "cls_token", "sep_token", "bos_token", "eos_token")
MASK, END = "<|mdm_mask|>", "<|endoftext|>"


class DiffusionConfig(PretrainedConfig):
    model_type = "tiny-diffusion"

    def __init__(self, vocab_size=100, width=32, layers=2, heads=2, **others):
        super().__init__(**others)
        self.vocab_size, self.width, self.layers, self.heads = vocab_size, width, layers, heads


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.width
        self.heads, self.norms = config.heads, nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate_up, self.down = nn.Linear(width, 6 * width, bias=False), nn.Linear(3 * width, width, bias=False)

    def forward(self, states, visible):
        q, k, v = (
            x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in self.qkv(self.norms[0](states)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(rotate(q), rotate(k), v, attn_mask=visible)
        states = states + self.out(mixed.transpose(1, 2).flatten(2))
        gate, up = self.gate_up(self.norms[1](states)).chunk(2, -1)
        return states + self.down(F.silu(gate) * up)


def rotate(x):
    """Rotary positions."""
    n, half = x.shape[-2], x.shape[-1] // 2
    angle = torch.arange(n, device=x.device)[:, None] / 10000 ** (torch.arange(half, device=x.device) / half)
    first, second = x.chunk(2, -1)
    return torch.cat([first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], -1)


class TinyDiffusion(PreTrainedModel):
    config_class = DiffusionConfig
    base_model_prefix = "model"

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab_size, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm, self.head = nn.RMSNorm(config.width), nn.Linear(config.width, config.vocab_size, bias=False)
        self.post_init()

    def _init_weights(self, module):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.3)

    def get_input_embeddings(self):
        return self.embed

    def forward(self, input_ids, attention_mask=None, **_):
        visible = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        states = self.embed(input_ids)
        for layer in self.layers:
            states = layer(states, visible)
        return MaskedLMOutput(logits=self.head(self.norm(states)))


class A2DConfig(Qwen2Config):
    model_type = "tiny-a2d"


class A2D(Qwen2ForCausalLM):
    config_class = A2DConfig

    def forward(self, input_ids, attention_mask=None, **_):
        seen = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        mask = torch.zeros(seen.shape).masked_fill(seen == 0, torch.finfo(torch.float32).min)
        mask = mask[:, None, None].expand(-1, 1, seen.shape[1], -1)  # no triangle
        return super().forward(input_ids=input_ids, attention_mask=mask, use_cache=False)


class MDLMConfig(DiffusionConfig):
    model_type = "mdlm"

    def __init__(self, model_length=60, time_conditioning=False, **others):
        super().__init__(**others)
        self.model_length, self.time_conditioning = model_length, time_conditioning


class Backbone(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.vocab_embed = nn.Module()
        self.vocab_embed.embedding = nn.Parameter(torch.randn(config.vocab_size, config.width))
        self.blocks = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.output_layer = nn.Linear(config.width, config.vocab_size)

    def forward(self, ids, sigma):
        states = self.vocab_embed.embedding[ids] + sigma[:, None, None]
        for block in self.blocks:
            states = block(states, None)
        return self.output_layer(states)


class MDLM(PreTrainedModel):
    """With the arguments of the published class, and the names by which the example reads it."""

    config_class = MDLMConfig
    base_model_prefix = "mdlm"

    def __init__(self, config):
        super().__init__(config)
        self.backbone = Backbone(config)
        self.post_init()

    def _init_weights(self, module):
        pass

    def forward(self, input_ids, timesteps, output_hidden_states=None, return_dict=None):
        logits = self.backbone(input_ids, timesteps)
        return MaskedLMOutput(logits=logits) if return_dict else logits


class LLaDAConfig(DiffusionConfig):
    model_type = "llada"

    def __init__(self, **others):
        super().__init__(**others)


class LLaDAModelLM(TinyDiffusion):
    config_class = LLaDAConfig


def register(config, model):
    AutoConfig.register(config.model_type, config, exist_ok=True)
    AutoModelForMaskedLM.register(config, model, exist_ok=True)


def make_llada(vocab_size):
    register(DiffusionConfig, TinyDiffusion)
    return TinyDiffusion(DiffusionConfig(vocab_size=vocab_size))


def make_a2d(vocab_size):
    register(A2DConfig, A2D)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    shared = {"num_key_value_heads": 2, "tie_word_embeddings": True, "initializer_range": 0.3}
    return A2D(A2DConfig(vocab_size=vocab_size, **sizes, **shared))


def unnamed_tokenizer():
    """It names no special token, as those of left-to-right models."""
    tokenizer = deepcopy(get_tokenizer("byte-level"))
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=["$A"], special_tokens=[])
    for name in NAMES:
        setattr(tokenizer, name, None)
    return tokenizer


@pytest.fixture(scope="module", params=[make_llada, make_a2d])
def folder(tmp_path_factory, request):
    tokenizer = unnamed_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": [MASK, END]})
    path = tmp_path_factory.mktemp("diffusion")
    torch.manual_seed(0)
    request.param(len(tokenizer)).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def by_itself(folder, before, text, shift=0, first=(), last=(), cfg=0):
    """The mean over all orders of the pieces of the text, by way of the masked sets: transformers alone. With guidance
    (Nie et al. 2025), each set is also read with masks for all that stands before the text.
    """
    from transformers import AutoTokenizer

    model, tokenizer = AutoModelForMaskedLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    prompt, whole = (tokenizer(one, add_special_tokens=False)["input_ids"] for one in (before, before + text))
    ids = [tokenizer.convert_tokens_to_ids(one) for one in first] + whole
    own = range(len(first) + len(prompt), len(ids))
    ids += [tokenizer.convert_tokens_to_ids(one) for one in last]
    mask = tokenizer.convert_tokens_to_ids(MASK)
    sets = [frozenset(hidden) for n in range(len(own)) for hidden in combinations(own, n + 1)]

    @torch.no_grad()
    def read(n):
        """With masks for the first n as well."""
        rows = [[mask if i in hidden or i < n else one for i, one in enumerate(ids)] for hidden in sets]
        return model(torch.tensor(rows)).logits.double()

    prompted, unprompted = read(0), read(own.start)
    found = (unprompted + (1 + cfg) * (prompted - unprompted)).log_softmax(-1).numpy()
    known = dict(zip(sets, found))
    chains = [sum(known[frozenset(o[n:])][t - shift, ids[t]] for n, t in enumerate(o)) for o in permutations(own)]
    assert 2 <= len(own) <= 6
    return float(np.mean(chains))


@pytest.mark.filterwarnings("ignore:The tokenizer of .* names the special tokens")
@pytest.mark.parametrize("cfg", [0, 0.5, 2.0])
@pytest.mark.parametrize(
    ("shift", "names", "first", "last"),
    [
        (0, {}, [], []),  # LLaDA
        (0, {"sep_token": END}, [], [END]),  # an end of text is appended, and never masked
        (1, {"bos_token": END}, [END], []),  # Dream
    ],
)
def test_the_bound_of_an_answer_given_its_prompt(folder, shift, names, first, last, cfg):
    block = {"name": str(folder), "shift": shift, "tokenizer_config": {"mask_token": MASK, **names}, "cfg": cfg}
    nlp = make_pipeline(block, words="piece")
    # Equal texts with other prompts, which guidance tells apart.
    asked = [("The traveler lost", " the tree."), ("The traveler lost the", " tree.")]
    found = log_probability_bounds(nlp, [(text, before, "") for before, text in asked])
    expected = [by_itself(folder, before, text, shift, first, last, cfg) for before, text in asked]
    assert [bound.score for bound in found] == pytest.approx(expected, abs=1e-3)


@pytest.mark.filterwarnings("ignore:The tokenizer of .* names the special tokens")
def test_both_rows_are_in_one_pass(folder, monkeypatch):
    """And a text without a prompt is read as without guidance."""
    block = {"name": str(folder), "shift": 0, "tokenizer_config": {"mask_token": MASK, "bos_token": END}}
    plain, guided = (make_pipeline({**block, "cfg": cfg}, metrics=["original"]) for cfg in (0, 0.5))
    assert guided(TEXT)._.pll == pytest.approx(plain(TEXT)._.pll, abs=1e-4)
    predictor, rows = guided.get_pipe("pll").predictor, []
    predictor.prepare().forward.model.register_forward_pre_hook(
        lambda module, args, kwargs: rows.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    choices(guided, [Choice([Option(text, "The traveler lost") for text in ("the tree.", "the souvenir.")])])
    assert len(rows) == 1
    with pytest.raises(PLLError, match="With `cfg`, .*`mask_margin` is not possible.* Leave out one of them"):
        make_pipeline({**block, "cfg": 0.5}, mask_margin=1)(TEXT)
    with pytest.raises(ValueError, match="`cfg` must be a weight of 0 or more, .* It is -1"):
        make_pipeline({**block, "cfg": -1})


@pytest.mark.filterwarnings("ignore:The tokenizer of .* names the special tokens")
def test_guidance_in_lm_eval(folder, tmp_path):
    """By the model's block, or by a pipeline that is saved with it."""
    pytest.importorskip("lm_eval", reason="needs lm-evaluation-harness: pip install '.[lm-eval]'")
    from lm_eval.api.instance import Instance

    from spacy_pll import lm_eval

    block = {"name": str(folder), "shift": 0, "tokenizer_config": {"mask_token": MASK}, "cfg": 0.5}
    make_pipeline(block).to_disk(tmp_path / "guided")
    asked = [("The traveler lost", " the tree."), ("The traveler lost the", " tree.")]
    requests = [Instance("loglikelihood", {}, one, i) for i, one in enumerate(asked)]
    expected = [by_itself(folder, *one, cfg=0.5) for one in asked]
    for pretrained in (block, str(tmp_path / "guided")):
        model = lm_eval.PLL(pretrained, metrics="sentence_any_order", show_progress=False)
        assert [score for score, _ in model.loglikelihood(requests)] == pytest.approx(expected, abs=1e-3)


def test_a_corpus_in_a_fixed_number_of_passes(folder):
    nlp = make_pipeline(
        {"name": str(folder), "shift": 0, "tokenizer_config": {"mask_token": MASK}}, "sentence_any_order"
    )
    texts = ["The traveler lost the souvenir.", "The hooligans, who are young, didn't travel."]
    orders, ladder = perplexity(nlp, texts), perplexity(nlp, texts, n_passes=64)
    apart = abs(orders.log_likelihood["sentence_any_order"] - ladder.log_likelihood["sentence_any_order"])
    assert 0 < apart < 5 * np.hypot(*(one.standard_error["sentence_any_order"] for one in (orders, ladder)))


def test_a_tokenizer_without_a_mask_token_is_told_how_to_name_it(folder):
    with pytest.raises(ValueError, match="no mask token.*or name the token.*'tokenizer_config': {'mask_token'"):
        make_pipeline(str(folder))


@pytest.fixture(scope="module")
def codes(tmp_path_factory):
    """By example: its file, beside the classes that "come with the checkpoint"."""
    folder, before = tmp_path_factory.mktemp("codes"), list(sys.path)
    for package, config, model in (("mdlm_owt", MDLMConfig, MDLM), ("llada_base", LLaDAConfig, LLaDAModelLM)):
        (folder / package).mkdir()
        for part, one in (("configuration", config), ("modeling", model)):
            file = folder / package / f"{part}_{config.model_type}.py"
            file.write_text(f"from {__name__} import {one.__name__}\n")
        shutil.copy(ROOT / "examples" / "diffusion" / f"{config.model_type}.py", folder)
    yield {name: str(folder / f"{name}.py") for name in ("mdlm", "llada")}
    sys.path[:] = before


def save(folder, config, model, tokenizer, **settings):
    torch.manual_seed(0)
    model(config(**settings)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def mdlm(tmp_path):
    """mdlm(**settings): a folder with a tiny MDLM. Its mask is the id behind those of its tokenizer."""

    def make(**settings):
        tokenizer = unnamed_tokenizer()
        return save(tmp_path / "mdlm", MDLMConfig, MDLM, tokenizer, vocab_size=len(tokenizer) + 1, **settings)

    return make


NAMED = {"tokenizer_config": {"mask_token": "[MASK]"}}


def score_by_hand(ids, mask, log_probs):
    """The sum over pieces, each masked alone."""
    rows = [[mask if i == t else one for i, one in enumerate(ids)] for t in range(len(ids))]
    return sum(log_probs(row)[t, ids[t]].item() for t, row in enumerate(rows))


TEXT = "The traveler lost the souvenir."


@pytest.mark.parametrize("predicts_mask", [False, True])
def test_mdlm_by_its_example(mdlm, codes, predicts_mask):
    folder, tokenizer = mdlm(), unnamed_tokenizer()
    block = {"name": folder, **NAMED, "predicts_mask": predicts_mask}
    nlp = make_pipeline(block, code=codes["mdlm"], metrics=["original"], distribution=True)
    model, ids, mask = MDLM.from_pretrained(folder).eval(), tokenizer(TEXT)["input_ids"], len(tokenizer)

    @torch.inference_mode()
    def log_probs(row):
        logits = model(torch.tensor([row]), torch.zeros(1))[0].double()
        logits[:, mask] -= 0 if predicts_mask else 1e6
        return logits.log_softmax(-1)

    doc = nlp(TEXT)
    assert doc._.pll == pytest.approx(score_by_hand(ids, mask, log_probs), abs=1e-4)
    entropy = 0
    for t in range(len(ids)):
        of_all = log_probs([mask if i == t else one for i, one in enumerate(ids)])[t]
        entropy -= (of_all.exp() * of_all).sum().item()
    assert doc._.pll_entropy == pytest.approx(entropy, abs=1e-3)
    assert nlp.get_pipe("pll").model.load().max_length == 60
    (bound,) = log_probability_bounds(nlp, [(" the tree.", "The traveler lost", "")])
    assert bound.score < 0


def test_the_setting_is_saved(mdlm, codes, tmp_path):
    nlp, code = make_pipeline({"name": mdlm(), **NAMED, "predicts_mask": False}, code=codes["mdlm"]), codes["mdlm"]
    nlp.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    assert not loaded.get_pipe("pll").model.predicts_mask and loaded(TEXT)._.pll == nlp(TEXT)._.pll
    found = run("show", TEXT, "--model", tmp_path / "saved", "--code", code)
    assert f"{loaded(TEXT)._.pll:.2f}" in found.stdout


def test_mdlm_that_is_told_the_time_is_refused(mdlm, codes):
    with pytest.raises(ValueError, match="told how much .*is masked"):
        make_pipeline({"name": mdlm(time_conditioning=True), **NAMED}, code=codes["mdlm"])


def test_llada_by_its_example(codes, tmp_path):
    """It counts its mask among the pieces that it predicts."""
    tokenizer = unnamed_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": [MASK, END]})
    folder = save(tmp_path, LLaDAConfig, LLaDAModelLM, tokenizer, vocab_size=len(tokenizer))
    block = {"name": folder, "tokenizer_config": {"mask_token": MASK}}
    nlp = make_pipeline(block, code=codes["llada"], metrics=["original"])
    model, ids = LLaDAModelLM.from_pretrained(folder).eval(), tokenizer(TEXT)["input_ids"]

    @torch.inference_mode()
    def log_probs(row):
        return model(torch.tensor([row])).logits[0].double().log_softmax(-1)

    expected = score_by_hand(ids, tokenizer.convert_tokens_to_ids(MASK), log_probs)
    assert nlp(TEXT)._.pll == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("margin", [None, 0, 20])
def test_a_bert_without_its_mask(make_nlp, model_folder, margin):
    """In all passes that there are."""
    transformer, tokenizer = reference.load_model(model_folder("bert"))
    block, how = {"name": str(model_folder("bert")), "predicts_mask": False}, {"mask_margin": margin}
    found, counted = (nlp(TEXT)._.pll for nlp in (make_pipeline(block, **how), make_nlp(**how)))
    assert found > counted + 1e-3  # each piece gets a part of the probability of the mask
    nlp, ids = make_pipeline(block, metrics=["original"], **how), tokenizer(TEXT)["input_ids"]

    def log_probs(row):
        logits = reference.predict(transformer, (ids[0], *row, ids[-1]))[1:-1].clone()
        return logits.index_fill(1, torch.tensor(tokenizer.mask_token_id), -1e6).log_softmax(-1)

    if margin != 0:  # these scores are exact
        expected = score_by_hand(ids[1:-1], tokenizer.mask_token_id, log_probs)
        assert nlp(TEXT)._.pll == pytest.approx(expected, abs=1e-4)


def test_a_mask_in_a_text_that_is_never_predicted(model_folder):
    nlp = make_pipeline({"name": str(model_folder("bert")), "predicts_mask": False})
    with pytest.raises(PLLError, match="not finite, for the text 'A .MASK. sleeps.'.* It has the mask .* Take it out"):
        nlp("A [MASK] sleeps.")
