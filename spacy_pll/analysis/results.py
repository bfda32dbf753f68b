"""From texts to scores in one call."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from spacy.tokens import Doc, Token

from ..attributes.names import Names
from ..attributes.values import table_value
from ..component import get_scorer
from ..pipelines import PipelineSettings, make_pipeline
from .dataframe import import_pandas, to_dataframe

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TokenScore:
    """A token with its scores. A token without a wordpiece, such as white space, has none."""

    text: str
    start: int  # the character of the text at which it begins
    score: float | None  # under the first metric, natural log
    scores: dict[str, float | None]  # under each metric
    pieces: int  # how many wordpieces it has


@dataclass(frozen=True)
class TextScore:
    """A text with its scores, which are the sums over its tokens. A text without a wordpiece has none."""

    text: str
    score: float | None  # under the first metric, natural log
    scores: dict[str, float | None]  # under each metric
    pieces: int  # how many wordpieces it has
    pppl: float | None  # pseudo-perplexity: exp(-score / pieces)
    tokens: tuple[TokenScore, ...]


class Scores(Iterator[TextScore]):
    """Texts with their scores, in their order. Each is scored when it is asked for, and can be read once."""

    def __init__(self, docs: Iterator[Doc], names: Names):
        self._docs, self._names = docs, names

    def __next__(self) -> TextScore:
        doc = next(self._docs)
        tokens = tuple(TokenScore(token.text, token.idx, *self._scores(token)) for token in doc)
        score, scores, pieces = self._scores(doc)
        return TextScore(doc.text, score, scores, pieces, doc._.get(self._names.perplexity), tokens)

    def _scores(self, tokens: Doc | Token) -> tuple[float | None, dict[str, float | None], int]:
        scores = {m: table_value(tokens, attribute, self._names) for m, attribute in self._names.metrics.items()}
        return next(iter(scores.values())), scores, tokens._.get(self._names.pieces) or 0

    def to_dataframe(self, tokens: bool = False) -> "pd.DataFrame":
        """The scores of all texts that were not read yet, as a pandas data frame.

        tokens (bool): One row per token, as `spacy_pll.to_dataframe` gives them, instead of one per text.
        RETURNS (pandas.DataFrame): With one row per text, the columns are `text`, one column of scores per metric, with
            its attribute's name, such as `pll_word_l2r` (NaN where there is no wordpiece), `pll_pieces` and `pppl`.
        RAISES (ImportError): pandas is not installed.
        """
        if tokens:
            return to_dataframe(self._docs, attr=self._names.score)
        pd = import_pandas()
        rows = [(one.text, *one.scores.values(), one.pieces, one.pppl) for one in self]
        scores = dict.fromkeys(self._names.metrics.values(), "float64")
        types = {"text": "str", **scores, self._names.pieces: "int64", self._names.perplexity: "float64"}
        return pd.DataFrame(rows, columns=list(types)).astype(types)


def score(
    texts: Iterable[str],
    model: str | None = None,
    metrics: Sequence[str] | None = None,
    *,
    batch_size: int = 256,
    n_process: int = 1,
    **settings: Any,
) -> Scores:
    """Score texts. The model is loaded at once, and the texts are read as their scores are asked for.

    texts (Iterable[str]): A single text stands for a list of one.
    model (Optional[str]): Hub name or folder of a language model, or of a spaCy pipeline with a `pll` component. None
        is the built-in English model.
    metrics (Optional[Sequence[str]]): Names of metrics; the first gives `score`. None is `word_l2r`, or what the
        pipeline has.
    batch_size (int): Texts per batch.
    n_process (int): Worker processes, on a CPU.
    settings (Any): The other settings of `spacy_pll.pipelines.PipelineSettings`, such as `words`, `spans`,
        `mask_spacing`, `lang`, `precision` or `gpu_id`.
    RETURNS (Scores): An iterator of `TextScore`. It has the method `to_dataframe`.
    RAISES (OSError): There is no such model.
    RAISES (ValueError): A setting is not valid, or the model cannot score text.
    RAISES (TypeError): There is no such setting.
    """
    known = [field.name for field in fields(PipelineSettings)][2:]  # after the model and the metrics
    for name in settings:
        if name not in known:
            raise TypeError(f"Unknown setting {name!r}. The settings are: {', '.join(known)}.")
    nlp = make_pipeline(PipelineSettings(model, [metrics] if isinstance(metrics, str) else metrics, **settings))
    scorer = get_scorer(nlp)
    docs = nlp.pipe([texts] if isinstance(texts, str) else texts, batch_size=batch_size, n_process=n_process)
    return Scores(iter(docs), scorer.names)
