"""Every way to score texts is one stream: a GPU gets a batch before the last one is waited for, and batches grow."""

from dataclasses import replace
from itertools import accumulate, islice, product

import pytest

import spacy_pll
from spacy_pll.evaluation.choices import Choice, Option
from spacy_pll.prediction.batches import GPU_DOCS
from spacy_pll.prediction.predictor import Predictor
from spacy_pll.settings import BATCH_SIZE

from ..cli.conftest import run
from ..conftest import write_jsonl

LETTERS = "abcdefghijklmnopqrstuvwxyzAB"


def texts_of(n):
    return [f"{' '.join(letters)}." for letters in islice(product(LETTERS, repeat=3), n)]


def by_ray(nlp, texts, size, folder):
    pytest.importorskip("ray")
    pa = pytest.importorskip("pyarrow")
    distributed = pytest.importorskip("spacy_pll.distributed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributed, "BATCH_SIZE", size)
        distributed.Worker(lambda: nlp, "text")(pa.table({"text": texts}))


def by_lm_eval(nlp, texts, size, folder):
    pytest.importorskip("lm_eval")
    from lm_eval.api.instance import Instance

    from spacy_pll.lm_eval import PLL

    requests = [Instance("loglikelihood_rolling", {}, (text,), n) for n, text in enumerate(texts)]
    PLL(nlp, show_progress=False, batch_size=size).loglikelihood_rolling(requests)


def by_score(nlp, texts, size, folder):
    table = write_jsonl(folder / "t.jsonl", *({"text": text} for text in texts))
    run("score", table, folder / "o.csv", "--model", folder / "model", "--batch-size", size)


def by_pairs(nlp, texts, size, folder):
    rows = ({"good": good, "bad": bad} for good, bad in zip(texts[::2], texts[1::2]))
    run("pairs", write_jsonl(folder / "t.jsonl", *rows), "--model", folder / "model", "--batch-size", size)


def pairs(texts):
    return list(zip(texts[::2], texts[1::2]))


def both(texts):
    return [Choice([Option(good), Option(bad)]) for good, bad in pairs(texts)]


WAYS = {
    "nlp.pipe": lambda nlp, texts, size, folder: list(nlp.pipe(texts, batch_size=size)),
    "score_docs": lambda nlp, texts, size, folder: list(spacy_pll.score_docs(nlp, texts, size)),
    "score": lambda nlp, texts, size, folder: spacy_pll.score(texts, nlp, batch_size=size),
    "minimal_pairs": lambda nlp, texts, size, folder: spacy_pll.minimal_pairs(nlp, pairs(texts), batch_size=size),
    "choices": lambda nlp, texts, size, folder: spacy_pll.choices(nlp, both(texts), batch_size=size),
    "perplexity": lambda nlp, texts, size, folder: spacy_pll.perplexity(nlp, texts, batch_size=size),
    "lm-eval": by_lm_eval,
    "Ray": by_ray,
    "pll score": by_score,
    "pll pairs": by_pairs,
}


@pytest.mark.parametrize(
    ("way", "grows", "size", "n"),
    [
        *((way, (128, 140), 128, 300) for way in WAYS),
        *(pytest.param(way, (125, 1000), 128, 2500, marks=pytest.mark.slow) for way in WAYS),
        pytest.param("pll score", GPU_DOCS, BATCH_SIZE, 20_000, marks=pytest.mark.slow),
    ],
)
def test_a_gpu_has_a_batch_ahead_and_batches_grow(make_nlp, monkeypatch, tmp_path, way, grows, size, n):
    nlp = make_nlp("bert", mask_margin=0)
    nlp.to_disk(tmp_path / "model")
    done, submit, gather, prepare = [], Predictor.submit, Predictor.gather, Predictor.prepare
    monkeypatch.setattr("spacy_pll.prediction.batches.GPU_DOCS", grows)
    monkeypatch.setattr(Predictor, "prepare", lambda self: replace(prepare(self), on_gpu=True, ids_at_once=10**9))
    monkeypatch.setattr(Predictor, "submit", lambda self, docs: done.append(len(docs)) or submit(self, docs))
    monkeypatch.setattr(
        Predictor, "gather", lambda self, one: done.append(-len(one.tokenized.read.docs)) or gather(self, one)
    )
    WAYS[way](nlp, texts_of(n), size, tmp_path)
    done = [sign for sign in done if abs(sign) > 1]  # without a trial
    sizes = [docs for docs in done if docs > 0]
    assert sum(sizes) == n
    for before, docs in zip(accumulate(sizes, initial=0), sizes[:-1]):
        assert docs == max(size, min(before + size, grows[1]))
    waiting = accumulate(1 if docs > 0 else -1 for docs in done)  # batches that are submitted and not gathered
    assert list(waiting) == [1, *[2, 1] * (len(sizes) - 1), 0]
