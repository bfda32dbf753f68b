"""A text after its context: the model reads both, and the text is scored."""

from spacy.language import Language
from spacy.tokens import Doc

from .texts import plain_text

TEXT_SPAN = "pll_text"  # where the text is in such a doc: a key of `doc.spans`, and what `targets` must be


def in_context(nlp: Language, context: str, text: str | Doc, *, separated: bool = True) -> Doc:
    """A doc of a context and a text, for a pipeline with the setting `targets="pll_text"`.

    separated (bool): Put a space between the two, unless the context ends with white space.
    """
    after = text if isinstance(text, Doc) else nlp.make_doc(plain_text(text, "The text after a context"))
    docs = [nlp.make_doc(plain_text(context, "The context")), after]
    both = Doc.from_docs(docs, ensure_whitespace=separated, exclude=["user_data"])  # type: ignore[call-arg]  # not in spaCy's stub
    both.spans[TEXT_SPAN] = [text_span := both[len(docs[0]) :]]
    if text_span and not docs[1].has_annotation("SENT_START"):
        text_span[0].is_sent_start = None  # spaCy takes the text for a sentence
    return both
