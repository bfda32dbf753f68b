import pytest

from spacy_pll import InputError
from spacy_pll.tables.rows import ScoredText, TextRows, TokenRows, check_columns

from ..columns import added

TEXT = "The  traveler's souvenir."
FIELDS = {"id": 7}


@pytest.fixture
def rows(make_nlp):
    """Makes the rows of one scored doc; also gives the doc."""
    nlp = make_nlp("bert", metrics=["word_l2r", "original"], keep_pieces=True)
    doc, names = nlp(TEXT), nlp.get_pipe("pll").names

    def make(cls):
        own = cls("text", names)
        return own, list(own(ScoredText.of(doc, names, 3, dict(FIELDS))))

    return doc, make


def test_a_row_per_text(rows):
    doc, make = rows
    own, [row] = make(TextRows)
    assert list(row) == ["text", "id", *own.types]
    assert row["text"] == TEXT and row["id"] == 7
    assert (row["pll_word_l2r"], row["pll_original"]) == (doc._.pll_word_l2r, doc._.pll_original)
    assert (row["pll_pieces"], row["pppl"]) == (doc._.pll_pieces, doc._.pppl)


def test_a_row_per_token(rows):
    doc, make = rows
    own, table = make(TokenRows)
    tokens = [token for token in doc if not token.is_space]
    assert len(tokens) < len(doc)
    for token, row in zip(tokens, table, strict=True):
        assert set(row) == {"text", "id", *own.types}
        assert (row["doc"], row["token"], row["text"], row["id"]) == (3, token.i, token.text, 7)
        assert row["pll_original"] == token._.pll_original
        assert row["surprisal"] == -token._.pll
        assert len(row["pieces"]) == token._.pll_pieces
    assert [piece for row in table for piece in row["pieces"]] == doc._.pll_data["pieces"]


@pytest.mark.parametrize("text", ["", "   ", "\u200b"])
def test_a_text_without_a_wordpiece_has_no_score(make_nlp, text):
    """Its empty sum, 0.0, would be the best score there is."""
    nlp = make_nlp("bert", keep_pieces=True, distribution=True)
    doc, scorer = nlp(text), nlp.get_pipe("pll")
    for cls in (TextRows, TokenRows):
        for row in cls("text", scorer.names, scorer.settings)(ScoredText.of(doc, scorer.names)):
            names = {
                "pll_word_l2r",
                "pppl",
                "pll_entropy",
                "pll_top1",
                "surprisal",
                "rank",
                "entropy",
            } & row.keys()
            assert names and {row[name] for name in names} == {None}, cls


def test_no_column_of_the_input_is_overwritten():
    check_columns(["id"], ["pll"], "a.csv")
    with pytest.raises(InputError, match="a.csv already has a column 'pll'"):
        check_columns(["id", "pll"], ["pll", "pppl"], "a.csv")


@pytest.mark.parametrize("alternatives", [0, 2])
@pytest.mark.parametrize("distribution", [True, False])
def test_columns_of_what_the_model_expected(make_nlp, alternatives, distribution):
    nlp = make_nlp("bert", keep_pieces=True, alternatives=alternatives, distribution=distribution)
    doc, scorer = nlp(TEXT), nlp.get_pipe("pll")
    of_text = ["pll_top1", "pll_entropy"] if distribution else []
    of_token = ["rank", "entropy"] if distribution else []
    of_token += ["alternatives", "alternative_log_probs"] if alternatives else []
    texts, tokens = (cls("text", scorer.names, scorer.settings) for cls in (TextRows, TokenRows))
    assert [name for name in texts.types if name not in added()] == of_text
    assert list(tokens.types) == ["doc", "token", "pieces", "pll_word_l2r", "surprisal", *of_token]
    scored = ScoredText.of(doc, scorer.names, fields=dict(FIELDS))
    [row] = texts(scored)
    assert [row[name] for name in of_text] == [doc._.get(name) for name in of_text]
    table = list(tokens(scored))
    for token, of_one in zip([token for token in doc if not token.is_space], table, strict=True):
        assert set(of_one) == {"text", "id", *tokens.types}
        if distribution:
            assert (of_one["rank"], of_one["entropy"]) == (token._.pll_rank, token._.pll_entropy)
        if alternatives:
            pairs = list(zip(of_one["alternatives"], of_one["alternative_log_probs"], strict=True))
            assert pairs == [(text, log_prob) for text, log_prob, _ in token._.pll_alternatives] and len(pairs) == 2
