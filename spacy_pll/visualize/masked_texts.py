"""What a model reads to score a text: for each wordpiece the text with masks, and the probability that it gives."""

import math
from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..component import get_scorer
from ..errors import PLLError
from ..scoring.piece_texts import PieceTexts
from .text import Table, format_cell, format_percent, visible_text


class MaskedText(NamedTuple):
    """What the model reads to predict a wordpiece, and how probable it finds this piece."""

    piece: str
    token: int  # the index of its token in the doc
    log_prob: float  # natural log
    weight: float  # a piece's score is the sum of weight * log_prob over its texts: one, with 1.0, under most metrics
    read: tuple[str, ...]  # with special tokens and masks; by a left-to-right model what stands before, and then ___
    position: int  # where in `read` the piece is asked for

    @property
    def probability(self) -> float:
        return math.exp(self.log_prob)

    @property
    def text(self) -> str:
        """`[CLS] The [MASK] ##er lost [SEP]`; among several masks, the one that is asked is `>[MASK]<`."""
        asked, shown = self.read[self.position], list(self.read)
        if asked == self.piece or shown.count(asked) > 1:
            shown[self.position] = f">{asked}<"
        return " ".join(shown)


def masked_texts(nlp: Language, text: str | Doc, metric: str | None = None) -> list[MaskedText]:
    """What the model reads for each wordpiece of a text under a metric, and the probability that it gives.

    Pieces are written without the tokenizer's marks. ## before a letter or digit means that no space is before it.

    nlp (Language): A pipeline with a `pll` component.
    text (Union[str, Doc]): A text, or a doc that the pipeline made.
    metric (Optional[str]): One of the component's metrics. None: the first.
    RETURNS (List[MaskedText]): One for each wordpiece and masked text, in the order of the wordpieces.
    RAISES (ValueError): The component does not have the metric, or no text alone gives the probability of a piece.
    """
    scorer, doc = get_scorer(nlp), nlp(text) if isinstance(text, str) else text
    predictor, settings, loaded = scorer.predictor, scorer.settings, scorer.predictor.prepare()
    if (metric := metric or settings.metrics[0]) not in settings.metrics:
        raise PLLError(f"There are no scores under {metric!r}.", "Set `metrics` to a list with it.")
    number, is_causal = settings.metrics.index(metric), predictor.asking.looked_up()[0].model_kind == "causal"
    if settings.mask_margin is not None or loaded.prompts or is_causal and scorer.model.check_metrics([metric]):
        several = "`mask_margin`, `cfg` or `leading_space='previous'`"
        raise PLLError(f"With {several}, no text alone gives the probability of a piece.", "Leave it out.")
    texts, tokenized, masked = PieceTexts(loaded.tokenizer), predictor.tokenize([doc]), list[tuple[int, MaskedText]]()
    around = texts.special - {loaded.mask_id, loaded.unknown_id}
    for made, sums in predictor.asking.plans(tokenized.asked, loaded):
        batches = list(made)
        flat = batches[0].flat
        rows = [ids[:n].tolist() for batch in batches for ids, n in zip(batch.ids, batch.lengths)]
        log_probs, entries = predictor.model.submit(batches).result().log_probs, sums.entries
        for entry in np.flatnonzero(entries.metric == number).tolist():
            target, piece = sums.target[entry], tokenized.contexts.piece[entries.piece[entry]]
            row, at = rows[flat.row[target]], int(flat.position[target])
            shown = written([*row[:at], int(flat.target[target])], texts, around)
            log_prob, weight = float(log_probs[target]), float(entries.weight[entry])
            read = (*shown[:at], "___") if is_causal else tuple(written(row, texts, around))
            token = int(tokenized.wordpieces.token[piece])
            masked.append((piece, MaskedText(shown[at], token, log_prob, weight, read, at)))
    return [text for _, text in sorted(masked, key=lambda numbered: (numbered[1].token, numbered[0]))]


def written(ids: Sequence[int], texts: PieceTexts, around: Set[int]) -> list[str]:
    """Pieces as people read them. around (Set[int]): Tokens around a text, such as [CLS]."""
    pieces = list[str]()
    for i, before in zip(ids, (None, *ids)):
        goes_on = texts[i].text[:1].isalnum() and before is not None and before not in around
        mark = texts.continues or "##" * goes_on
        pieces.append(mark * (texts[i].begins_word is False) + visible_text(texts[i].text))
    return pieces


def masked_table(texts: Sequence[MaskedText], score: str) -> Table:
    """A row for each text, and one with the sum. score (str): What the log-probabilities are called."""
    total = format_cell(sum(text.weight * text.log_prob for text in texts) if texts else None)
    rows: Table = [("wordpiece", "probability", score, "weight", "what the model reads")]
    for text in texts:
        numbers = format_percent(text.probability), format_cell(text.log_prob), format_cell(text.weight)
        rows.append((text.piece, *numbers, text.text))
    weighted = any(text.weight != 1 for text in texts)
    return [row if weighted else (*row[:3], row[4]) for row in (*rows, ("", "", total, "", ""))]
