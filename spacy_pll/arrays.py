"""Types of numpy arrays, for annotations."""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.floating]


def spread(first: IntArray, count: IntArray) -> IntArray:
    """The numbers from each of some first ones on, so many of each, one after the other. Example: from [5, 0], and so
    many as [2, 3], they are [5, 6, 0, 1, 2].
    """
    ends = np.cumsum(count)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - ends + count, count)


def bounds(count: IntArray | BoolArray) -> IntArray:
    """Where groups of such sizes begin, and where the last one ends. int, shape (groups + 1,)."""
    return np.append(0, np.cumsum(count))


def inverse(order: IntArray) -> IntArray:
    """Of a permutation: where each element is in the new order. int, the same shape."""
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank


def begins(number: IntArray | BoolArray) -> BoolArray:
    """Where another number begins. bool, the same shape."""
    return np.append(True, number[1:] != number[:-1])[: len(number)]


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
