"""Which architectures read all masks in one pass, for docs/models.md.

    python -m tests.architectures

writes the table there. The models are tiny and random (`conftest.ARCHITECTURES`). A group that is the whole context
must give the exact scores, up to rounding.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import spacy
import transformers

from spacy_pll.language_model.masked import MaskedLanguageModel
from spacy_pll.metrics import get_metric
from spacy_pll.scoring.groups import GroupPlan
from spacy_pll.scoring.mask_blocks import iter_mask_blocks
from spacy_pll.scoring.plan import Plan
from spacy_pll.scoring.windows import get_contexts
from spacy_pll.scoring.wordpieces import get_wordpieces

from .conftest import ARCHITECTURES, SENTENCES, build_transformer, get_tokenizer

ROOT = Path(__file__).parents[1]
TEXTS = [SENTENCES[1], "I a.", SENTENCES[0]]
METRICS = ("word_l2r", "original", "whole_word")


def contexts_of(model):
    docs = [spacy.blank("en")(text) for text in TEXTS]
    pieces = [get_wordpieces(doc[:], model.load().tokenizer, "spacy") for doc in docs]
    return [get_contexts([doc[:]], [own], None, model.load().max_length)[0][0] for doc, own in zip(docs, pieces)]


def answers(model, plan, limits):
    limit = 10**6
    return plan.scores(
        model.submit(plan.batches(*limits._replace(max_tokens=limit, max_targets=limit))).result().log_probs
    )


def worst_difference(model, metrics=METRICS) -> float:
    """The largest difference of a piece's score, with groups that are the whole context, from its exact one.

    RAISES (ValueError): The model cannot read groups.
    """
    contexts = contexts_of(model)
    metrics = [get_metric(name) for name in metrics]
    blocks = list(iter_mask_blocks(contexts, metrics, None, 10**6))
    loaded = model.load(groups=True)
    exact = answers(model, Plan(contexts, blocks, len(metrics), loaded.mask_id), loaded.rows)
    plan = GroupPlan(contexts, blocks, len(metrics), loaded.mask_id, 1000)
    whole = answers(model, plan, loaded.groups)
    assert plan.n_rows >= len(TEXTS)
    return float(np.abs(exact - whole).max())


def describe(architecture: str, folder: Path) -> dict[str, str]:
    """A row of the table."""
    class_name, _, _, tokenizer_name = ARCHITECTURES[architecture]
    tokenizer = get_tokenizer(tokenizer_name)
    build_transformer(architecture, tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    model = MaskedLanguageModel(str(folder))
    model.load()
    row = {"class": f"`{class_name}`"}
    try:
        several = model.load(groups=True).groups.pads
    except ValueError:
        return {**row, "`mask_margin`": "no", "worst difference": ""}
    can = "yes" if several else "yes, one row per pass"
    return {**row, "`mask_margin`": can, "worst difference": f"{worst_difference(model):.1e}"}


def main():
    sys.path.insert(0, str(ROOT / "scripts"))
    from markdown_tables import print_table, replace_tables

    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        table = [describe(architecture, Path(folder) / architecture) for architecture in ARCHITECTURES]
    print_table(f"transformers {transformers.__version__}", table)
    replace_tables(ROOT / "docs" / "models.md", {"mask_margin": table})


if __name__ == "__main__":
    main()
