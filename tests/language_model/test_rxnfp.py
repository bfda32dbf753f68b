"""A published checkpoint for chemical reactions, rxnfp, its tokenizer of SMILES, and `mask_margin`."""

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from spacy_pll import make_pipeline, minimal_pairs, read_pairs

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
FOLDER = Path(__file__).parents[2] / "scripts" / "experiments"
PAIRS = read_pairs(FOLDER / "reactions.jsonl")
REACTIONS = [pair.good for pair in PAIRS]


@pytest.fixture(scope="module")
def script():
    return importlib.import_module("scripts.experiments.convert_rxnfp")


@pytest.fixture(scope="module")
def tokenizer(script):
    """With all pieces of the reactions but bromine."""
    pieces = {piece for pair in PAIRS for text in pair[:2] for piece in re.findall(script.SMILES, text)}
    return script.smiles_tokenizer([*SPECIAL, *sorted(pieces - {"Br"})], 200)


@pytest.fixture(scope="module")
def tiny(tokenizer, tmp_path_factory):
    """A model of random weights, in a folder as `convert` writes it: without a file that says what is in it."""
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=200, initializer_range=0.3,
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Oc1ccccc1.ClCC>>CCOc1ccccc1", "O c 1 c c c c c 1 . Cl C C >> C C O c 1 c c c c c 1"),
        ("C[C@@H](N)C(=O)[O-]", "C [C@@H] ( N ) C ( = O ) [O-]"),
        ("C%12CC%(123)F/C=C\\F", "C %12 C C %(123) F / C = C \\ F"),
        ("CC>[Pd]>CC", "C C > [Pd] > C C"),
        ("BrBClCScn", "Br B Cl C S c n"),
    ],
)
def test_pieces_of_smiles(script, text, pieces):
    vocabulary = [*SPECIAL, *sorted({*pieces.split()})]
    tokenizer = script.smiles_tokenizer(vocabulary, 200)
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["[CLS]", *pieces.split(), "[SEP]"]
    assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_what_is_no_smiles_or_not_in_the_vocabulary_is_unknown(tokenizer):
    assert tokenizer.tokenize("CBr??zC") == ["C", "[UNK]", "[UNK]", "[UNK]", "[UNK]", "C"]
    ids = tokenizer("CzzC", return_offsets_mapping=True)
    assert ids["offset_mapping"] == [(0, 0), (0, 1), (1, 3), (3, 4), (0, 0)]


def test_the_tokenizer_is_read_again(tiny, tokenizer):
    again = transformers.AutoTokenizer.from_pretrained(tiny)
    for text in REACTIONS:
        ids = again(text)["input_ids"]
        assert ids == tokenizer(text)["input_ids"]
        assert again.decode(ids, skip_special_tokens=True) == text or "Br" in text


def plain_scores(folder, text):
    """One forward pass of transformers for each piece."""
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = torch.tensor(tokenizer(text)["input_ids"])
    n = torch.arange(1, len(ids) - 1)
    rows = ids.repeat(len(n), 1)
    rows[torch.arange(len(n)), n] = tokenizer.mask_token_id
    with torch.no_grad():
        logits = model(rows).logits[torch.arange(len(n)), n]
    return logits.log_softmax(-1)[torch.arange(len(n)), ids[n]].numpy()


def score(folder, texts, **settings):
    nlp = make_pipeline(str(folder), metrics=["original"], words="piece", keep_pieces=True, **settings)
    return [doc._.pll_data["scores"]["original"] for doc in nlp.pipe(texts)]


def test_scores_are_those_of_plain_forward_passes(tiny):
    text = next(text for text in REACTIONS if "Br" not in text)
    np.testing.assert_allclose(score(tiny, [text])[0], plain_scores(tiny, text), atol=1e-5)


def test_the_folder_is_made_from_the_files_of_the_package(script, tiny, tokenizer, tmp_path, monkeypatch):
    published = tmp_path / "rxnfp" / "models" / "transformers" / "bert_pretrained"
    published.mkdir(parents=True)
    config = json.loads((tiny / "config.json").read_text())
    old = {name: value for name, value in config.items() if name not in ("model_type", "architectures")}
    (published / "config.json").write_text(json.dumps(old))
    torch.save(transformers.BertForMaskedLM.from_pretrained(tiny).state_dict(), published / "pytorch_model.bin")
    pieces = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    (published / "vocab.txt").write_text("\n".join(pieces) + "\n")
    monkeypatch.setattr(script, "published_files", lambda *_: tmp_path / "rxnfp")
    script.convert(tmp_path / "converted")
    text = next(text for text in REACTIONS if "Br" not in text)
    np.testing.assert_allclose(score(tmp_path / "converted", [text])[0], plain_scores(tiny, text), atol=1e-5)


@pytest.fixture(scope="module")
def converted(script, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rxnfp")
    try:
        script.convert(folder)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return folder


@pytest.mark.slow
def test_published_weights_give_the_scores_of_plain_forward_passes(converted):
    for text, found in zip(REACTIONS[::6], score(converted, REACTIONS[::6])):
        np.testing.assert_allclose(found, plain_scores(converted, text), atol=2e-5)


@pytest.mark.slow
def test_one_pass_is_close_and_right_products_win(converted):
    exact, one_pass = (np.concatenate(score(converted, REACTIONS, mask_margin=margin)) for margin in (None, 0))
    assert np.corrcoef(exact, one_pass)[0, 1] >= 0.99  # 0.995
    for margin in (None, 1):
        nlp = make_pipeline(str(converted), metrics=["original"], words="piece", mask_margin=margin)
        [accuracy] = minimal_pairs(nlp, PAIRS).measurements()
        assert accuracy.value >= 0.9  # 23 of 24
