"""A text after its context: the model reads both, and the text is scored."""

from spacy.language import Language
from spacy.tokens import Doc

TEXT_SPAN = "pll_text"  # where the text is in such a doc: a key of `doc.spans`, and what `targets` must be


def in_context(nlp: Language, context: str, text: str | Doc, separator: str = " ") -> Doc:
    """A doc of a context and a text, for a pipeline with the setting `targets="pll_text"`.

    separator (str): Put between the two, unless one of them has white space there.
    """
    whole = str(text)
    if context and not context[-1].isspace() and not whole[:1].isspace():
        context += separator
    docs = [nlp.make_doc(context), nlp.make_doc(text) if isinstance(text, str) else text]
    both = Doc.from_docs(docs, ensure_whitespace=False, exclude=["user_data"])  # type: ignore[call-arg]  # not in spaCy's stub
    both.spans[TEXT_SPAN] = [text_span := both[len(docs[0]) :]]
    if text_span and not docs[1].has_annotation("SENT_START"):
        text_span[0].is_sent_start = None  # spaCy takes the text for a sentence
    return both
