import itertools
import logging
import random

import numpy as np
import pytest
import spacy
import torch
import transformers as hf
from spacy.util import registry

from spacy_pll.language_model.reading.slow_tokenizers import backend_of
from spacy_pll.language_model.running.forward import Forward

from ..conftest import ARCHITECTURES, PARAGRAPH, SENTENCES, UNITS, build_transformer, get_tokenizer, masked_model
from ..protein_models import ESM_2, PROTEIN, esm_tokenizer, spaced_tokenizer
from ..reference import load_model, log_probabilities, score, score_by_states
from ..scoring.planned import make_batch
from ..test_metrics import METRICS

nlp = spacy.blank("en")

# Their code in transformers is that of another one but for a few lines, so the longest of their tests is slow.
COPIES = ["camembert", "data2vec", "ernie", "jina", "megatron-bert", "roberta-prelayernorm", "xmod"]


@pytest.mark.parametrize(
    "architecture",
    [pytest.param(name, marks=[pytest.mark.slow] if name in COPIES else []) for name in ARCHITECTURES],
)
def test_scores_equal_the_brute_force_reference(make_nlp, architecture):
    """Every metric, padded batches, within 1e-5 a piece; every word unit under an architecture for each tokenizer."""
    tokenizer = get_tokenizer(ARCHITECTURES[architecture][3])
    texts = ["The hooligans can't travel.", "Dr. Smith's souvenir", PARAGRAPH[:60], "a"]
    for words in UNITS if architecture in ("bert", "roberta", "albert") else ["spacy"]:
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
    assert model.loaded.forward.capabilities.narrowing


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
    model = masked_model(str(model_folder(architecture)))
    with caplog.at_level(logging.INFO, "spacy_pll"):
        for _ in range(2):
            model.load()
        [line] = caplog.messages
        assert str(model_folder(architecture)) in line and ("do not share" in line) == (architecture == "fnet")
        assert f"what comes {model.load().forward.capabilities.narrowing} at the masked pieces alone" in line
        if architecture == "bert":
            for _ in range(2):
                model.load(groups=True)
            assert len(caplog.messages) == 2 and "all masks of a text in one pass" in caplog.messages[1]


def test_rounding_does_not_hide_what_padding_does(model_folder, monkeypatch):
    model = masked_model(str(model_folder("convbert")), precision="bfloat16")
    seen, run = [], Forward.run
    monkeypatch.setattr(Forward, "run", lambda self, *args: (seen.append(self.precision), run(self, *args))[1])
    model.load()
    assert {*seen} == {"float32"} and model.loaded.forward.precision == "bfloat16" and not model.load().rows.pads


@pytest.mark.cpu
def test_a_head_that_looks_at_its_neighbours_is_run_at_every_position(model_folder):
    model = masked_model(str(model_folder("bert")))
    model.load()
    head = model.load().checkpoint.transformer.cls
    head.register_forward_pre_hook(lambda module, args: (args[0] + args[0].roll(1, dims=1),))
    model.use(model.loaded.checkpoint, "bert")
    assert model.loaded.forward.capabilities.narrowing is None
    assert model.load().rows.max_tokens <= model.load().rows.max_targets
    ids = model.load().tokenizer.encode("The traveler lost").ids
    batch = make_batch([ids], [(0, *asked) for asked in enumerate(ids)])
    with torch.inference_mode():
        logits = model.load().checkpoint.transformer(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    found = model.submit([batch]).result().log_probs
    np.testing.assert_allclose(found, logits[np.arange(len(ids)), ids].numpy(), atol=1e-5)


def test_mixed_precision_stays_near_float32(make_nlp, model_folder):
    exact = make_nlp("bert")(PARAGRAPH)
    config = {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(model_folder("bert")), "mixed_precision": True}
    pipeline = spacy.blank("en")
    pipeline.add_pipe("pll", config={"model": config})
    rough = pipeline(PARAGRAPH)
    assert rough._.pll != exact._.pll
    assert rough._.pll == pytest.approx(exact._.pll, rel=0.01)


# Errors: each says what was wrong, with the value, and what to do.


def test_architecture_is_registered(model_folder):
    model = registry.architectures.get("spacy-pll.MaskedLM.v1")(name=str(model_folder("bert")))
    assert not model.loaded
    model.load()
    assert model.loaded


# Classes that are masked or left-to-right by a setting: what the model does is what counts.


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


@pytest.mark.slow
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
