import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import registry

from spacy_pll.metrics import get_metric

from .reference import is_masked

METRICS = ["original", "word_l2r", "whole_word", "sentence_l2r"]
words = st.lists(st.booleans(), max_size=30).map(lambda new: np.cumsum([0, *new]))


@given(word=words)
@pytest.mark.parametrize("name", METRICS)
def test_masks_are_those_of_the_paper(name, word):
    rows = get_metric(name)(word)
    assert rows.target.tolist() == list(range(len(word)))
    assert (rows.weight == 1).all()
    expected = [[is_masked(name, i, t, word) for i in range(len(word))] for t in range(len(word))]
    assert rows.masked.tolist() == expected


def test_souvenir_by_hand():
    # The traveler lost the so ##uven ##ir .
    word = np.array([0, 1, 2, 3, 4, 4, 4, 5])
    masked = {name: np.flatnonzero(get_metric(name)(word).masked[5]).tolist() for name in METRICS}
    assert masked == {"original": [5], "word_l2r": [5, 6], "whole_word": [4, 5, 6], "sentence_l2r": [5, 6, 7]}


@pytest.mark.parametrize("name", METRICS)
def test_no_pieces(name):
    assert get_metric(name)(np.zeros(0, dtype=int)).masked.shape == (0, 0)


def test_unknown_metric_lists_the_known_ones():
    with pytest.raises(ValueError, match="Unknown PLL metric 'word_r2x'.*original.*word_l2r"):
        get_metric("word_r2x")


def test_registry_holds_the_four_of_the_paper():
    assert set(METRICS) <= set(registry.pll_metrics.get_all())
