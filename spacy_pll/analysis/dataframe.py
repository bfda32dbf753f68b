"""Scores as a pandas data frame."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from spacy.tokens import Doc, Span

from ..attributes.columns import stored_columns, token_values
from ..attributes.names import Names, select_metrics
from ..attributes.registration import find_names
from ..requirements import install_command
from .words import WordTable

if TYPE_CHECKING:
    import pandas as pd

DTYPES = {int: "Int64", float: "float64", str: "str"}


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
        the columns of `pll score --tokens`, which has the wordpieces themselves, under `pieces`, in place of their
        number.
        With `words`, they are `doc` and those of `pll score --table words`.
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
    if words:
        distribution = "entropy" in columns
        made = [(n, row) for n, doc in enumerate(docs) for row in words.rows(doc, names, distribution, doc.doc.lang_)]
        numbers = pd.Series([number for number, _ in made], dtype="int64")
        types = words.types(names, distribution).items()
        columns_of = {name: pd.Series([row[name] for _, row in made], dtype=DTYPES[type_]) for name, type_ in types}
        return pd.DataFrame({"doc": numbers, **columns_of})
    tokens = [token for doc in docs for token in doc]
    data = {
        "doc": pd.Series([number for number, doc in enumerate(docs) for _ in doc], dtype="int64"),
        "token": pd.Series([token.i for token in tokens], dtype="int64"),
        "text": pd.Series([token.text for token in tokens], dtype="str"),
        names.pieces: pd.Series([token._.get(names.pieces) for token in tokens], dtype="Int64"),
    }
    rows = [token_values(token, names, columns) for token in tokens]
    for name, type_ in columns.items():
        data[name] = pd.Series([row[name] for row in rows], dtype=DTYPES.get(type_, "object"))
    return pd.DataFrame(data)


def import_pandas() -> Any:
    """RAISES (ImportError): pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise ImportError(f"Data frames need pandas. Install it with: {install_command('dataframe')}") from None
    return pandas
