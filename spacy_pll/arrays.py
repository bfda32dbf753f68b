"""Types of numpy arrays, for annotations; and groups of elements that lie in one array."""

from collections.abc import Iterator, Sequence, Sized
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.floating]
T = TypeVar("T")


class lazy(cached_property[T]):
    """As `cached_property`, without the lock that it has before Python 3.12. A process that is forked while a thread
    holds it would wait for it forever.
    """

    if not TYPE_CHECKING:

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            return vars(instance).setdefault(self.attrname, self.func(instance))


def spread(first: IntArray, count: IntArray) -> IntArray:
    """Consecutive numbers: `count[i]` of them from `first[i]` on, for each i, joined.

    Example: `spread([5, 0], [2, 3])` is [5, 6, 0, 1, 2].
    """
    ends = np.cumsum(count)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - ends + count, count)


def up_to(number: IntArray | BoolArray) -> IntArray:
    """The sums of the numbers before each, and of all. int, one more than there are numbers. Those of uint64 may
    overflow; their differences are right all the same.
    """
    sums = np.cumsum(number)
    return np.concatenate([np.zeros(1, sums.dtype), sums])


class Groups:
    """Groups of elements that lie one behind the other in some arrays. The words are those of thinc's `Ragged`.

    lengths (int array, shape (groups,)): How many elements each group has.
    """

    def __init__(self, lengths: IntArray):
        self.lengths, self.edges = lengths, up_to(lengths)
        self.starts, self.ends = self.edges[:-1], self.edges[1:]

    @classmethod
    def of(cls, items: Sequence[Sized]) -> "Groups":
        """A group for each of some things, with as many elements as that has."""
        return cls(np.fromiter(map(len, items), np.int64, len(items)))

    @classmethod
    def by(cls, owner: IntArray, n: int) -> "Groups":
        """So many groups, from the number of the group of each element. owner (int array): Non-decreasing."""
        return cls(np.bincount(owner, minlength=n))

    @classmethod
    def beginning(cls, at: BoolArray) -> "Groups":
        """Groups that begin at these elements. at (bool array, shape (elements,)): True for the first one."""
        return cls(np.diff(np.append(np.flatnonzero(at), len(at))))

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[slice]:
        """The elements of each group."""
        return map(slice, self.starts.tolist(), self.ends.tolist())

    def __getitem__(self, group: int) -> slice:
        """The elements of one group."""
        return slice(self.starts[group], self.ends[group])

    @lazy
    def owner(self) -> IntArray:
        """The number of each element's group."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def within(self) -> IntArray:
        """The number of each element in its group."""
        return np.arange(self.edges[-1]) - self.starts[self.owner]

    def take(self, groups: IntArray) -> IntArray:
        """The elements of some groups, one group after the other."""
        return spread(self.starts[groups], self.lengths[groups])


def inverse(order: IntArray) -> IntArray:
    """Of a permutation: where each element is in the new order. int, the same shape."""
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank


def begins(number: IntArray | BoolArray) -> BoolArray:
    """Where another number begins. bool, the same shape."""
    out = np.ones(len(number), dtype=bool)
    out[1:] = number[1:] != number[:-1]
    return out


def distinct(number: IntArray) -> tuple[IntArray, IntArray]:
    """Which numbers there are. `np.unique` sorts in a way that keeps the order of equal ones, which takes longer.

    RETURNS (tuple of int arrays): Where each number stands for the first time, by increasing numbers; and for each
        element the index of its number among them.
    """
    order = np.argsort(number)
    is_new = begins(number[order])
    index = np.empty_like(order)
    index[order] = np.cumsum(is_new) - 1
    return np.minimum.reduceat(order, np.flatnonzero(is_new)) if len(order) else order, index
