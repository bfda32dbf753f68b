"""What is computed, counted on real sentences with a real vocabulary: rows that metrics share, and padding."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
import spacy
from spacy.tokens import Doc
from spacy.util import minibatch

from spacy_pll import make_pipeline
from spacy_pll.language_model.running.limits import MAX_IDS, MAX_IDS_WITH_GROUPS, MAX_LOGITS, ids_at_once, pass_cost
from spacy_pll.prediction.batches import batches_of
from spacy_pll.scoring.windows import read_spans

from ..conftest import build_transformer, data_folder, get_tokenizer
from ..corruption import brown_sentences
from ..models.test_minicons import sentences
from ..scoring.planned import batches_of_docs, make_limits, plan_of, plans_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("real_english")]


def test_three_metrics_cost_a_quarter_more_than_one():
    tokenizer = get_tokenizer("bert-base-cased")
    nlp = spacy.blank("en")
    contexts = []
    for doc in nlp.pipe(sentences(1000)):
        contexts += read_spans([doc[:]], tokenizer.backend_tokenizer, "spacy", 512)
    assert len(contexts) == 1000
    rows = {}
    for names in (["word_l2r"], ["word_l2r", "original", "whole_word"]):
        # Sentence by sentence: pairs share more rows when they are planned together.
        plans = [plan_of([context], names, mask_id=tokenizer.mask_token_id) for context in contexts]
        rows[len(names)] = sum(plan.n_rows for plan in plans)
    print(f"forward rows: {rows[1]} for one metric, {rows[3]} for three")  # pytest -s shows it
    assert rows[1] == sum(len(context.word) for context in contexts)
    assert rows[1] < rows[3] < 1.25 * rows[1], rows


def test_little_of_what_is_computed_is_padding():
    tokenizer = get_tokenizer("bert-base-cased")
    nlp = spacy.blank("en")
    contexts = []
    for doc in nlp.pipe(brown_sentences(data_folder("data/brown") / "brown.zip", 1000, words=(1, 200))):
        contexts += read_spans([doc[:]], tokenizer.backend_tokenizer, "spacy", 512)
    ids = padding = 0
    limits = make_limits(2048, 1000)
    for plan in plans_of(contexts, ["word_l2r"], limits, mask_id=tokenizer.mask_token_id):
        for batch in plan.batches:
            ids += batch.size
            padding += batch.size - batch.n_ids
    print(f"padding: {padding / ids:.1%} of {ids:,} ids")
    assert padding < 0.03 * ids


@pytest.mark.parametrize("margin", [None, 0], ids=["exact", "margin 0"])
def test_on_a_gpu_a_thousand_sentences_are_at_most_four_passes(tmp_path, margin):
    """There, a pass costs as much as thousands of ids (`language_model.running.limits`)."""
    tokenizer = get_tokenizer("bert-base-cased")
    build_transformer("bert", tokenizer).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    nlp = make_pipeline(str(tmp_path), mask_margin=margin)
    predictor = nlp.get_pipe("pll").predictor
    layers, parameters = 12, 85_000_000  # of BERT-base, without embeddings
    at_once = ids_at_once("cuda", parameters, MAX_IDS["cuda"])
    loaded = predictor.model.loaded = replace(predictor.prepare(), ids_at_once=at_once, on_gpu=True)
    docs = [nlp.make_doc(text) for text in sentences(20_100)]
    max_ids = (MAX_IDS if margin is None else MAX_IDS_WITH_GROUPS)["cuda"]

    costs = {name: pass_cost("cuda", name, layers, parameters) for name in ("float32", "tf32", "bfloat16")}
    limits = make_limits(max_ids, MAX_LOGITS["cuda"] // len(tokenizer))

    def count(batches: Iterable[list[Doc]]) -> dict[str, tuple[float, float]]:
        """Of 1,000 sentences, in each precision: the passes, and their cost in ids."""
        batches, found = list(batches), {}
        for name, cost in costs.items():
            these = limits._replace(pass_cost=cost)
            limited = replace(loaded, rows=these, groups=these)
            passes = [batch for docs in batches for batch in batches_of_docs(predictor, docs, limited)]
            found[name] = len(passes) / 20.1, sum(batch.size + cost for batch in passes) / 20.1
        return found

    large, small = count(batches_of(docs, predictor.ends_of_batches(nlp.batch_size))), count(minibatch(docs, 1000))
    for precision in costs:
        (n, ids), (n_small, ids_of_small) = large[precision], small[precision]
        more = f"{n_small:.1f} and {ids_of_small / ids - 1:.0%} more in batches of 1,000"  # pytest -s shows it
        print(f"{precision}: {n:.1f} passes for 1,000 sentences, which cost {ids:,.0f} ids; {more}")
        assert n <= 4
