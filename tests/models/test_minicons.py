"""Agreement with minicons 0.3.39, which is written by one of the field and used by many."""

import csv

import numpy as np
import pytest
import spacy
import torch

from spacy_pll import Choice, Option, choices, make_pipeline, read_pairs
from spacy_pll.evaluation.items import smallest_groups

from .. import reference
from ..cli.conftest import run
from ..conftest import data_folder, write_jsonl

EQUIVALENT = {"original": "original", "word_l2r": "within_word_l2r"}


def sentences(n):
    """n sentences, spread over the paradigms of BLiMP."""
    groups = smallest_groups(read_pairs(str(data_folder("data/blimp")))).values()
    pairs = [pair for group in groups for pair in group[: n // 134 + 1]]
    return [sentence for pair in pairs for sentence in (pair.good, pair.bad)][:n]


@pytest.mark.slow
@pytest.mark.usefixtures("real_english")
@pytest.mark.parametrize(("architecture", "tokenizer"), [("bert", "bert-base-cased"), ("roberta", "roberta-base")])
def test_sums_equal_those_of_minicons(model_folder, architecture, tokenizer):
    scorer = pytest.importorskip(
        "minicons.scorer", reason="minicons is missing: pip install . --group test-transformers4"
    )
    folder = model_folder(architecture, tokenizer)
    theirs = scorer.MaskedLMScorer(str(folder), "cpu")
    texts = sentences(500)
    nlp = spacy.blank("en")
    config = {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(folder)}
    nlp.add_pipe("pll", config={"model": config, "metrics": list(EQUIVALENT), "words": "tokenizer"})
    ours = list(nlp.pipe(texts))
    for metric, name in EQUIVALENT.items():
        expected = []
        for start in range(0, len(texts), 50):
            batch = texts[start : start + 50]
            expected += theirs.sequence_score(batch, PLL_metric=name, reduction=lambda x: x.sum(0).item())
        np.testing.assert_allclose([doc._.get(f"pll_{metric}") for doc in ours], expected, atol=1e-4)


CONDITIONS = [
    ("The traveler", "can't believe it", "today."), ("She said that", "well-known hooligans", "left."),
    ("It was late.", "The souvenir", ""), ("She left", "Dr. Smith's co-workers.", ""),
]  # fmt: skip


def conditional_score(folder, prefix, stimulus, suffix):
    """What `conditional_score(prefix, stimuli, suffix)` is defined as with `within_word_l2r`, as a sum: each piece of
    the stimulus is masked with those behind it in its word, and the rest is read.
    """
    model, tokenizer = reference.load_model(str(folder))
    text, until = " ".join(filter(None, (prefix, stimulus, suffix))), len(f"{prefix} {stimulus}")
    read, total = tokenizer(text, return_offsets_mapping=True), 0.0
    words, ids = read.word_ids(), torch.tensor([read.input_ids])
    for i, (_, end) in enumerate(read.offset_mapping):
        if words[i] is not None and len(prefix) < end <= until:  # the space, too, if it is a piece
            masked = ids.clone()
            masked[0, [k for k in range(i, len(words)) if words[k] == words[i]]] = tokenizer.mask_token_id
            with torch.no_grad():
                total += model(masked).logits[0, i].log_softmax(-1)[ids[0, i]].item()
    return total


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_a_column_of_contexts_gives_conditional_scores(model_folder, tmp_path, architecture):
    folder = model_folder(architecture)
    expected = [conditional_score(folder, *one) for one in CONDITIONS]
    rows = [dict(zip(("prefix", "stimulus", "suffix"), one)) for one in CONDITIONS]
    how = ("--table", "words", "--words", "tokenizer", "--context-column", "prefix", "--after-column", "suffix")
    how += ("--column", "stimulus", "--no-log-frequency", "--model", folder)
    run("score", write_jsonl(tmp_path / "t.jsonl", *rows), tmp_path / "o.csv", *how)
    with open(tmp_path / "o.csv", newline="", encoding="utf8") as file:
        written = [*csv.DictReader(file)]
    sums = [sum(float(row["pll_word_l2r"]) for row in written if row["doc"] == str(i)) for i in range(len(rows))]
    assert sums == pytest.approx(expected, abs=1e-4)
    nlp = make_pipeline(str(folder), words="tokenizer")
    options = (Option(text, before, after=after and f" {after}") for before, text, after in CONDITIONS)
    items = [Choice([option, option._replace(text="x")]) for option in options]
    assert choices(nlp, items).scores["word_l2r"].sums[::2] == pytest.approx(expected, abs=1e-4)
