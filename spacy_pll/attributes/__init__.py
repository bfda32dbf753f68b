"""The Doc, Span and Token attributes.

Scores are stored for tokens, as plain floats and ints. A Doc or Span computes its sum when it is read. So the sums stay
right after DocBin, `Span.as_doc`, `Doc.from_docs` and in worker processes.
"""
