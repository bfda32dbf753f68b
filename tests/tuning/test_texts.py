"""Passages: neighbouring texts that are joined, long ones that are cut, and a sample of them."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from scripts.tuning import texts as module
from scripts.tuning.texts import ContextMaker, Reservoir, cut, is_held_out, read_passages, sample_passages
from spacy_pll import InputError
from spacy_pll.corpus.records import Record

from ..corpus.reading import read_records
from .conftest import random_texts


@pytest.fixture
def tokenizer(language_model):
    return language_model("bert").load().tokenizer


def records(*texts, file="a.txt"):
    return [Record(f"{file}, line {n}", text, {}) for n, text in enumerate(texts, 1)]


def test_neighbours_are_joined_to_some_200_pieces(corpus, tokenizer):
    passages = list(read_passages(read_records(corpus / "a.txt"), tokenizer))
    lengths = [len(tokenizer.encode(" ".join(passage), add_special_tokens=False).ids) for passage in passages]
    assert 150 < np.mean(lengths[:-1]) <= 210
    assert [text for passage in passages for text in passage] == (corpus / "a.txt").read_text().splitlines()


def test_empty_texts_and_files_end_a_passage(corpus, tokenizer):
    found = list(read_passages([*records("a b", "c", " ", "d"), *records("e", file="b.txt")], tokenizer))
    assert found == [("a b", "c"), ("d",), ("e",)]
    alone = list(read_passages(read_records(corpus / "b.txt"), tokenizer))
    assert {len(passage) for passage in alone} == {1}


def test_long_texts_are_cut_at_spaces(tokenizer):
    text = " ".join(random_texts(200))
    passages = list(read_passages(records("A short one.", text, "Another."), tokenizer))
    assert passages[0] == ("A short one.",) and len(passages) > 5
    assert " ".join(text for passage in passages for text in passage) == f"A short one. {text} Another."
    assert cut("abcdef gh", 4) == ["abcd", "ef", "gh"] and cut("", 4) == [] and cut("abcd", 4) == ["abcd"]


def test_docs_are_texts_too(tokenizer):
    doc = Doc(spacy.blank("en").vocab, words=["The", "cats"])
    assert list(read_passages([Record("a.spacy, doc 1", doc, {})], tokenizer)) == [("The cats",)]


def test_a_reservoir_keeps_each_thing_with_the_same_probability():
    counts = np.zeros(20)
    for seed in range(2000):
        reservoir = Reservoir(5, np.random.default_rng(seed))
        for i in range(20):
            reservoir.add((str(i),))
        counts[[int(one) for (one,) in reservoir.kept]] += 1
    assert len(reservoir.kept) == 5 and reservoir.seen == 20
    assert np.abs(counts / 2000 - 0.25).max() < 0.05


def test_the_sample_is_small_and_repeats(corpus, tokenizer, monkeypatch):
    monkeypatch.setattr(module, "MAX_PASSAGES", 30)
    one, same, other = (sample_passages(read_records(corpus), tokenizer, seed) for seed in (0, 0, 1))
    assert one == same != other and len(one.train) == 30
    assert all(map(is_held_out, one.dev)) and not any(map(is_held_out, one.train))


def test_texts_to_measure_on(corpus, tokenizer):
    sample = sample_passages(read_records(corpus), tokenizer, 0, records("To measure on."))
    assert sample.dev == [("To measure on.",)] and any(map(is_held_out, sample.train))


def test_too_few_texts(tokenizer):
    with pytest.raises(InputError, match="nothing to train on"):
        sample_passages(records("", " "), tokenizer, 0)
    with pytest.raises(InputError, match="nothing to measure on.* 1 passages are too few.*--dev-texts"):
        sample_passages(records("One text."), tokenizer, 0)


def test_contexts_are_windows_that_fit(tokenizer):
    make_contexts = ContextMaker(spacy.blank("en"), tokenizer, "spacy", 40)
    assert len(make_contexts("The cats.")) == 1 and make_contexts(" ") == []
    windows = make_contexts(" ".join(random_texts(20)))
    assert len(windows) > 2 and max(map(len, windows)) <= 40
