import json

import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin

from spacy_pll.corpus.readers import InputError, Record, read_records
from spacy_pll.distillation.texts import (
    HELD_OUT,
    endless_batches,
    epoch_batches,
    has_texts,
    is_held_out,
    read_texts,
    write_texts,
)
from spacy_pll.scoring.wordpieces import get_wordpieces

from ..conftest import PARAGRAPH, get_tokenizer
from .conftest import random_texts

nlp = spacy.blank("en")


def write(folder, texts, words="spacy", max_length=128, identity=None):
    tokenizer = get_tokenizer("wordpiece").backend_tokenizer
    tokenizer.no_truncation()
    records = texts if isinstance(texts[0], Record) else [Record("", text, {}) for text in texts]
    write_texts(folder, records, nlp, tokenizer, words, max_length, identity or {})
    return tokenizer


@pytest.mark.parametrize("words", ["spacy", "tokenizer", "whitespace"])
def test_what_is_read_again_are_the_wordpieces(tmp_path, words):
    texts = random_texts(200)
    tokenizer = write(tmp_path, texts, words)
    found = read_texts(tmp_path)
    assert len(found.train) + len(found.held_out) == len(texts)
    for i in [*found.train, *found.held_out]:
        expected, context = get_wordpieces(nlp(texts[i])[:], tokenizer, words), found[i]
        assert context.ids.tolist() == [*expected.prefix, *expected.ids, *expected.suffix]
        np.testing.assert_array_equal(context.word, expected.word)
        assert context.first == len(expected.prefix) and is_held_out(texts[i]) == (i in found.held_out)
    held_out = [json.loads(line)["text"] for line in (tmp_path / HELD_OUT).read_text().splitlines()]
    assert held_out == [text for text in texts if is_held_out(text)]


def test_long_texts_are_read_in_windows_and_empty_ones_left_out(tmp_path):
    texts = [*random_texts(200), "", " ", PARAGRAPH]
    write(tmp_path, texts, max_length=32)
    found = read_texts(tmp_path)
    lengths = found.lengths(np.arange(len(found.offsets) - 1))
    assert lengths.max() <= 32 and len(lengths) > 202


def test_a_text_is_held_out_by_its_contents():
    texts = [f"text {i}" for i in range(50_000)]
    held_out = [text for text in texts if is_held_out(text)]
    assert 800 < len(held_out) < 1200 and all(is_held_out(text) for text in held_out)


def test_docs_keep_their_tokens(tmp_path):
    docs = [spacy.tokens.Doc(nlp.vocab, words=text.replace(".", " .").split()) for text in random_texts(200)]
    DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
    write(tmp_path / "out", list(read_records(str(tmp_path / "a.spacy"), vocab=nlp.vocab)))
    assert len(read_texts(tmp_path / "out").train) > 150


def test_texts_that_are_there_are_not_read_again(tmp_path):
    write(tmp_path, random_texts(200), identity={"corpus": "1"})
    assert has_texts(tmp_path, {"corpus": "1"}) and not has_texts(tmp_path, {"corpus": "2"})
    with pytest.raises(InputError):
        write(tmp_path, [" "], identity={"corpus": "1"})
    assert not has_texts(tmp_path, {"corpus": "1"})  # what is there now is not whole


def test_nothing_to_train_on(tmp_path):
    with pytest.raises(InputError, match="nothing to train on: of the 2 texts, none has a wordpiece"):
        write(tmp_path, ["", " "])
    few = [text for text in random_texts(20) if not is_held_out(text)]
    with pytest.raises(InputError, match=f"{len(few)} texts are too few. Give some hundred"):
        write(tmp_path, few)


@pytest.mark.parametrize("pads", [True, False])
def test_a_batch_has_rows_of_similar_length_and_an_epoch_has_each_once(pads):
    lengths = np.random.default_rng(0).integers(3, 60, 500)
    batches = epoch_batches(lengths, 256, (0, 0), pads)
    assert sorted(np.concatenate(batches)) == list(range(500))
    assert all(lengths[batch].max() * len(batch) <= 256 for batch in batches)
    spread = max(np.ptp(lengths[batch]) for batch in batches)
    assert spread <= 12 if pads else spread == 0
    padding = sum(lengths[batch].max() * len(batch) for batch in batches) / lengths.sum()
    assert padding < 1.15
    alone = epoch_batches(np.array([300, 5]), 256, (0, 0), pads)
    assert sorted(map(len, alone)) == [1, 1]


def test_the_batches_go_on_where_they_were():
    lengths = np.random.default_rng(0).integers(3, 60, 100)
    whole = endless_batches(lengths, 256, 3)
    expected = [next(whole).tolist() for _ in range(60)]
    assert expected[0] != expected[len(epoch_batches(lengths, 256, (3, 0)))]
    for first in (0, 7, 40):
        later = endless_batches(lengths, 256, 3, first=first)
        assert [next(later).tolist() for _ in range(60 - first)] == expected[first:]
