"""`mask_margin`: with the widest margin the exact scores, with any margin those of a plain implementation."""

import threading
from collections import Counter
from itertools import product

import numpy as np
import pytest
import spacy
import torch
import transformers

from spacy_pll.language_model.running import group_attention
from spacy_pll.scoring.masks import REACH

from ... import reference
from ...architectures import ATTENTIONS, TEXTS, WINDOWS, find_difference, worst_difference
from ...conftest import ALL_ARCHITECTURES, ARCHITECTURES, PARAGRAPH, SENTENCES, change, get_tokenizer, scores

UNABLE = {"bart", "convbert", "fnet", "longformer", "mobilebert"}
# transformers computes their attention in one way only.
EAGER_ONLY = {"big-bird", "deberta", "deberta-v2", "ibert", "luke", "megatron-bert", "mpnet", "rembert", "roformer",
              "xlm", "flaubert"}  # fmt: skip
# With other positions, attention or layers each; the rest are much like one of them.
VARIED = {"albert", "bert", "deberta", "deberta-v2", "modernbert-local", "roberta", "roformer", "ultrabert", "xlm"}
# These take one list of positions for all rows, so each row is a pass.
ONE_ROW = {"deberta-v2", "roformer"}
IN_WAYS = ATTENTIONS, WINDOWS


@pytest.mark.parametrize("architecture", sorted(set(ARCHITECTURES) - UNABLE))
def test_a_group_that_is_the_whole_context_gives_the_exact_scores(language_model, architecture):
    model = language_model(architecture)
    assert model.load(groups=True).groups.one_row == (architecture in ONE_ROW)
    assert worst_difference(model) <= 1e-5


@pytest.mark.parametrize("short", [0, 10**6])
@pytest.mark.parametrize("local", [False, True])
def test_attention_in_short_and_in_long_rows(model_folder, monkeypatch, local, short):
    """Whole rows, or contents and blocks: both ways give the exact scores for all lengths, also with a local mask."""
    monkeypatch.setattr(group_attention, "SHORT", {"cpu": short})
    settings = {"global_attn_every_n_layers": 2, "local_attention": 8} if local else {}
    folder = model_folder("modernbert", **settings)
    scorer = spacy.blank("en").add_pipe("pll", config={"model": {"name": str(folder)}})
    assert worst_difference(scorer.model, ["word_l2r", "sentence_l2r"]) <= 1e-5


@pytest.mark.parametrize("architecture", sorted(UNABLE))
def test_architectures_that_cannot_are_refused(make_nlp, architecture):
    nlp = make_nlp(architecture, mask_margin=1)
    with pytest.raises(ValueError, match="cannot read all masks in one pass.*`mask_spacing=16`"):
        nlp("The traveler lost the souvenir.")
    with pytest.raises(ValueError, match="cannot read all masks in one pass"):
        list(nlp.pipe(TEXTS))  # at once, not once for each text
    with pytest.raises(ValueError, match="cannot read all masks in one pass"):
        nlp.initialize()


def in_some_ways():
    """Varied architectures in all ways; each other one with all windows and attentions, but not with all pairs."""
    for n, (architecture, attention, window) in enumerate(product(sorted({*ALL_ARCHITECTURES} - UNABLE), *IN_WAYS)):
        if architecture in VARIED:
            yield architecture, attention, window
        elif n % 4 in ((0, 1) if architecture in EAGER_ONLY else (1, 2)):
            yield pytest.param(architecture, attention, window, marks=pytest.mark.slow)


@pytest.mark.usefixtures("tried_once")
@pytest.mark.parametrize(("architecture", "attention", "window"), in_some_ways())
def test_scores_are_those_of_a_reference_without_groups(model_folder, architecture, attention, window):
    if attention == "sdpa" and architecture in EAGER_ONLY:
        pytest.skip("transformers has no sdpa for it")
    try:
        difference, several = find_difference(model_folder(architecture), window, attention, every=6)
    except ValueError as error:
        if transformers.__version__ < "5" and "does not support an attention implementation" in str(error):
            pytest.skip("transformers 4 has no sdpa for it")
        raise
    assert difference <= 1e-5
    assert several == (architecture not in ONE_ROW)


@pytest.mark.slow
@pytest.mark.parametrize("margin", [0, 1, 3])
@pytest.mark.parametrize("architecture, tokenizer", [("bert", "wordpiece"), ("roberta", "byte-level")])
def test_scores_are_those_of_a_plain_implementation(make_nlp, architecture, tokenizer, margin):
    metrics = ["word_l2r", "original"]
    for words in ("spacy", "whitespace"):
        nlp = make_nlp(architecture, tokenizer, metrics=metrics, words=words, mask_margin=margin)
        model, hf_tokenizer = reference.load_model(nlp.get_pipe("pll").model.name)
        first = hf_tokenizer.pad_token_id + 1 if architecture == "roberta" else 0
        for text, doc in zip(TEXTS, nlp.pipe(TEXTS)):
            for metric in metrics:
                plain = nlp.make_doc(text)
                values, tokens = reference.score_grouped(plain, model, hf_tokenizer, metric, words, margin, first)
                other, _ = reference.score_by_states(plain, model, hf_tokenizer, metric, words, margin, 128, every=4)
                np.testing.assert_allclose(values[::4], other, atol=1e-5)  # the references agree
                expected = np.bincount(tokens, weights=values, minlength=len(doc))
                np.testing.assert_allclose(scores(doc, f"pll_{metric}"), expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("short", [0, 1000], ids=["long rows", "short rows"])
@pytest.mark.parametrize("margin", [0, 14])
def test_of_long_words_what_is_far_is_out_of_sight(make_nlp, monkeypatch, margin, short):
    monkeypatch.setitem(group_attention.SHORT, "cpu", short)
    texts = [f"The {'souvenir' * 7} sleeps."]
    metrics = ["word_l2r", "word_r2l", "whole_word", "original"]
    nlp = make_nlp("bert", "wordpiece", metrics=metrics, mask_margin=margin, keep_pieces=True)
    model, hf_tokenizer = reference.load_model(nlp.get_pipe("pll").model.name)
    sight = max(REACH, margin)
    for text, doc in zip(texts, nlp.pipe(texts)):
        assert max(Counter(doc._.pll_data["word"]).values()) > sight + 3
        for metric in metrics:
            plain = nlp.make_doc(text), model, hf_tokenizer, metric, "spacy", margin
            values, _ = reference.score_grouped(*plain, reach=sight)
            np.testing.assert_allclose(doc._.pll_data["scores"][metric], values, atol=1e-5)
        # A metric has the same scores without the others.
        alone = make_nlp("bert", "wordpiece", metrics=["word_l2r"], mask_margin=margin)(text)
        np.testing.assert_allclose(scores(alone), scores(doc), atol=1e-5)


def test_scores_depend_neither_on_company_nor_on_how_a_text_is_split(make_nlp):
    texts = [*SENTENCES, "The.", "", "  ", PARAGRAPH]
    alone = list(map(make_nlp(mask_margin=1, max_batch_tokens=1), texts))
    together = list(make_nlp(mask_margin=1).pipe(texts))
    for a, b in zip(alone, together):
        np.testing.assert_allclose(scores(a), scores(b), atol=1e-5)


def test_a_wide_margin_is_exact(make_nlp):
    exact, wide, none = (make_nlp(**settings) for settings in ({}, {"mask_margin": 1000}, {"mask_margin": 0}))
    for text in (*SENTENCES, PARAGRAPH):
        expected = scores(exact(text))
        np.testing.assert_allclose(scores(wide(text)), expected, atol=1e-5)
        assert np.abs(scores(none(text)) - expected).max() > 1e-4


def test_several_metrics_targets_windows_alternatives_and_the_record(make_nlp):
    text = " ".join([PARAGRAPH] * 3)  # several windows
    metrics = ["word_l2r", "original", "word_any_order"]
    config = dict(mask_margin=2, keep_pieces=True, alternatives=2, distribution=True)
    together = make_nlp(metrics=metrics, **config)(text)
    for metric in metrics:
        np.testing.assert_allclose(
            scores(make_nlp(metrics=[metric], mask_margin=2)(text)), scores(together, f"pll_{metric}"), atol=1e-5
        )
    record = together._.pll_data
    assert record["mask_margin"] == 2 and len(record["ids"]) == len(record["alternatives"]) == len(record["rank"])
    best = [alternatives[0][1] for alternatives in record["alternatives"]]
    assert all(p <= b + 1e-6 for p, b in zip(record["scores"]["word_l2r"], best))

    nlp = make_nlp(mask_margin=2, targets="some")
    doc = nlp.make_doc(text)
    doc.spans["some"] = [doc[3:5], doc[40:41]]
    some, everything = scores(nlp(doc)), scores(together)
    chosen = ~np.isnan(some)
    assert np.flatnonzero(chosen).tolist() == [3, 4, 40]
    np.testing.assert_allclose(some[chosen], everything[chosen], atol=1e-5)


def test_it_reads_fewer_ids(make_nlp):
    counts = {}
    for margin in (None, 0, 1):
        nlp = make_nlp(mask_margin=margin)
        nlp(PARAGRAPH)
        counts[margin] = nlp.get_pipe("pll").predictor.counts
    n = counts[None].targets
    assert counts[0].ids < 3 * n < counts[1].ids < 6 * n < counts[None].ids


def test_a_pass_that_does_not_fit_into_memory_is_halved(make_nlp):
    expected = [scores(doc) for doc in make_nlp(mask_margin=1).pipe([PARAGRAPH, *SENTENCES])]
    nlp = make_nlp(mask_margin=1)
    nlp.initialize()
    forward = nlp.get_pipe("pll").model.loaded.forward
    run, sizes = forward.run_groups, []

    def small(ids, *layout):
        if ids.numel() > 200:
            raise torch.OutOfMemoryError("out of memory")
        sizes.append(ids.numel())
        return run(ids, *layout)

    forward.run_groups = small
    for doc, values in zip(nlp.pipe([PARAGRAPH, *SENTENCES]), expected):
        np.testing.assert_allclose(scores(doc), values, atol=1e-5)
    assert len(sizes) > 3


@pytest.mark.parametrize(
    "config, message",
    [
        ({"mask_margin": -1}, "`mask_margin` must be 0 or more"),
        ({"mask_margin": 1, "mask_spacing": 8}, "Leave one of them out"),
        ({"mask_margin": 1, "metrics": ["sentence_l2r"]}, "'sentence_l2r' does not mask within words.*`mask_margin`"),
    ],
)
def test_bad_settings(make_nlp, config, message):
    with pytest.raises(ValueError, match=message):
        make_nlp(**config)


@pytest.mark.slow
def test_threads_score_at_the_same_time(make_nlp):
    """Each thread has its own targets and groups, though they share the model and its hooks."""
    texts = [*SENTENCES, PARAGRAPH]
    nlps = {margin: make_nlp(mask_margin=margin) for margin in (None, 0, 2)}
    for nlp in nlps.values():
        nlp.initialize()
    shared = nlps[None].get_pipe("pll").model
    for margin in (0, 2):
        change(nlps[margin].get_pipe("pll"), model=shared)
    expected = {margin: [scores(nlp(text)) for text in texts] for margin, nlp in nlps.items()}
    failures = []

    def work(margin):
        try:
            for _ in range(5):
                for doc, values in zip(nlps[margin].pipe(texts, batch_size=2), expected[margin]):
                    np.testing.assert_allclose(scores(doc), values, atol=1e-5)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(margin,)) for margin in (None, 0, 2) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_tokenizers_of_the_trial_are_those_of_the_architectures():
    assert {get_tokenizer(tokenizer).mask_token_id is not None for *_, tokenizer in ARCHITECTURES.values()} == {True}
