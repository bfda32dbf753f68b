"""Padding that is hidden in the attention, and short rows that are read as one, as on a GPU."""

import logging
import traceback
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import spacy
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._python_dispatch import TorchDispatchMode

from spacy_pll.language_model.running import forward, row_attention

from ...conftest import ALL_ARCHITECTURES, PARAGRAPH, SENTENCES, masked_model, scores

TEXTS = [*SENTENCES, "I a.", "", "The souvenir travels.", *["I am."] * 7]
# What follows of the padding is more than attention, or is looked for in a way of their own.
TOLD = {"convbert", "fnet", "longformer", "mobilebert"}
# They ask a GPU for numbers in each pass, whatever they are given: for a length, or where they stand.
ASKING = {"bart", "convbert", "deberta", "flaubert", "longformer", "xlm"}
# Operations for whose result a host waits.
LOOKS = {"_local_scalar_dense", "equal", "is_nonzero", "item", "nonzero"}


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    monkeypatch.setitem(row_attention.TILE, "cpu", row_attention.TILE["cuda"])


def forward_of(nlp):
    return nlp.get_pipe("pll").model.load().forward


@given(
    data=st.data(),
    width=st.integers(1, 20),
    heads=st.integers(1, 3),
    together=st.integers(1, 5),
    joints=st.integers(1, 3),
    own=st.sampled_from([None, "rows", "all", "heads"]),
)
def test_each_row_has_what_it_would_have_alone(data, width, heads, together, joints, own):
    rows, size = together * joints, 4
    lengths = data.draw(st.lists(st.integers(1, width), min_size=rows, max_size=rows))
    numbers = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    query, key, value = (torch.randn(rows, width, heads, size, generator=numbers).transpose(1, 2) for _ in range(3))
    shape = {"rows": (rows, 1), "all": (1, 1), "heads": (1, heads)}.get(own)
    mask = None if shape is None else torch.rand(*shape, width, width, generator=numbers) < 0.7
    if mask is not None:
        mask |= torch.eye(width, dtype=torch.bool)
    pads = data.draw(st.booleans())
    ids = torch.zeros(rows, width, dtype=torch.int64)
    with row_attention.RowAttention(ids, torch.tensor(lengths) if pads else None, together):
        found = [scaled_dot_product_attention(query, key, value, attn_mask=mask) for _ in range(2)][-1]
    for row, length in enumerate(lengths if pads else [width] * rows):
        alone = (x[row : row + 1, :, :length] for x in (query, key, value))
        of_row = None if mask is None else mask.expand(rows, -1, -1, -1)[row : row + 1, :, :length, :length]
        expected = scaled_dot_product_attention(*alone, attn_mask=of_row)
        torch.testing.assert_close(found[row : row + 1, :, :length], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("tried_once")
@pytest.mark.parametrize("architecture", sorted(ALL_ARCHITECTURES))
def test_scores_are_the_same(make_nlp, monkeypatch, architecture):
    for how in ({"metrics": ["word_l2r", "sentence_l2r"]}, {"mask_margin": 0}):
        found = []
        for tile in (0, row_attention.TILE["cuda"]):
            monkeypatch.setitem(row_attention.TILE, "cpu", tile)
            nlp = make_nlp(architecture, **how)
            try:
                found.append([scores(doc) for doc in nlp.pipe([*TEXTS, PARAGRAPH])])
            except ValueError as error:
                assert "mask_margin" in how and "cannot read all masks in one pass" in str(error)
                return
            assert (forward_of(nlp).capabilities.filler is None) == (not tile or architecture in TOLD)
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("settings", [{"model_max_length": 10}, {"model_max_length": 20}])
def test_windows_targets_and_docs_that_fail(model_folder, as_on_a_gpu, settings):
    """A window has its own rows; a doc that fails takes none of the others with it."""

    def make():
        nlp = spacy.blank("en")
        model = {"name": str(model_folder("bert")), "tokenizer_config": settings}
        nlp.add_pipe("pll", config={"model": model, "targets": "some"})
        return nlp

    def docs(nlp):
        for doc in map(nlp.make_doc, [*TEXTS, PARAGRAPH]):
            doc.spans["some"] = [doc[:3], doc[5:9]]
            yield doc

    nlp = make()
    found = [scores(doc) for doc in nlp.pipe(docs(nlp))]
    passes = forward_of(nlp)
    assert passes.capabilities.filler is not None
    with passes.trying(replace(passes.capabilities, filler=None)):
        for doc, values in zip(nlp.pipe(docs(nlp)), found, strict=True):
            np.testing.assert_allclose(scores(doc), values, atol=1e-5)
    run = passes.run_hidden
    failing = nlp.get_pipe("pll").model.load().tokenizer.encode("hooligans").ids[1]

    def fails(ids, lengths):
        if (ids == failing).any():
            raise RuntimeError("no")
        return run(ids, lengths)

    passes.run_hidden, blamed = fails, []
    nlp.set_error_handler(lambda name, scorer, docs, error: blamed.extend(doc.text for doc in docs))
    rest = list(nlp.pipe(docs(nlp)))
    assert blamed and [doc.text for doc in rest] == [text for text in [*TEXTS, PARAGRAPH] if text not in blamed]


def test_a_pass_that_does_not_fit_is_halved(make_nlp, as_on_a_gpu, monkeypatch, caplog):
    plain = [scores(doc) for doc in make_nlp().pipe(TEXTS)]
    nlp = make_nlp(max_batch_tokens=2000)
    run, sizes = forward_of(nlp).run_hidden, []

    def limited(ids, lengths):
        sizes.append(ids.numel())
        if ids.numel() > 150:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return run(ids, lengths)

    monkeypatch.setattr(forward_of(nlp), "run_hidden", limited)
    with caplog.at_level(logging.WARNING, "spacy_pll"):
        for doc, values in zip(nlp.pipe(TEXTS), plain, strict=True):
            np.testing.assert_allclose(scores(doc), values, atol=1e-5)
    assert 0 < sum(size > 150 for size in sizes) < 5


def test_long_rows_and_what_could_be_padding_are_told(make_nlp, as_on_a_gpu, monkeypatch):
    """Some models read long rows in another way, and some take a padding id in a text for padding."""
    monkeypatch.setattr(forward, "MAX_WIDTH", 20)
    nlp, told = make_nlp(), {True: [], False: []}
    nlp.initialize()
    hook = lambda module, args, given: told["attention_mask" in given].append(given["input_ids"].shape[1])  # noqa: E731
    forward_of(nlp).model.register_forward_pre_hook(hook, with_kwargs=True)
    list(nlp.pipe(["The souvenir travels.", "I a.", *SENTENCES, PARAGRAPH]))
    assert told[True] and min(told[True]) > 20 and min(told[False]) <= 20
    told[True].clear()
    list(nlp.pipe(["a [PAD] b", "The souvenir travels.", "I a."]))
    assert told[True] and max(told[True]) <= 20


class _Looks(TorchDispatchMode):
    """Counts for what a host would wait, by the line that asks."""

    def __init__(self):
        super().__init__()
        self.found = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.__name__.partition(".")[0] in LOOKS:
            here = [f for f in traceback.extract_stack() if "/torch/" not in f.filename and __file__ != f.filename]
            self.found[f"{here[-1].filename}:{here[-1].lineno} {here[-1].line}"] += 1
        return function(*args, **(kwargs or {}))


@pytest.mark.usefixtures("tried_once")
@pytest.mark.parametrize("architecture", sorted(ALL_ARCHITECTURES))
def test_the_host_waits_for_no_number(make_nlp, as_on_a_gpu, architecture):
    for margin, texts in (None, TEXTS), (0, TEXTS), (0, [PARAGRAPH, PARAGRAPH, SENTENCES[0]]):
        nlp = make_nlp(architecture, mask_margin=margin)
        try:
            list(nlp.pipe(texts))
        except ValueError as error:
            assert "cannot read all masks in one pass" in str(error)
            return
        with _Looks() as looks:
            list(nlp.pipe(texts))
        assert not looks.found or architecture in ASKING, looks.found


def test_masks_are_made_once_a_pass_not_once_a_layer(make_nlp, as_on_a_gpu, monkeypatch):
    nlp, made, passes = make_nlp(), Counter(), Counter()
    nlp.initialize()
    as_bias = row_attention.as_bias
    monkeypatch.setattr(row_attention, "as_bias", lambda *args: (made.update(["mask"]), as_bias(*args))[1])
    run = forward_of(nlp).run_hidden
    counted = lambda ids, lengths: (passes.update([lengths is not None]), run(ids, lengths))[1]  # noqa: E731
    monkeypatch.setattr(forward_of(nlp), "run_hidden", counted)
    list(nlp.pipe(TEXTS))
    assert forward_of(nlp).model.config.num_hidden_layers > 1
    assert made["mask"] == passes[True] > 0


def test_a_model_that_reads_padding_is_told(model_folder, as_on_a_gpu, monkeypatch, caplog):
    """As if the model did more with its rows than attend: what it would read is not what it reads alone."""
    attend = row_attention.RowAttention.attend

    def wrong(self, *args, **kwargs):
        return attend(self, *args, **kwargs) + (0.1 if self.together > 1 else 0)

    monkeypatch.setattr(row_attention.RowAttention, "attend", wrong)
    model = masked_model(str(model_folder("bert")))
    with caplog.at_level(logging.INFO, "spacy_pll"):
        assert model.load().forward.capabilities.filler is None
    assert "told nothing" not in caplog.text
    monkeypatch.undo()
    monkeypatch.setitem(row_attention.TILE, "cpu", 64)
    with caplog.at_level(logging.INFO, "spacy_pll"):
        assert masked_model(str(model_folder("bert"))).load().forward.capabilities.filler is not None
    assert "told nothing" in caplog.text


@pytest.mark.parametrize("lengths", [None, [3, 2]])
def test_left_to_right_models(lengths):
    """What stands before padding does not see it."""
    query, key, value = torch.randn(3, 2, 1, 3, 4)
    with row_attention.RowAttention(torch.zeros(2, 3, dtype=torch.int64), lengths and torch.tensor(lengths)):
        found = scaled_dot_product_attention(query, key, value, is_causal=True)
        other = scaled_dot_product_attention(query[:, :, :1], key, value)
    torch.testing.assert_close(found, scaled_dot_product_attention(query, key, value, is_causal=True))
    torch.testing.assert_close(other, scaled_dot_product_attention(query[:, :, :1], key, value))
