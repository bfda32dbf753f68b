"""Warns of what a guess has found, of all that was read, or of the first of a stream."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..user_warnings import warn_user

T = TypeVar("T")
FIRST = 1000  # records of a stream from which it is told


def advise(*messages: str | None) -> None:
    """Warn of each message that is there."""
    for message in filter(None, messages):
        warn_user(message)


@dataclass
class Once:
    """Advice that is given once, of the first that looks odd."""

    is_given: bool = False

    def advise(self, guess: Callable[[], str | None]) -> None:
        """guess: Is called until it has found something."""
        if not self.is_given:
            message = guess()
            advise(message)
            self.is_given = message is not None


def advised(items: Iterable[T], guess: Callable[[Sequence[T]], str | None], n: int = FIRST) -> Iterator[T]:
    """The items of a stream. A warning comes behind the first ones, if these look odd.

    guess: Gets the first `n` items, or all if there are fewer.
    """
    first = list[T]()
    for item in items:
        if len(first) < n:
            first.append(item)
            if len(first) == n:
                advise(guess(first))
        yield item
    if len(first) < n:
        advise(guess(first))


def advised_of_each(items: Iterable[T], guess: Callable[[T], str | None]) -> Iterator[T]:
    """The items of a stream. A warning comes before the first one that looks odd."""
    items = iter(items)
    for item in items:
        message = guess(item)
        advise(message)
        yield item
        if message:
            yield from items
