"""How much several metrics at once cost, counted in forward rows on BLiMP with a real vocabulary."""

import pytest
import spacy

from spacy_pll.metrics import get_metric
from spacy_pll.plan import make_plans
from spacy_pll.wordpieces import get_contexts, get_wordpieces

from .conftest import SHARED, get_tokenizer
from .test_minicons import BLIMP, sentences


@pytest.mark.skipif(not BLIMP.is_dir(), reason=f"BLiMP is not at hand under {SHARED.name}/data")
def test_three_metrics_cost_a_quarter_more_than_one():
    tokenizer = get_tokenizer("bert-base-cased")
    nlp = spacy.blank("en")
    contexts = []
    for doc in nlp.pipe(sentences(1000)):
        pieces = get_wordpieces(doc[:], tokenizer.backend_tokenizer, "spacy")
        contexts += get_contexts([doc[:]], [pieces], None, 512)[0]
    assert len(contexts) == 1000
    rows = {}
    for names in (["word_l2r"], ["word_l2r", "original", "whole_word"]):
        # Sentence by sentence: pairs share more rows when they are planned together.
        metrics = [get_metric(name) for name in names]
        plans = [plan for c in contexts for plan in make_plans([c], metrics, tokenizer.mask_token_id)]
        rows[len(names)] = sum(plan.n_rows for plan in plans)
    print(f"forward rows: {rows[1]} for one metric, {rows[3]} for three")  # pytest -s shows it
    assert rows[1] == sum(len(context.word) for context in contexts)
    assert rows[1] < rows[3] < 1.25 * rows[1], rows
