"""From texts to scores in one call."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from spacy.tokens import Doc

from ..advice.giving import advise
from ..advice.texts import path_as_text
from ..attributes.stored import record_of
from ..attributes.values import perplexity_of, sums_in, sums_of_doc
from ..component import get_scorer
from ..pipelines import Model, PipelineSettings, make_pipeline, with_all_settings
from ..settings import BATCH_SIZE
from ..stream.workers import score_docs
from ..texts import plain_texts
from ..visualize.text import Table, format_cell, text_table, visible_text
from .dataframe import to_dataframe, typed_frame
from .rows import ScoredText, TextRows

if TYPE_CHECKING:
    import pandas as pd

# How much is printed of scores.
ROWS, CHARACTERS = 10, 40


class TokenScore(NamedTuple):
    """A token with its scores. A token without a wordpiece, such as white space, has none."""

    text: str
    start: int  # the character of the text at which it begins
    score: float | None  # under the first metric, natural log
    scores: dict[str, float | None]  # under each metric
    pieces: int  # how many wordpieces it has


class TextScore(NamedTuple):
    """A text with its scores, which are the sums over its tokens. A text without a wordpiece has none."""

    text: str
    score: float | None  # under the first metric, natural log
    scores: dict[str, float | None]  # under each metric
    pieces: int  # how many wordpieces it has
    pppl: float | None  # pseudo-perplexity: exp(-score / pieces)
    tokens: tuple[TokenScore, ...]


class Scores(Sequence[TextScore]):
    """Texts with their scores, in their order. It is a sequence: it has a length, and `scores[:10]` has the scores of
    the first ten texts. When printed, it is a table of the first texts.

    docs (Sequence[Doc]): The scored docs, for example for `spacy_pll.visualize`.
    """

    def __init__(self, docs: Sequence[Doc], rows: TextRows):
        self.docs, self._rows, self._names = docs, rows, rows.names

    def __len__(self) -> int:
        return len(self.docs)

    @overload
    def __getitem__(self, index: int) -> TextScore: ...

    @overload
    def __getitem__(self, index: slice) -> "Scores": ...

    def __getitem__(self, index: int | slice) -> "TextScore | Scores":
        if isinstance(index, slice):
            return Scores(self.docs[index], self._rows)
        doc, metrics = self.docs[index], self._names.metrics
        record, words = record_of(doc, self._names.data), ((token.text, token.idx) for token in doc)
        tokens = [TokenScore(text, start, *sums_in(record, metrics, start, start + len(text))) for text, start in words]
        score, scores, pieces = sums_of_doc(doc, self._names)
        return TextScore(doc.text, score, scores, pieces, perplexity_of(score, pieces), tuple(tokens))

    def __repr__(self) -> str:
        table: Table = [("text", *self._rows.types)]
        for text, *numbers in (row.values() for row in self[:ROWS]._table()):
            text = visible_text(text) if text.isspace() else " ".join(text.split())
            text = text if len(text) <= CHARACTERS else text[: CHARACTERS - 1] + "…"
            table.append((text, *map(format_cell, numbers)))
        more = f"... and {len(self) - ROWS:,} more" if len(self) > ROWS else ""
        return (text_table(table) + more).strip("\n")

    def _table(self) -> list[dict[str, Any]]:
        return [row for doc in self.docs for row in self._rows(ScoredText.of(doc, self._names))]

    def to_dataframe(self, tokens: bool = False) -> "pd.DataFrame":
        """The scores as a pandas data frame.

        tokens (bool): One row per token, as `spacy_pll.to_dataframe` gives them, instead of one per text.
        RETURNS (pandas.DataFrame): With one row per text, the columns are `text`, one column of scores per metric, with
            its attribute's name, such as `pll_word_l2r` (NaN where there is no wordpiece), `pll_pieces` and `pppl`.
        RAISES (ImportError): pandas is not installed.
        """
        if tokens:
            return to_dataframe(self.docs, attr=self._names.score)
        return typed_frame(self._table(), {"text": str, **self._rows.types})


@with_all_settings
def score(
    texts: Iterable[str | Doc],
    model: Model | PipelineSettings = None,
    metrics: Sequence[str] | str | None = None,
    *,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
    **settings: Any,
) -> Scores:
    """Score texts, and keep the results. For more texts than fit into memory, use `make_pipeline` and `nlp.pipe`.

    texts (Iterable[Union[str, Doc]]): A single text stands for a list of one.
    model (Optional[Union[str, Path, Language, Tuple[PreTrainedModel, PreTrainedTokenizerBase]]]): The model, as for
        `make_pipeline`: a hub name or folder of a model or of a pipeline, a pipeline, or a model and its tokenizer.
        None: the built-in English model.
    metrics (Optional[Sequence[str]]): Names of metrics; the first gives `score`. None: word_l2r, causal for a
        left-to-right model, or what the pipeline has.
    batch_size (int): Texts per batch.
    n_process (int): Worker processes, on a CPU. -1 for one per core.
    show_progress (bool): Show a progress bar.
    settings (Any): The other settings of `PipelineSettings` and `ScoringSettings`, such as `words`, `spans`,
        `mask_margin`, `lang`, `precision` or `gpu_id`.
    RETURNS (Scores): A sequence of `TextScore`. It has the method `to_dataframe`.
    RAISES (OSError): There is no such model.
    RAISES (ValueError): A setting is not valid, or the model cannot score text, or one of the texts; or a component of
        the pipeline leaves a text out.
    RAISES (TypeError): There is no such setting.
    RAISES (ChildProcessError): A worker process was killed.

    ```python
    import spacy_pll

    for result in spacy_pll.score(["The cats sleep.", "The cats sleeps."]):
        print(f"{result.score:.2f} {result.pppl:.1f} {result.tokens[2].text} {result.tokens[2].score:.2f}")
    ```

    ```
    -14.76 40.0 sleep -6.32
    -22.32 86.8 sleeps -10.88
    ```
    """
    if isinstance(texts, str | Doc):
        advise(path_as_text(texts))
        texts = [texts]
    texts = list(plain_texts(texts))
    nlp = make_pipeline(model, metrics, **settings)
    scorer = get_scorer(nlp)
    with closing(score_docs(nlp, texts, batch_size, n_process, show_progress)) as docs:
        return Scores(list(docs), TextRows("text", scorer.names, scorer.settings))
