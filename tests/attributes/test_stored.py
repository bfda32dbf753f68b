"""Tokens that are merged or split after they were scored."""

import json

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Span, Token
from spacy.util import filter_spans

from spacy_pll import to_dataframe
from spacy_pll.attributes.names import Names
from spacy_pll.attributes.registration import install
from spacy_pll.attributes.stored import read_record
from spacy_pll.attributes.values import sums_by_token

from ..conftest import SENTENCES

TEXT = SENTENCES[1]
METRICS = ["word_l2r", "original"]
NAMES = ["x", "x_word_l2r", "x_original", "x_pieces"]


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


def total(parts):
    """The sums of the attributes of some tokens."""
    return [sum(column) for column in zip(*parts)]


def pieces_of(doc, names):
    record = read_record(doc, names.score)
    places = record.by_token()
    return [[record.pieces[i] for i in places[token.i]] for token in doc]


def test_merged_tokens_have_the_sums_of_their_parts(doc):
    before, whole, perplexity = [values(token) for token in doc], values(doc), doc._.x_pppl
    merge(doc, (0, 4), (6, 8))
    assert [values(token) for token in doc] == [
        total(before[0:4]), *before[4:6], total(before[6:8]), *before[8:]
    ]  # fmt: skip
    assert values(doc) == whole and doc._.x_pppl == perplexity
    assert values(doc[1:4]) == total([*before[4:6], total(before[6:8])])
    assert all(type(value) is float for value in values(doc[0], NAMES[:3])) and type(doc[0]._.x_pieces) is int


def test_what_reads_scores_is_right_after_a_merge(doc):
    names = Names("x", METRICS)
    before, record = pieces_of(doc, names), doc._.x_data
    merge(doc, (1, 4), (5, 7))
    expected = [before[0], sum(before[1:4], []), before[4], sum(before[5:7], []), *before[7:]]
    assert pieces_of(doc, names) == expected
    assert max(doc._.x_data["token"]) == len(doc) - 1
    assert {key: doc._.x_data[key] for key in record if key != "token"} == {
        key: record[key] for key in record if key != "token"
    }
    frame = to_dataframe(doc, attr="x")
    assert frame["x_pieces"].tolist() == list(map(len, expected))
    assert frame["x_word_l2r"].tolist() == [token._.x_word_l2r for token in doc]
    assert frame["x_original"].sum() == pytest.approx(doc._.x_original)


@pytest.mark.parametrize("copy", ["docbin", "bytes", "copy", "joined", "cut"])
def test_merged_tokens_are_kept_like_others(doc, copy):
    merge(doc, (0, 4))
    expected = [values(token) for token in doc]
    if copy == "docbin":
        [other] = DocBin(docs=[doc], store_user_data=True).get_docs(doc.vocab)
    elif copy == "bytes":
        other = Doc(doc.vocab).from_bytes(doc.to_bytes())
    elif copy == "copy":
        other = doc.copy()
    elif copy == "cut":
        other = doc[0:3].as_doc(copy_user_data=True)
        expected = expected[:3]
    else:
        doc._.x_data = None
        with pytest.warns(UserWarning, match="W101.*x_data"):  # spaCy leaves out what belongs to a whole doc
            other = Doc.from_docs([Doc(doc.vocab, words=["not", "scored", "."], spaces=[1, 0, 0]), doc, doc])
        expected = [[None] * 4] * 3 + expected * 2
    assert [values(token) for token in other] == expected
    if copy in ("docbin", "bytes", "copy"):
        # A DocBin makes tuples of lists.
        assert json.dumps(other._.x_data) == json.dumps(doc._.x_data) and other._.x_data["token"][:2] == [0, 0]


def test_cut_docs_that_are_joined_have_no_values_of_what_was_cut_away(make_nlp):
    """`Span.as_doc` copies all values of the doc, and they lie on the tokens of what is joined with it."""
    nlp = make_nlp("bert", metrics=METRICS, attr="x")
    doc, other = nlp("The cats sleep. I can't believe it. Nobody knows the souvenir."), nlp("A cat.")
    first, second, third = (doc[a:b].as_doc(copy_user_data=True) for a, b in ((0, 4), (4, 10), (10, 15)))
    for right in ([first, second, third], [doc, other, doc], [other, first], [third, other]):
        joined = Doc.from_docs(right)
        assert joined._.x == pytest.approx(sum(one._.x for one in right))
        assert [token._.x for token in joined] == [token._.x for one in right for token in one]
    for wrong in ([first, third], [third, second], [first, other], [other, third]):
        joined = Doc.from_docs(wrong)
        for read in (lambda joined: joined._.x, lambda joined: to_dataframe(joined, attr="x")):
            with pytest.raises(ValueError, match="Values of other texts are among .* score the joined doc again: nlp"):
                read(joined)
        again = nlp(joined)
        assert again._.x == pytest.approx(nlp(joined.text)._.x, abs=1e-5)
        merge(again, (0, 2), (2, 4))
        assert again._.x == pytest.approx(sum(token._.x for token in again))


def test_values_of_what_was_cut_away_in_the_place_of_others(make_nlp):
    """One for one: the tokens before the cut doc begin where those that were cut away began."""
    nlp = make_nlp("bert")
    doc, other = nlp("A dog. It ran."), nlp("A cat.")
    joined = Doc.from_docs([other, doc[3:5].as_doc(copy_user_data=True)])
    assert [token.idx for token in joined] == [token.idx for token in doc[:5]]
    with pytest.raises(ValueError, match="Values of other texts are among those of 'A cat. It ran'"):
        joined._.get("pll")


def test_components_that_merge_may_stand_behind(make_nlp):
    nlp = make_nlp("bert")
    expected = nlp(TEXT)
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "X", "pattern": "the hooligans"}])
    nlp.add_pipe("merge_entities")
    for doc in nlp.pipe([TEXT] * 2, batch_size=1):
        [merged] = [token for token in doc if token.text == "the hooligans"]
        assert merged._.pll == expected[merged.i : merged.i + 2]._.pll and doc._.pll == expected._.pll
    spans = [doc[0:2], doc[1:5], doc[6:8]]
    merge(doc, *((span.start, span.end) for span in filter_spans(spans)))
    assert doc._.pll == expected._.pll


def test_parts_are_refused_and_sums_are_right(make_nlp):
    doc = make_nlp("bert", keep_pieces=True)("The traveler lost.")
    before, rest = doc._.pll, (doc[0]._.pll, doc[2]._.pll)
    inner = doc[1]._.pll
    split(doc, 1, "trav", "el", "er")
    assert doc._.pll == before and doc[1:4]._.pll == inner and (doc[0]._.pll, doc[4]._.pll) == rest
    for part in (doc[1], doc[2], doc[3], doc[:2], doc[3:], doc[2:3]):
        with pytest.raises(ValueError, match="is a part of a token that was split after it was scored.*before `pll`"):
            part._.get("pll")
        with pytest.raises(ValueError, match="_.pll_pieces is not known"):
            part._.get("pll_pieces")
    with pytest.raises(ValueError, match="'trav' is a part"):
        to_dataframe(doc)
    merge(doc, (1, 4))
    assert doc[1]._.pll == inner
    split(doc, 1, "travel", "er")
    for token, value in zip(doc[1:3], (-1.0, -2.0)):
        token._.pll = value
    assert [token._.pll for token in doc[:3]] == [rest[0], -1.0, -2.0]


def test_one_reading_of_all_tokens_finds_what_each_has(doc):
    def found():
        return [sums_by_token(doc, name, "x_pieces") for name in NAMES]

    def expected():
        return [[doc[i : i + 1]._.get(name) for i in range(len(doc))] for name in NAMES]

    assert found() == expected()
    merge(doc, (0, 4), (6, 8))
    assert found() == expected()
    doc[1]._.x = None
    doc[2]._.x_original = 0.0
    assert found() == expected()
    split(doc, 0, doc[0].text[:3], doc[0].text[3:])
    with pytest.raises(ValueError, match="is a part of a token that was split after it was scored"):
        found()
    empty = Doc(doc.vocab)
    assert sums_by_token(empty, "x", "x_pieces") == []
    assert sums_by_token(Doc(doc.vocab, ["a", "b"]), "x", "x_pieces") == [None, None]


def test_a_record_of_something_else_is_left_alone(make_nlp):
    doc = make_nlp("bert", attr="my_own")("The traveler lost.")
    doc.user_data[("._.", "my_data", None, None)] = "text"
    doc._.my_own_data = {"by": "hand"}
    split(doc, 1, "travel", "er")
    assert doc._.my_own_data == {"by": "hand"}
    with pytest.raises(ValueError, match="'er' is a part of a token"):
        doc[2]._.get("my_own")


def test_parts_of_a_token_that_was_not_scored_are_not_scored_either(make_nlp):
    nlp = make_nlp("bert", targets="here")
    doc = nlp.make_doc("The traveler lost.")
    doc.spans["here"] = [doc[2:3]]
    doc = nlp(doc)
    split(doc, 1, "travel", "er")
    assert [token._.pll is None for token in doc] == [True, True, True, False, True]


def test_scoring_again_after_a_merge_leaves_nothing_of_before(make_nlp):
    nlp = make_nlp("bert", metrics=METRICS, attr="x", keep_pieces=True)
    doc = nlp(TEXT)
    merge(doc, (0, 4))
    merged = Doc(nlp.vocab, words=[token.text for token in doc], spaces=[bool(token.whitespace_) for token in doc])
    assert nlp(doc).user_data == nlp(merged).user_data


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
def test_values_set_by_hand(unregistered):
    install(Names("by_hand", []))
    doc = spacy.blank("en")("a souvenir's price")
    doc[1]._.by_hand = -3.0
    assert [token._.by_hand for token in doc] == [None, -3.0, None, None] and doc._.by_hand == -3.0
    doc[2]._.by_hand = -1.0
    merge(doc, (1, 3))
    assert doc[1]._.by_hand == -4.0
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2], attrs={"_": {"by_hand": -7.0}})
    assert [token._.by_hand for token in doc] == [-7.0, None] and doc._.by_hand == -7.0
    doc[0]._.by_hand = -8.0
    assert doc._.by_hand == -8.0
    unregistered("by_hand")


@pytest.mark.core
def test_an_attribute_registered_to_read_a_file_is_the_same(unregistered):
    for cls, name in ((Token, "read"), (Token, "read_pieces"), (Doc, "read_data")):
        cls.set_extension(name, default=None)
    install(Names("read", []))
    doc = spacy.blank("en")("one two")
    doc.user_data = {("._.", "read", 0, None): -1.5, ("._.", "read", 4, None): -0.5}
    merge(doc, (0, 2))
    assert doc[0]._.read == doc._.read == -2.0
    # Doc and Span values are computed, so this is not the same there.
    unregistered("read")
    Span.set_extension("read", default=None)
    with pytest.raises(ValueError, match="Span._.read is already registered"):
        install(Names("read", []))
    unregistered("read")


WORDS = ["a", "bb", "cc.", "字", "  ", "👩‍👩‍👧"]


@st.composite
def documents(draw):
    """Words, spaces, scores, and where to merge."""
    n = draw(st.integers(1, 12))
    words = draw(st.lists(st.sampled_from(WORDS), min_size=n, max_size=n))
    spaces = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    scores = draw(st.lists(st.one_of(st.none(), st.floats(-50, 0)), min_size=n, max_size=n))
    borders = sorted(draw(st.sets(st.integers(0, n), max_size=n)))
    return words, spaces, scores, list(zip(borders[:-1], borders[1:]))


@pytest.mark.core
@given(documents())
def test_any_merges_keep_the_total(document):
    words, spaces, scores, ranges = document
    install(Names("any", []))
    doc = Doc(spacy.blank("en").vocab, words=words, spaces=spaces)
    for token, score in zip(doc, scores):
        token._.any = score
    assert [token._.any for token in doc] == scores
    whole = doc._.any
    spans = [doc[start:end]._.any for start, end in ranges]
    starts = [doc[start].idx for start, _ in ranges]
    others = {t.idx: t._.any for t in doc if not any(start <= t.i < end for start, end in ranges)}
    merge(doc, *(r for r in ranges if r[1] - r[0] > 1))
    assert doc._.any == whole
    assert {token.idx: token._.any for token in doc} == {**dict(zip(starts, spans)), **others}
    [read] = DocBin(docs=[doc], store_user_data=True).get_docs(doc.vocab)
    assert read._.any == whole and [token._.any for token in read] == [token._.any for token in doc]


@pytest.mark.core
@given(documents(), st.data())
def test_any_split_keeps_the_total_or_is_refused(document, data):
    words, spaces, scores, _ = document
    install(Names("any", []))
    doc = Doc(spacy.blank("en").vocab, words=words, spaces=spaces)
    for token, score in zip(doc, scores):
        token._.any = score
    whole = doc._.any
    i = data.draw(st.integers(0, len(doc) - 1))
    if len(doc[i]) == 1 or doc[i].is_space:
        return
    split(doc, i, doc[i].text[:1], doc[i].text[1:])
    assert doc._.any == whole and doc[i : i + 2]._.any == scores[i]
    assert [token._.any for token in doc if token.i not in (i, i + 1)] == scores[:i] + scores[i + 1 :]
    for part in (doc[i], doc[i + 1], doc[: i + 1], doc[i + 1 :]):
        if scores[i] is None:
            part._.get("any")
        else:
            with pytest.raises(ValueError, match="was split"):
                part._.get("any")


def test_json_has_what_is_stored(doc):
    """spaCy writes what is stored, by the tokens that were scored, and the sum of the doc."""
    whole = doc._.x
    merge(doc, (0, 4))
    as_json = json.loads(json.dumps(doc.to_json(underscore=["x"])))
    assert as_json["_"]["x"] == whole == pytest.approx(sum(e["value"] for e in as_json["underscore_token"]["x"]))
