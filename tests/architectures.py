"""Which architectures read all masks in one pass, for docs/reliability.md.

    python -m tests.architectures

writes the table there. The models are tiny and random (`conftest.ALL_ARCHITECTURES`). Their scores are compared with
those of `reference.score_by_states`, with two margins, in windows that hold the texts and in short ones, with each of
the implementations of attention that transformers has for them.
"""

import itertools
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import spacy
import transformers

from spacy_pll.scoring.windows import Contexts, read_spans

from .conftest import ALL_ARCHITECTURES, SENTENCES, build_transformer, get_tokenizer, masked_model
from .reference import load_model, score_by_states
from .scoring.planned import plan_of, plan_of_groups

ROOT = Path(__file__).parents[1]
TEXTS = [SENTENCES[1], "I a.", SENTENCES[0]]
METRICS = ("word_l2r", "original", "whole_word")
ATTENTIONS = ("eager", "sdpa")
WINDOWS = (128, 16)  # ids; the longest text has 40 to 60
# What runs at the masked pieces alone, by the name of the narrowing.
ALONE = {
    "after_last_attention": "last layer, head",
    "around_last_feed_forward": "last feed-forward part, head",
    "before_head": "head",
    None: "nothing",
}


def contexts_of(model):
    docs, loaded = [spacy.blank("en")(text) for text in TEXTS], model.load()
    return Contexts.of(
        [one for doc in docs for one in read_spans([doc[:]], loaded.tokenizer, "spacy", loaded.max_length)]
    )


def worst_difference(model, metrics=METRICS) -> float:
    """The largest difference of a piece's score, with groups that are the whole context, from its exact one.

    RAISES (ValueError): The model cannot read groups.
    """
    contexts = contexts_of(model)
    loaded = model.load(groups=True)
    rows, groups = (limits._replace(max_tokens=10**6, max_targets=10**6) for limits in (loaded.rows, loaded.groups))
    exact = plan_of(contexts, metrics, rows, mask_id=loaded.mask_id)
    whole = plan_of_groups(contexts, metrics, 1000, groups, mask_id=loaded.mask_id)
    assert whole.n_targets >= len(TEXTS)

    def answer(batch):
        return model.submit([batch]).result().log_probs

    return float(np.abs(exact.scores(answer) - whole.scores(answer)).max())


def find_difference(folder: Path, window: int, attention: str, every: int = 1) -> tuple[float, bool]:
    """The largest difference of a piece's score, of every so many pieces, from that of the reference; and whether texts
    share passes.

    RAISES (ValueError): The model cannot read groups, or has no such attention.
    """
    differences = []
    for margin in (0, 2):
        nlp = spacy.blank("en")
        model = {
            "@architectures": "spacy-pll.MaskedLM.v1",
            "name": str(folder),
            "tokenizer_config": {"model_max_length": window},
            "transformer_config": {"attn_implementation": attention},
        }
        scorer = nlp.add_pipe("pll", config={"model": model, "mask_margin": margin, "keep_pieces": True})
        nlp.initialize()
        transformer, tokenizer = load_model(str(folder), attn_implementation=attention)
        for doc in nlp.pipe(TEXTS):
            expected, _ = score_by_states(doc, transformer, tokenizer, "word_l2r", "spacy", margin, window, every)
            found = doc._.pll_data["scores"]["word_l2r"][::every]
            differences.append(np.abs(np.array(found) - expected).max())
    return float(max(differences)), not scorer.model.loaded.groups.one_row


def describe(architecture: str, folder: Path) -> tuple[str, dict[str, str], float]:
    """A class, what it allows, and the largest difference of a piece's score."""
    class_name, _, _, tokenizer_name = ALL_ARCHITECTURES[architecture]
    tokenizer = get_tokenizer(tokenizer_name)
    build_transformer(architecture, tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    local = " with local attention" if architecture == "modernbert-local" else ""
    loaded = masked_model(str(folder)).load()
    worst, shared = 0.0, set()
    for attention, window in itertools.product(ATTENTIONS, WINDOWS):
        try:
            difference, share = find_difference(folder, window, attention)
        except ValueError as error:
            if "`mask_margin`" not in str(error) and "does not support" not in str(error):
                raise
        else:
            worst = max(difference, worst)
            shared.add(share)
    allowed = {
        "`mask_margin`": "no" if not shared else "yes" if all(shared) else "yes, one row per pass",
        "different lengths": "one pass" if loaded.rows.pads else "passes of their own",
        "at masked pieces alone": ALONE[loaded.forward.capabilities.narrowing],
    }
    return f"`{class_name}`{local}", allowed, worst


def grouped(described: Iterable[tuple[str, dict[str, str], float]]) -> list[dict[str, str]]:
    """The rows of the table: classes that allow the same are together."""
    groups: dict[tuple, list] = {}
    for name, allowed, worst in described:
        groups.setdefault(tuple(allowed.items()), []).append((name, worst))
    rows = []
    for allowed, classes in groups.items():
        worst = max(difference for _, difference in classes)
        names = ", ".join(name for name, _ in classes)
        rows.append({**dict(allowed), "largest difference": f"{worst:.1e}" if worst else "", "classes": names})
    return rows


def main():
    from scripts.docs_site.markdown_tables import print_table, replace_tables

    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        table = grouped(describe(architecture, Path(folder) / architecture) for architecture in ALL_ARCHITECTURES)
    print_table(f"transformers {transformers.__version__}", table)
    replace_tables(ROOT / "docs" / "reliability.md", {"mask_margin": table})


if __name__ == "__main__":
    main()
