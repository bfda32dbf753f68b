"""What is read as one context: this package's span getters, and those of spacy-transformers or their substitutes."""

import importlib.util
import json
import pickle
import subprocess
import sys

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.util import registry

from spacy_pll.component import DEFAULT_CONFIG
from spacy_pll.span_getters import configure_strided_spans

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
@given(length=lengths, window=steps, stride=steps)
def test_they_give_what_those_of_spacy_transformers_give(length, window, stride):
    from spacy_transformers import span_getters

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


def test_they_can_be_pickled():
    getter = pickle.loads(pickle.dumps(configure_strided_spans(window=6, stride=4)))
    assert [(span.start, span.end) for span in getter([doc_of(10)])[0]] == [(0, 6), (4, 10)]


# In a process of its own: what is imported, and in which order. The entry points of spacy-transformers are hidden,
# because spaCy itself imports each package that has a factory.
PROCESS = """
import json, sys
import catalogue

class EntryPoints:
    all = catalogue.AVAILABLE_ENTRY_POINTS

    def select(self, group):
        return [point for point in self.all.select(group=group) if not point.value.startswith("spacy_transformers")]

catalogue.AVAILABLE_ENTRY_POINTS = EntryPoints()
if sys.argv[1] == "first":
    import spacy_transformers

import spacy

def modules(prefix):
    nlp = spacy.blank("en")
    kinds = {"doc": {}, "sent": {}, "strided": {"window": 6, "stride": 4}}
    found = set()
    for kind, settings in kinds.items():
        getter = {"@span_getters": f"{prefix}.{kind}_spans.v1", **settings}
        scorer = nlp.add_pipe("pll", name=kind, config={"get_spans": getter, "attr": kind})
        function = getattr(scorer.predictor.get_spans, "func", scorer.predictor.get_spans)
        found.add(function.__module__)
    return sorted(found)

found = [modules("spacy-pll")]
if sys.argv[1] == "never":
    sys.modules["spacy_transformers"] = None  # importing it is an ImportError
elif sys.argv[1] == "later":
    found.append("spacy_transformers" in sys.modules)
print(json.dumps([*found, modules("spacy-transformers"), modules("spacy-pll")]))
"""
OWN, THEIRS = ["spacy_pll.span_getters"], ["spacy_transformers.span_getters"]


def in_a_process_of_its_own(when):
    """The modules of the functions under the own names, under the old names, and under the own names again.

    when (str): When spacy-transformers can be imported.
    """
    out = subprocess.run([sys.executable, "-c", PROCESS, when], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


@pytest.mark.slow
def test_where_spacy_transformers_does_not_import_its_names_are_those_of_this_package():
    assert in_a_process_of_its_own("never") == [OWN, OWN, OWN]


@needs_spacy_transformers
@pytest.mark.slow
def test_spacy_transformers_is_imported_only_when_it_is_named():
    assert in_a_process_of_its_own("later") == [OWN, False, THEIRS, OWN]


@needs_spacy_transformers
@pytest.mark.slow
def test_spacy_transformers_imported_first():
    assert in_a_process_of_its_own("first") == [OWN, THEIRS, OWN]
