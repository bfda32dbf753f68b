"""Docs that were cut and joined have the values of their own characters, or an error says that these are not known."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin

from spacy_pll import to_dataframe
from spacy_pll.attributes.joined import piece_checks, text_crc
from spacy_pll.attributes.stored import record_of

from ..conftest import SENTENCES
from .conftest import VOCAB, scored

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def values(doc):
    """Of each token: the values, or "error". Whether white space without a piece was scored does not count: a record of
    a doc that was cut does not know it.
    """
    out = []
    for token in doc:
        try:
            found = token._.any, token._.any_pieces
            out.append((None, None) if token.is_space and not found[1] else found)
        except ValueError as error:
            assert "Values of other texts are among those of" in str(error)
            out.append("error")
    return out


def random_doc(draw, is_scored=True, share=1.0):
    """Words that no other doc has, of which a share was scored, and white space, which has no piece."""
    n = draw.randint(1, 8)
    words = ["".join(draw.choices(LETTERS, k=draw.randint(1, 9))) for _ in range(n)]
    words = [draw.choice([word, word, word, word, "\n", f"{word}."]) for word in words]
    spaces = [draw.random() < 0.8 for _ in words]
    if not is_scored:
        return Doc(VOCAB, words=words, spaces=spaces)
    pieces = [[] if word == "\n" else [draw.uniform(-9, 0) for _ in range(draw.randint(1, 3))] for word in words]
    return scored("any", ["original"], [own if draw.random() < share else None for own in pieces], words, spaces)


def cut(draw, doc):
    begin = draw.randrange(len(doc))
    return doc[begin : draw.randint(begin + 1, len(doc))].as_doc(copy_user_data=True)


def copied(draw, doc):
    """Lists in the place of tuples, and nothing that is known of the doc."""
    if draw.random() < 0.5:
        return doc
    return next(DocBin(docs=[doc], store_user_data=True).get_docs(VOCAB))


def joined_docs(draw, kinds):
    """Some docs, and what they are joined to. kinds: "whole", "cut" and "unscored"."""
    docs = list[Doc]()
    for kind in draw.choices(kinds, k=draw.randint(1, 4)):
        doc = random_doc(draw, kind != "unscored")
        docs.append(copied(draw, cut(draw, doc) if kind == "cut" else doc))
    return docs, copied(draw, Doc.from_docs(docs))


def compare(docs, joined):
    expected = [one for doc in docs for one in values(doc)]
    return Counter(
        "error" if found == "error" else "right" if found == right else "wrong"
        for found, right in zip(values(joined), expected, strict=True)
    )


pytestmark = pytest.mark.core
MANY = range(300)


@pytest.mark.parametrize("kinds", [["whole"], ["whole", "unscored"]])
def test_whole_docs_keep_all_values(kinds):
    for seed in MANY:
        docs, joined = joined_docs(random.Random(seed), kinds)
        assert set(compare(docs, joined)) == {"right"}
        sums = [doc._.any for doc in docs if doc._.any is not None]
        assert joined._.any == (pytest.approx(sum(sums)) if sums else None)
        parts = [joined[i : i + 2]._.any for i in range(0, len(joined), 2)]
        assert sum(filter(None, parts)) == pytest.approx(joined._.any or 0)


def test_docs_that_were_cut_have_their_own_values():
    for seed in MANY:
        draw = random.Random(seed)
        doc = random_doc(draw, share=0.8)
        expected = dict(zip([token.idx for token in doc], values(doc)))
        begin = draw.randrange(len(doc))
        end = draw.randint(begin + 1, len(doc))
        part = copied(draw, doc[begin:end].as_doc(copy_user_data=True))
        assert values(part) == [expected[token.idx] for token in doc[begin:end]]
        assert part._.any == doc[begin:end]._.any
        again = copied(draw, part[len(part) // 2 :].as_doc(copy_user_data=True))
        assert values(again) == values(part)[len(part) // 2 :]


def test_docs_that_were_cut_and_joined_have_their_own_values_or_an_error():
    counts = Counter[str]()
    for seed in MANY:
        counts += compare(*joined_docs(random.Random(seed), ["whole", "cut", "cut"]))
    assert not counts["wrong"] and counts["error"] < 0.1 * counts.total()


def test_beside_docs_that_were_not_scored_there_is_more_that_is_not_known():
    """One piece of 127 is taken for another one, where it is the only one between others that are known."""
    counts = Counter[str]()
    for seed in range(1000):
        counts += compare(*joined_docs(random.Random(seed), ["whole", "cut", "cut", "unscored"]))
    assert counts["wrong"] <= 2 and counts["right"] > 0.85 * counts.total()


def test_all_parts_of_a_doc_make_it_up_again():
    for seed in MANY:
        draw = random.Random(seed)
        doc = random_doc(draw)
        edges = sorted({0, *draw.choices(range(len(doc)), k=2), len(doc)})
        parts = [doc[a:b].as_doc(copy_user_data=True) for a, b in zip(edges, edges[1:])]
        joined = copied(draw, Doc.from_docs(parts, ensure_whitespace=False))
        assert joined.text == doc.text and values(joined) == values(doc) and joined._.any == doc._.any


def test_sentences_that_are_joined_without_others_have_their_own_values(make_nlp):
    """The full stop before a sentence is that of another one, at the same place."""
    nlp = make_nlp("bert", keep_pieces=True)
    doc, other = nlp("The cats sleep. I can't believe it. Nobody knows the souvenir."), nlp("A cat.")
    first, second, third = (doc[a:b].as_doc(copy_user_data=True) for a, b in ((0, 4), (4, 10), (10, 15)))
    for parts in ([first, third], [third, second], [first, other], [other, third], [first, second, third]):
        joined = Doc.from_docs(parts)
        assert [token._.pll for token in joined] == [token._.pll for part in parts for token in part]
        assert joined._.pll == pytest.approx(sum(part._.pll for part in parts))
        assert joined._.pll_data["pieces"] == [piece for part in parts for piece in part._.pll_data["pieces"]]


def test_docs_that_begin_and_end_at_the_same_places():
    """spaCy keeps one of their records."""
    names = ["one", "two"]
    docs = [
        scored("any", ["original"], [[-1.0], [-2.0], [-3.0], [-4.0]], [f"{name}{word}" for word in "abcd"])
        for name in names
    ]
    first, second = docs[0][:2].as_doc(copy_user_data=True), docs[1][2:].as_doc(copy_user_data=True)
    joined = Doc.from_docs([first, second])
    assert len(joined.user_data) == 1 and len(joined.text) == len(docs[0].text)
    assert [one == "error" or one for one in values(joined)][:2] == [True, True]
    assert values(joined)[2:] in ([(-3.0, 1), (-4.0, 1)], ["error", (-4.0, 1)])
    with pytest.raises(ValueError, match="Values of other texts are among .* score the joined doc again: nlp"):
        _ = joined._.any
    unscored = Doc(VOCAB, words=["xxxa", "xxxb"])
    assert values(Doc.from_docs([first, unscored])) == ["error"] * 4 or values(Doc.from_docs([first, unscored]))[0] == (
        -1.0,
        1,
    )


@example(text="a b", gaps=[0, 2])
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=12), gaps=st.lists(st.integers(0, 4), max_size=6)
)
def test_the_bits_of_a_piece_depend_on_its_characters_up_to_white_space_alone(text, gaps):
    begin = np.minimum(np.cumsum(gaps, dtype=np.int64), len(text))
    end = np.append(begin, len(text))[1:]
    found = piece_checks(text, begin, end)
    for one, a, b in zip(found.tolist(), begin.tolist(), end.tolist()):
        own = "" if text[a:b][:1].isspace() else "".join(text[a:b].split()[:1])
        assert piece_checks(f"x{own} y", np.array([1]), np.array([len(own) + 3])).tolist() == [one] and one < 128
    assert text_crc(text) == text_crc(text + "  \n")


def test_all_bits_are_as_likely_as_each_other():
    words = sorted({"".join(random.Random(i).choices(LETTERS, k=1 + i % 8)) for i in range(8000)})
    begin = np.cumsum([0, *map(len, words)])
    counts = np.bincount(piece_checks("".join(words), begin[:-1], begin[1:]), minlength=128)[1:]
    assert len(counts) == 127 and counts.max() < 1.6 * counts.mean() and counts.min() > 0.5 * counts.mean()


def test_the_record_of_a_joined_doc_has_what_all_have(make_nlp):
    nlp = make_nlp("bert", keep_pieces=True, distribution=True, alternatives=2, mask_margin=1)
    docs = [*nlp.pipe(SENTENCES[:3]), nlp.make_doc("Not scored.")]
    joined = Doc.from_docs(docs)
    data, parts = joined._.pll_data, [doc._.pll_data for doc in docs[:3]]
    for name in ("pieces", "ids", "rank", "entropy", "alternatives", "window"):
        assert [*map(str, data[name])] == [str(one) for part in parts for one in part[name]]
    assert [joined.text[a:b] for a, b in zip(data["start"], data["end"])] == [
        doc.text[a:b] for doc, part in zip(docs, parts) for a, b in zip(part["start"], part["end"])
    ]
    assert data["word"] == sorted(data["word"]) and len({*data["word"]}) == sum(max(part["word"]) + 1 for part in parts)
    assert data["mask_margin"] == 1 and joined[-1]._.pll is None and joined[-1]._.pll_pieces is None
    assert joined._.pll == pytest.approx(sum(doc._.pll for doc in docs[:3]))
    frame = to_dataframe(joined)
    assert frame["pll_word_l2r"].tolist()[: len(docs[0])] == [token._.pll for token in docs[0]]
    other = next(make_nlp("bert", distribution=True).pipe([nlp.make_doc(SENTENCES[1])]))
    without = Doc.from_docs([docs[0], other])
    assert "pieces" not in without._.pll_data and len(without._.pll_data["rank"]) == len(without._.pll_data["offset"])


def test_estimates_of_joined_texts(make_nlp):
    """Texts are independent of each other, but for equal ones, of which the same words are drawn."""
    nlp = make_nlp("bert", sample_words=0.5)
    one, two = nlp.pipe(SENTENCES[:2])
    joined, twice = Doc.from_docs([one, two]), Doc.from_docs([one, one])
    assert joined._.pll_estimate == pytest.approx(one._.pll_estimate + two._.pll_estimate)
    assert joined._.pll_error == pytest.approx((one._.pll_error**2 + two._.pll_error**2) ** 0.5)
    assert twice._.pll_estimate == pytest.approx(2 * one._.pll_estimate)
    assert twice._.pll_error == pytest.approx(2 * one._.pll_error)
    assert joined._.pll_all_pieces == one._.pll_all_pieces + two._.pll_all_pieces > joined._.pll_pieces
    halves = [one[a:b].as_doc(copy_user_data=True) for a, b in ((0, 3), (3, len(one)))]
    again = Doc.from_docs(halves)
    assert again._.pll_estimate == pytest.approx(one._.pll_estimate)
    assert again._.pll_error == pytest.approx(one._.pll_error)
    # What is joined can be kept as one record, and joined again.
    stored = Doc(nlp.vocab).from_json(joined.to_json(underscore=["pll_data"]))
    assert stored._.pll_error == joined._.pll_error
    assert Doc.from_docs([stored, one])._.pll_error == pytest.approx(
        (4 * one._.pll_error**2 + two._.pll_error**2) ** 0.5
    )


def test_many_docs_are_joined_once(monkeypatch):
    from spacy_pll.attributes import stored

    calls = []
    joins = stored.join_records
    monkeypatch.setattr(stored, "join_records", lambda *args: calls.append(1) or joins(*args))
    joined = Doc.from_docs([random_doc(random.Random(seed)) for seed in range(200)])
    assert [token._.any for token in joined] and joined._.any < 0 and record_of(joined, "any_data").offset
    assert calls == [1]
