import math
import sys

import pandas as pd
import pytest
import spacy
from spacy.tokens import DocBin

import spacy_pll
from spacy_pll import to_dataframe


def test_a_row_a_token_and_a_column_a_metric(make_nlp):
    nlp = make_nlp("bert", metrics=["word_l2r", "original"])
    docs = list(nlp.pipe(["The traveler lost  it.", "", "A souvenir"]))
    frame = to_dataframe(docs)
    assert frame.columns.tolist() == ["doc", "token", "text", "pll_pieces", "pll_word_l2r", "pll_original", "surprisal"]
    assert frame["text"].tolist() == [token.text for doc in docs for token in doc]
    assert frame["doc"].tolist() == [0] * len(docs[0]) + [2] * len(docs[2])
    assert frame["token"].tolist() == [*range(len(docs[0])), *range(len(docs[2]))]
    assert frame["pll_pieces"].tolist() == [token._.pll_pieces for doc in docs for token in doc]
    for metric in ("word_l2r", "original"):
        sums = frame.groupby("doc")[f"pll_{metric}"].sum()
        assert sums.to_dict() == pytest.approx({i: docs[i]._.get(f"pll_{metric}") for i in (0, 2)})
    assert to_dataframe(docs, ["original"]).columns.tolist()[3:] == ["pll_pieces", "pll_original", "surprisal"]
    assert frame["surprisal"].dropna().tolist() == (-frame["pll_word_l2r"].dropna()).tolist()


def test_one_metric_is_named_like_several(make_nlp):
    nlp = make_nlp("bert", attr="tiny")
    frame = to_dataframe((doc for doc in nlp.pipe(["The traveler"])), attr="tiny")
    assert frame.columns.tolist() == ["doc", "token", "text", "tiny_pieces", "tiny_word_l2r", "surprisal"]
    doc = nlp("The traveler lost it.")
    assert to_dataframe(doc[1:3], attr="tiny")["token"].tolist() == [1, 2]


def test_what_was_not_scored_is_missing(make_nlp):
    nlp = make_nlp("bert", targets="critical")
    doc = nlp.make_doc("The traveler lost it.")
    doc.spans["critical"] = [doc[1:2]]
    frame = to_dataframe(nlp(doc))
    for name in ("pll_word_l2r", "pll_pieces"):
        assert frame[name].notna().tolist() == [False, True, False, False, False]
    assert frame["pll_word_l2r"].sum() == doc._.pll
    assert [str(frame[name].dtype) for name in ("doc", "token", "pll_pieces", "pll_word_l2r")] == [
        "int64", "int64", "Int64", "float64"
    ]  # fmt: skip


def test_tokens_without_a_wordpiece_have_no_score(make_nlp):
    """Their empty sum, 0.0, would be the best score there is."""
    frame = to_dataframe(make_nlp("bert", distribution=True).pipe(["The  traveler", "   ", "\u200b"]))
    assert frame["pll_pieces"].tolist() == [1, 0, 1, 0, 0]
    assert (
        frame["pll_word_l2r"].notna().tolist() == frame["entropy"].notna().tolist() == [True, False, True, False, False]
    )


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_without_tokens_the_columns_are_the_same(make_nlp, texts):
    frame = to_dataframe(make_nlp("bert").pipe(texts))
    metrics = ["pll_word_l2r"] if texts else []  # a doc without a token knows them, too
    assert len(frame) == 0 and frame.columns.tolist() == ["doc", "token", "text", "pll_pieces", *metrics, "surprisal"]
    assert frame.dtypes["surprisal"] == "float64"
    filled = pd.concat([frame, to_dataframe(make_nlp("bert")("The traveler"))])
    assert len(filled) == 2


def test_docs_from_a_file_and_unscored_ones_beside_them(make_nlp, unregistered):
    doc = make_nlp("bert", metrics=["original", "whole_word"], attr="filed")("The traveler")
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    unregistered("filed")
    vocab = spacy.blank("en").vocab
    docs = [*DocBin().from_bytes(data).get_docs(vocab), spacy.blank("en")("Not scored")]
    frame = to_dataframe(docs, attr="filed")
    assert frame.columns.tolist()[-3:-1] == ["filed_original", "filed_whole_word"]  # in the component's order
    values = frame["filed_original"].tolist()
    assert values[:2] == [token._.filed_original for token in docs[0]] and all(v < 0 for v in values[:2])
    assert all(math.isnan(value) for value in values[2:])


def test_errors(make_nlp, monkeypatch):
    with pytest.raises(
        ValueError,
        match=r"^These docs have no scores: none has _\.pll_data with.*Score them first.*these docs have: none",
    ):
        to_dataframe(spacy.blank("en")("Not scored"))
    doc = make_nlp("bert", metrics=["word_l2r", "original"])("The traveler")
    with pytest.raises(ValueError, match="no scores under 'whole_word'.*word_l2r, original"):
        to_dataframe(doc, ["original", "whole_word"])
    with pytest.raises(ValueError, match="an empty list of metrics"):
        to_dataframe(doc, [])
    with pytest.raises(ValueError, match=r"_\.other_data .*name its `attr`.*docs have: pll_word_l2r, pll_original"):
        to_dataframe(doc, attr="other")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install .*\[dataframe\]"):
        spacy_pll.to_dataframe(doc)


def test_columns_of_what_the_model_expected(make_nlp):
    nlp = make_nlp("bert", alternatives=2, distribution=True)
    docs = [nlp("The traveler lost  it."), make_nlp("bert")("Without them")]
    frame = to_dataframe(docs)
    assert frame.columns.tolist()[-6:-2] == ["pll_word_l2r", "surprisal", "rank", "entropy"]
    tokens = [token for doc in docs for token in doc]
    assert [None if pd.isna(rank) else rank for rank in frame["rank"]] == [token._.pll_rank for token in tokens]
    for name, i in (("alternatives", 0), ("alternative_log_probs", 1)):
        expected = [token._.pll_alternatives and [found[i] for found in token._.pll_alternatives] for token in tokens]
        assert frame[name].tolist() == expected
    assert frame["entropy"].sum() == pytest.approx(docs[0]._.pll_entropy)
    assert [str(frame[name].dtype) for name in ("rank", "entropy", "alternatives")] == ["Int64", "float64", "object"]
    assert "entropy" not in to_dataframe(make_nlp("bert", alternatives=1)("A")).columns
    surprisal = to_dataframe(nlp("The  traveler"))["surprisal"]
    assert surprisal.isna().tolist() == [False, True, False]
