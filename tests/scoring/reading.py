"""What is read for the spans of a doc, span by span and context by context, for tests that look at single ones."""

from types import SimpleNamespace

from spacy_pll.arrays import Groups
from spacy_pll.scoring.windows import get_contexts
from spacy_pll.scoring.wordpieces import get_wordpieces


def read(doc, spans, tokenizer, unit="spacy", wanted=None, max_length=1000, lookahead=None):
    """The pieces of each span, the contexts with their span and the place of their first piece in it, and which tokens
    are scored.
    """
    pieces = get_wordpieces(spans, tokenizer, unit)
    contexts, covered = get_contexts([spans], pieces, Groups.of([doc]), wanted, max_length, lookahead)
    found = []
    for c, context in enumerate(contexts):
        first = contexts.piece[contexts.pieces_of.starts[c]]
        span = int(pieces.encoded.pieces_of.owner[first])
        place = {"span": span, "offset": int(first - pieces.encoded.pieces_of.starts[span])}
        found.append(SimpleNamespace(**vars(context), **place, length=len(context.ids)))
    return [span_of(pieces, s) for s in range(len(spans))], found, covered


def span_of(pieces, s):
    """The pieces of one span."""
    own = pieces.encoded.pieces_of[s]
    columns = {name: getattr(pieces, name)[own] for name in ("ids", "start", "end", "token", "word")}
    around = {"prefix": pieces.encoded.prefix, "suffix": pieces.encoded.suffix}
    return SimpleNamespace(**around, n=own.stop - own.start, **columns)
