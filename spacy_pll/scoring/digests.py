"""Equal rows are found by digests: numbers of 64 bits, computed without making the rows.

The digest of a sequence of ids is the sum over its positions of a random number of the id times one of the position, so
that of a masked row follows from that of its context, for the price of its runs. Two rows that differ have the same
digest with a probability of about 2**-63.
"""

import numpy as np

from ..arrays import Groups, IntArray, up_to


def scrambled(x: IntArray, seed: int) -> IntArray:
    """Numbers as good as random ones, uint64, always the same for the same number (splitmix64). Different seeds have
    none in common.

    x (int array): From 0 to 2**56 - 1.
    seed (int): From 0 to 255.
    """
    z = (x.astype(np.uint64) | np.uint64(seed << 56)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    out: IntArray = z ^ (z >> np.uint64(31))
    return out


class Digests:
    """Those of some sequences, one after the other, and of rows in which some of their ids are masked.

    ids (int array, shape (ids,)): The ids of all sequences.
    ids_of (Groups): Those of each.
    """

    def __init__(self, ids: IntArray, ids_of: Groups, mask_id: int):
        self.ids_of = ids_of
        factor = scrambled(ids_of.within, 1) | np.uint64(1)
        terms = scrambled(ids, 2) * factor
        self._up_to = up_to(terms)
        self._masked_up_to = up_to(scrambled(np.array([mask_id]), 2) * factor - terms)
        self.of_sequences = in_each(ids_of, self._up_to)

    def of_rows(self, source: IntArray, runs_of: Groups, begin: IntArray, end: IntArray) -> IntArray:
        """uint64, shape (rows,).

        source (int array, shape (rows,)): The sequence of each row.
        runs_of (Groups): Its runs of masked positions.
        begin, end (int arrays, shape (runs,)): As `MaskedRows` has them.
        """
        first = self.ids_of.starts[source[runs_of.owner]]
        of_runs = self._masked_up_to[first + end] - self._masked_up_to[first + begin]
        return self.of_sequences[source] + in_each(runs_of, up_to(of_runs))


def in_each(groups: Groups, sums: IntArray) -> IntArray:
    """The sum of the terms in each group. sums (int array): As `up_to` gives them."""
    return sums[groups.ends] - sums[groups.starts]
