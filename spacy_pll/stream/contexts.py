"""A text in its place: the model reads what stands before and after it, and the text alone is scored.

A wordpiece belongs to the text if its first visible character lies there. One that reaches over an end of the text is
an error, unless it is to be given to the side where it begins.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import count
from typing import Any, NamedTuple, TypeVar

import numpy as np
from spacy.language import Language
from spacy.tokenizer import Tokenizer  # type: ignore[import-not-found]
from spacy.tokens import Doc

from ..arrays import BoolArray, Groups
from ..component import PLLScorer, get_scorer
from ..errors import InputError, PLLError
from ..language_model.protocol import Loaded
from ..pipelines import change_component, make_pipeline
from ..prediction.batches import batches_of
from ..scoring.kept_encodings import MAX_KEPT_IDS, KeptEncodings
from ..scoring.wordpieces import Encoded, are_of_targets, segment_of, trim
from ..span_getters import TEXT_SPAN, get_sent_spans
from ..texts import lone_surrogate, plain_text
from ..user_warnings import warn_user

T = TypeVar("T")
PLACES_AT_ONCE = 1000
# A text, what stands before it, and what stands after it.
Placed = tuple[str | Doc, str, str]
Part = tuple[int, int]  # where a part of a text begins and ends, in characters
SHARED_ADVICE = (
    "Put a space between the two, or give such a piece to the side where it begins, with `shared_pieces=True`."
)


def separated(before: str, text: str | Doc, separator: str = " ") -> str:
    """What stands before a text, with a separator, unless one of them has white space there."""
    first = text.text[:1] if isinstance(text, Doc) else text[:1]
    return before if not before or before[-1].isspace() or first.isspace() else before + separator


def between(before: str, text: str | Doc, after: str, separator: str = " ") -> Placed:
    """A text in its place, with the separator on both sides where something stands and there is no white space."""
    rest = separated(str(text), after, separator)[len(str(text)) :] + after if after else ""
    return text, separated(before, text, separator), rest


class TextInContext(NamedTuple):
    """A text, such as an option of a choice, with the text before it (its context) and after it."""

    text: str
    context: str = ""  # read before the text, and not scored; white space alone is no context
    separator: str = " "  # between them, unless one of them has white space there
    after: str = ""  # read after the text, and not scored either
    # In suites, the parts whose scores are wanted: where each begins and ends in the text, in characters. A wordpiece
    # belongs to the part in which its first visible character lies. None: the whole text.
    parts: Sequence[Part] | None = None

    @property
    def place(self) -> Placed:
        """The text, the context with the separator, and what stands after the text: together what the model reads."""
        before, after = (side if side.strip() else "" for side in (self.context, self.after))
        return between(before, self.text, after, self.separator)


def doc_in_context(nlp: Language, text: str | Doc, before: str = "", after: str = "") -> Doc:
    """A doc of a text and of what stands beside it, for a pipeline with the setting `targets="pll_text"`. If nothing
    stands there, it has no such spans.

    before, after (str): As they are: with the white space that there should be.
    """
    before, after = plain_text(before, "What stands before a text"), plain_text(after, "What stands after a text")
    text = text if isinstance(text, Doc) else plain_text(text, "A text")
    if isinstance(text, str) and text and after[:1] == " ":  # which a token has behind it, and is none
        text, after = text + " ", after[1:]
    made = nlp.make_doc(text) if isinstance(text, str) else text
    if not before and not after:
        return made if isinstance(text, str) else made.copy()  # the text is all of it
    docs = [nlp.make_doc(before), made, nlp.make_doc(after)]
    # spaCy's own tokenizer gives its docs words and norms alone.
    plain = isinstance(text, str) and type(nlp.tokenizer) is Tokenizer
    doc = _joined(docs) if plain else Doc.from_docs(docs, ensure_whitespace=False, exclude=["user_data"])  # type: ignore[call-arg]  # not in spaCy's stub
    start, end = len(docs[0]), len(docs[0]) + len(made)
    doc.spans[TEXT_SPAN] = [doc[start:end]]
    # spaCy takes each part for a sentence, and a single token in any case.
    known = len(made) > 1 and made.has_annotation("SENT_START")
    for token in (doc[i] for i in (([] if known else [start]) + [end]) if i < len(doc)):
        token.is_sent_start = None
    return doc


def _joined(docs: Sequence[Doc]) -> Doc:
    """As `Doc.from_docs`, for docs as spaCy's tokenizer makes them, in a fifth of the time."""
    tokens = np.concatenate([doc.to_array(["ORTH", "SPACY", "NORM"]) for doc in docs if len(doc)])
    words, spaces = tokens[:, 0].tolist(), tokens[:, 1].astype(bool).tolist()
    doc = Doc(docs[0].vocab, words, spaces)
    if (doc.to_array("NORM") != tokens[:, 2]).any():  # of exceptions: "ca" of "can't" is "can"
        doc.from_array(["NORM"], tokens[:, 2:])  # type: ignore[arg-type]  # spaCy's stub is for thinc's types
    return doc


def check_places(scorer: PLLScorer, places: Iterable[Placed], shared_pieces: bool = False) -> None:
    """Check, without scoring, that each text has a wordpiece of its own, and shares none with what stands beside it.

    shared_pieces (bool): It may share some. Each belongs to the side where it begins.
    RAISES (InputError): A text has no wordpiece, or shares one.
    RAISES (PLLError): The component would not read what stands beside a text.
    """
    for _ in readings(scorer, places, shared_pieces):
        pass


def readings(
    scorer: PLLScorer,
    places: Iterable[Placed],
    shared_pieces: bool = False,
    blocks: list[tuple[list[str], Encoded]] | None = None,
) -> Iterator[bytes]:
    """A digest of what is read of each text in its place, and of which pieces are scored: texts with the same digest
    are the same to the tokenizer. Each text is checked: see `check_places`.

    blocks (Optional[List[Tuple[List[str], Encoded]]]): Gets what is read, with what the tokenizer makes of it, for
        `KeptEncodings`: of the first texts, up to `MAX_KEPT_IDS`.
    """

    def readable() -> Iterator[Placed]:
        for text, before, after in places:
            if before or after:
                check_reads_context(scorer)
            if problem := lone_surrogate(f"{before}{text}{after}"):
                raise InputError(f"A text {problem}")
            yield text, before, after

    pretokens = blocks is not None and scorer.settings.words == "tokenizer"
    for block in in_blocks(readable()):
        encoded, scored, states = read_places(scorer.model.load(), block, pretokens)
        if blocks is not None and sum(len(encoded_block.ids) for _, encoded_block in blocks) < MAX_KEPT_IDS:
            blocks.append((list(map(whole_text, block)), encoded))
        for (text, before, after), (has_own, shared), own in zip(block, states, encoded.pieces_of, strict=True):
            what = f"The text {str(text)!r:.100}" + f" after {before[-80:]!r}" * bool(before)
            what += f" before {after[:80]!r}" * bool(after)
            if shared and not shared_pieces:
                raise InputError(f"{what} {shared}", SHARED_ADVICE)
            if not has_own:
                raise InputError(
                    f"{what} has no wordpiece of its own under this model's tokenizer, so it has no score. Leave it "
                    "out."
                )
            yield sha256(encoded.ids[own].tobytes() + scored[own].tobytes()).digest()


def check_reads_context(scorer: PLLScorer) -> None:
    """RAISES (PLLError): The component would not read what stands beside a text."""
    if scorer.predictor.get_spans is get_sent_spans:
        raise PLLError(
            "The component reads each sentence alone, so it would not read what stands before or after a text.",
            "Set `spans` to 'doc', or leave it out.",
        )


def whole_text(in_context: Placed) -> str:
    """What the model reads: a text with what stands before and after it."""
    text, before, after = in_context
    # Joined, since an Enum of strings is formatted as its name.
    return "".join((before, text.text if isinstance(text, Doc) else text, after))


def in_blocks(items: Iterable[T]) -> Iterator[list[T]]:
    """Items, so many at a time that it pays to tokenize them together."""
    numbers = count(1)
    return batches_of(items, lambda _: next(numbers) % PLACES_AT_ONCE == 0)


def read_places(
    loaded: Loaded, places: Sequence[Placed], pretokens: bool = False
) -> tuple[Encoded, BoolArray, list[tuple[bool, str | None]]]:
    """What the tokenizer makes of texts in their places; which of the pieces are scored with the texts, bool, shape
    (pieces,); and whether each text has a piece of its own, with what is wrong if it shares one with what stands beside
    it, or None.
    """
    wholes = list(map(whole_text, places))
    wholes = ["" if lone_surrogate(whole) else whole for whole in wholes]
    encoded = Encoded.of(wholes, loaded.tokenizer, pretokens)
    # From here on all are one text.
    text, of, chars = "".join(wholes), encoded.pieces_of.owner, Groups.of(wholes)
    begin, until = chars.starts[of], chars.ends[of]
    begins_at = chars.starts + np.array([len(before) for _, before, _ in places], dtype=np.int64)
    ends_at = chars.ends - np.array([len(after) for *_, after in places], dtype=np.int64)
    first, last = begins_at[of], ends_at[of]
    untrimmed, start, end, anchor = trim(text, encoded.offsets + begin[:, None], begin, until)
    alone = (begin == first) & (last == until)  # then each piece is its own, visible or not
    visible = alone | (first <= start) & (start < np.minimum(end, last))
    # What stands before and after a text, and the text, are as tokens. A space behind a word is part of no token.
    tokens_of = Groups(np.full(len(places), 3))
    targets, end_before = np.arange(3 * len(places)) % 3 == 1, np.zeros(3 * len(places), dtype=np.int64)
    spaced = [before[-1:] == " " and before[-2:-1].strip() != "" for _, before, _ in places]
    starts = np.stack([chars.starts, begins_at, ends_at], axis=1)
    end_before[targets] = begins_at - spaced
    token = np.maximum(segment_of(anchor, starts.ravel()), 3 * of + (starts[:, 0] == starts[:, 1])[of])
    scored = are_of_targets(token, untrimmed, start == end, targets, tokens_of, end_before)
    over = ~alone & ((start < first) & (first < end) | (start < last) & (last < end))
    shared: list[str | None] = [None] * len(places)
    for at in np.flatnonzero(over)[::-1].tolist():  # the first of each text is kept
        side = "there" if first[at] <= start[at] else "before it"
        shared[of[at]] = (
            "cannot be scored apart from the text around it: the tokenizer makes one piece, "
            f"{text[start[at] : end[at]]!r}, of both, which begins {side}."
        )
    return encoded, scored, list(zip((np.bincount(of, visible, len(places)) > 0).tolist(), shared))


def placed(
    nlp: Language,
    places: Iterable[Placed],
    encodings: KeptEncodings | None = None,
    **settings: Any,
) -> tuple[Language, Iterator[Doc]]:
    """A pipeline that scores texts in their places, and the docs for it, which are made as they are taken. In each, the
    text is `doc.spans["pll_text"]`, or all of the doc, and only the tokens in it get scores.

    nlp (Language): A pipeline with a `pll` component, whose setting `targets` has no effect here.
    places (Iterable[Tuple[Union[str, Doc], str, str]]): Texts, with what stands before and after each. Similar ones
        should be neighbours: masked contexts that are equal within a batch run once.
    encodings (Optional[KeptEncodings]): What the tokenizer made of them when they were checked.
    settings (Any): Other settings of the component.
    """
    get_scorer(nlp).settings.check_whole("here, whole texts are compared")
    if (targets := get_scorer(nlp).settings.targets) is not None:
        warn_user(f"The setting `targets` ({targets!r}) has no effect here: each text is scored whole.")
    nlp = make_pipeline(nlp, targets=TEXT_SPAN, **settings)
    if encodings:
        change_component(nlp, kept=encodings)
    return nlp, (doc_in_context(nlp, *in_context) for in_context in places)
