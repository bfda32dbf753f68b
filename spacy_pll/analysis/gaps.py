"""Texts with a gap, and what may stand in it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import InputError
from ..texts import plain_text

GAP = "___"


class Slot(NamedTuple):
    """A text with a gap."""

    before: str
    after: str
    candidates: tuple[str, ...]
    gold: str | None = None
    place: str = "The text"  # where it is from, for messages
    fields: Mapping[str, Any] = {}  # its columns, if it has some

    @classmethod
    def of(
        cls, text: str, gap: str, candidates: tuple[str, ...] | None, gold: str | None, place: str, **more: Any
    ) -> "Slot":
        """candidates (Optional[Tuple[str, ...]]): None: They are searched.
        RAISES (InputError): The text has no gap or several, or the gold candidate is not there.
        """
        more_of_it = f"{re.escape(gap[0])}*" if gap and gap.count(gap[0]) == len(gap) else ""
        sides = re.split(re.escape(gap) + more_of_it, text) if gap.strip() else [text]
        if len(sides) != 2:
            problem = f"{place}: a text must have one gap, written {gap!r}. It has {len(sides) - 1}: {text!r:.100}"
            raise InputError(problem, "Correct it, or give as `gap` what stands for the gap.")
        if candidates == ():
            raise InputError(f"{place}: there is no candidate.")
        if gold is not None and not (gold := plain_text(gold, f"{place}, the right candidate").strip()):
            raise InputError(f"{place}: the right candidate is empty. Name it, or leave the text out.")
        if gold is not None and gold not in (candidates or [gold]):
            raise InputError(f"{place}: {gold!r:.100} is right, and is no candidate. Add it, or leave the text out.")
        return cls(sides[0], sides[1], candidates or (), gold, place, **more)


def distinct_candidates(each: str, candidates: Iterable[Any]) -> tuple[str, ...]:
    """Candidates without white space at their ends.

    each (str): What stands before the number of a candidate in messages, such as "Candidate".
    RAISES (InputError): One is empty, or there twice, or no text.
    """
    seen = dict[str, str]()
    for where, candidate in ((f"{each} {number}", given) for number, given in enumerate(candidates, 1)):
        if not (text := plain_text(candidate, where).strip()):
            raise InputError(f"{where} is empty. Write a word, or leave it out.")
        if seen.setdefault(text, where) != where:
            raise InputError(f"{where}: {text!r:.100} is there twice, first as {seen[text]}. Leave one out.")
    return tuple(seen)
