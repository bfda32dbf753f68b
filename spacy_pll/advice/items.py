"""Minimal pairs, choices and sentences with labels that differ in what was perhaps not meant, or are there twice."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from ..compression import format_of
from ..stream.contexts import TextInContext

SEVERAL = 10  # of so many choices, not all are meant to differ in their punctuation
SENTENCE_END = re.compile(r"""[.!?…。！？؟।]["'”’»)\]\s]*\Z""")
# What stands before a sentence that is not good, as linguists write it.
JUDGMENT = re.compile(r"\s*(?:[*?%]+|#)\s*\w")


def equal_options(equal: Mapping[int, str], locations: Sequence[str], unit: str) -> str | None:
    """About choices whose right option is there twice, if these are more than one in a hundred: no score can tell the
    two apart. (Of the 67,000 pairs of BLiMP, 7 are so.)

    equal (Mapping[int, str]): By the numbers of these choices, which of their options are equal.
    locations (Sequence[str]): Where each choice is from. unit (str): What the choices are called.
    """
    if len(equal) <= len(locations) / 100:
        return None
    first, what = next(iter(equal.items()))
    return (
        f"{locations[first]}: {what}, as in {len(equal):,} of {len(locations):,} {unit}. These are ties whatever "
        "the model says. Correct them, or leave them out."
    )


def begun_apart(choices: Sequence[Sequence[TextInContext]], locations: Sequence[str], unit: str) -> str | None:
    """About choices in which white space stands before some options alone. locations, unit: See `equal_options`."""
    begun = ({(option.context + option.text)[:1].isspace() for option in options} for options in choices)
    odd = [i for i, kinds in enumerate(begun) if len(kinds) > 1]
    if not odd:
        return None
    return (
        f"{locations[odd[0]]}: white space stands before one option, and not before another, as in "
        f"{len(odd):,} of {len(choices):,} {unit}. Models with byte-level BPE, such as RoBERTa, read other "
        "wordpieces for the first word after a space. If that is not what you want to compare, remove it."
    )


def ended_apart(choices: Sequence[Sequence[TextInContext]], locations: Sequence[str], unit: str) -> str | None:
    """About choices in which a full stop stands behind some options alone. locations, unit: See `equal_options`."""
    ended = ({bool(SENTENCE_END.search(option.text)) for option in options if not option.after} for options in choices)
    odd = [i for i, kinds in enumerate(ended) if len(kinds) > 1]
    if not odd or len(choices) < SEVERAL:
        return None
    return (
        f"{locations[odd[0]]}: a full stop or the like stands behind one option and not another, as in "
        f"{len(odd):,} of {len(choices):,} {unit}. If that is not what you want to compare, correct it."
    )


def judged_options(
    choices: Sequence[Sequence[TextInContext]], right: Sequence[int], locations: Sequence[str], unit: str
) -> str | None:
    """About choices in which an asterisk or the like stands before a wrong option, and not before the right one.

    right (Sequence[int]): The numbers of the right options. locations, unit: See `equal_options`.
    """
    marks = [[_is_judged(option.text) for option in options] for options in choices]
    return _of_judgments([any(of) and not of[number] for of, number in zip(marks, right)], locations, unit)


def judged_sentences(bad: Sequence[str], good: Iterable[str], locations: Sequence[str]) -> str | None:
    """About sentences that are not acceptable and begin with an asterisk or the like, if none that is acceptable does.

    locations (Sequence[str]): Where each of the first is from.
    """
    if any(map(_is_judged, good)):
        return None
    return _of_judgments([*map(_is_judged, bad)], locations, "sentences that are not acceptable")


def _is_judged(text: str) -> bool:
    return bool(JUDGMENT.match(text))


def _of_judgments(marked: Sequence[bool], locations: Sequence[str], what: str) -> str | None:
    n = sum(marked)
    if not n:
        return None
    share = "all" if n == len(marked) else f"{n:,} of {len(marked):,}"
    return (
        f"{locations[marked.index(True)]}: a mark such as * stands only before what is not good, and the model reads "
        f"it. This is so in {share} {what}. If it is a judgment, remove it."
    )


def copies(items: Iterable[tuple[Mapping[str, Any], object]]) -> Iterator[str]:
    """About files all of whose items are also in a file of another format, as where a folder has the same data in two.

    items: The columns of each (`Fields`), and what distinguishes it from others.
    """
    of_files = defaultdict[str, set[object]](set)
    for fields, item in items:
        of_files[getattr(fields, "place", "").rpartition(", ")[0]].add(item)
    for file, other in combinations(sorted(of_files, key=lambda name: len(of_files[name])), 2):
        if format_of(Path(file)) != format_of(Path(other)) and of_files[file] <= of_files[other]:
            yield f"All that is in {file} is also in {other}, so it counts twice. Give one file, or move one away."
