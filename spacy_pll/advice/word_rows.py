"""Rows of a table of words that seem to be rows of several texts, or not in the order of the words."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain
from typing import Any

from ..cells import label_of, whole_number
from .odd_words import NumberedWords

LONGEST_ITEM = 100  # words of a text of which there are versions
LONG_ENOUGH = 6  # words of a text in which other numbers than their places seldom differ, and are close
COUNTED = 3 / 4  # the share of steps by 1, from a word to the next, from which a column numbers the words
INDEX = ("", "index", "Unnamed: 0")  # columns in which data frames number all rows, in the order that they had
_Numbers = list[tuple[int, float]]  # rows, and what a column has there
_Step = tuple[tuple[int, float], tuple[int, float]]  # from one of them to the next


def joined_rows(
    rows: Sequence[Mapping[str, Any]], texts: Sequence[NumberedWords], word: str, by: Sequence[str]
) -> str | None:
    """About rows of a text that are not neighbours, or are the same words several times, as of several readers, or
    nearly the same, as of several conditions.

    texts: For each text, its rows that have a word. word, by: See `score_words`.
    """
    order = _order_of(texts)
    apart = [(a, b) for members in texts for (a, _), (b, _) in zip(members, members[1:]) if order[b] != order[a] + 1]
    if apart:
        a, b = min(apart)
        return (
            f"Rows {a + 1} and {b + 1} are read as neighbours in one text, since they have the same values in `by`. "
            "Rows of other texts stand between them. Is a column missing in `by`, such as the reader? Or is the table "
            "sorted in another way?"
        )
    votes, example = Counter[str](), dict[str, list[int]]()  # of texts, on whether they are versions of one
    for members in texts:
        for name in (name for name in rows[members[0][0]] if name not in (word, *by)):
            by_value = dict[str, list[tuple[int, str]]]()
            for member in members:
                by_value.setdefault(label_of(rows[member[0]].get(name)), []).append(member)
            firsts = [of_value[0][0] for of_value in by_value.values()]
            words = [tuple(text for _, text in of_value) for of_value in by_value.values()]
            same, times = Counter(words).most_common(1)[0]
            if len(same) > 2 and times > max(1, len(by_value) / 2):
                return _of_times(name, firsts, "the same")
            if len(by_value) > 1:
                votes[name] += 1 if _are_versions(words) else -1
                example.setdefault(name, firsts)
    of_versions = next((name for name in votes if votes[name] > 0), None)
    return None if of_versions is None else _of_times(of_versions, example[of_versions], "nearly the same")


def _of_times(column: str, firsts: Sequence[int], what: str) -> str:
    return (
        f"Rows {firsts[0] + 1} and {firsts[1] + 1} are read as one text, which has {what} words several times: "
        f"once for each value in the column {column!r}. Is this column missing in `by`?"
    )


def _are_versions(parts: Sequence[Sequence[str]]) -> bool:
    """Whether most are like the one before, as the conditions of an item are."""
    if min(map(len, parts)) < 3 or max(map(len, parts)) > LONGEST_ITEM:
        return False
    alike = [SequenceMatcher(None, a, b).ratio() > 0.6 for a, b in zip(parts, parts[1:])]
    return sum(alike) > len(alike) / 2


def other_order(rows: Sequence[Mapping[str, Any]], texts: Sequence[NumberedWords], others: Sequence[str]) -> str | None:
    """About rows that are in another order than a column which seems to number the words of each text; or some were
    removed, or are there twice. The number with which a text begins says nothing.

    texts: For each text, its rows that have a word.
    others (Sequence[str]): Columns that do not number words.
    """
    longest, order = max(texts, key=len, default=()), _order_of(texts)
    for name in rows[longest[0][0]] if longest else ():
        if name in others or all(math.isnan(_number(rows[i].get(name))) for i, _ in longest):
            continue
        numbers = [[(i, _number(rows[i].get(name))) for i, _ in members] for members in texts]
        steps = [_steps(own) for own in numbers]
        # Rows without a word are kept, and have numbers of their own.
        odd = [
            ((i, before), (j, after))
            for (i, before), (j, after) in chain(*steps)
            if after - before != 1 and not (after - before == j - i and order[j] == order[i] + 1)
        ]
        counts = len(odd) <= sum(map(len, steps)) * (1 - COUNTED)
        back = list(chain(*map(_steps_back, steps))) if counts or _are_places(numbers) else []
        on = [((i, before), (j, after)) for (i, before), (j, after) in odd if counts and after >= before]
        if not back and not on:
            continue
        (i, before), (j, after) = (back or on)[0]
        if back:
            advice = "Words are read in the order of the rows. Sort the rows, by numbers and not as text."
        elif after > before:
            advice = (
                f"Were rows removed or moved, such as words without a reading time ({len(on):,} places look so)? Then "
                "words are scored in another text than people read. Score the whole texts, and remove rows afterwards."
            )
        else:
            advice = "Is one of them there twice, or a part of another text?"
        return (
            f"Rows {i + 1} and {j + 1} are read as neighbours in one text, and have {before:.0f} and {after:.0f} in "
            f"the column {name!r}, which seems to number the words of each text. {advice}"
        )
    return None


def _order_of(texts: Sequence[NumberedWords]) -> dict[int, int]:
    """The number of each row that has a word, among all that have one."""
    return {i: n for n, i in enumerate(sorted(i for members in texts for i, _ in members))}


def _are_places(numbers: Sequence[_Numbers]) -> bool:
    """Whether the words of each text have different numbers that are close to one another."""
    values = [[number for _, number in own] for own in numbers]
    return max(map(len, values)) >= LONG_ENOUGH and all(
        len({*own}) == len(own) and max(own) - min(own) <= 1.5 * len(own) and not math.isnan(sum(own)) for own in values
    )


def _steps(own: _Numbers) -> list[_Step]:
    """The steps from each word of a text to the next. Where numbers come again, as those of words in sentences do, they
    begin anew with the first or the least number, or one that there was: that is no step.
    """
    values = [number for _, number in own]
    anew, steps = {values[0], min(values)} if len({*values}) < len(values) else set[float](), list[_Step]()
    for before, after in zip(own, own[1:]):
        if not after[1] < before[1] or after[1] not in anew:
            steps.append((before, after))
        anew.add(after[1])
    return steps


def _steps_back(steps: Sequence[_Step]) -> list[_Step]:
    """Those to a smaller number, unless all are: from last to first is an order, too."""
    back = [(before, after) for before, after in steps if after[1] < before[1]]
    return back if len(back) < len(steps) else []


def _number(value: Any) -> float:
    """A whole number; NaN if it is none."""
    number = whole_number(value)
    return math.nan if number is None else float(number)
