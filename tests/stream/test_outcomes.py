import warnings
from dataclasses import replace

import pytest
from spacy.language import Language
from spacy.tokens import Doc

from spacy_pll import score_docs
from spacy_pll.analysis.any_order import draws_of, score_draws
from spacy_pll.prediction.predictor import Predictor
from spacy_pll.stream.outcomes import TextError
from spacy_pll.stream.outcomes import score_each as score_batches

from ..conftest import change, score_placed


def score_each(nlp, texts):
    return (outcome for outcome, _ in score_batches(nlp, texts, 100))


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
        change(nlp.get_pipe("pll"), get_spans=warns_of_batches)
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


@Language.factory("changes_the_stream")
class ChangesTheStream:
    """Gives what a function makes of the docs."""

    def __init__(self, nlp, name):
        self.change = None

    def __call__(self, doc):
        return doc

    def pipe(self, docs, batch_size):
        yield from self.change(docs)


def ends_at_bad(docs):
    for doc in docs:
        if doc.text == "bad":
            return
        yield doc


def raises_at_bad(docs):
    for doc in docs:
        if doc.text == "bad":
            raise RuntimeError("no more")
        yield doc


TEXTS = ["The cats sleep.", "bad", "A text.", "It is over.", "bad", "We saw it.", "A souvenir.", ""]
CHANGES = {
    "leaves out": lambda docs: (doc for doc in docs if doc.text != "bad"),
    "ends": ends_at_bad,
    "raises": raises_at_bad,
    "gives none": lambda docs: iter(()),
    "others": lambda docs: (doc.copy() if doc.text == "bad" else doc for doc in docs),
    "twice": lambda docs: (doc for doc in docs for _ in range(2)),
}


@pytest.mark.parametrize("batch_size", [1, 3, 100])
@pytest.mark.parametrize("where", ["first", "last"])
@pytest.mark.parametrize("change", CHANGES)
def test_whatever_a_component_does_with_the_docs_each_text_has_an_outcome(make_nlp, change, where, batch_size):
    """What is left out on purpose was scored alone; a component that gives docs of its own ended in a TypeError."""
    nlp = make_nlp("bert")
    expected = [nlp(text)._.pll for text in TEXTS]
    nlp.add_pipe("changes_the_stream", **{where: True}).change = CHANGES[change]
    outcomes, ends = zip(*score_batches(nlp, TEXTS, batch_size), strict=True)
    for text, outcome, score in zip(TEXTS, outcomes, expected, strict=True):
        if change == "ends" and isinstance(
            outcome, TextError
        ):  # it cannot be told from one that leaves out what is left
            assert batch_size == 100 and where == "last"
        elif text == "bad" and change == "leaves out":
            assert str(outcome) == "A component of the pipeline leaves it out"
        else:
            assert outcome.text == text and outcome._.pll == pytest.approx(score, abs=1e-5)
    assert ends[-1] and sum(ends) >= len(TEXTS) / batch_size


def test_where_batches_end_does_not_depend_on_what_fails_or_where_a_run_begins(nlp, monkeypatch):
    nlp.max_length, batches = 60, []
    submit = Predictor.submit
    monkeypatch.setattr(
        Predictor, "submit", lambda self, docs, *more: batches.append(len(docs)) or submit(self, docs, *more)
    )
    texts = ["A text.", "bad", "The souvenir. " * 9, "It is over."] * 5
    monkeypatch.setattr("spacy_pll.stream.outcomes._score_alone", lambda nlp, text: TextError(text))
    for begin in (0, 6, 18):
        batches.clear()
        ends = [
            number for number, (_, ends) in enumerate(score_batches(nlp, texts[begin:], 6, begin), begin + 1) if ends
        ]
        assert ends == [n for n in (6, 12, 18, 20) if n > begin]
        assert batches == [n for end, n in ((6, 6), (12, 6), (18, 6), (20, 2)) if end > begin]


def test_what_the_texts_raise_comes_behind_all_before(nlp):
    def texts():
        yield from ["A text.", "bad", "A text."]
        raise OSError("the disk is gone")

    outcomes = score_batches(nlp, texts(), 100)
    assert [type(next(outcomes)[0]) for _ in range(3)] == [Doc, TextError, Doc]
    with pytest.raises(OSError, match="the disk is gone"):
        next(outcomes)


def test_behind_a_component_that_gave_up_batches_go_on_growing(make_nlp, monkeypatch):
    nlp, prepare = make_nlp("bert", mask_margin=0), Predictor.prepare
    monkeypatch.setattr("spacy_pll.prediction.batches.GPU_DOCS", (2, 16))
    monkeypatch.setattr(Predictor, "prepare", lambda self: replace(prepare(self), on_gpu=True, ids_at_once=10**9))
    nlp.add_pipe("changes_the_stream", first=True).change = raises_at_bad
    texts = [*["A text."] * 5, "bad", *["A text."] * 40]
    ends = [number for number, (_, ends) in enumerate(score_batches(nlp, texts, 2), 1) if ends]
    assert ends == [2, 6, 14, 30, 46]
