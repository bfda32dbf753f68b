"""The component in several threads and processes."""

import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from spacy_pll.language_model.running.forward import Forward
from spacy_pll.metrics import original

from ..conftest import SENTENCES, scores
from ..scoring.planned import make_batch
from ..test_metrics import METRICS


def test_threads_share_a_pipeline(make_nlp):
    nlp = make_nlp(metrics=METRICS)
    expected = {text: scores(nlp(text)) for text in SENTENCES}
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: (text, scores(nlp(text))), SENTENCES * 20))
    for text, values in found:
        np.testing.assert_allclose(values, expected[text], atol=1e-5)


@pytest.mark.cpu
@pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="worker processes are not forked here")
def test_two_processes(make_nlp):
    """With two threads in the parent, as users have: workers must not wait for threads that are not there."""
    nlp = make_nlp("bert", metrics=["word_l2r", "original"])
    texts = SENTENCES * 3
    torch.set_num_threads(2)
    try:
        expected = [scores(doc) for doc in nlp.pipe(texts)]
        torch.randn(500, 500) @ torch.randn(500, 500)  # enough work to start the second thread
        found = list(nlp.pipe(texts, n_process=2, batch_size=4))
    finally:
        torch.set_num_threads(1)
    assert [doc.text for doc in found] == texts
    for doc, values in zip(found, expected):
        np.testing.assert_allclose(scores(doc), values, atol=1e-5)
        assert doc._.pll_original is not None


@pytest.mark.parametrize("metric", ["word_l2r", "of_a_notebook"])
def test_a_scorer_can_be_sent_to_a_spawned_worker(make_nlp, add_metric, metric):
    add_metric("of_a_notebook", lambda word: original(word))  # which cannot be pickled itself
    nlp = make_nlp("bert", metrics=[metric])
    expected = scores(nlp(SENTENCES[0]))
    other = pickle.loads(pickle.dumps(nlp.get_pipe("pll")))
    assert (scores(other(nlp.make_doc(SENTENCES[0]))) == expected).all()


def test_forked_workers_cannot_use_the_gpu_of_their_parent(language_model, monkeypatch):
    model = language_model("bert")
    monkeypatch.setattr("spacy_pll.language_model.running.forward.one_thread_after_fork", lambda: True)
    monkeypatch.setattr(Forward, "device", torch.device("cuda", 0))
    with pytest.raises(RuntimeError, match="n_process=1"):
        model.log_probabilities(make_batch([[0]], [(0, 0, 0)]))
