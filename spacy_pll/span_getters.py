"""Which spans of a doc are read as one context: what a config can name as `get_spans`. And the spans that a key names.

The registry `span_getters` is not one of spaCy's own: spacy-transformers adds it to spaCy when it is imported. This
module adds it if it is not there yet.
"""

import struct
from collections.abc import Callable
from functools import partial

import catalogue
import srsly
from spacy.tokens import Doc, Span
from spacy.util import registry

from .errors import PLLError, explained

# One list of spans for each doc.
SpanGetter = Callable[[list[Doc]], list[list[Span]]]
# A key of `doc.spans`: where a text is in a doc that also has what stands beside it. A doc without it is the text.
TEXT_SPAN = "pll_text"

# What is registered belongs to the name of the registry, not to this object: spacy-transformers may replace it.
if not hasattr(registry, "span_getters"):
    registry.span_getters = catalogue.create("spacy", "span_getters", entry_points=True)  # type: ignore[attr-defined]
span_getters: catalogue.Registry = registry.span_getters  # type: ignore[attr-defined]


def get_doc_spans(docs: list[Doc]) -> list[list[Span]]:
    """Each doc as one span."""
    return [[Span(doc, 0, len(doc))] for doc in docs]  # in half the time of doc[:]


def get_sent_spans(docs: list[Doc]) -> list[list[Span]]:
    """The sentences of each doc.

    RAISES (PLLError): A doc has no sentence boundaries; spaCy's message says which components set them.
    """
    with explained("The sentences cannot be read"):
        return [list(doc.sents) for doc in docs]


def get_strided_spans(docs: list[Doc], window: int, stride: int) -> list[list[Span]]:
    """Spans of `window` tokens in each doc, one every `stride` tokens, up to the one that reaches its end."""
    # Behind a span that reaches the end, there is no other.
    return [
        [doc[at : at + window] for at in range(0, len(doc), stride) if not at or at - stride + window < len(doc)]
        for doc in docs
    ]


@span_getters("spacy-pll.doc_spans.v1")
def configure_doc_spans() -> SpanGetter:
    """Read each doc as one context."""
    return get_doc_spans


@span_getters("spacy-pll.sent_spans.v1")
def configure_sent_spans() -> SpanGetter:
    """Read each sentence as one context. An earlier component must set sentence boundaries."""
    return get_sent_spans


@span_getters("spacy-pll.strided_spans.v1")
def configure_strided_spans(window: int, stride: int) -> SpanGetter:
    """Read contexts of a fixed number of tokens.

    window (int): The number of tokens in a context.
    stride (int): The number of tokens from the start of one context to the start of the next. If it is smaller than
        `window`, the contexts overlap.
    RAISES (ValueError): One of them is less than 1, or `stride` is larger than `window`.
    """
    if window < 1 or stride < 1:
        raise PLLError(
            f"`window` and `stride` of a span getter are numbers of tokens, 1 or more. They are {window} and {stride}."
        )
    if stride > window:
        raise PLLError(
            f"The `stride` of a span getter is {stride}, which is more than its `window` of {window} tokens. So the "
            f"tokens between two windows would have no score. Give a `stride` of at most {window}."
        )
    return partial(get_strided_spans, window=window, stride=stride)


# For configs that were written for spacy-transformers. Where spaCy finds that package, its own take their place.
for _ours in (configure_doc_spans, configure_sent_spans, configure_strided_spans):
    if (_name := f"spacy-transformers.{_ours.__name__.removeprefix('configure_')}.v1") not in span_getters:
        span_getters(_name, func=_ours)


def named_spans(doc: Doc, key: str) -> list[Span]:
    """The spans under a key of `doc.spans`, by their characters. If a component has merged or split tokens since they
    were made, spaCy has the numbers of tokens that are others now, and `doc.spans` gets those that hold the characters.

    RAISES (ValueError): The text that is to be scored apart (`TEXT_SPAN`) has a token together with what stands beside
        it.
    """
    if key == TEXT_SPAN and key not in doc.spans:
        return [doc[:]]
    try:
        spans = list(doc.spans[key])
        if all(map(_is_there, spans)):
            return spans
    except IndexError:  # spaCy's E035: there are fewer tokens now
        pass
    stored = stored_spans(doc, key)
    moved_spans = (
        doc.char_span(start, end, label, kb_id, alignment_mode="expand", span_id=span_id)
        for span_id, kb_id, label, start, end in stored
        if start < end
    )
    moved, places = list(filter(None, moved_spans)), [(start, end) for *_, start, end in stored]
    if key == TEXT_SPAN and places != [(span.start_char, span.end_char) for span in moved]:
        raise PLLError(
            f"A component has merged tokens of the text {doc.text[slice(*places[0])]!r:.100} with what stands beside "
            "it, so it cannot be scored apart.",
            "Leave that component out.",
        )
    doc.spans[key] = moved
    return moved


def stored_spans(doc: Doc, key: str) -> list[tuple[int, int, int, int, int]]:
    """The spans under a key of `doc.spans` as they were made: id, id in a knowledge base, label, and the characters at
    which each begins and ends.
    """
    packed = [struct.unpack(">QQQllll", span) for span in srsly.msgpack_loads(doc.spans[key].to_bytes())["spans"]]
    return [(*ids, start, end) for *ids, _, _, start, end in packed]


def _is_there(span: Span) -> bool:
    doc, empty = span.doc, span.start == span.end
    is_begin = empty or doc[span.start].idx == span.start_char
    return is_begin and (empty or doc[span.end - 1].idx + len(doc[span.end - 1]) == span.end_char)
