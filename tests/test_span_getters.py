"""What is read as one context: this package's span getters, and those of spacy-transformers or their substitutes."""

import importlib.util
import pickle

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.util import registry

from spacy_pll.component import DEFAULT_CONFIG
from spacy_pll.span_getters import configure_strided_spans

from .conftest import change

needs_spacy_transformers = pytest.mark.skipif(
    not importlib.util.find_spec("spacy_transformers"), reason="spacy-transformers is not installed"
)
VOCAB = spacy.blank("en").vocab
lengths, steps = st.integers(0, 40), st.integers(1, 45)


def bounds(name, docs, **settings):
    """What a registered span getter gives, as numbers of tokens."""
    getter = registry.span_getters.get(name)(**settings)
    return [[(span.start, span.end) for span in spans] for spans in getter(docs)]


def doc_of(length):
    return Doc(VOCAB, words=["a"] * length, sent_starts=[i % 5 == 0 for i in range(length)] if length else None)


def test_docs_and_sentences():
    docs = [doc_of(length) for length in (0, 3, 12)]
    assert bounds("spacy-pll.doc_spans.v1", docs) == [[(0, 0)], [(0, 3)], [(0, 12)]]
    assert bounds("spacy-pll.sent_spans.v1", docs) == [[], [(0, 3)], [(0, 5), (5, 10), (10, 12)]]
    assert DEFAULT_CONFIG["get_spans"] == {"@span_getters": "spacy-pll.doc_spans.v1"}


@pytest.mark.parametrize(
    ("length", "window", "stride", "expected"),
    [
        (10, 4, 4, [(0, 4), (4, 8), (8, 10)]),
        (10, 6, 4, [(0, 6), (4, 10)]),
        (8, 4, 4, [(0, 4), (4, 8)]),
        (3, 9, 5, [(0, 3)]),
        (0, 9, 5, []),
    ],
)
def test_strides(length, window, stride, expected):
    assert bounds("spacy-pll.strided_spans.v1", [doc_of(length)], window=window, stride=stride) == [expected]


@given(length=lengths, stride=steps, more=st.integers(0, 10))
def test_no_token_is_left_out_where_the_window_is_not_smaller_than_the_stride(length, stride, more):
    (spans,) = bounds("spacy-pll.strided_spans.v1", [doc_of(length)], window=stride + more, stride=stride)
    assert {token for start, end in spans for token in range(start, end)} == set(range(length))
    assert all(start % stride == 0 and 0 < end - start <= stride + more for start, end in spans)


@needs_spacy_transformers
@given(length=lengths, stride=steps, more=st.integers(0, 10))
def test_they_give_what_those_of_spacy_transformers_give(length, stride, more):
    from spacy_transformers import span_getters

    window = stride + more
    doc = doc_of(length)
    theirs = span_getters.configure_strided_spans(window=window, stride=stride)([doc])
    assert bounds("spacy-pll.strided_spans.v1", [doc], window=window, stride=stride) == [
        [(span.start, span.end) for span in spans] for spans in theirs
    ]
    for kind, configure in (
        ("doc", span_getters.configure_get_doc_spans),
        ("sent", span_getters.configure_get_sent_spans),
    ):
        theirs = [[(span.start, span.end) for span in spans] for spans in configure()([doc])]
        assert bounds(f"spacy-pll.{kind}_spans.v1", [doc]) == theirs


@pytest.mark.parametrize(("window", "stride"), [(0, 1), (4, 0), (4, -1)])
def test_strides_that_are_none(window, stride):
    with pytest.raises(ValueError, match=f"1 or more. They are {window} and {stride}"):
        configure_strided_spans(window=window, stride=stride)


@pytest.mark.parametrize("name", ["spacy-pll.strided_spans.v1", "spacy-transformers.strided_spans.v1"])
def test_strides_that_would_leave_tokens_out(name):
    if name.startswith("spacy-t") and importlib.util.find_spec("spacy_transformers"):
        pytest.skip("that name is spacy-transformers' own; the warning below says what it leaves out")
    with pytest.raises(ValueError, match="`stride` .* is 9, .* `window` of 6"):
        registry.span_getters.get(name)(window=6, stride=9)


def every_other_sentence(docs):
    return [list(doc.sents)[::2] for doc in docs]


def first_words(docs):
    return [[doc[:2]] for doc in docs]


@pytest.mark.parametrize(
    ("getter", "text", "left_out"),
    [
        (every_other_sentence, "One two. Three four. Five.", "3 of 8 tokens .* such as 'Three' at token 3"),
        (first_words, "One two three.", "2 of 4 tokens .* such as 'three' at token 2"),
        (lambda docs: [[] for _ in docs], "One two.", "3 of 3 tokens .* such as 'One' at token 0"),
    ],
)
def test_tokens_that_lie_in_no_span_are_warned_of_once_with_a_count(make_nlp, getter, text, left_out):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    change(make_nlp(nlp=nlp).get_pipe("pll"), get_spans=getter)
    with pytest.warns(UserWarning, match=left_out):
        doc = nlp(text)
    assert any(token._.pll is None for token in doc)
    nlp(text)  # a second warning would be an error


def test_what_is_left_out_on_purpose_is_not_warned_of(make_nlp):
    """White space, and tokens that are no targets."""
    nlp = make_nlp(targets="targets")
    change(nlp.get_pipe("pll"), get_spans=first_words)
    doc = nlp.make_doc("One two three.")
    doc.spans["targets"] = [doc[1:2]]
    assert nlp(doc)[2]._.pll is None
    doc = nlp.make_doc("One two \n ")
    doc.spans["targets"] = [doc[:]]
    assert nlp(doc)[1]._.pll is not None
    doc = nlp.make_doc("One two three.")
    doc.spans["targets"] = [doc[1:3]]
    with pytest.warns(UserWarning, match="1 of 4 tokens .* 'three'"):
        nlp(doc)


def test_they_can_be_pickled():
    getter = pickle.loads(pickle.dumps(configure_strided_spans(window=6, stride=4)))
    assert [(span.start, span.end) for span in getter([doc_of(10)])[0]] == [(0, 6), (4, 10)]


def test_configs_that_were_written_for_spacy_transformers():
    docs, window = [doc_of(12)], {"window": 6, "stride": 4}
    for kind, settings in (("doc", {}), ("sent", {}), ("strided", window)):
        assert bounds(f"spacy-transformers.{kind}_spans.v1", docs, **settings) == bounds(
            f"spacy-pll.{kind}_spans.v1", docs, **settings
        )
