"""What is computed, counted on real sentences with a real vocabulary: rows that metrics share, and padding."""

import spacy

from spacy_pll.metrics import get_metric
from spacy_pll.scoring.plan import make_plans
from spacy_pll.scoring.windows import get_contexts
from spacy_pll.scoring.wordpieces import get_wordpieces

from ..conftest import data_folder, get_tokenizer
from ..corruption import brown_sentences
from ..models.test_minicons import sentences


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


def test_little_of_what_is_computed_is_padding():
    tokenizer = get_tokenizer("bert-base-cased")
    nlp = spacy.blank("en")
    contexts = []
    for doc in nlp.pipe(brown_sentences(data_folder("data/brown") / "brown.zip", 1000, words=(1, 200))):
        pieces = get_wordpieces(doc[:], tokenizer.backend_tokenizer, "spacy")
        contexts += get_contexts([doc[:]], [pieces], None, 512)[0]
    ids = padding = 0
    for plan in make_plans(contexts, [get_metric("word_l2r")], tokenizer.mask_token_id):
        for batch in plan.batches(2048, 1000, 0):
            ids += batch.ids.size
            padding += batch.ids.size - batch.lengths.sum()
    print(f"padding: {padding / ids:.1%} of {ids:,} ids")
    assert padding < 0.03 * ids
