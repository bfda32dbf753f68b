"""Where docs keep records, and what is read from them after whatever spaCy does with docs."""

import copy
import gc
import json
import pickle
import weakref
from dataclasses import replace

import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin
from spacy.util import filter_spans

from spacy_pll import to_dataframe
from spacy_pll.attributes.registration import find_names
from spacy_pll.attributes.stored import read_record

from ..conftest import SENTENCES, odd_text
from .conftest import VALUES, VOCAB, register, scored, set_values

TEXT = SENTENCES[1]
METRICS = ["word_l2r", "original"]
NAMES = ["x", "x_word_l2r", "x_original", "x_pieces"]
ALL = {"keep_pieces": True, "distribution": True, "alternatives": 2}


@pytest.fixture
def doc(make_nlp):
    return make_nlp("bert", metrics=METRICS, attr="x", keep_pieces=True)(TEXT)


def merge(doc, *ranges):
    spans = [doc[start:end] for start, end in ranges]
    with doc.retokenize() as retokenizer:
        for span in spans:
            retokenizer.merge(span)


def split(doc, i, *parts):
    with doc.retokenize() as retokenizer:
        retokenizer.split(doc[i], list(parts), heads=[(doc[i], 0)] * len(parts))


def values(item, names=NAMES):
    return [item._.get(name) for name in names]


def plain(data):
    return json.loads(json.dumps(data))


COPIES = {
    "docbin": lambda doc: next(DocBin(docs=[doc], store_user_data=True).get_docs(doc.vocab)),
    "bytes": lambda doc: Doc(doc.vocab).from_bytes(doc.to_bytes()),
    "pickle": lambda doc: pickle.loads(pickle.dumps(doc)),
    "copy": lambda doc: doc.copy(),
    "json": lambda doc: Doc(doc.vocab).from_json(plain(doc.to_json(underscore=["x_data"]))),
    "joined": lambda doc: Doc.from_docs([doc]),
    "cut": lambda doc: doc[:].as_doc(copy_user_data=True),
    "user data": lambda doc: Doc(
        doc.vocab, [token.text for token in doc], [bool(token.whitespace_) for token in doc], user_data=doc.user_data
    ),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("settings", [{}, ALL, {"sample_words": 0.5, **ALL}], ids=["plain", "all", "sample"])
def test_a_copy_has_the_same_values(make_nlp, way, settings):
    nlp = make_nlp("bert", metrics=METRICS, attr="x", **settings)
    # spaCy cuts no doc without tokens, and leaves out what it has where it joins docs.
    for text in (TEXT, "  A souvenir \n", "   ", *[""] * (way not in ("joined", "cut"))):
        doc = nlp(text)
        other = COPIES[way](doc)
        assert [values(token) for token in other] == [values(token) for token in doc]
        assert values(other) == values(doc) and plain(other._.x_data) == plain(doc._.x_data)
        for name in ("x_rank", "x_entropy", "x_first_choices", "x_alternatives"):
            assert [token._.get(name) for token in other] == [token._.get(name) for token in doc]
        for name in ("x_estimate", "x_error", "x_all_pieces", "x_top1"):
            assert other._.get(name) == doc._.get(name)


def test_one_entry_of_numbers_and_texts_in_tuples(make_nlp):
    """Tuples of numbers are nothing to Python's garbage collector, whose work in a long `nlp.pipe` lists would be."""
    for settings in ({}, {"sample_words": 0.5, **ALL}):
        [(key, record)] = make_nlp("bert", metrics=METRICS, **settings)(TEXT).user_data.items()
        assert key == ("._.", "pll_data", 0, len(TEXT))
        lists = [value for name, value in record.items() if name != "scores"] + list(record["scores"].values())
        for one in lists:
            one = [one] if isinstance(one, tuple) else one
            assert not gc.is_tracked(one) or isinstance(one, list)
        assert all(isinstance(value, int | str | tuple) for value in lists)


@pytest.mark.parametrize(
    "architecture, tokenizer", [("bert", "wordpiece"), ("roberta", "byte-level"), ("albert", None)]
)
def test_merges_and_splits_move_no_piece(make_nlp, architecture, tokenizer):
    """Also of white space at the end of a text, whose pieces stand behind their token."""
    nlp = make_nlp(architecture, *filter(None, [tokenizer]), keep_pieces=True)

    @example(text="The souvenir was lost \n", cuts=[0, 2], parts=[3, 1])
    @example(text="a  \n\n", cuts=[], parts=[])
    @given(text=odd_text, cuts=st.lists(st.integers(0, 20), max_size=4), parts=st.lists(st.integers(0, 99), max_size=3))
    def check(text, cuts, parts):
        doc = nlp(text)
        before, edges = values(doc, ["pll", "pll_pieces"]), sorted({0, len(doc), *(min(cut, len(doc)) for cut in cuts)})
        by_character = [
            (offset, score) for offset, score in zip(doc._.pll_data["offset"], doc._.pll_data["scores"]["word_l2r"])
        ]
        assert doc._.pll_data["offset"] == sorted(doc._.pll_data["offset"])
        merge(doc, *zip(edges[::2], edges[1::2]))
        for part in parts:
            if len(doc) and len(token := doc[part % len(doc)]) > 1:
                at = 1 + part % (len(token) - 1)
                split(doc, token.i, token.text[:at], token.text[at:])
        for token in doc:
            own = [score for offset, score in by_character if token.idx <= offset < token.idx + len(token)]
            assert token._.pll_pieces == len(own) and token._.pll == pytest.approx(sum(own), abs=1e-9)
            assert len([one for one in doc._.pll_data["token"] if one == token.i]) == len(own)
        assert values(doc, ["pll", "pll_pieces"]) == pytest.approx(before, abs=1e-9)

    check()


def test_merged_tokens_have_the_sums_of_their_parts(doc):
    before, whole, pieces = [values(token) for token in doc], values(doc), doc._.x_data
    merge(doc, (0, 4), (6, 8))
    parts = [before[0:4], before[4:5], before[5:6], before[6:8], *([one] for one in before[8:])]
    for token, own in zip(doc, parts, strict=True):
        assert values(token) == pytest.approx([sum(column) for column in zip(*own)])
    assert values(doc) == whole and {**doc._.x_data, "token": 0} == {**pieces, "token": 0}
    assert max(doc._.x_data["token"]) == len(doc) - 1
    assert all(type(value) is float for value in values(doc[0], NAMES[:3])) and type(doc[0]._.x_pieces) is int
    frame = to_dataframe(doc, attr="x")
    assert frame["x_word_l2r"].tolist() == [token._.x_word_l2r for token in doc]


def test_components_that_merge_may_stand_behind(make_nlp):
    nlp = make_nlp("bert")
    expected = nlp(TEXT)
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "X", "pattern": "the hooligans"}])
    nlp.add_pipe("merge_entities")
    for doc in nlp.pipe([TEXT] * 2, batch_size=1):
        [merged] = [token for token in doc if token.text == "the hooligans"]
        assert merged._.pll == pytest.approx(expected[merged.i : merged.i + 2]._.pll) and doc._.pll == expected._.pll
    spans = [doc[0:2], doc[1:5], doc[6:8]]
    merge(doc, *((span.start, span.end) for span in filter_spans(spans)))
    assert doc._.pll == expected._.pll


def test_parts_of_a_token_have_the_pieces_that_begin_in_them(make_nlp):
    doc = make_nlp("bert", keep_pieces=True)("The hooligans lost.")
    whole, pieces, word = doc[1]._.pll, doc[1:2]._.pll_data, doc[1].text
    second = pieces["start"][1] - doc[1].idx
    assert len(pieces["pieces"]) > 1 and second > 1
    split(doc, 1, word[:1], word[1:second], word[second:])
    assert doc[1]._.pll == doc[1:3]._.pll == pieces["scores"]["word_l2r"][0] and doc[1]._.pll_pieces == 1
    assert doc[2]._.pll == 0.0 and doc[2]._.pll_pieces == 0 and doc[2:3]._.pll is None
    assert doc[3]._.pll == pytest.approx(sum(pieces["scores"]["word_l2r"][1:]))
    assert doc[1:4]._.pll == pytest.approx(whole) and doc[1:4]._.pll_data["token"][0] == 1
    assert to_dataframe(doc)["pll_pieces"].sum() == doc._.pll_pieces


def test_a_span_has_its_own_pieces(doc):
    data, span = doc._.x_data, doc[1:3]
    own = [i for i, token in enumerate(data["token"]) if 1 <= token < 3]
    assert span._.x_data["pieces"] == [data["pieces"][i] for i in own]
    assert span._.x_data["token"] == [data["token"][i] for i in own]
    assert span._.x_data["scores"]["original"] == [data["scores"]["original"][i] for i in own]


def test_sums_in_json_are_read_behind_the_record_alone(doc):
    both = plain(doc.to_json(underscore=["x_data", "x", "x_pieces"]))
    again = Doc(doc.vocab).from_json(both)
    assert values(again) == values(doc)
    for wrong in (plain(doc.to_json(underscore=["x"])), {**both, "_": {**both["_"], "x": -1.0}}):
        with pytest.raises(ValueError, match="_.x cannot be set"):
            Doc(doc.vocab).from_json(wrong)


@pytest.mark.core
def test_only_records_can_be_set(attr):
    doc, other = scored(attr, ["original"]), Doc(VOCAB, words=["word"] * len(VALUES))
    other._.by_hand_data = doc._.by_hand_data
    assert [token._.by_hand for token in other] == [token._.by_hand for token in doc] and other._.by_hand == -5.75
    for value in (None, "text", {"by": "hand"}, {"scores": {}}):
        for tokens in (doc, doc[:2]):
            with pytest.raises(ValueError, match="_.by_hand_data cannot be set to .*, but only to what"):
                tokens._.by_hand_data = value
    assert doc._.by_hand == -5.75


@pytest.mark.core
def test_docs_that_version_1_scored_are_refused(attr):
    register(attr, ["original"])
    doc = Doc(VOCAB, words=["a", "b"])
    doc.user_data = {("._.", f"by_hand{name}", i, None): -1.0 for name in ("", "_pieces", "_original") for i in (0, 2)}
    for read in (lambda: doc._.by_hand, lambda: doc[0]._.by_hand, lambda: find_names([doc], attr)):
        with pytest.raises(ValueError, match="'a b ' .* version 1 .*Score it again"):
            read()
    again = Doc(VOCAB, words=["a", "b"], user_data=doc.user_data)
    set_values(again, attr, ["original"], [[-2.0], [-3.0]])
    assert again._.by_hand == -5.0 and len(again.user_data) == 1


@pytest.mark.core
def test_a_value_of_something_else_is_left_alone(attr):
    doc = scored(attr, ["original"])
    doc.user_data[("._.", "by_hand_data", None, None)] = "text"
    doc.user_data[("._.", "by_hand_data", 0, 4)] = {"by": "another"}
    assert doc._.by_hand == -5.75


def test_scoring_again_after_a_merge_leaves_nothing_of_before(make_nlp):
    nlp = make_nlp("bert", metrics=METRICS, attr="x", keep_pieces=True)
    doc = nlp(TEXT)
    merge(doc, (0, 4))
    merged = Doc(nlp.vocab, words=[token.text for token in doc], spaces=[bool(token.whitespace_) for token in doc])
    before = doc._.x
    assert nlp(doc).user_data == nlp(merged).user_data and doc._.x == merged._.x != before


def test_docs_that_were_made_with_the_same_user_data_have_scores_of_their_own(make_nlp):
    nlp, shared = make_nlp("bert", keep_pieces=True), {"source": "a corpus"}
    texts = [["The", "cats", "sleep", "."], ["A", "souvenir", "."]]
    expected = [nlp(Doc(nlp.vocab, words)) for words in texts]
    docs = list(nlp.pipe([Doc(nlp.vocab, words, user_data=shared) for words in texts]))
    for doc, other in zip(docs, expected):
        assert [token._.pll for token in doc] == pytest.approx([token._.pll for token in other], abs=1e-5)
        assert doc._.pll_data["ids"] == other._.pll_data["ids"] and doc.user_data["source"] == "a corpus"
    assert shared == {"source": "a corpus"}


@pytest.mark.core
def test_what_was_read_of_a_doc_does_not_keep_it(attr):
    """Also if its own values have spans of it."""
    doc = scored(attr, ["original"])
    joined = Doc.from_docs([doc, scored(attr, ["original"])])
    doc.user_data["spans"], joined.user_data["spans"] = [doc[:2]], [joined[:2]]
    assert doc._.by_hand == -5.75 and joined._.by_hand == -11.5
    seen = [weakref.ref(doc), weakref.ref(joined)]
    del doc, joined
    gc.collect()
    assert [one() for one in seen] == [None, None]


@pytest.mark.core
def test_what_was_read_is_read_anew_once_something_else_is_stored(attr):
    doc, other = scored(attr, ["original"]), scored(attr, ["original"], [[-7.0]] * 4)
    assert doc._.by_hand == -5.75
    doc.user_data = copy.copy(other.user_data)
    assert doc._.by_hand == -28.0
    doc.user_data = {}
    assert doc._.by_hand is None


def test_words_are_numbered_without_gaps(make_nlp):
    nlp = make_nlp(keep_pieces=True, targets="some")
    doc = nlp.make_doc("The souvenir that the traveler lost, he found.")
    doc.spans["some"] = [doc[1:2], doc[4:6]]
    data = nlp(doc)._.pll_data
    words = [data["token"].index(token) for token in data["token"]]  # each piece's word by its first piece
    assert data["word"] == [sorted(set(words)).index(word) for word in words] and data["word"][-1] == 2
    assert data["scored"] == [doc[1].idx, doc[2].idx, doc[4].idx, doc[6].idx]
    for text in ("", "   "):
        data = make_nlp(keep_pieces=True)(text)._.pll_data
        assert data["pieces"] == data["word"] == []


def test_words_and_windows(make_nlp):
    nlp = make_nlp("bert", keep_pieces=True, words="whitespace")
    model = nlp.get_pipe("pll").model
    model.loaded = replace(model.load(), max_length=20)
    texts = ["The hooligans can't lose the souvenir.", " ".join(SENTENCES)]
    short, long = (read_record(doc, "pll") for doc in nlp.pipe(texts))
    for record, text in zip((short, long), texts):
        words = [text[:start].count(" ") for start in record.start]
        assert list(record.word) == words
    assert set(short.window) == {0}
    assert long.window[0] == 0 and sorted(set(long.window)) == list(range(max(long.window) + 1))
    assert max(long.window) > 1


def test_each_span_has_words_and_windows_of_its_own(make_nlp):
    nlp = make_nlp("bert", keep_pieces=True, get_spans={"@span_getters": "spacy-pll.sent_spans.v1"})
    nlp.add_pipe("sentencizer", first=True)
    record = read_record(nlp("It sleeps. It sleeps."), "pll")
    n, word = len(record.ids) // 2, list(record.word)
    assert word[n:] == [one + word[n - 1] + 1 for one in word[:n]] and set(record.window) == {0}


def test_spans_in_any_order_have_their_pieces_in_the_order_of_the_text(make_nlp):
    @spacy.registry.misc("backwards.v1")
    def backwards():
        return lambda docs: [[doc[len(doc) // 2 :], doc[: len(doc) // 2]] for doc in docs]

    nlp = make_nlp("bert", keep_pieces=True, get_spans={"@misc": "backwards.v1"})
    data = nlp(TEXT)._.pll_data
    assert data["start"] == sorted(data["start"]) and data["token"] == sorted(data["token"])
