import itertools
import json
import logging
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
import transformers as hf
from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
from spacy.util import registry

from spacy_pll.language_model.architectures import MaskedLanguageModel
from spacy_pll.language_model.causal import CausalLanguageModel
from spacy_pll.language_model.forward import Forward
from spacy_pll.language_model.slow_tokenizers import backend_of
from spacy_pll.scoring.passes import Batch

from ..conftest import ARCHITECTURES, PARAGRAPH, SENTENCES, SMALL, build_transformer, get_tokenizer
from ..proteins import ESM_2, PROTEIN, esm_tokenizer, spaced_tokenizer
from ..reference import load_model, log_probabilities, score, score_by_states
from ..test_metrics import METRICS

nlp = spacy.blank("en")

# Their code in transformers is that of another one but for a few lines, so the longest of their tests is slow.
COPIES = ["camembert", "data2vec", "ernie", "jina", "megatron-bert", "roberta-prelayernorm", "xmod"]


@pytest.mark.parametrize(
    "architecture",
    [pytest.param(name, marks=[pytest.mark.slow] if name in COPIES else []) for name in ARCHITECTURES],
)
def test_scores_equal_the_brute_force_reference(make_nlp, architecture):
    """Every metric and word unit, padded batches, within 1e-5 a piece."""
    tokenizer = get_tokenizer(ARCHITECTURES[architecture][3])
    texts = ["The hooligans can't travel.", "Dr. Smith's souvenir", PARAGRAPH[:60], "a"]
    for words in ("spacy", "tokenizer", "whitespace"):
        pipeline = make_nlp(architecture, metrics=METRICS, words=words, keep_pieces=True)
        transformer, loaded_tokenizer = load_model(pipeline.get_pipe("pll").model.name)
        for doc in pipeline.pipe(texts):
            for metric in METRICS:
                expected, tokens = score(doc, transformer, loaded_tokenizer, metric, words)
                np.testing.assert_allclose(doc._.pll_data["scores"][metric], expected, atol=1e-5, err_msg=metric)
                sums = np.bincount(tokens, weights=expected, minlength=len(doc))
                found = [token._.get(f"pll_{metric}") for token in doc]
                np.testing.assert_allclose(found, sums, atol=1e-4)
    assert len(tokenizer) <= len(transformer.get_input_embeddings().weight)


@pytest.mark.parametrize(
    "name",
    [
        "bert-base-cased",
        "albert-base-v2",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("roberta-base", "deberta-v3-base")),
    ],
)
def test_real_tokenizers_equal_the_brute_force_reference(make_nlp, name):
    architecture = {"roberta-base": "roberta", "albert-base-v2": "albert", "deberta-v3-base": "deberta-v2"}.get(
        name, "bert"
    )
    for words in ("spacy", "tokenizer", "whitespace"):
        pipeline = make_nlp(architecture, name, metrics=METRICS, words=words, keep_pieces=True)
        transformer, tokenizer = load_model(pipeline.get_pipe("pll").model.name)
        for doc in pipeline.pipe(["The traveler lost the souvenir.", SENTENCES[2]]):
            for metric in METRICS:
                expected, _ = score(doc, transformer, tokenizer, metric, words)
                np.testing.assert_allclose(doc._.pll_data["scores"][metric], expected, atol=1e-5, err_msg=metric)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_probe_finds_what_an_architecture_allows(language_model, architecture):
    model = language_model(architecture)
    # FNet mixes all positions, ConvBERT and MobileBERT the near ones, padding or not: their rows are never padded.
    assert model.load().rows.pads == (architecture not in ("fnet", "convbert", "mobilebert"))
    assert model.loaded.forward.narrowing.name


def test_block_sparse_attention_is_full(model_folder):
    """BigBird changes to full attention for good when it reads a short text, as it does in the trial."""
    sparse = model_folder("big-bird", attention_type="block_sparse", block_size=4, num_random_blocks=1)
    full = model_folder("big-bird", attention_type="original_full")
    first, second = (spacy.blank("en") for _ in range(2))
    for pipeline, folder in ((first, sparse), (second, full)):
        pipeline.add_pipe("pll", config={"model": {"name": str(folder)}})
    assert first(PARAGRAPH)._.pll == pytest.approx(second(PARAGRAPH)._.pll, abs=1e-4)


@pytest.mark.parametrize("architecture", ["bert", "fnet"])
def test_what_was_found_is_said_once(model_folder, caplog, architecture):
    model = MaskedLanguageModel(str(model_folder(architecture)))
    with caplog.at_level(logging.INFO, "spacy_pll"):
        for _ in range(2):
            model.load()
        [line] = caplog.messages
        assert str(model_folder(architecture)) in line and ("do not share" in line) == (architecture == "fnet")
        assert f"what comes {model.load().forward.narrowing.name} at the masked pieces alone" in line
        if architecture == "bert":
            for _ in range(2):
                model.load(groups=True)
            assert len(caplog.messages) == 2 and "all masks of a text in one pass" in caplog.messages[1]


def test_rounding_does_not_hide_what_padding_does(model_folder, monkeypatch):
    model = MaskedLanguageModel(str(model_folder("convbert")), precision="bfloat16")
    seen, run = [], Forward.run
    monkeypatch.setattr(Forward, "run", lambda self, *args: (seen.append(self.precision), run(self, *args))[1])
    model.load()
    assert {*seen} == {"float32"} and model.loaded.forward.precision == "bfloat16" and not model.load().rows.pads


def test_a_head_that_looks_at_its_neighbours_is_run_at_every_position(model_folder):
    model = MaskedLanguageModel(str(model_folder("bert")))
    model.load()
    head = model.load().checkpoint.transformer.cls
    head.register_forward_pre_hook(lambda module, args: (args[0] + args[0].roll(1, dims=1),))
    model.loaded = model._prepare(model.loaded.checkpoint, "bert")
    assert model.loaded.forward.narrowing.name is None
    assert model.load().rows.max_tokens <= model.load().rows.max_targets
    ids = np.array([model.load().tokenizer.encode("The traveler lost").ids])
    n = ids.shape[1]
    batch = Batch.of(ids, np.array([n]), np.zeros(n, dtype=int), np.arange(n), ids[0])
    with torch.inference_mode():
        logits = model.load().checkpoint.transformer(input_ids=torch.from_numpy(ids)).logits[0].log_softmax(-1)
    np.testing.assert_allclose(model.log_probabilities(batch)[0], logits[np.arange(n), ids[0]].numpy(), atol=1e-5)


def test_mixed_precision_stays_near_float32(make_nlp, model_folder):
    exact = make_nlp("bert")(PARAGRAPH)
    config = {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(model_folder("bert")), "mixed_precision": True}
    pipeline = spacy.blank("en")
    pipeline.add_pipe("pll", config={"model": config})
    rough = pipeline(PARAGRAPH)
    assert rough._.pll != exact._.pll
    assert rough._.pll == pytest.approx(exact._.pll, rel=0.01)


def test_half_precision_weights_are_raised_to_float32(tmp_path):
    tokenizer = get_tokenizer("wordpiece")
    build_transformer("bert", tokenizer).half().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = MaskedLanguageModel(str(tmp_path))
    model.load()
    assert {parameter.dtype for parameter in model.load().checkpoint.transformer.parameters()} == {torch.float32}
    assert not model.load().checkpoint.transformer.training


@pytest.mark.parametrize("download_bars", [True, False])
def test_nothing_is_printed_when_a_model_is_loaded_and_saved(tmp_path, capfd, download_bars):
    """No progress bars: transformers 5 shows one for each model, and 4 one for each model in several files."""
    build_transformer("bert", get_tokenizer("wordpiece")).save_pretrained(tmp_path / "model", max_shard_size="20KB")
    get_tokenizer("wordpiece").save_pretrained(tmp_path / "model")
    (enable_progress_bars if download_bars else disable_progress_bars)()
    capfd.readouterr()
    try:
        MaskedLanguageModel(str(tmp_path / "model")).to_disk(tmp_path / "saved")
        assert capfd.readouterr() == ("", "")
        assert hf.utils.logging.is_progress_bar_enabled() and are_progress_bars_disabled() != download_bars
    finally:
        enable_progress_bars()


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


# Errors: each says what was wrong, with the value, and what to do.


def load(name, **settings):
    MaskedLanguageModel(str(name), **settings).load()


def test_checkpoint_without_head(tmp_path):
    tokenizer = get_tokenizer("wordpiece")
    hf.BertModel(hf.BertConfig(vocab_size=len(tokenizer), **SMALL)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="no trained weights for cls.predictions.*BertForMaskedLM, with its"):
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
    with pytest.raises(ValueError, match="of type 'gpt2', for which transformers has no masked language model"):
        load(tmp_path)


def test_model_not_found_while_offline():
    with pytest.raises(OSError, match="'no-such/model' was not found.*hf download no-such/model.*built-in") as error:
        load("no-such/model")
    assert error.value.__suppress_context__  # `spacy assemble` shows the whole traceback


def test_tokenizer_and_model_that_do_not_belong_together(tmp_path):
    build_transformer("bert", get_tokenizer("wordpiece"), vocab_size=50).save_pretrained(tmp_path)
    get_tokenizer("wordpiece").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="tokenizer of .* has [0-9]+ entries and the model 50"):
        load(tmp_path)


def test_truncated_weights(tmp_path):
    tokenizer = get_tokenizer("wordpiece")
    build_transformer("bert", tokenizer).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(OSError, match="weights of .* cannot be read"):
        load(tmp_path)
    weights.unlink()
    with pytest.raises(OSError, match="weights of .* cannot be read.*model.safetensors"):
        load(tmp_path)


def test_damaged_or_unfitting_files(model_folder, tmp_path):
    tokenizer = get_tokenizer("wordpiece")
    build_transformer("bert", tokenizer).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(OSError, match="(?s)weights of .* cannot be read.*size"):
        load(tmp_path, transformer_config={"hidden_size": 64})
    with pytest.raises(ValueError, match="reads at most 2 wordpieces.*model_max_length"):
        load(tmp_path, tokenizer_config={"model_max_length": 2})
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match="(?s)tokenizer of .* cannot be read.*tokenizer.json"):
        load(tmp_path)


def test_a_model_that_fails_to_load_leaves_the_one_before(model_folder, monkeypatch):
    model = MaskedLanguageModel(str(model_folder("bert")))
    monkeypatch.setattr(Forward, "run", lambda *args: 1 / torch.zeros(()).reshape(2))
    with pytest.raises(ValueError, match="BertForMaskedLM. cannot read a short text"):
        model.load()
    assert not model.loaded
    monkeypatch.undo()
    model.load()
    with pytest.raises(ValueError):
        model.from_disk(Path(__file__).parent)
    assert model.loaded and model.load().rows.pads


def test_gpu_asked_for_but_not_there(monkeypatch, model_folder):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    monkeypatch.setattr("spacy_pll.language_model.base.get_torch_default_device", lambda: torch.device("cuda", 0))
    with pytest.raises(RuntimeError, match="spaCy is set to use cuda:0, but PyTorch .* cannot.*require_cpu"):
        load(model_folder("bert"))


def test_code_that_comes_with_a_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="trust_remote_code.*never run"):
        MaskedLanguageModel("x", transformer_config={"trust_remote_code": True})
    marker = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"open({str(marker)!r}, 'w')")
    config = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.C", "AutoModelForMaskedLM": "evil.M"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    get_tokenizer("wordpiece").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="cannot be read.*not run here unasked"):
        load(tmp_path)
    assert not marker.exists()


def test_architecture_is_registered(model_folder):
    model = registry.architectures.get("spacy-pll.MaskedLM.v1")(name=str(model_folder("bert")))
    assert not model.loaded
    model.load()
    assert model.loaded


# Classes that are masked or left-to-right by a setting: what the model does is what counts.


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
    ("architecture", "tokenizer", "files"),
    [
        ("bert", "BertTokenizer", "vocab.txt"),
        ("roberta", "RobertaTokenizer", "vocab.json and merges.txt"),
        ("albert", "AlbertTokenizer", "spiece.model"),
    ],
)
def test_a_folder_without_the_files_of_a_tokenizer(model_folder, tmp_path, architecture, tokenizer, files):
    """transformers 5 makes a tokenizer up, which knows no text. transformers 4 has an error of its own."""
    folder = shutil.copytree(model_folder(architecture), tmp_path / "model")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    for named in ("a class", "none", "no settings"):
        if named == "a class":
            (folder / "tokenizer.json").unlink()
            (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "tokenizer_class": tokenizer}))
        elif named == "none":
            del settings["tokenizer_class"]
            (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        else:
            (folder / "tokenizer_config.json").unlink()
        with pytest.raises((ValueError, OSError), match=f"files are missing: tokenizer.json, or {files}|was not found"):
            load(folder)


@pytest.mark.parametrize("architecture", ["deberta", "deberta-v2"])
def test_the_head_of_debertas_authors(architecture, tmp_path):
    """Its weights have other names than those of transformers' own."""
    if hf.__version__.startswith("4."):
        pytest.skip("transformers 4 ties that head to the embeddings")
    tokenizer = get_tokenizer(ARCHITECTURES[architecture][3])
    transformer = build_transformer(architecture, tokenizer, legacy=False)
    for saved in (transformer, tokenizer):
        saved.save_pretrained(tmp_path / "theirs")
    settings = json.loads((tmp_path / "theirs" / "config.json").read_text())
    del settings["legacy"]  # published checkpoints do not name it
    (tmp_path / "theirs" / "config.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=r"no trained weights for cls\..*'transformer_config': {'legacy': False}"):
        load(tmp_path / "theirs")
    pipeline = spacy.blank("en")
    model = {"name": str(tmp_path / "theirs"), "transformer_config": {"legacy": False}}
    pipeline.add_pipe("pll", config={"model": model, "keep_pieces": True})
    doc = pipeline(SENTENCES[0])
    expected, _ = score(doc, transformer, tokenizer, "word_l2r", "spacy")
    np.testing.assert_allclose(doc._.pll_data["scores"]["word_l2r"], expected, atol=1e-5)
    pipeline.to_disk(tmp_path / "saved")
    assert spacy.load(tmp_path / "saved")(SENTENCES[0])._.pll == doc._.pll


NUCLEOTIDES = ["<unk>", "<pad>", "<mask>", "<cls>", *map("".join, itertools.product("ACGT", repeat=3)), *"ACGTN"]


@pytest.mark.parametrize(
    ("vocabulary", "settings"), [(ESM_2, {}), (NUCLEOTIDES, {"eos_token": None})], ids=["ESM-2", "nucleotides"]
)
def test_the_tokenizer_of_esm_gets_places(tmp_path, vocabulary, settings):
    """ESM-2's own vocabulary; and pieces of several letters without a token at the end."""
    tokenizer = esm_tokenizer(tmp_path, vocabulary, **settings)
    backend = backend_of(tokenizer, "esm")
    draw = random.Random(0)
    parts = [*vocabulary, *ESM_2, *"acgt", " ", "\n", "\u00a0", "é", "犬", "<nul", "<MASK>", "J", "[", "\\"]
    for _ in range(300):
        text = "".join(draw.choices(parts, k=draw.randint(0, 20)))
        encoding = backend.encode(text)
        assert encoding.ids == tokenizer(text)["input_ids"], text
        n_special = 2 - ("eos_token" in settings)
        assert sum(encoding.special_tokens_mask) == n_special and encoding.special_tokens_mask[0] == 1
        offsets = encoding.offsets[1:][: len(encoding.ids) - n_special]
        assert "".join(text[start:end] for start, end in offsets) == "".join(text.split())


@pytest.mark.parametrize("metric", ["original", "word_l2r"])
def test_esm_2_with_its_own_tokenizer(tmp_path, metric):
    tokenizer = esm_tokenizer(tmp_path, ESM_2)
    transformer = build_transformer("esm", tokenizer, token_dropout=True)
    transformer.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    config = {"model": {"name": str(tmp_path)}, "metrics": [metric], "words": "piece", "keep_pieces": True}
    pipeline = spacy.blank("xx")
    pipeline.add_pipe("pll", config={**config, "alternatives": 3})
    pipeline.to_disk(tmp_path / "saved")
    for nlp in (pipeline, spacy.load(tmp_path / "saved")):
        doc = nlp(PROTEIN)
        ids = tokenizer(PROTEIN)["input_ids"]
        expected = [log_probabilities(transformer, tokenizer, ids, {i})[i] for i in range(1, len(ids) - 1)]
        np.testing.assert_allclose(doc._.pll_data["scores"][metric], expected, atol=1e-5)
        assert doc._.pll == pytest.approx(sum(expected), abs=1e-4) and doc._.pll_data["pieces"] == list(PROTEIN)
        assert all(alternative[0] in ESM_2 for alternative in doc[0]._.pll_alternatives)


@pytest.mark.parametrize("margin", [0, 2, 1000])
@pytest.mark.parametrize("window", [140, 16])
def test_esm_2_in_one_pass(tmp_path, margin, window):
    """Its embeddings depend on the share of masks: that of a text with the masks of a group alone, and those in it."""
    tokenizer = spaced_tokenizer()
    transformer = build_transformer("esm", tokenizer, token_dropout=True)
    transformer.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = {"name": str(tmp_path), "tokenizer_config": {"model_max_length": window}}
    nlp = spacy.blank("xx")
    nlp.add_pipe(
        "pll",
        config={"model": model, "metrics": ["original"], "words": "piece", "keep_pieces": True, "mask_margin": margin},
    )
    for doc in nlp.pipe([" ".join(PROTEIN), "M K [MASK] A Y I [MASK] [MASK] Q R", "M K"]):
        expected, _ = score_by_states(doc, transformer, tokenizer, "original", "piece", margin, window)
        np.testing.assert_allclose(doc._.pll_data["scores"]["original"], expected, atol=1e-5)


def test_esm_c_with_its_own_tokenizer(tmp_path):
    """Its vocabulary is part of its class, so no file of it needs to be there."""
    if not hasattr(hf, "EsmcTokenizer"):
        pytest.skip(f"transformers {hf.__version__} has no EsmcTokenizer")
    tokenizer = hf.EsmcTokenizer()
    transformer = build_transformer("esmc", tokenizer, bos_token_id=0, eos_token_id=2)
    transformer.save_pretrained(tmp_path)
    pipeline = spacy.blank("xx")
    pipeline.add_pipe("pll", config={"model": {"name": str(tmp_path)}, "metrics": ["original"], "keep_pieces": True})
    doc = pipeline(PROTEIN)
    expected, _ = score(doc, transformer, tokenizer, "original", "spacy")
    assert len(expected) == len(PROTEIN)
    np.testing.assert_allclose(doc._.pll_data["scores"]["original"], expected, atol=1e-5)


def test_a_folder_without_a_model_does_not_list_all_architectures(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="The configuration or tokenizer of .* cannot be read") as raised:
        MaskedLanguageModel(str(tmp_path)).load()
    assert len(str(raised.value)) < 600 and "albert" not in str(raised.value)


def test_a_maximum_length_that_is_no_whole_number(model_folder, tmp_path):
    folder = shutil.copytree(model_folder("bert"), tmp_path / "model")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "model_max_length": 12.7}))
    model = MaskedLanguageModel(str(folder))
    model.load()
    assert model.load().max_length == 12 and type(model.load().max_length) is int
