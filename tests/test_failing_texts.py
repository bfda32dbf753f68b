import warnings

import pytest
from spacy.language import Language
from spacy.tokens import Doc

from spacy_pll.analysis.any_order import draws_of, score_draws
from spacy_pll.failing_texts import TextError, score_each
from spacy_pll.places import score_placed
from spacy_pll.workers import score_docs


@Language.component("refuses_bad_texts")
def refuses_bad_texts(doc):
    if doc.text == "bad":
        raise RuntimeError("a bad text")
    return doc


@pytest.fixture
def nlp(make_nlp):
    """Has what fails behind what scores."""
    nlp = make_nlp("bert")
    nlp.add_pipe("refuses_bad_texts")
    return nlp


def test_of_each_text_its_doc_or_why_there_is_none(nlp):
    nlp.max_length = 30
    first, bad, long, last = score_each(nlp, ["A text.", "bad", "A text. " * 9, nlp.make_doc("A text.")])
    assert isinstance(first, Doc) and first._.pll == last._.pll
    assert str(bad) == "RuntimeError: a bad text" and "length 72" in str(long)


def test_the_first_text_that_fails_is_raised(nlp):
    with pytest.raises(TextError, match="RuntimeError: a bad text"):
        list(score_docs(nlp, ["A text.", "bad", "A text."], 2))


def handlers(nlp):
    components = [pipe for _, pipe in nlp.components if hasattr(pipe, "get_error_handler")]
    return [nlp.default_error_handler, *(pipe.get_error_handler() for pipe in components), nlp.pipe_names]


class Stop(BaseException):
    """As Ctrl-C is."""


STREAMS = {
    "docs": lambda nlp, texts: score_docs(nlp, texts, 2),
    "outcomes": lambda nlp, texts: score_each(nlp, list(texts)),
    "placed": lambda nlp, texts: score_placed(nlp, [(text, "It is. ", "") for text in texts]),
    "draws": lambda nlp, texts: score_draws(nlp, texts, draws_of(2)),
}


@pytest.mark.parametrize("stream", STREAMS)
def test_while_the_callers_code_runs_the_pipeline_is_as_it_was(make_nlp, stream):
    """An open generator, or one of which the consumer was stopped, left a handler that ignores errors, or a component
    that was switched off.
    """
    nlp = make_nlp("bert", metrics=["original"])
    before, texts = handlers(nlp), ["The cats sleep.", "A text.", "It is over.", "We saw it."]
    outcomes = STREAMS[stream](nlp, texts)
    for _ in range(3):
        next(outcomes)
        assert handlers(nlp) == before and nlp("A text.")._.pll is not None
    with pytest.raises(Stop):
        for _ in STREAMS[stream](nlp, texts):
            raise Stop
    assert handlers(nlp) == before


@Language.component("warns_of_texts")
def warns_of_texts(doc):
    if "text" in doc.text:
        warnings.warn("what this component warns of", stacklevel=1)
    return doc


def warns_of_batches(docs):
    if len(docs) > 1:
        warnings.warn("what is said of a batch", stacklevel=1)
    return [[doc[:]] for doc in docs]


@pytest.mark.parametrize("where", ["text", "batch"])
def test_a_warning_that_is_an_error_is_no_texts_fault(make_nlp, where):
    nlp = make_nlp("bert")
    if where == "text":
        nlp.add_pipe("warns_of_texts")
    else:
        nlp.get_pipe("pll").predictor.get_spans = warns_of_batches
    with pytest.warns(UserWarning, match="this component|of a batch"):
        assert all(isinstance(one, Doc) for one in score_each(nlp, ["A text.", "A text, too."]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="this component|of a batch"):
            list(score_each(nlp, ["A text.", "A text, too."]))


def test_the_error_handler_is_put_back(nlp):
    def own(*args):
        pass

    nlp.get_pipe("pll").set_error_handler(own)
    before = nlp.default_error_handler
    list(score_each(nlp, ["A text.", "bad"]))
    assert nlp.default_error_handler is before and nlp.get_pipe("pll").get_error_handler() is own
