"""Every way to score texts is one stream: a GPU gets a batch before the last one is waited for, and batches grow."""

from collections import defaultdict
from dataclasses import replace
from itertools import accumulate, islice, product

import pytest

import spacy_pll
from spacy_pll import Choice, Option, variants
from spacy_pll.prediction.asking import Asking, PendingLogProbs, PendingScores
from spacy_pll.prediction.batches import GPU_DOCS
from spacy_pll.settings import BATCH_SIZE

from ..cli.conftest import run
from ..conftest import write_jsonl
from ..protein_models import save_protein_model

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


def by_bounds(nlp, texts, size, folder):
    exact = spacy_pll.make_pipeline(nlp, mask_margin=None)
    spacy_pll.log_probability_bounds(exact, texts, n_pairs=2, batch_size=size)


def by_continuations(nlp, texts, size, folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spacy_pll.analysis.continuations.BATCH_SIZE", size)
        spacy_pll.score_continuations(nlp, "The", texts)


def by_whole_variants(nlp, texts, size, folder):
    save_protein_model(folder, "bert")
    sequences = ["".join(letters) for letters in islice(product("ACDEFGHIKL", repeat=4), len(texts))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spacy_pll.proteins.residues.BATCH_SIZE", size)
        variants(spacy_pll.make_pipeline(str(folder)), sequences[0], sequences[1:], method="pseudo-ppl")


def by_marginals(nlp, texts, size, folder):
    save_protein_model(folder, "bert")
    own = spacy_pll.make_pipeline(str(folder))
    sequence = "ACDEFGHIKL" * 4
    with pytest.MonkeyPatch.context() as patch:
        prepare = Asking.prepare
        patch.setattr(Asking, "prepare", lambda self: replace(prepare(self), ids_at_once=12 * len(sequence)))
        variants(own, sequence, method="masked-marginals")


def by_slots(nlp, texts, size, folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spacy_pll.analysis.filling.MAX_TEXTS", (size, size))
        spacy_pll.slots(nlp, [f"{text[:-1]} ___." for text in texts], ["a", "b", "the"])


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
    "agree": lambda nlp, texts, size, folder: spacy_pll.agree(nlp, nlp, texts, batch_size=size),
    "compare_margins": lambda nlp, texts, size, folder: spacy_pll.compare_margins(nlp, texts, (0,), batch_size=size),
    "log_probability_bounds": by_bounds,
    "score_continuations": by_continuations,
    "variants": by_whole_variants,
}
# In blocks, which do not grow: of 300 texts, or of the 40 sites of a protein.
IN_BLOCKS = {"slots": (by_slots, [128, 128, 44]), "variants": (by_marginals, [12, 12, 12, 4])}


@pytest.fixture
def submitted(monkeypatch):
    """Of each asking, how many contexts, or questions, were submitted together, and then waited for (as a negative
    number), on what is taken for a GPU. Without a single one, such as of a trial.
    """
    done, asking_of = defaultdict(list), {}
    prepare = Asking.prepare
    monkeypatch.setattr(Asking, "prepare", lambda self: replace(prepare(self), on_gpu=True, ids_at_once=10**9))

    def watch(name, pending, number_of):
        submit, result = getattr(Asking, name), pending.result

        def watched(self, contexts, *more):
            answers, n = submit(self, contexts, *more), number_of(contexts)
            if n > 1:
                done[self].append(n)
                asking_of[id(answers)] = self, n, answers
            return answers

        def waited(self):
            if id(self) in asking_of:
                asking, n, _ = asking_of[id(self)]
                done[asking].append(-n)
            return result(self)

        monkeypatch.setattr(Asking, name, watched)
        monkeypatch.setattr(pending, "result", waited)

    watch("submit", PendingScores, len)
    watch("submit_ids", PendingLogProbs, lambda contexts: int(contexts.scored.sum()))
    return done


def check_one_is_ahead(done, n):
    """RETURNS: How many contexts each batch has."""
    sizes = [contexts for contexts in done if contexts > 0]
    assert sum(sizes) == n and len(sizes) > 2
    waiting = accumulate(1 if contexts > 0 else -1 for contexts in done)  # batches that are submitted and not finished
    assert list(waiting) == [1, *[2, 1] * (len(sizes) - 1), 0]
    return sizes


@pytest.mark.parametrize(
    ("way", "grows", "size", "n"),
    [
        *((way, (128, 140), 128, 300) for way in WAYS),
        *(pytest.param(way, (125, 400), 128, 1100, marks=pytest.mark.slow) for way in WAYS),
        pytest.param("pll score", GPU_DOCS, BATCH_SIZE, 20_000, marks=pytest.mark.slow),
    ],
)
def test_a_gpu_has_a_batch_ahead_and_batches_grow(make_nlp, monkeypatch, tmp_path, submitted, way, grows, size, n):
    nlp = make_nlp("bert", mask_margin=0)
    nlp.to_disk(tmp_path / "model")
    monkeypatch.setattr("spacy_pll.prediction.batches.GPU_DOCS", grows)
    monkeypatch.setattr("spacy_pll.evaluation.agreement.GPU_BATCHES", 100)  # in one turn
    WAYS[way](nlp, texts_of(n), size, tmp_path)
    assert len(submitted) == (2 if way in ("agree", "compare_margins") else 1)
    for done in submitted.values():
        sizes = check_one_is_ahead(done, n)
        for before, docs in zip(accumulate(sizes, initial=0), sizes[:-1]):
            assert docs == max(size, min(before + size, grows[1]))


@pytest.mark.parametrize("way", IN_BLOCKS)
def test_a_gpu_has_a_block_ahead(make_nlp, tmp_path, submitted, way):
    by, sizes = IN_BLOCKS[way]
    by(make_nlp("bert"), texts_of(300), 128, tmp_path)
    (done,) = submitted.values()
    assert check_one_is_ahead(done, sum(sizes)) == sizes


def test_scorers_take_turns_on_a_gpu(make_nlp, monkeypatch, submitted):
    """Their passes are not in the queue of the GPU together: the time of each is its own. Batches grow on."""
    nlp = make_nlp("bert", mask_margin=0)
    monkeypatch.setattr("spacy_pll.evaluation.agreement.GPU_BATCHES", 2)
    monkeypatch.setattr("spacy_pll.prediction.batches.GPU_DOCS", (12, 40))
    spacy_pll.agree(nlp, nlp, texts_of(130), batch_size=12)
    assert [*submitted.values()] == [[12, 24, -12, -24, 40, 40, -40, -40, 14, -14]] * 2
