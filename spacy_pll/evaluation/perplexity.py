"""Pseudo-perplexity of a corpus (Salazar et al. 2020, section 2.3), and how many wordpieces its words have."""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..attributes.values import exp_or_inf
from ..component import get_scorer
from ..pipelines import make_pipeline
from ..scoring.wordpieces import Words, get_wordpieces, segment_of, white_space_runs
from ..settings import BATCH_SIZE
from ..workers import score_docs


@dataclass(frozen=True)
class Perplexity:
    """The pseudo-perplexity of a corpus under each metric, and the counts that it is made from."""

    texts: int = 0
    empty_texts: int = 0  # without a wordpiece
    windowed_texts: int = 0  # with a context that was too long for the model and was read in windows
    words: int = 0
    split_words: int = 0  # of several wordpieces
    pieces: int = 0
    unknown_pieces: int = 0  # that stand for text that the tokenizer does not know
    log_likelihood: Mapping[str, float] = field(default_factory=dict)  # by metric, natural log

    @property
    def split_share(self) -> float:
        """The share of the words that have several wordpieces, 0 to 1."""
        return self.split_words / max(1, self.words)

    @property
    def per_piece(self) -> dict[str, float]:
        """exp(-log-likelihood / wordpieces) by metric: PPPL (Salazar et al. 2020, section 2.3). Infinite where it is
        more than a float can hold; no metric where nothing was scored.
        """
        return {metric: exp_or_inf(-total / self.pieces) for metric, total in self.log_likelihood.items()}

    @property
    def per_word(self) -> dict[str, float]:
        """The same per word: less dependent on the tokenizer."""
        if not self.words:
            return {}
        return {metric: exp_or_inf(-total / self.words) for metric, total in self.log_likelihood.items()}

    def to_dict(self) -> dict[str, Any]:
        """All counts and figures, as `pll ppl --output` writes them."""
        figures = {"pppl_per_piece": self.per_piece, "pppl_per_word": self.per_word}
        return {**asdict(self), "split_share": self.split_share, **figures}


def word_starts(doc: Doc, words: Words, tokenizer: Any) -> np.ndarray:
    """The character offsets at which the words of a doc begin. int, shape (words,), increasing."""
    if words == "spacy":
        return np.array([token.idx for token in doc if not token.is_space], dtype=np.int64)
    if not doc.text.strip():
        return np.zeros(0, dtype=np.int64)
    if words == "whitespace":
        return white_space_runs(doc.text)
    pieces = get_wordpieces(doc[:], tokenizer, words)
    visible = pieces.end > pieces.start  # pieces with a character that is not white space
    first = np.unique(pieces.word[visible], return_index=True)[1]
    # Two pre-tokens of one character, such as a ligature, begin at the same offset and are one word.
    return np.unique(pieces.start[visible][first])


def pieces_per_word(piece_starts: np.ndarray, word_starts: np.ndarray) -> np.ndarray:
    """How many pieces begin in each word. int, shape (words,). Pieces before the first word count as part of it."""
    if not len(word_starts):
        return np.zeros(0, dtype=np.int64)
    return np.bincount(segment_of(np.asarray(piece_starts, dtype=np.int64), word_starts), minlength=len(word_starts))


def perplexity(
    nlp: Language,
    texts: Iterable[str | Doc],
    *,
    component: str | None = None,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
) -> Perplexity:
    """Score texts, and measure their pseudo-perplexity.

    nlp (Language): A pipeline with a `pll` component.
    component (Optional[str]): The name of one of several `pll` components. None: the first.
    batch_size (int): Texts per batch.
    n_process (int): Worker processes, on a CPU. -1 for one per core.
    show_progress (bool): Show a progress bar.
    RAISES (ValueError): The component scores some spans only, or a text cannot be scored.
    RAISES (ChildProcessError): A worker process was killed.
    """
    nlp = make_pipeline(nlp, keep_pieces=True, component=component)
    scorer = get_scorer(nlp)
    if scorer.settings.targets is not None:
        raise ValueError(
            f"The pipeline scores only some spans of a text (its setting `targets` is {scorer.settings.targets!r}), "
            "but perplexity needs whole texts. Use a pipeline without `targets`."
        )
    counts, log_likelihood, loaded = Counter[str](), dict[str, float](), scorer.model.load()
    # The model reads a span together with the special tokens around it.
    max_pieces = loaded.max_length - len(loaded.tokenizer.encode("").ids)
    with closing(score_docs(nlp, texts, batch_size, n_process, show_progress)) as docs:
        for doc in docs:
            counts["texts"] += 1
            record = doc._.get(scorer.names.data)
            if not record["ids"]:
                counts["empty_texts"] += 1
                continue
            spans = scorer.predictor.get_spans([doc])[0]
            counts["windowed_texts"] += any((span._.get(scorer.names.pieces) or 0) > max_pieces for span in spans)
            per_word = pieces_per_word(record["start"], word_starts(doc, scorer.settings.words, loaded.tokenizer))
            counts["words"] += len(per_word)
            counts["split_words"] += int((per_word > 1).sum())
            counts["pieces"] += len(record["ids"])
            counts["unknown_pieces"] += record["ids"].count(loaded.unknown_id)
            for metric, scores in record["scores"].items():
                log_likelihood[metric] = log_likelihood.get(metric, 0.0) + sum(scores)
    return Perplexity(**counts, log_likelihood=log_likelihood)
