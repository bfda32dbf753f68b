"""The typed record of wordpieces, and the dict of lists that docs have."""

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin

from spacy_pll.attributes.names import Names
from spacy_pll.attributes.record import PieceRecord
from spacy_pll.attributes.registration import install
from spacy_pll.attributes.stored import read_record

from ..conftest import SENTENCES, odd_text

OLD = {
    "pieces": ["a", "b"],
    "ids": [3, 4],
    "start": [0, 1],
    "end": [1, 2],
    "token": [0, 0],
    "mask_spacing": None,
    "mask_margin": None,
    "scores": {"original": [-1.0, -2.0]},
}  # fmt: skip


def test_words_are_numbered_without_gaps(make_nlp):
    nlp = make_nlp(keep_pieces=True, targets="some")
    doc = nlp.make_doc("The souvenir that the traveler lost, he found.")
    doc.spans["some"] = [doc[1:2], doc[4:6]]
    data = nlp(doc)._.pll_data
    words = [data["token"].index(token) for token in data["token"]]  # each piece's word by its first piece
    assert data["word"] == [sorted(set(words)).index(word) for word in words] and data["word"][-1] == 2
    for text in ("", "   "):
        data = make_nlp(keep_pieces=True)(text)._.pll_data
        assert data["pieces"] == data["word"] == []


@pytest.mark.parametrize(
    "architecture, tokenizer", [("bert", "wordpiece"), ("roberta", "byte-level"), ("albert", None)]
)
def test_after_a_merge_the_record_and_the_attributes_agree(make_nlp, architecture, tokenizer):
    """Also of white space at the end of a text, whose pieces stand behind their token."""
    nlp = make_nlp(architecture, *filter(None, [tokenizer]), keep_pieces=True)

    @example(text="The souvenir was lost \n", cuts=[0, 2])
    @example(text="a  \n\n", cuts=[])
    @given(text=odd_text, cuts=st.lists(st.integers(0, 20), max_size=4))
    def check(text, cuts):
        doc = nlp(text)
        total, edges = doc._.pll, sorted({0, len(doc), *(min(cut, len(doc)) for cut in cuts)})
        with doc.retokenize() as retokenizer:
            for start, end in zip(edges[::2], edges[1::2]):
                retokenizer.merge(doc[start:end])
        record = doc._.pll_data
        n = np.bincount(record["token"], minlength=len(doc))
        sums = np.bincount(record["token"], record["scores"]["word_l2r"], minlength=len(doc))
        assert n.tolist() == [token._.pll_pieces for token in doc]
        np.testing.assert_allclose(sums, [token._.pll for token in doc], atol=1e-9)
        assert doc._.pll == (total if total is None else pytest.approx(total, abs=1e-9))

    check()


@pytest.mark.core
def test_a_record_of_an_earlier_version_is_read():
    install(Names("pll", ["original"]))
    doc = Doc(spacy.blank("en").vocab, ["ab"])
    doc._.pll_data = OLD
    record = read_record(doc, "pll")
    assert record == PieceRecord(["a", "b"], [3, 4], [0, 1], [1, 2], [0, 0], {"original": [-1.0, -2.0]})
    assert record.to_dict() == OLD == doc._.pll_data and record.word is record.window is None
    assert PieceRecord.from_dict(record.to_dict()) == record
    with pytest.raises(FrozenInstanceError):
        record.word = [0, 0]


@pytest.mark.core
@pytest.mark.parametrize("value", [None, "text", {"by": "hand"}, {**OLD, "scores": None} | {"x": 1}, {"token": []}])
def test_something_else_is_no_record(value):
    has_all = isinstance(value, dict) and OLD.keys() <= value.keys()
    assert (PieceRecord.from_dict(value) is None) == (not has_all)


def test_what_a_doc_has_is_lists_that_are_stored_and_read_again(make_nlp):
    nlp = make_nlp("bert", keep_pieces=True, alternatives=2, distribution=True)
    doc = nlp(SENTENCES[0])
    record, data = read_record(doc, "pll"), doc._.pll_data
    assert record.to_dict() == data == json.loads(json.dumps(data)) | {"alternatives": data["alternatives"]}
    assert all(
        isinstance(values, list) for key, values in data.items() if key not in ("scores", "mask_spacing", "mask_margin")
    )
    [other] = DocBin(docs=[doc], store_user_data=True).get_docs(nlp.vocab)
    assert json.dumps(read_record(other, "pll").to_dict()) == json.dumps(data)


def test_words_and_windows(make_nlp):
    nlp = make_nlp("bert", keep_pieces=True, words="whitespace")
    model = nlp.get_pipe("pll").model
    model.loaded = replace(model.load(), max_length=20)
    texts = ["The hooligans can't lose the souvenir.", " ".join(SENTENCES)]
    short, long = (read_record(doc, "pll") for doc in nlp.pipe(texts))
    for record, text in zip((short, long), texts):
        words = [text[:start].count(" ") for start in record.start]
        assert record.word == words
    assert set(short.window) == {0}
    assert (
        long.window[0] == 0 and sorted(set(long.window)) == list(range(max(long.window) + 1)) and max(long.window) > 1
    )


def test_each_span_has_words_and_windows_of_its_own(make_nlp):
    nlp = make_nlp("bert", keep_pieces=True, get_spans={"@span_getters": "spacy-pll.sent_spans.v1"})
    nlp.add_pipe("sentencizer", first=True)
    doc = nlp("It sleeps. It sleeps.")
    record = read_record(doc, "pll")
    n = len(record.ids) // 2
    assert record.word[n:] == [word + record.word[n - 1] + 1 for word in record.word[:n]] and set(record.window) == {0}
