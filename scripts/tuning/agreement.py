"""How near the scores of a model in one forward pass are to its exact ones, before and after it was tuned."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from wasabi import MarkdownRenderer

from scripts.paper.passes import Context
from spacy_pll.evaluation.agreement import level_agreement

from .examples import MaskedLanguageModel, choose_pieces, planned_passes
from .texts import ContextMaker, Passage

# The most texts, and the most passages of several texts, that are measured on.
TEXTS, PASSAGES = 300, 60
# The most pieces of a text that are scored.
PIECES = 12
TEXT, PASSAGE = "texts", "passages"


def draw_contexts(passages: Sequence[Passage], make_contexts: ContextMaker, seed: int) -> dict[str, list[Context]]:
    """Some texts, and some passages, with the pieces to score. Only those that there are."""
    rng = np.random.default_rng(seed)
    single = [text for passage in passages for text in passage]
    joined = [" ".join(passage) for passage in passages if len(passage) > 1]
    drawn = {}
    for kind, texts, most in ((TEXT, single, TEXTS), (PASSAGE, joined, PASSAGES)):
        chosen = [texts[i] for i in rng.permutation(len(texts))[:most]]
        windows = [made[rng.integers(len(made))] for text in chosen if (made := make_contexts(text))]
        drawn[kind] = [choose_pieces(context, kind == PASSAGE, PIECES, rng) for context in windows]
    return {kind: contexts for kind, contexts in drawn.items() if contexts}


def scores(model: MaskedLanguageModel, contexts: Sequence[Context], metric: str, margin: int | None) -> np.ndarray:
    """The scores of the pieces to score. float64, shape (pieces,)."""
    scored: np.ndarray = np.concatenate([context.scored for context in contexts])
    total: np.ndarray = np.zeros(len(scored))
    for sums, batches in planned_passes(model, contexts, metric, margin):
        total += sums.scores(model.submit(batches).result().log_probs)[0]
    return total[scored]


def measure_agreement(
    before: MaskedLanguageModel,
    after: MaskedLanguageModel,
    drawn: dict[str, list[Context]],
    metric: str,
    margins: Sequence[int],
) -> list[dict[str, Any]]:
    """How the scores agree: those in one pass with the exact ones of the same model, and the exact ones of both.

    RETURNS: One row for each comparison, plain JSON values: `level_agreement` by piece.
    """
    rows = []
    for kind, contexts in drawn.items():
        text: np.ndarray = np.repeat(np.arange(len(contexts)), [int(context.scored.sum()) for context in contexts])
        exact = {model: scores(model, contexts, metric, None) for model in (before, after)}

        def compare(a: np.ndarray, b: np.ndarray, text: np.ndarray = text) -> dict[str, Any]:
            return asdict(level_agreement(a, b, text, np.random.default_rng(0)))

        for margin in margins:
            for name, model in (("before", before), ("after", after)):
                found = scores(model, contexts, metric, margin)
                rows.append({"on": kind, "model": name, "mask_margin": margin, **compare(exact[model], found)})
        rows.append({"on": kind, "model": "after", "mask_margin": None, **compare(exact[before], exact[after])})
    return rows


def agreement_table(rows: Sequence[dict[str, Any]]) -> str:
    """What `measure_agreement` returns, in Markdown."""
    header = (
        "held-out",
        "`mask_margin`",
        "model",
        "compared with",
        "r by piece",
        "95 % interval",
        "mean abs. difference",
    )
    lines = []
    for row in rows:
        margin, other = str(row["mask_margin"]), "its own exact scores"
        if row["mask_margin"] is None:
            margin, other = "exact", "exact scores before"
        r, *ends = ("" if value is None else f"{value:.4f}" for value in (row["r"], *(row["r_interval"] or ())))
        shown = r, "-".join(ends), f"{row['mean_absolute_difference']:.3f}"
        lines.append((row["on"], margin, row["model"], other, *shown))
    return MarkdownRenderer().table(lines, header, ("l", "r", "l", "l", "r", "r", "r")) + "\n"
