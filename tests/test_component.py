import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import spacy
import torch
from hypothesis import given
from spacy.tokens import Doc, Span, Token

from spacy_pll.attributes.stored import store
from spacy_pll.language_model.forward import Forward
from spacy_pll.metrics import get_metric
from spacy_pll.prediction import WorkDone
from spacy_pll.scoring.plan import Batch
from spacy_pll.settings import ScoringSettings

from .conftest import PARAGRAPH, SENTENCES, odd_text, scores
from .test_metrics import METRICS


def test_attributes(make_nlp):
    nlp = make_nlp(keep_pieces=True)
    doc = nlp("The traveler lost  the souvenir.")
    values = [token._.pll for token in doc]
    assert all(type(value) is float for value in values) and all(type(token._.pll_pieces) is int for token in doc)
    assert doc._.pll == pytest.approx(sum(values)) and doc._.pll < 0
    assert doc[4:6]._.pll == pytest.approx(values[4] + values[5])
    white_space = doc[3]
    assert white_space.is_space and white_space._.pll == 0.0 and white_space._.pll_pieces == 0
    data = doc._.pll_data
    assert doc._.pll_pieces == len(data["pieces"]) == len(data["token"])
    assert sum(data["scores"]["word_l2r"]) == pytest.approx(doc._.pll)
    assert doc._.pppl == pytest.approx(np.exp(-doc._.pll / doc._.pll_pieces))
    assert doc[4:6]._.pppl == pytest.approx(np.exp(-doc[4:6]._.pll / doc[4:6]._.pll_pieces))
    for piece, start, end, token in zip(data["pieces"], data["start"], data["end"], data["token"]):
        assert piece.removeprefix("##") == doc.text[start:end] or piece == "[UNK]"
        assert doc[token].idx <= start < doc[token].idx + len(doc[token])
    for part in (doc, doc[4:6], doc[4]):
        assert part._.pll_word_l2r == part._.pll


def test_several_metrics_each_have_a_name_and_the_first_is_primary(make_nlp):
    doc = make_nlp(metrics=["original", "word_l2r"])(SENTENCES[0])
    alone = make_nlp(metrics=["word_l2r"], attr="alone")(SENTENCES[0])
    for token, other in zip(doc, alone):
        assert token._.pll == token._.pll_original
        assert token._.pll_word_l2r == pytest.approx(other._.alone, abs=1e-5)
    assert doc._.pll == doc._.pll_original
    assert doc._.pll_word_l2r == pytest.approx(alone._.alone, abs=1e-4)
    assert doc[2:4]._.pll_word_l2r == pytest.approx(alone[2:4]._.alone, abs=1e-4)
    assert alone._.alone_pppl > 1 and alone._.alone_pieces == doc._.pll_pieces


def test_word_units_change_what_is_masked(make_nlp):
    # whitespace: "souvenir." is one word; tokenizer: "." is one of its own; spacy: "can't" is one word, else two
    text = "I can't lose the souvenir."
    found = {words: make_nlp(words=words)(text)._.pll for words in ("spacy", "tokenizer", "whitespace")}
    assert len({round(value, 4) for value in found.values()}) == 3


def test_targets_are_scored_and_the_rest_is_context(make_nlp):
    nlp = make_nlp(targets="here")
    whole = make_nlp()(SENTENCES[0])
    docs = [nlp.make_doc(SENTENCES[0]) for _ in range(2)]
    docs[0].spans["here"] = [docs[0][1:2], docs[0][4:5], docs[0][4:6]]
    with pytest.warns(UserWarning, match="no spans under `targets`, doc.spans\\['here'\\].*keys: \\[\\]"):
        chosen, nothing = nlp.pipe(docs)
    for token, expected in zip(chosen, whole):
        if token.i in (1, 4, 5):
            assert token._.pll == pytest.approx(expected._.pll, abs=1e-5)
        else:
            assert token._.pll is None and token._.pll_pieces is None
    assert chosen._.pll == pytest.approx(sum(whole[i]._.pll for i in (1, 4, 5)), abs=1e-4)
    assert nothing._.pll is None and nothing[0:2]._.pppl is None


def test_two_components_in_one_pipeline(make_nlp):
    nlp = make_nlp("bert")
    make_nlp("roberta", nlp=nlp, name="pll2", attr="other")
    doc = nlp(SENTENCES[0])
    assert doc._.pll == pytest.approx(make_nlp("bert")(SENTENCES[0])._.pll, abs=1e-5)
    assert doc._.other != doc._.pll
    with pytest.raises(ValueError, match="component 'pll' already writes the attribute _.pll.*pll_2"):
        make_nlp("bert", nlp=nlp, name="pll3")
    assert nlp.pipe_names == ["pll", "pll2"]
    nlp.replace_pipe("pll2", "pll", config={"attr": "other"})


def test_a_long_doc_is_scored_whole(make_nlp):
    nlp = make_nlp(keep_pieces=True)
    doc = nlp(" ".join(SENTENCES[:4] * 10))
    assert all(token._.pll is not None for token in doc)
    tokenizer = nlp.get_pipe("pll").model.load().tokenizer
    encoding = tokenizer.encode(doc.text)
    assert doc._.pll_data["pieces"] == encoding.tokens[1:-1] and len(encoding.ids) > 3 * 128


def test_spans_of_sentences_and_strides(make_nlp):
    sentences = {"@span_getters": "spacy-pll.sent_spans.v1"}
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    doc = make_nlp(nlp=nlp, get_spans=sentences)(PARAGRAPH)
    separate = make_nlp()
    for sentence in doc.sents:
        assert sentence._.pll == pytest.approx(separate(sentence.text)._.pll, abs=1e-4)
    strided = make_nlp(get_spans={"@span_getters": "spacy-pll.strided_spans.v1", "window": 12, "stride": 6})
    doc = strided(PARAGRAPH)
    assert doc._.pll_pieces == separate(PARAGRAPH)._.pll_pieces
    assert all(token._.pll is not None for token in doc)


def test_sentence_spans_without_sentence_boundaries(make_nlp):
    nlp = make_nlp(get_spans={"@span_getters": "spacy-pll.sent_spans.v1"})
    with pytest.raises(ValueError, match="Sentence boundaries unset.*sentencizer"):
        nlp("No boundaries.")


# Bad input: a score or None, never a crash.


@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert"])
@pytest.mark.parametrize(
    ("text", "expected"), [("", None), (" ", 0.0), ("  \n", 0.0), ("\x00", 0.0), ("\u200b", 0.0), ("a\x00b", None)]
)
def test_texts_with_little_in_them(make_nlp, architecture, text, expected):
    nlp = make_nlp(architecture)
    doc, neighbour = nlp.pipe([text, SENTENCES[0]])
    assert neighbour._.pll == pytest.approx(nlp(SENTENCES[0])._.pll, abs=1e-4)
    if len(doc):
        assert isinstance(doc._.pll, float) and doc._.pll == pytest.approx(sum(t._.pll for t in doc))
    else:
        assert doc._.pll is None and doc._.pppl is None and doc._.pll_pieces is None


def test_white_space_scores_zero_where_the_tokenizer_drops_it(make_nlp):
    doc = make_nlp("bert")("  \n")
    assert doc._.pll == 0.0 and doc._.pll_pieces == 0 and doc._.pppl is None


def test_a_token_of_ten_thousand_characters(make_nlp):
    nlp = make_nlp("roberta")
    with pytest.warns(UserWarning, match="more pieces than the model reads at once"):
        doc = nlp("x" * 10_000 + " ends")
    assert len(doc) == 2 and doc._.pll_pieces > 5000 and np.isfinite(doc._.pll)


def test_no_doc_holds_a_lone_surrogate():
    """spaCy refuses such text before any component sees it, so there is nothing here for `pll` to get wrong."""
    for make in (spacy.blank("en").make_doc, lambda text: Doc(spacy.blank("en").vocab, words=[text])):
        with pytest.raises(UnicodeEncodeError):
            make("a \ud800 b")


# Errors


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("metrics", ["word_r2x"], "Unknown PLL metric 'word_r2x'.*word_l2r"),
        ("metrics", [], "`metrics` must name at least one"),
        ("metrics", ["original", "original"], "each only once"),
        ("attr", "get", "attribute name 'get' would have two meanings"),
        ("attr", "not a name", "`attr` must be a name.*'not a name'"),
        ("max_batch_tokens", 0, "`max_batch_tokens` must be 1 or more.*0"),
    ],
)
def test_bad_settings(make_nlp, setting, value, message):
    with pytest.raises(ValueError, match=message):
        make_nlp(**{setting: value})


def test_unknown_words_and_misspelt_keys_name_what_is_legal(make_nlp):
    with pytest.raises(ValueError, match="(?s)words.*(is not|permitted).*'spacy', 'tokenizer', 'whitespace'"):
        make_nlp(words="letters")
    with pytest.raises(ValueError, match="`words` must be spacy or tokenizer or whitespace. It is 'letters'"):
        ScoringSettings(words="letters")
    with pytest.raises(ValueError, match="wordz"):
        make_nlp(wordz="spacy")


def test_a_model_of_another_package(make_nlp):
    model = {"@architectures": "spacy.Tok2VecListener.v1", "width": 8}
    with pytest.raises(ValueError, match="`model` must come from .*spacy-pll.MaskedLM.v1"):
        spacy.blank("en").add_pipe("pll", config={"model": model})


def test_a_metric_that_the_model_cannot_serve(make_nlp, add_metric):
    def left_to_right(word):
        raise AssertionError("never asked")

    left_to_right.model_kind = "causal"
    add_metric("left_to_right", left_to_right)
    with pytest.raises(ValueError, match="'left_to_right' needs a causal language model.*is a masked one.*word_l2r"):
        make_nlp(metrics=["left_to_right"])


def test_a_metric_whose_attribute_would_be_another_ones(make_nlp, add_metric):
    add_metric("pieces", get_metric("original"))
    with pytest.raises(ValueError, match="'pll_pieces' would have two meanings"):
        make_nlp(metrics=["word_l2r", "pieces"])


def test_a_metric_of_one_component_under_the_name_of_another(make_nlp):
    nlp = make_nlp(metrics=["word_l2r", "original"])
    with pytest.raises(ValueError, match="component 'pll' already writes the attribute _.pll_original"):
        make_nlp(nlp=nlp, name="other", attr="pll_original")


@pytest.mark.parametrize("get_spans", [lambda docs: [[doc[:]] for doc in docs[1:]], lambda docs: [[docs[0][:]]] * 2])
def test_a_span_getter_that_loses_or_mixes_docs(make_nlp, get_spans):
    nlp = make_nlp()
    nlp.get_pipe("pll").predictor.get_spans = get_spans
    with pytest.raises(ValueError, match="`get_spans` must give one list of spans for each doc"):
        nlp.get_pipe("pll").predict([nlp.make_doc(text) for text in SENTENCES[:2]])


def test_a_doc_that_is_scored_again_keeps_nothing_of_before(make_nlp):
    doc = make_nlp(keep_pieces=True)(SENTENCES[0])
    assert make_nlp("roberta")(doc)._.pll_data is None


def test_a_model_that_cannot_be_loaded_is_no_docs_fault(make_nlp):
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": "no-such/model"}})
    nlp.set_error_handler(lambda name, proc, docs, error: pytest.fail("the docs were blamed"))
    with pytest.raises(OSError, match="no-such/model"):
        list(nlp.pipe(SENTENCES))


def test_threads_share_a_pipeline(make_nlp):
    nlp = make_nlp(metrics=METRICS)
    expected = {text: scores(nlp(text)) for text in SENTENCES}
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: (text, scores(nlp(text))), SENTENCES * 20))
    for text, values in found:
        np.testing.assert_allclose(values, expected[text], atol=1e-5)


@pytest.mark.parametrize("cls", [Doc, Span, Token])
def test_an_attribute_that_is_taken(make_nlp, cls):
    name = f"taken_by_{cls.__name__.lower()}"
    cls.set_extension(name, default=3)
    with pytest.raises(ValueError, match=f"{cls.__name__}._.{name} is already registered.*attr"):
        make_nlp(attr=name)
    assert sum(other.has_extension(f"{name}_pieces") for other in (Doc, Span, Token)) == 0


def test_infinite_scores_are_not_stored(make_nlp, monkeypatch):
    nlp = make_nlp()
    nlp.initialize()
    model = nlp.get_pipe("pll").model
    monkeypatch.setattr(model, "log_probabilities", lambda batch: (torch.full((len(batch.target),), -np.inf),))
    with pytest.raises(ValueError, match="Under the model '.*', some log-probabilities are not finite.*'The traveler"):
        nlp(SENTENCES[0])


def test_a_doc_that_fails_does_not_take_its_neighbours_with_it(make_nlp, monkeypatch, caplog):
    nlp = make_nlp()
    expected = [doc._.pll for doc in nlp.pipe(SENTENCES)]
    scorer = nlp.get_pipe("pll")
    get_spans = scorer.predictor.get_spans

    def failing(docs):
        if any("hooligans" in doc.text for doc in docs):
            raise RuntimeError("no such luck")
        return get_spans(docs)

    monkeypatch.setattr(scorer.predictor, "get_spans", failing)
    handled = []
    nlp.set_error_handler(lambda name, proc, docs, error: handled.append((name, [d.text for d in docs], str(error))))
    with caplog.at_level("DEBUG", logger="spacy_pll.component"):
        docs = list(nlp.pipe(SENTENCES, batch_size=5))
    assert handled == [("pll", [SENTENCES[1]], "no such luck")]
    # What the batch failed with is not raised, so it is logged.
    [record] = caplog.records
    assert "A batch of 5 docs failed" in record.getMessage() and str(record.exc_info[1]) == "no such luck"
    assert [doc.text for doc in docs] == [SENTENCES[0], *SENTENCES[2:]]
    assert [doc._.pll for doc in docs] == pytest.approx([expected[0], *expected[2:]], abs=1e-4)
    nlp.set_error_handler(spacy.util.raise_error)
    with pytest.raises(RuntimeError, match="no such luck"):
        list(nlp.pipe(SENTENCES))


def test_a_doc_whose_scores_cannot_be_stored_does_not_take_its_neighbours_with_it(make_nlp, monkeypatch):
    nlp = make_nlp()

    def failing(doc, *args):
        if "hooligans" in doc.text:
            raise RuntimeError("no such luck")
        store(doc, *args)

    monkeypatch.setattr("spacy_pll.component.store", failing)
    handled = []
    nlp.set_error_handler(lambda name, proc, docs, error: handled.extend(doc.text for doc in docs))
    assert [doc.text for doc in nlp.pipe(SENTENCES)] == [SENTENCES[0], *SENTENCES[2:]]
    assert handled == [SENTENCES[1]]


# Invariants


@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert"])
def test_every_piece_once_and_sums_hold_for_odd_text(make_nlp, architecture):
    nlp = make_nlp(architecture, metrics=METRICS, keep_pieces=True)
    nlp.initialize()
    tokenizer = nlp.get_pipe("pll").model.load().tokenizer

    @given(text=odd_text)
    def check(text):
        doc = nlp(text)
        encoding = tokenizer.encode(doc[:].text)
        own = [i for i, special in zip(encoding.ids, encoding.special_tokens_mask) if not special]
        if not len(doc):
            return
        data = doc._.pll_data
        assert data["ids"] == own and doc._.pll_pieces == len(own)
        for metric in METRICS:
            assert doc._.get(f"pll_{metric}") == pytest.approx(sum(data["scores"][metric]), abs=1e-9)
            assert doc._.get(f"pll_{metric}") == pytest.approx(sum(t._.get(f"pll_{metric}") for t in doc))

    check()


def test_several_metrics_share_forward_rows(make_nlp):
    def rows(metrics, text):
        nlp = make_nlp("bert", metrics=metrics)
        nlp(text)
        return nlp.get_pipe("pll").predictor.counts.rows

    three = ["word_l2r", "original", "whole_word"]
    assert rows(three, "I a .") == rows(["word_l2r"], "I a .") == 3  # words of one piece: the three coincide
    assert rows(three, SENTENCES[0]) < 3 * rows(["word_l2r"], SENTENCES[0])


def test_equal_texts_of_a_batch_are_computed_once(make_nlp):
    nlp = make_nlp("bert")
    scorer = nlp.get_pipe("pll")
    docs = list(nlp.pipe([SENTENCES[0]] * 5))
    assert scorer.predictor.counts.targets == scorer.predictor.counts.rows == docs[0]._.pll_pieces
    assert scorer.predictor.counts.padding == 0


def test_counts_of_a_padded_pass(make_nlp):
    nlp = make_nlp("bert", max_batch_tokens=10_000)
    counts = nlp.get_pipe("pll").predictor.counts
    short, long = nlp.pipe(["I a.", SENTENCES[0]])
    n, m = short._.pll_pieces, long._.pll_pieces
    assert counts.rows == counts.targets == n + m
    assert counts.ids == n * (n + 2) + m * (m + 2)
    assert counts.padding == n * (m - n)


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


def test_a_scorer_can_be_sent_to_a_spawned_worker(make_nlp):
    nlp = make_nlp("bert")
    expected = scores(nlp(SENTENCES[0]))
    other = pickle.loads(pickle.dumps(nlp.get_pipe("pll")))
    assert (scores(other(nlp.make_doc(SENTENCES[0]))) == expected).all()


def test_forked_workers_cannot_use_the_gpu_of_their_parent(language_model, monkeypatch):
    model = language_model("bert")
    monkeypatch.setattr("spacy_pll.language_model.forward.one_thread_after_fork", lambda: True)
    monkeypatch.setattr(Forward, "device", torch.device("cuda", 0))
    with pytest.raises(RuntimeError, match="n_process=1"):
        model.log_probabilities(Batch(np.zeros((1, 3), dtype=np.int32), *[np.ones(1, dtype=np.int64)] * 4))


@pytest.mark.slow
def test_a_metric_of_another_package_is_found_by_its_entry_point(tmp_path):
    """In a process of its own: some versions of catalogue read the entry points when they are imported."""
    package = tmp_path / "theirs-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[spacy_pll_metrics]\ntheirs = spacy_pll.metrics:whole_word\n")
    code = "from spacy_pll.metrics import get_metric; print(get_metric('theirs').__name__)"
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert result.stdout == "whole_word\n", result.stderr


@pytest.mark.parametrize("mask_margin", [None, 0])
def test_docs_leave_as_soon_as_some_work_is_done(make_nlp, monkeypatch, mask_margin):
    """Whatever the batch size, and with the same scores."""
    nlp = make_nlp("bert", mask_margin=mask_margin)
    expected = [scores(doc) for doc in nlp.pipe(SENTENCES * 4)]
    predictor = nlp.get_pipe("pll").predictor
    monkeypatch.setattr(predictor.model, "loaded", replace(predictor.prepare(), ids_at_once=100))
    predictor.counts, read = WorkDone(), []
    for doc, values in zip(nlp.pipe(SENTENCES * 4), expected, strict=True):
        np.testing.assert_allclose(scores(doc), values, atol=1e-5)
        read.append(predictor.counts.ids)
    assert read[0] < read[-1] / 2 and len(set(read)) > 3


def test_no_text_waits_for_the_work_of_a_longer_one(make_nlp, monkeypatch):
    nlp = make_nlp("bert")
    predictor = nlp.get_pipe("pll").predictor
    monkeypatch.setattr(predictor.model, "loaded", replace(predictor.prepare(), ids_at_once=10))
    predictor.counts = WorkDone()
    next(nlp.pipe(["A text.", "The souvenir. " * 20]))
    assert predictor.counts.rows == 3
