import math

import pytest

from spacy_pll.corpus.readers import InputError, Record
from spacy_pll.corpus.rows import ListRows, ProdigyRows, TextRows, TokenRows, check_columns

TEXT = "The  traveler's souvenir."
FIELDS = {"id": 7}


@pytest.fixture
def rows(make_nlp):
    """Makes the rows of one scored doc; also gives the doc."""
    nlp = make_nlp("bert", metrics=["word_l2r", "original"], keep_pieces=True)
    doc, names = nlp(TEXT), nlp.get_pipe("pll").names

    def make(cls):
        own = cls("text", names)
        return own, list(own(3, doc, Record("", "", dict(FIELDS))))

    return doc, make


def test_a_row_per_text(rows):
    doc, make = rows
    own, [row] = make(TextRows)
    assert list(row) == ["text", "id", *own.columns]
    assert row["text"] == TEXT and row["id"] == 7
    assert (row["pll_word_l2r"], row["pll_original"]) == (doc._.pll_word_l2r, doc._.pll_original)
    assert (row["pll_pieces"], row["pppl"]) == (doc._.pll_pieces, doc._.pppl)


def test_a_row_per_token(rows):
    doc, make = rows
    own, table = make(TokenRows)
    tokens = [token for token in doc if not token.is_space]
    assert len(tokens) < len(doc)
    for token, row in zip(tokens, table, strict=True):
        assert set(row) == {"text", "id", *own.columns}
        assert (row["doc"], row["token"], row["text"], row["id"]) == (3, token.i, token.text, 7)
        assert row["pll_original"] == token._.pll_original
        assert row["surprisal"] == pytest.approx(-token._.pll / math.log(2))
        assert len(row["pieces"]) == token._.pll_pieces
    assert [piece for row in table for piece in row["pieces"]] == doc._.pll_data["pieces"]


def test_a_row_per_text_with_lists_for_its_tokens(rows):
    _, make = rows
    own, [row] = make(ListRows)
    _, [text] = make(TextRows)
    _, tokens = make(TokenRows)
    assert set(row) == {"text", "id", *own.columns} and row.items() >= text.items()
    assert row["tokens"] == [token["text"] for token in tokens]
    assert row["token_pll_original"] == [token["pll_original"] for token in tokens]
    assert row["token_pieces"] == [token["pieces"] for token in tokens]


def test_tasks_for_prodigy(rows):
    doc, make = rows
    _, [task] = make(ProdigyRows)
    assert list(task) == ["text", "id", "tokens", "meta"]
    assert task["meta"]["score"] == doc._.pll / doc._.pll_pieces
    assert [TEXT[token["start"] : token["end"]] for token in task["tokens"]] == [token.text for token in doc]


def test_no_column_of_the_input_is_overwritten():
    check_columns(["id"], ["pll"], "a.csv")
    with pytest.raises(InputError, match="a.csv already has a column 'pll', which the scores would overwrite"):
        check_columns(["id", "pll"], ["pll", "pppl"], "a.csv")
