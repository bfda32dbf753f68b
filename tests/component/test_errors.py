"""Settings, models and docs with which nothing can be scored: an error that says so, and the other docs are scored."""

import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span, Token

from spacy_pll import ScoringSettings
from spacy_pll.attributes.stored import store
from spacy_pll.metrics import original
from spacy_pll.prediction.predictor import Predictor

from ..conftest import SENTENCES, change


def test_sentence_spans_without_sentence_boundaries(make_nlp):
    nlp = make_nlp(get_spans={"@span_getters": "spacy-pll.sent_spans.v1"})
    with pytest.raises(ValueError, match="Sentence boundaries unset.*sentencizer"):
        nlp("No boundaries.")


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("metrics", ["word_r2x"], "Unknown PLL metric 'word_r2x'.*word_l2r"),
        ("metrics", [], "`metrics` must name at least one"),
        ("metrics", ["original", "original"], "each only once"),
        ("attr", "get", "attribute name 'get' would have two meanings"),
        ("attr", "not a name", "`attr` must be a name.*'not a name'"),
        ("targets", ["souvenir"], "`targets` must be one key of doc.spans: the name of a group of spans, no words"),
        ("max_batch_tokens", 0, "`max_batch_tokens` must be 1 or more.*0"),
    ],
)
def test_bad_settings(make_nlp, setting, value, message):
    with pytest.raises(ValueError, match=message):
        make_nlp(**{setting: value})


@pytest.mark.parametrize("setting", ["targets", "units"])
def test_docs_without_spans_under_a_key(make_nlp, setting):
    nlp = make_nlp(**{setting: "souvenir"})
    with pytest.warns(UserWarning, match=f"under `{setting}`, .*'souvenir'.*these keys: none. A key is .* and no word"):
        nlp("A souvenir.")


@pytest.mark.parametrize("name", ["model", "get_spans", "settings"])
def test_a_component_stays_as_it_was_made(make_nlp, name):
    """Or docs that are being scored would get scores of another model, or by other settings, under the same names."""
    scorer = make_nlp().get_pipe("pll")
    with pytest.raises(FrozenInstanceError):
        setattr(scorer.predictor, name, getattr(scorer.predictor, name))
    for part in ("predictor", "settings", "model"):
        with pytest.raises(AttributeError):
            setattr(scorer, part, getattr(scorer, part))
    with pytest.raises(TypeError):
        scorer.settings.metrics[0] = "original"
    assert scorer.predictor.asking.model is scorer.predictor.reading.asking.model is scorer.model


def test_unknown_words_and_misspelt_keys_name_what_is_legal(make_nlp):
    with pytest.raises(ValueError, match="(?s)words.*(is not|permitted).*'spacy', 'tokenizer', 'whitespace'"):
        make_nlp(words="letters")
    with pytest.raises(ValueError, match="`words` must be spacy .*piece. It is 'letters'"):
        ScoringSettings(words="letters")
    with pytest.raises(ValueError, match="wordz"):
        make_nlp(wordz="spacy")


def test_a_model_of_another_package(make_nlp):
    model = {"@architectures": "spacy.Tok2VecListener.v1", "width": 8}
    with pytest.raises(ValueError, match="`model` must be a name.*spacy-pll.MaskedLM.v1"):
        spacy.blank("en").add_pipe("pll", config={"model": model})


def test_a_metric_that_the_model_cannot_serve(make_nlp, add_metric):
    def left_to_right(word):
        raise AssertionError("never asked")

    left_to_right.model_kind = "causal"
    add_metric("left_to_right", left_to_right)
    with pytest.raises(ValueError, match="'left_to_right' needs a causal language model.*is a masked one.*word_l2r"):
        make_nlp(metrics=["left_to_right"])


@pytest.mark.parametrize("name", ["pieces", "data", "rank", "entropy", "first_choices", "alternatives", "top1"])
def test_a_metric_whose_attribute_would_be_another_ones(make_nlp, add_metric, name):
    add_metric(name, original)
    with pytest.raises(ValueError, match=f"'pll_{name}' would have two meanings"):
        make_nlp(metrics=["word_l2r", name])


def test_a_metric_of_one_component_under_the_name_of_another(make_nlp, add_metric):
    add_metric("mine", original)
    for metric in ("original", "mine"):
        with pytest.raises(ValueError, match=f"under {metric} are called if `attr` is 'pll'.*`attr='{metric}_pll'`"):
            make_nlp(attr=f"pll_{metric}")
    make_nlp(attr="original_pll")


@pytest.mark.parametrize("get_spans", [lambda docs: [[doc[:]] for doc in docs[1:]], lambda docs: [[docs[0][:]]] * 2])
def test_a_span_getter_that_loses_or_mixes_docs(make_nlp, get_spans):
    nlp = make_nlp()
    change(nlp.get_pipe("pll"), get_spans=get_spans)
    with pytest.raises(ValueError, match="`get_spans` must give one list .* each doc"):
        nlp.get_pipe("pll").predict([nlp.make_doc(text) for text in SENTENCES[:2]])


def test_a_model_that_cannot_be_loaded_is_no_docs_fault(make_nlp):
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": "no-such/model"}})
    nlp.set_error_handler(lambda name, proc, docs, error: pytest.fail("the docs were blamed"))
    with pytest.raises(OSError, match="no-such/model"):
        list(nlp.pipe(SENTENCES))


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

    change(scorer, get_spans=failing)
    handled = []
    nlp.set_error_handler(lambda name, proc, docs, error: handled.append((name, [d.text for d in docs], str(error))))
    with caplog.at_level("DEBUG", logger="spacy_pll.component"):
        docs = list(nlp.pipe(SENTENCES, batch_size=5))
    assert handled == [("pll", [SENTENCES[1]], "no such luck")]
    # What the batch failed with is not raised, so it is logged.
    said = [record.getMessage() for record in caplog.records]
    assert [f"A batch of {n} docs failed. It is scored again in parts." for n in (5, 2)] == said
    assert all(str(record.exc_info[1]) == "no such luck" for record in caplog.records)
    assert [doc.text for doc in docs] == [SENTENCES[0], *SENTENCES[2:]]
    assert [doc._.pll for doc in docs] == pytest.approx([expected[0], *expected[2:]], abs=1e-4)
    nlp.set_error_handler(spacy.util.raise_error)
    with pytest.raises(RuntimeError, match="no such luck"):
        list(nlp.pipe(SENTENCES))


@pytest.mark.parametrize("of", ["a batch", "a doc"])
def test_a_warning_that_is_an_error_is_no_docs_fault(make_nlp, of):
    """Neither of a batch alone, nor of a doc that is scored again because another one of its batch failed."""
    nlp, handled = make_nlp(), []

    def get_spans(docs):
        if any(doc.text == "bad" for doc in docs):
            raise RuntimeError("no such luck")
        if (len(docs) > 1) == (of == "a batch"):
            warnings.warn(f"what is said of {of}", stacklevel=1)
        return [[doc[:]] for doc in docs]

    change(nlp.get_pipe("pll"), get_spans=get_spans)
    nlp.set_error_handler(lambda name, proc, docs, error: handled.extend(doc.text for doc in docs))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=f"what is said of {of}"):
            list(nlp.pipe(["a", "b"] if of == "a batch" else ["bad", "b"]))
    assert handled == ([] if of == "a batch" else ["bad"])


def test_a_doc_that_fails_in_a_large_batch_costs_few_more(make_nlp, monkeypatch):
    nlp = make_nlp()
    submit, tried = Predictor.submit, []

    def failing(self, docs, *more):
        tried.append(len(docs))
        if any(doc.text == "bad" for doc in docs):
            raise RuntimeError("no such luck")
        return submit(self, docs, *more)

    monkeypatch.setattr(Predictor, "submit", failing)
    nlp.set_error_handler(lambda name, proc, docs, error: None)
    assert [doc.text for doc in nlp.pipe(["a"] * 40 + ["bad"] + ["a"] * 23)] == ["a"] * 63
    assert sorted(tried) == [1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64]  # the half with it, and that without it


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
