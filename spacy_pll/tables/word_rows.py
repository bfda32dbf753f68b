"""Tables that have one word in a row, scored: each row gets the columns of `WordTable` for its word.

The words of a text are its tokens, whatever spaCy's tokenizer would make of it, and the model reads all of the text.
"""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from spacy.tokens import Doc

from ..advice.giving import advise
from ..advice.odd_words import escapes, needless_spaces, pieces_as_words
from ..advice.word_rows import INDEX, joined_rows, other_order
from ..cells import Missing, is_missing, label_of
from ..component import get_scorer
from ..errors import InputError, PLLError, no_column
from ..metrics import get_metric
from ..pipelines import Model, PipelineSettings, make_pipeline, with_all_settings
from ..settings import BATCH_SIZE
from ..stream.known import KeptScores, read_docs
from ..stream.workers import Work
from ..user_warnings import warn_user
from .rows import check_columns
from .words import WordRows, WordTable

PLACE = ("doc", "word", "start", "end", "whitespace", "sent", "word_in_sent")  # which the rows have or need not have
SURPRISAL = "surprisal"
YES, NO = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")


@with_all_settings
def score_words(
    table: Any,
    model: Model | PipelineSettings = None,
    metrics: Sequence[str] | str | None = None,
    *,
    word: str = "word",
    by: Sequence[str] | str = (),
    space_after: str | None = None,
    base: float | None = None,
    lags: int = 0,
    log_frequency: bool | None = None,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
    kept: KeptScores | None = None,
    **settings: Any,
) -> Any:
    """Score the words of a table that has one word in each row, each in its whole text.

    table (Union[pandas.DataFrame, polars.DataFrame, Iterable[Mapping[str, Any]]]): Rows in the order of the words.
    model, metrics: See `spacy_pll.score`.
    word (str): The column of the words. A word may have white space or punctuation in it: it is scored as one.
    by (Sequence[str]): Columns that say which text a row belongs to. Empty: all rows are one text.
    space_after (Optional[str]): A column that says whether a space follows: true or false, 1 or 0, or the white space
        itself. None: a space follows each word.
    base (Optional[float]): The base of the logarithm in the column of surprisal, such as 2 for bits. It is then called
        surprisal_base2 or the like. None: e, and surprisal, in nats.
    lags (int): Add the scores, wordpieces, length and frequency of this many words before the word, in columns such as
        surprisal_lag1.
    log_frequency (Optional[bool]): Whether log frequencies are a column, from the package wordfreq. None: if it is
        installed and has the language.
    batch_size, n_process, show_progress, settings: See `spacy_pll.score`.
    kept (Optional[KeptScores]): Has what is found already for the first texts, and gets what is found.
    RETURNS (Union[pandas.DataFrame, polars.DataFrame, list[dict[str, Any]]]): The same rows in the same order, a data
        frame of the same package if one was given. Added are the number of wordpieces, the word's length,
        `log_frequency`, scores (natural log) and the surprisal. They are None, or NaN in a data frame of pandas, where
        there is no word: None, NaN, "", white space. Such rows are counted in a warning.
        There is a warning if the rows of a text seem to be rows of several texts, or not in the order of the words;
        and if rows are wordpieces, or have escapes such as &amp;, or are joined with spaces in a script without spaces.
    RAISES (ValueError): There is no such column, or no value in a column of `by`, or the table has a column that would
        be added, or a text cannot be scored.

    ```python
    import spacy_pll

    rows = [{"item": 1, "word": word} for word in "The cats sleep .".split()]
    for row in spacy_pll.score_words(rows, metrics=["left_context"], by="item"):
        print(row["word"], f"{row['surprisal']:.2f}")
    ```

    ```
    The 4.51
    cats 7.70
    sleep 7.64
    . 7.24
    ```
    """
    rows = _rows_of(table)
    nlp, work = make_pipeline(model, metrics, **settings), Work(batch_size, n_process, show_progress)
    scorer, lang = get_scorer(nlp), str(nlp.lang)
    words = WordTable("spacy", lags=lags, log_frequency=log_frequency).known(lang)
    table_of = WordRows("text", scorer.names, scorer.settings, table=words, lang=lang, divides=False)
    types = table_of.types
    columns = word_columns(types, base)
    by = [by] if isinstance(by, str) else [*by]
    texts = texts_of_rows(rows, word, by)
    check_columns({name for row in rows for name in row}, columns, "The table")
    spaced = [[(text, _has_space(rows[i], space_after, i)) for i, text in members] for members in texts]
    kept = kept or KeptScores()
    kept.begin(spaced)
    advise(
        joined_rows(rows, texts, word, by),
        other_order(rows, texts, [word, *by, *INDEX]),
        pieces_as_words(texts),
        escapes(texts),
        needless_spaces(texts, scorer.model.load().tokenizer) if space_after is None else None,
    )
    docs = (
        Doc(nlp.vocab, words=[text for text, _ in words], spaces=[space for _, space in words])
        for words in spaced[len(kept.earlier) :]
    )
    scored_rows: list[dict[str, Any]] = [dict.fromkeys(columns) for _ in rows]

    def in_base(nats: float | None) -> float | None:
        return nats if nats is None or base is None else nats / math.log(base)

    def read(doc: Doc) -> list[dict[str, Any]]:
        rows, named = table_of.of(doc), columns.items()
        return [{name: row[own] if name == own else in_base(row[own]) for name, own in named} for row in rows]

    n = len(texts)
    with closing(kept.each(lambda n_known: read_docs(nlp, docs, read, work, n, n_known), n)) as of_texts:
        for members, of_words in zip(texts, of_texts, strict=True):
            for (i, _), row in zip(members, of_words, strict=True):
                scored_rows[i] = row
    if missing := len(rows) - sum(map(len, texts)):
        warn_user(f"{missing:,} of {len(rows):,} rows have no word in the column {word!r}, and no scores.")
    added = {name: [row[name] for row in scored_rows] for name in columns}
    if _is_of_polars(table):
        return table.hstack(type(table)(added, schema_overrides={name: types[own] for name, own in columns.items()}))
    if _is_of_pandas(table):
        return table.assign(**added)
    return [{**row, **values} for row, values in zip(rows, scored_rows)]


def _is_of_polars(table: Any) -> bool:
    """By what it can do: neither package is imported."""
    return hasattr(table, "to_dicts") and hasattr(table, "columns")


def _is_of_pandas(table: Any) -> bool:
    return hasattr(table, "to_dict") and hasattr(table, "columns") and not _is_of_polars(table)


def _rows_of(table: Any) -> list[dict[str, Any]]:
    if _is_of_polars(table):
        return table.to_dicts()
    given = table.to_dict("records") if _is_of_pandas(table) else table
    return [row if isinstance(row, dict) else dict(row) for row in given]


def word_columns(types: Mapping[str, Any], base: float | None) -> dict[str, str]:
    """The columns that are added, and what a table of words calls them.

    RAISES (ValueError): The base is not above 1.
    """
    if base is not None and not (math.isfinite(base) and base > 1):
        raise PLLError(f"`base` must be a number above 1, such as 2. It is {base}.")
    # Scores may be called so, too: with `attr="surprisal"`.
    pattern = rf"^{SURPRISAL}(?=$|_lag\d+$)"
    return {re.sub(pattern, surprisal_in(base), name): name for name in types if name not in PLACE}


def surprisal_in(base: float | None) -> str:
    """The column of surprisal."""
    return SURPRISAL if base is None else f"{SURPRISAL}_base{base:g}"


def surprisal_with_unit(base: float | None, metric: str = "") -> str:
    """The same for people, with the metric, if one is given, and the unit."""
    unit = "nats" if base is None else "bits" if base == 2 else f"base {base:g}"
    return f"{surprisal_in(base)} ({', '.join(filter(None, (metric, unit)))})"


def is_after_words_before(metric: str) -> bool:
    """Whether the surprisal of a word under a metric depends on the words before it alone, as research on reading has
    it.
    """
    return not get_metric(metric).shows_what_follows


def texts_of_rows(rows: Sequence[Mapping[str, Any]], word: str, by: Sequence[str]) -> list[list[tuple[int, str]]]:
    """For each text, its rows that have a word: their numbers, from 0, and the words.

    RAISES (InputError): A row lacks a column, or a value in one of `by`, or a word is neither text nor a number.
    """
    texts = dict[tuple[str, ...], list[tuple[int, str]]]()
    for i, row in enumerate(rows):
        if missing := [name for name in (word, *by) if name not in row]:
            setting = "word" if missing[0] == word else "by"
            raise no_column(f"Row {i + 1}", missing[0], row, f"Name another with `{setting}`.")
        if text := _text_of(row[word], i):
            if empty := [name for name in by if is_missing(row[name])]:
                raise InputError(
                    f"Row {i + 1}: there is a word, and no value in the column {empty[0]!r} of `by`, which says which "
                    "text it belongs to.",
                    "Write the value in each row: merged cells of a sheet have it in the first one alone. Or leave the "
                    "column out of `by`."
                    + " Or, if NA is a value, give `na_as_text=True`."
                    * isinstance(row[empty[0]], Missing),
                )
            texts.setdefault(tuple(label_of(row[name]) for name in by), []).append((i, text))
    return list(texts.values())


def _text_of(value: Any, i: int) -> str:
    """A word without white space at its ends; "" if there is none."""
    if is_missing(value):
        return ""
    if isinstance(value, bool | list | dict | tuple | bytes):
        raise InputError(f"Row {i + 1}: a word must be text. It is {value!r:.100}.")
    return str(value).strip()


def _has_space(row: Mapping[str, Any], column: str | None, i: int) -> bool:
    if column is None:
        return True
    if column not in row:
        raise no_column(f"Row {i + 1}", column, row, "Name another with `space_after`.")
    value = str(row[column])
    if value.strip().lower() in YES or value and not value.strip():
        return True
    if value.strip().lower() in NO:
        return False
    raise InputError(
        f"Row {i + 1}: {column!r} is {value!r:.100}, which does not say whether a space follows.",
        "Write true or false, 1 or 0, or the white space itself.",
    )
