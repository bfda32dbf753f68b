"""Rows of tables and their columns, for tests that are about something else."""

from spacy_pll.attributes.names import Names
from spacy_pll.tables.rows import TextRows, TokenRows


def rows_of(table="texts", metrics=("word_l2r",)):
    """What makes the rows of scored docs. table: "texts" or "tokens"."""
    return {"texts": TextRows, "tokens": TokenRows}[table]("text", Names("pll", metrics))


def added(*metrics):
    """The columns that `pll score` adds to a table of texts."""
    return list(rows_of(metrics=metrics or ("word_l2r",)).types)
