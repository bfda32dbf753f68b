import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.language_model.running.log_probs import CPU_ROWS, expected_at, largest
from spacy_pll.scoring.scores import Distributions


@given(st.data(), st.integers(1, 9), st.integers(0, 10))
def test_ties_are_broken_by_id(data, vocabulary, n):
    """Equal pieces: all have the best rank, and the smaller id is the better alternative."""
    rows = data.draw(st.lists(st.lists(st.integers(-2, 1), min_size=vocabulary, max_size=vocabulary), min_size=1))
    target = data.draw(st.lists(st.integers(0, vocabulary - 1), min_size=len(rows), max_size=len(rows)))
    logits = torch.tensor(rows, dtype=torch.float32)
    log_sum = logits.logsumexp(dim=1)
    found = Distributions(*(field.numpy() for field in expected_at(logits, log_sum, torch.tensor(target), n)))
    for i, row in enumerate(rows):
        best = sorted(range(vocabulary), key=lambda id: (-row[id], id))[:n]
        assert found.ids[:, i].tolist() == best + [-1] * (n - len(best))
        np.testing.assert_allclose(found.log_probs[: len(best), i], [row[id] - log_sum[i] for id in best], atol=1e-6)
        assert found.rank[i] == 1 + sum(value > row[target[i]] for value in row)
        p = torch.tensor(row, dtype=torch.float64).softmax(0)
        assert found.entropy[i] == pytest.approx(-(p * p.log()).sum().item(), abs=1e-6)


def test_more_rows_than_fit_into_the_cache():
    logits = torch.randn(3 * CPU_ROWS + 1, 50, generator=torch.Generator().manual_seed(0))
    found = Distributions(*expected_at(logits, logits.logsumexp(dim=1), torch.arange(len(logits)) % 50, 4))
    assert [field.shape[-1] for field in found] == [len(logits)] * 4
    assert found.ids[0].tolist() == logits.argmax(dim=1).tolist()
    assert largest(logits[:0], 4)[1].shape == (0, 4) and expected_at(logits, logits, logits, None) == ()


def test_a_piece_with_probability_0_adds_nothing_to_the_entropy():
    logits = torch.tensor([[0.0, 0.0, -torch.inf]])
    found = Distributions(
        *(field.numpy() for field in expected_at(logits, logits.logsumexp(dim=1), torch.tensor([2]), 3))
    )
    assert found.rank.tolist() == [3] and found.entropy[0] == pytest.approx(np.log(2))
    assert found.log_probs[:, 0].tolist() == [pytest.approx(-np.log(2))] * 2 + [-np.inf]
