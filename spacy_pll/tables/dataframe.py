"""Scores as a pandas data frame."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from spacy.tokens import Doc, Span, Token

from ..attributes.columns import stored_columns, token_values
from ..attributes.names import Names, select_metrics
from ..attributes.registration import find_names
from ..requirements import install_command
from .words import WordTable

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
    words (Optional[WordTable]): The rows of words, with these columns, in place of those of tokens.
    RETURNS (pandas.DataFrame): The columns are `doc` (number of the doc, from 0), `token` (index in the doc), `text`,
        `pll_pieces` (number of wordpieces, missing where the token was not scored) and one column of scores per metric,
        such as `pll_word_l2r` (natural log, NaN where not scored and where there is no wordpiece). `surprisal` is minus
        the score under the first metric that the docs were scored with. If the docs have them, also `rank` (missing
        where there is none), `entropy` (nats), `alternatives` (lists of texts) and `alternative_log_probs`. These are
        the columns of the table of tokens that `pll score` writes, which has the wordpieces themselves, under `pieces`,
        in place of their number.
        With `words`, they are `doc` and those of its table of words.
    RAISES (ValueError): The docs have no scores of that name, or under one of the metrics.
    RAISES (TypeError): `words` is no `WordTable`.
    RAISES (ImportError): pandas is not installed; or wordfreq, with `words`.
    """
    pd = import_pandas()
    if words is not None and not isinstance(words, WordTable):
        raise TypeError(f'`words` must be a WordTable, such as WordTable("whitespace"). It is {words!r}.')
    docs = [docs] if isinstance(docs, Doc | Span) else list(docs)
    names = Names(attr, [*select_metrics(find_names(docs, attr), metrics)])
    columns = stored_columns([item.doc for item in docs], names)
    types: dict[str, Any]
    if words:
        distribution = "entropy" in columns
        types = words.types(names, distribution)
        rows = [(n, row) for n, doc in enumerate(docs) for row in words.rows(doc, names, distribution, doc.doc.lang_)]
    else:
        types = {"token": "int64", "text": str, names.pieces: int, **columns}
        rows = [(n, _token_row(token, names, columns)) for n, doc in enumerate(docs) for token in doc]
    data = {
        name: pd.Series([row[name] for _, row in rows], dtype=DTYPES.get(of, "object")) for name, of in types.items()
    }
    return pd.DataFrame({"doc": pd.Series([n for n, _ in rows], dtype="int64"), **data})


def _token_row(token: Token, names: Names, columns: dict[str, Any]) -> dict[str, Any]:
    row = {"token": token.i, "text": token.text, names.pieces: token._.get(names.pieces)}
    return {**row, **token_values(token, names, columns)}


def import_pandas() -> Any:
    """RAISES (ImportError): pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise ImportError(f"Data frames need pandas. Install it with: {install_command('dataframe')}") from None
    return pandas
