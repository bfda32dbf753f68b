"""Pseudo-perplexity of a corpus (Salazar et al. 2020, section 2.3), and how many wordpieces its words have."""

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..attributes.values import exp_or_inf
from ..component import PLLScorer
from ..pipelines import get_scorer
from ..scoring.wordpieces import Words, get_wordpieces, segment_of, white_space_runs
from ..workers import score_docs


@dataclass
class Corpus:
    """Counts over a corpus, added text by text. The texts themselves are not kept."""

    texts: int = 0
    empty: int = 0  # texts without a wordpiece
    windowed: int = 0  # texts with a context that was too long for the model and was read in windows
    words: int = 0
    split: int = 0  # words of several wordpieces
    pieces: int = 0
    unknown: int = 0  # pieces that stand for text that the tokenizer does not know
    log_likelihood: dict[str, float] = field(default_factory=dict)  # by metric, natural log

    def add(
        self,
        pieces_per_word: np.ndarray,
        ids: np.ndarray,
        unknown_id: int | None,
        windowed: bool,
        scores: dict[str, float],
    ) -> None:
        """Add the counts of one text. A text without a wordpiece is only counted as such.

        pieces_per_word (int array, shape (words,)): Number of wordpieces of each word.
        ids (int array, shape (pieces,)): Ids of the scored wordpieces.
        unknown_id (Optional[int]): The tokenizer's id for unknown text, if it has one.
        windowed (bool): Whether the text was read in windows.
        scores (dict[str, float]): The pseudo-log-likelihood of the text under each metric, natural log.
        """
        self.texts += 1
        if not len(ids):
            self.empty += 1
            return
        self.windowed += bool(windowed)
        self.words += len(pieces_per_word)
        self.split += int((pieces_per_word > 1).sum())
        self.pieces += len(ids)
        self.unknown += int(np.sum(np.asarray(ids) == unknown_id)) if unknown_id is not None else 0
        for metric, score in scores.items():
            self.log_likelihood[metric] = self.log_likelihood.get(metric, 0.0) + score


def perplexity(log_likelihood: float, n: int) -> float:
    """exp(-log-likelihood / n): PPPL = exp(-1/N sum PLL(W)) (Salazar et al. 2020, section 2.3).

    log_likelihood (float): Sum over the corpus, natural log.
    n (int): The number of its wordpieces, as in Salazar et al.; or of its words, to compare models whose tokenizers
        differ.
    RETURNS (float): Infinite where it is more than a float can hold.
    RAISES (ValueError): `n` is below 1.
    """
    if n < 1:
        raise ValueError("Nothing was scored, so there is no perplexity.")
    return exp_or_inf(-log_likelihood / n)


def word_starts(doc: Doc, words: Words, tokenizer: Any) -> np.ndarray:
    """The character offsets at which the words of a doc begin. int, shape (words,), increasing.

    words (str): What counts as a word. "spacy": spaCy's tokens, without those that are white space. "whitespace":
        what white space separates. "tokenizer": the pre-tokens of the model's tokenizer, without white space.
    tokenizer (tokenizers.Tokenizer): The model's tokenizer.
    """
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


def corpus_perplexity(
    nlp: Language,
    texts: Iterable[str | Doc],
    batch_size: int = 512,
    n_process: int = 1,
    progress: Callable[[Iterable[Doc]], Iterable[Doc]] = iter,
) -> dict[str, Any]:
    """The pseudo-perplexity of a corpus per wordpiece and per word, under each metric, and what was counted.

    nlp (Language): A pipeline with a `pll` component that has `keep_pieces` set.
    progress (Callable): Wraps the stream of scored docs.
    RETURNS (dict): Counts, and under "metrics" the figures by metric. Shares are 0 to 1.
    RAISES (ValueError): The component scores some spans only, or a text cannot be scored.
    RAISES (ChildProcessError): A worker process was killed.
    """
    scorer = get_scorer(nlp)
    if scorer.settings.targets is not None:
        raise ValueError(
            f"The pipeline scores only some spans of a text (its setting `targets` is {scorer.settings.targets!r}), "
            "but perplexity needs whole texts. Use a pipeline without `targets`."
        )
    corpus = Corpus()
    with closing(score_docs(nlp, texts, batch_size, n_process)) as docs:
        for doc in progress(docs):
            _add_doc(corpus, doc, scorer)
    return {
        "texts": corpus.texts,
        "empty_texts": corpus.empty,
        "windowed_texts": corpus.windowed,
        "words": corpus.words,
        "split_words": corpus.split,
        "split_share": corpus.split / max(1, corpus.words),
        "pieces": corpus.pieces,
        "unknown_pieces": corpus.unknown,
        "metrics": {
            metric: {
                "log_likelihood": total,
                "pppl_per_piece": perplexity(total, corpus.pieces) if corpus.pieces else None,
                "pppl_per_word": perplexity(total, corpus.words) if corpus.words else None,
            }
            for metric, total in corpus.log_likelihood.items()
        },
    }


def _add_doc(corpus: Corpus, doc: Doc, scorer: PLLScorer) -> None:
    """Add the counts of a scored doc."""
    record = doc._.get(scorer.names.data)
    tokenizer = scorer.model.tokenizer
    per_word = pieces_per_word(record["start"], word_starts(doc, scorer.settings.words, tokenizer))
    # The model reads a span together with the special tokens around it.
    max_pieces = scorer.model.max_length - len(tokenizer.encode("").ids)
    windowed = any((span._.get(scorer.names.pieces) or 0) > max_pieces for span in scorer.predictor.get_spans([doc])[0])
    scores = {metric: sum(values) for metric, values in record["scores"].items()}
    corpus.add(per_word, np.array(record["ids"]), scorer.model.unknown_id, windowed, scores)
