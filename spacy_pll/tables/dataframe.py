"""Scores as a pandas data frame."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spacy.tokens import Doc, Span

from ..attributes.names import Names, select_metrics
from ..attributes.registration import find_names
from ..attributes.stored import record_of, stored_fields
from ..attributes.values import value_in
from ..requirements import extra
from ..settings import ScoringSettings
from .rows import columns, token_values
from .words import WordRows, WordTable

if TYPE_CHECKING:
    import pandas as pd

# Numbers that may be missing are "Int64"; a name stands for itself.
DTYPES = {int: "Int64", float: "float64", str: "str", "int64": "int64"}


def to_dataframe(
    docs: Doc | Span | Iterable[Doc | Span],
    metrics: Sequence[str] | None = None,
    *,
    attr: str = "pll",
    words: WordTable | None = None,
) -> "pd.DataFrame":
    """The scores of docs as a tidy pandas data frame, one row per token or word.

    docs (Union[Doc, Span, Iterable[Union[Doc, Span]]]): Scored docs, such as `nlp.pipe(texts)`.
    metrics (Optional[Sequence[str]]): The metrics. None takes every metric that the docs were scored with.
    attr (str): The component's setting of that name.
    words (Optional[WordTable]): One row per word, with the columns that this table sets, in place of one row per token.
    RETURNS (pandas.DataFrame): The columns are `doc` (number of the doc, from 0), `token` (index in the doc), `text`,
        `pll_pieces` (number of wordpieces, missing where the token was not scored) and one column of scores per metric,
        such as `pll_word_l2r` (natural log, NaN where not scored and where there is no wordpiece). `surprisal` is minus
        the score under the first metric that the docs were scored with. If the docs have them, also `rank` (missing
        where there is none), `entropy` (nats), `alternatives` (lists of texts) and `alternative_log_probs`. These are
        the columns of the table of tokens that `spacy-pll score` writes, which has the wordpieces themselves, under
        `pieces`, in place of their number.
        With `words`, the columns are `doc` and the columns of the table of words.
    RAISES (ValueError): The docs have no scores of that name, or under one of the metrics.
    RAISES (TypeError): `words` is no `WordTable`.
    RAISES (ImportError): pandas is not installed; or wordfreq, which `words` asks for.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline()
    frame = spacy_pll.to_dataframe(nlp.pipe(["The cats sleep.", "The cats sleeps."]))
    print(frame[["doc", "text", "pll_pieces", "pll_word_l2r"]].round(2))
    ```

    ```
       doc    text  pll_pieces  pll_word_l2r
    0    0     The           1         -2.04
    1    0    cats           1         -6.38
    2    0   sleep           1         -6.32
    3    0       .           1         -0.02
    4    1     The           1         -1.61
    5    1    cats           1         -9.82
    6    1  sleeps           2        -10.88
    7    1       .           1         -0.01
    ```
    """
    import_pandas()
    if words is not None and not isinstance(words, WordTable):
        raise TypeError(f'`words` must be a WordTable, such as WordTable("whitespace"). It is {words!r}.')
    docs = [docs] if isinstance(docs, Doc | Span) else list(docs)
    names = Names(attr, [*select_metrics(find_names(docs, attr), metrics)])
    stored = stored_fields((item.doc for item in docs), attr)
    settings = ScoringSettings(alternatives=int("alternatives" in stored), distribution="rank" in stored)
    settings = replace(settings, sample_words=1 if "drawn" in stored else None)
    of_token = columns(names, settings, "tokens")
    types = {"token": "int64", "text": str, names.pieces: int, **of_token}
    if words:
        words = words.known(docs[0].doc.lang_ if docs else "en")
        has_sents = any(len(item.doc) > 1 and item.doc.has_annotation("SENT_START") for item in docs)
        of_words = WordRows("text", names, settings, table=words, has_sents=has_sents)
        types = {"word": int, "text": str} | {name: type_ for name, type_ in of_words.types.items() if name != "doc"}

    def rows_of(tokens: Doc | Span) -> Iterable[dict[str, Any]]:
        if words:
            return of_words.of(tokens)
        record, places = record_of(tokens.doc, names.data), ((token.idx, token.idx + len(token)) for token in tokens)
        return (
            {"token": token.i, "text": token.text, names.pieces: value_in(record, "", "count", *characters)}
            | token_values(record, *characters, names, of_token)
            for token, characters in zip(tokens, places)
        )

    rows = [{"doc": number, **row} for number, doc in enumerate(docs) for row in rows_of(doc)]
    return typed_frame(rows, {"doc": "int64", **types})


def typed_frame(rows: Sequence[Mapping[str, Any]], types: Mapping[str, Any]) -> "pd.DataFrame":
    """A data frame with columns of some types. RAISES (ImportError): pandas is not installed."""
    pd = import_pandas()
    return pd.DataFrame({
        name: pd.Series([row[name] for row in rows], dtype=DTYPES.get(type_, "object")) for name, type_ in types.items()
    })  # fmt: skip


def import_pandas() -> Any:
    """RAISES (ImportError): pandas is not installed."""
    with extra("dataframe", "Data frames need pandas"):
        import pandas
    return pandas
