import numpy as np
import pytest

from spacy_pll.scoring.digests import scrambled


@pytest.mark.core
def test_numbers_of_one_seed_have_nothing_in_common_with_those_of_another():
    """Sums of several kinds of them stand for rows. With common ones, two rows of other kinds would be the same."""
    of_seeds = [scrambled(np.arange(100_000), seed) for seed in range(1, 6)]
    assert len(np.unique(of_seeds)) == 500_000
