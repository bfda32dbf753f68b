"""Agreement with minicons 0.3.39, which is written by one of the field and used by many."""

import numpy as np
import pytest
import spacy

from spacy_pll.evaluation.items import smallest_groups
from spacy_pll.evaluation.pair_readers import read_pairs

from ..conftest import data_folder

EQUIVALENT = {"original": "original", "word_l2r": "within_word_l2r"}


def sentences(n):
    """n sentences, spread over the paradigms of BLiMP."""
    groups = smallest_groups(read_pairs(str(data_folder("data/blimp")))).values()
    pairs = [pair for group in groups for pair in group[: n // 134 + 1]]
    return [sentence for pair in pairs for sentence in (pair.good, pair.bad)][:n]


@pytest.mark.slow
@pytest.mark.usefixtures("real_english")
@pytest.mark.parametrize(("architecture", "tokenizer"), [("bert", "bert-base-cased"), ("roberta", "roberta-base")])
def test_sums_equal_those_of_minicons(model_folder, architecture, tokenizer):
    scorer = pytest.importorskip(
        "minicons.scorer", reason="minicons is missing: pip install . --group test-transformers4"
    )
    folder = model_folder(architecture, tokenizer)
    theirs = scorer.MaskedLMScorer(str(folder), "cpu")
    texts = sentences(500)
    nlp = spacy.blank("en")
    config = {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(folder)}
    nlp.add_pipe("pll", config={"model": config, "metrics": list(EQUIVALENT), "words": "tokenizer"})
    ours = list(nlp.pipe(texts))
    for metric, name in EQUIVALENT.items():
        expected = []
        for start in range(0, len(texts), 50):
            batch = texts[start : start + 50]
            expected += theirs.sequence_score(batch, PLL_metric=name, reduction=lambda x: x.sum(0).item())
        np.testing.assert_allclose([doc._.get(f"pll_{metric}") for doc in ours], expected, atol=1e-4)
