"""The columns that `pll score` adds to a table, for tests that are about something else."""

from spacy_pll.attributes.names import Names
from spacy_pll.tables.rows import TextRows


def added(*metrics):
    """Those of texts."""
    return list(TextRows("text", Names("pll", metrics or ("word_l2r",))).types)
