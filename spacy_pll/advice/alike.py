"""Texts that differ, and are the same to a tokenizer."""

from collections.abc import Iterable, Mapping
from os.path import commonprefix

from spacy.tokens import Doc

from ..stream.contexts import Placed


def read_alike(places: Iterable[Placed], read: Mapping[Placed, bytes]) -> list[tuple[str, str]]:
    """Of texts that differ from an earlier one, and are the same to the tokenizer, what differs: the two texts, or what
    stands before or after them. White space at the ends makes no difference.

    read (Mapping[Tuple[Union[str, Doc], str, str], bytes]): What `readings` has of each text in its place.
    """

    def plain(side: str | Doc) -> str:
        return side.text if isinstance(side, Doc) else side

    first, differing = dict[bytes, Placed](), list[tuple[str, str]]()
    for in_context in places:
        other = first.setdefault(read[in_context], in_context)
        if other is not in_context:
            both = zip(*([plain(side).strip() for side in sides] for sides in (other, in_context)))
            differing += [two for two in both if two[0] != two[1]][:1]
    return differing


def alike_texts(what: str, two: tuple[str, str], counts: str, title: str) -> str:
    """About two that are so.

    what (str): What the two are called. two (Tuple[str, str]): See `read_alike`. counts (str): "3 of 50 pairs". title
        (str): What the model is called.
    """
    begin = max(0, len(commonprefix(two)) - 40)
    first, second = (f"{'…' if begin else ''}{text[begin : begin + 80]}" for text in two)
    return (
        f"{what} differ, {first!r} and {second!r}, but to the tokenizer of {title} they are the same wordpieces, as in "
        f"{counts}. At most what counts as a word can tell them apart. Leave them out, or give a `model` whose "
        "tokenizer keeps what differs, such as case, accents or rare characters."
    )
