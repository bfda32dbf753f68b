"""Tokenizers of transformers that say nothing of places: what is found out of them."""

import pickle
import random

import numpy as np
import pytest
import spacy
import transformers as hf

from spacy_pll import make_pipeline
from spacy_pll.language_model.reading.slow_tokenizers import MARKS, backend_of

from ... import reference
from ...conftest import SENTENCES, build_transformer
from ...slow_tokenizers import TEXTS, make_slow_tokenizer, odd_texts

JAPANESE = "BertJapaneseTokenizer"
CASES = {
    "xlm": ("XLMTokenizer", {}),
    "xlm, cased": ("XLMTokenizer", {"do_lowercase_and_remove_accent": False}),
    "flaubert": ("FlaubertTokenizer", {}),
    "bertweet": ("BertweetTokenizer", {}),
    "phobert": ("PhobertTokenizer", {}),
    "japanese": (JAPANESE, {"word_tokenizer_type": "basic"}),
    "japanese, characters": (JAPANESE, {"word_tokenizer_type": "basic", "subword_tokenizer_type": "character"}),
}
# These need packages with dictionaries.
MORPHEMES = {
    "mecab": (JAPANESE, {"word_tokenizer_type": "mecab", "mecab_kwargs": {"mecab_dic": "ipadic"}}),
    "mecab, characters": (JAPANESE, {"word_tokenizer_type": "mecab", "subword_tokenizer_type": "character",
                                     "mecab_kwargs": {"mecab_dic": "ipadic"}}),
    "sudachi": (JAPANESE, {"word_tokenizer_type": "sudachi", "sudachi_kwargs": {"sudachi_dict_type": "small"}}),
}  # fmt: skip
PACKAGES = {"xlm": "sacremoses", "flaubert": "sacremoses", "mecab": "ipadic", "sudachi": "sudachidict_small"}
ALL = [*CASES, *(pytest.param(name, marks=pytest.mark.slow) for name in MORPHEMES)]
# The classes whose models read a text by these tokenizers.
ARCHITECTURES = {"xlm": "xlm", "flaubert": "flaubert", "bertweet": "roberta", "phobert": "roberta"}


def make(name, folder):
    if package := PACKAGES.get(name.split(",")[0]):
        pytest.importorskip(package)
    cls, settings = {**CASES, **MORPHEMES}[name]
    return make_slow_tokenizer(folder, cls, **settings)


@pytest.mark.parametrize("name", ALL)
def test_the_ids_are_those_of_transformers(name, tmp_path):
    """And each piece stands where its letters are."""
    tokenizer = make(name, tmp_path)
    backend, refused = backend_of(tokenizer, name), 0
    for text in odd_texts(random.Random(0), 200):
        try:
            encoding = backend.encode(text)
        except ValueError:
            refused += 1
            assert name.startswith("mecab") and "\x00" in text  # where MeCab ends, and the rest of the text is lost
            continue
        expected = tokenizer(text, return_special_tokens_mask=True)
        assert (encoding.ids, encoding.special_tokens_mask) == (
            expected["input_ids"],
            tokenizer.get_special_tokens_mask(expected["input_ids"][1:-1]),
        )
        assert len({*map(len, (encoding.ids, encoding.tokens, encoding.offsets, encoding.word_ids))}) == 1
        plain = tokenizer.tokenize(text)
        for piece, (start, end) in zip(plain, encoding.offsets[1:-1], strict=True):
            letters = [c for c in backend.marks.text(piece).lower() if c.isascii() and c.isalnum()]
            if piece != tokenizer.unk_token and letters:
                assert set(letters) <= set(fold(text[start:end])), (piece, text[start:end])
        covered = {i for start, end in encoding.offsets for i in range(start, end)}
        assert all(i in covered for i, c in enumerate(text) if c.isascii() and c.isalnum())
    assert refused < 20


def fold(text):
    import unicodedata

    return unicodedata.normalize("NFKD", text).casefold()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("xlm", "The travelers didn't lose it.", ["The", "travelers", "didn", "'t", "lose", "it", "."]),
        ("bertweet", "The travelers, lost.", ["The", "travelers,", "lost."]),
        ("japanese", "The travelers lost", ["The", "travelers", "lost"]),
    ],
)
def test_the_words_of_the_tokenizer(tmp_path, name, text, words):
    encoding = backend_of(make(name, tmp_path), name).encode(text, add_special_tokens=False)
    found = {}
    for word, (start, end) in zip(encoding.word_ids, encoding.offsets):
        found[word] = (found.get(word, (start,))[0], end)
    assert [text[start:end] for start, end in found.values()] == words


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_scores_are_those_of_a_brute_force(tmp_path, name):
    """Also after saving, and each token has the sum of its own pieces."""
    tokenizer = make(name, tmp_path)
    transformer = build_transformer(ARCHITECTURES[name], tokenizer)
    nlp = make_pipeline((transformer, tokenizer), ["original", "word_l2r"], keep_pieces=True, alternatives=2)
    nlp.to_disk(tmp_path / "saved")
    for text in SENTENCES[:4]:
        doc, again = nlp(text), spacy.load(tmp_path / "saved")(text)
        ids = tokenizer(text)["input_ids"]
        assert doc._.pll_data["ids"] == ids[1:-1]
        expected = [reference.log_probabilities(transformer, tokenizer, ids, {i})[i] for i in range(1, len(ids) - 1)]
        np.testing.assert_allclose(doc._.pll_data["scores"]["original"], expected, atol=1e-5)
        assert doc._.pll_original == pytest.approx(sum(expected), abs=1e-4)
        assert [token._.pll_pieces for token in doc] == [doc._.pll_data["token"].count(token.i) for token in doc]
        assert again._.pll_original == doc._.pll_original and doc[0]._.pll_alternatives


@pytest.mark.parametrize("name", ["xlm", "phobert", "japanese"])
def test_a_scorer_can_be_sent_to_a_spawned_worker(tmp_path, name):
    tokenizer = make(name, tmp_path)
    nlp = make_pipeline((build_transformer(ARCHITECTURES.get(name, "bert"), tokenizer), tokenizer))
    other = pickle.loads(pickle.dumps(nlp.get_pipe("pll")))
    assert other(nlp.make_doc(SENTENCES[0]))._.pll == nlp(SENTENCES[0])._.pll


@pytest.mark.parametrize("name", ["bertweet", "phobert"])
def test_a_tokenizer_can_be_saved_when_its_files_are_gone(tmp_path, name):
    """As those of a pipeline from bytes are."""
    tokenizer = make(name, tmp_path)
    nlp, other = make_pipeline((build_transformer("roberta", tokenizer), tokenizer)), spacy.blank("en")
    for file in (tmp_path / "vocab.txt", tmp_path / "bpe.codes"):
        file.unlink()
    other.add_pipe("pll").from_bytes(nlp.get_pipe("pll").to_bytes())
    other.to_disk(tmp_path / "saved")
    assert spacy.load(tmp_path / "saved")(SENTENCES[0])._.pll == nlp(SENTENCES[0])._.pll


@pytest.mark.cpu
def test_files_with_other_names_are_saved_under_the_usual_ones(tmp_path):
    make("phobert", tmp_path)
    names = [str((tmp_path / old).rename(tmp_path / new)) for old, new in (("vocab.txt", "v"), ("bpe.codes", "c"))]
    tokenizer = hf.PhobertTokenizer(*names)
    nlp = make_pipeline((build_transformer("roberta", tokenizer), tokenizer))
    nlp.to_disk(tmp_path / "saved")
    assert spacy.load(tmp_path / "saved")(SENTENCES[0])._.pll == nlp(SENTENCES[0])._.pll


@pytest.mark.slow
def test_japanese_with_sentencepiece(tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS * 20), encoding="utf8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "texts.txt"), model_prefix=str(tmp_path / "spiece"), vocab_size=120, minloglevel=2,
        pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, user_defined_symbols=["[CLS]", "[SEP]", "[MASK]"], pad_piece="[PAD]",
        unk_piece="[UNK]"
    )  # fmt: skip
    draws = {"enable_sampling": True, "nbest_size": -1, "alpha": 0.1}  # each time another division
    tokenizer = hf.BertJapaneseTokenizer(
        *(None, str(tmp_path / "spiece.model")), word_tokenizer_type="basic", subword_tokenizer_type="sentencepiece",
        sp_model_kwargs=draws
    )  # fmt: skip
    backend = backend_of(tokenizer, "japanese")
    for text in odd_texts(random.Random(0), 200):
        encoding = backend.encode(text)
        assert encoding.ids == tokenizer(text)["input_ids"]
        covered = {i for start, end in encoding.offsets for i in range(start, end)}
        assert all(i in covered for i, c in enumerate(text) if c.isascii() and c.isalnum())


def test_what_a_tokenizer_rewrites_is_an_error_that_shows_it(tmp_path):
    tokenizer = make_slow_tokenizer(tmp_path, "BertweetTokenizer", normalization=True)
    with pytest.raises(ValueError, match="a BertweetTokenizer, .* it has other letters at 'See https://example"):
        backend_of(tokenizer, "bertweet").encode("See https://example.org now")


def test_others_are_refused(tmp_path):
    with pytest.raises(ValueError, match="PerceiverTokenizer. has no fast version.*with a tokenizer.json, or with one"):
        backend_of(hf.PerceiverTokenizer(), "perceiver")
    assert all(hasattr(hf, name) for name in MARKS)


def test_a_model_that_reads_the_language_is_refused(tmp_path):
    pytest.importorskip("sacremoses")
    tokenizer = make_slow_tokenizer(tmp_path, "XLMTokenizer")
    build_transformer("xlm", tokenizer, n_langs=2, use_lang_emb=True).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="reads the language .*beside the text"):
        make_pipeline(str(tmp_path))(SENTENCES[0])
