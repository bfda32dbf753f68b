"""Scores as a pandas data frame."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from spacy.tokens import Doc, Span

from ..attributes.names import select_columns
from ..attributes.registration import find_names
from ..requirements import install_command

if TYPE_CHECKING:
    import pandas as pd


def to_dataframe(
    docs: Doc | Span | Iterable[Doc | Span], metrics: Sequence[str] | None = None, *, attr: str = "pll"
) -> "pd.DataFrame":
    """The scores of docs as a tidy pandas data frame, one row per token.

    docs (Union[Doc, Span, Iterable[Union[Doc, Span]]]): Scored docs, such as `nlp.pipe(texts)`.
    metrics (Optional[Sequence[str]]): The metrics. None takes every metric that the docs were scored with.
    attr (str): The component's setting of that name.
    RETURNS (pandas.DataFrame): The columns are `doc` (number of the doc, from 0), `token` (index in the doc), `text`,
        `pieces` (number of wordpieces, missing where the token was not scored) and one column of scores per metric
        (natural log, NaN where not scored and where there is no wordpiece). With a single metric, that column has the
        attribute's name, `attr`. If the docs have them, also `rank` (missing where there is none), `entropy` (nats) and
        `alternatives` (lists of text, log-probability and whether it begins a word).
    RAISES (ValueError): The docs have no scores of that name, or `attr` is the name of another column.
    RAISES (ImportError): pandas is not installed.
    """
    pd = import_pandas()
    docs = [docs] if isinstance(docs, Doc | Span) else list(docs)
    names = find_names(docs, attr)
    columns = select_columns(names, metrics)
    tokens = [token for doc in docs for token in doc]
    pieces = [token._.get(names.pieces) for token in tokens]
    data = {
        "doc": [number for number, doc in enumerate(docs) for _ in doc],
        "token": [token.i for token in tokens],
        "text": [token.text for token in tokens],
        "pieces": pd.array(pieces, dtype="Int64"),
    }
    attributes = {"rank": names.rank, "entropy": names.entropy, "alternatives": names.alternatives}
    expected = {heading: [token._.get(name) for token in tokens] for heading, name in attributes.items()}
    expected["entropy"] = [None if n == 0 else value for value, n in zip(expected["entropy"], pieces)]
    expected = {name: values for name, values in expected.items() if any(value is not None for value in values)}
    clash = {*data, *expected} & columns.keys()
    if clash:
        raise ValueError(
            f"The scores are called {clash.pop()!r}, like another column of the table. Score with another `attr`."
        )
    scores = {
        heading: pd.array([None if n == 0 else token._.get(name) for token, n in zip(tokens, pieces)], dtype="float64")
        for heading, name in columns.items()
    }
    types = {"doc": "int64", "token": "int64", "text": "str", "rank": "Int64", "entropy": "float64"}
    frame = pd.DataFrame({**data, **scores, **expected})
    return frame.astype({name: type_ for name, type_ in types.items() if name in frame})


def import_pandas() -> Any:
    """RAISES (ImportError): pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise ImportError(f"Data frames need pandas. Install it with: {install_command('dataframe')}") from None
    return pandas
