"""The Doc, Span and Token attributes, without a model: the values are set by hand."""

import importlib.util
import math

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, Token

from spacy_pll.extensions import Names, find_names, install, select_columns

pytestmark = pytest.mark.core

nlp = spacy.blank("en")
VALUES = [(-1.5, 2), (-0.25, 1), (0.0, 0), (-4.0, 3)]


@pytest.fixture
def attr(unregistered):
    """The name of attributes that no other test has."""
    yield "by_hand"
    unregistered("by_hand")


def scored(names, values=VALUES):
    """A doc whose tokens have these scores and numbers of pieces, under each of the names' metrics."""
    install(names)
    doc = Doc(nlp.vocab, words=["word"] * len(values))
    for token, (score, pieces) in zip(doc, values):
        for name in (names.score, *names.metrics.values()):
            token._.set(name, score)
        token._.set(names.pieces, pieces)
    return doc


def test_names_of_the_default_attribute():
    one, two = Names("pll", ["word_l2r"]), Names("pll", ["word_l2r", "original"])
    expected = ["pll_entropy", "pll_first_choices", "pll_top1", "pll_rank", "pll_alternatives"]
    assert one.all == ["pll", "pll_pieces", "pppl", "pll_data", *expected]
    assert two.all == ["pll", "pll_word_l2r", "pll_original", "pll_pieces", "pppl", "pll_data", *expected]
    assert (one.columns, two.columns) == (
        {"pll": "pll"},
        {"word_l2r": "pll_word_l2r", "original": "pll_original"},
    )


def test_names_of_another_attribute():
    expected = ["x_entropy", "x_first_choices", "x_top1", "x_rank", "x_alternatives"]
    assert Names("x", []).all == ["x", "x_pieces", "x_pppl", "x_data", *expected]


@pytest.mark.parametrize(
    ("attr", "metrics"),
    [
        ("pll", ["pieces", "original"]),
        ("x", ["original", "pppl"]),
        ("x", ["data", "original"]),
        ("set", []),
        ("get", []),
        ("_obj", []),
        ("_doc", []),
        ("__class__", []),
        ("doc_extensions", []),
    ],
)
def test_names_that_would_have_two_meanings(attr, metrics):
    with pytest.raises(ValueError, match="two meanings.*Choose another `attr`"):
        Names(attr, metrics)


def test_sums_over_docs_and_spans(attr):
    doc = scored(Names(attr, []))
    assert doc._.by_hand == -5.75 and doc._.by_hand_pieces == 6
    assert doc[1:4]._.by_hand == -4.25 and doc[1:4]._.by_hand_pieces == 4
    assert doc._.by_hand_pppl == pytest.approx(math.exp(5.75 / 6))
    assert doc[1:4]._.by_hand_pppl == pytest.approx(math.exp(4.25 / 4))


def test_tokens_without_a_score(attr):
    doc = scored(Names(attr, []), [(None, None), *VALUES, (None, None)])
    assert doc._.by_hand == -5.75 and doc[:1]._.by_hand is None and doc[:2]._.by_hand == -1.5
    assert doc[:1]._.by_hand_pppl is None
    # A token with no piece was scored; it has no perplexity.
    assert doc[3:4]._.by_hand == 0.0 and doc[3:4]._.by_hand_pppl is None
    assert doc[0]._.by_hand is None


def test_a_perplexity_that_no_float_holds(attr):
    doc = scored(Names(attr, []), [(-1000.0, 1), (-1000.0, 1)])
    assert doc._.by_hand_pppl == math.inf


def test_sums_stay_true_when_docs_are_cut_joined_and_stored(attr):
    doc = scored(Names(attr, []))
    assert doc[1:].as_doc(copy_user_data=True)._.by_hand == doc[1:]._.by_hand == -4.25
    assert Doc.from_docs([doc, doc])._.by_hand == 2 * doc._.by_hand
    (stored,) = DocBin(docs=[doc], store_user_data=True).get_docs(nlp.vocab)
    assert [token._.by_hand for token in stored] == [token._.by_hand for token in doc]
    assert stored._.by_hand_pppl == doc._.by_hand_pppl


def test_installing_twice_is_no_conflict(attr):
    install(Names(attr, ["word_l2r", "original"]))
    install(Names(attr, ["word_l2r", "original"]))
    install(Names(attr, ["original"]))
    for cls in (Doc, Span, Token):
        assert cls.has_extension("by_hand_word_l2r")


def test_a_module_that_was_reloaded_is_no_other_package(attr):
    doc = scored(Names(attr, ["word_l2r", "original"]))
    # What importlib.reload does, but the other tests keep their module.
    spec = importlib.util.find_spec("spacy_pll.extensions")
    reloaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reloaded)
    reloaded.install(reloaded.Names(attr, ["word_l2r", "original"]))
    assert Token.get_extension("by_hand")[2].func is reloaded.token_value
    assert doc._.by_hand == -5.75


@pytest.mark.parametrize("cls", [Doc, Span, Token])
def test_an_attribute_of_another_package_is_left_alone(attr, cls):
    cls.set_extension("by_hand", method=len)
    with pytest.raises(ValueError, match=rf"{cls.__name__}._.by_hand is already registered.*\"attr\": \"my_by_hand\""):
        install(Names(attr, []))
    assert cls.get_extension("by_hand")[1] is len
    # All or nothing.
    assert not any(other.has_extension("by_hand_pieces") for other in (Doc, Span, Token))


def test_the_names_are_found_in_docs_of_a_pipeline_that_is_not_here(attr, unregistered):
    doc = scored(Names(attr, ["original", "word_l2r"]))
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    unregistered(attr)
    docs = list(DocBin().from_bytes(data).get_docs(nlp.vocab))
    assert not Doc.has_extension("by_hand")
    names = find_names(docs, attr)
    assert list(names.metrics) == ["original", "word_l2r"]
    assert docs[0]._.by_hand_original == -5.75 and docs[0][:2]._.by_hand_pieces == 3
    # A span's doc is looked at.
    assert find_names([docs[0][:1]], attr).all == names.all


def test_an_attribute_of_another_component_is_no_metric(attr, unregistered):
    """Such as one with `attr="by_hand_original"`, whether its pipeline is in this process or not."""
    doc = scored(Names(attr, ["word_l2r", "whole_word"]))
    doc.user_data |= scored(Names(f"{attr}_original", [])).user_data
    doc.user_data |= scored(Names(f"{attr}_sentence_l2r", [])).user_data
    for _ in range(2):
        assert list(find_names([doc], attr).metrics) == ["word_l2r", "whole_word"]
        assert find_names([doc], f"{attr}_original").columns == {f"{attr}_original": f"{attr}_original"}
        unregistered(attr)


def test_an_attribute_of_a_user_is_no_metric(attr):
    doc = scored(Names(attr, ["word_l2r", "whole_word"]))
    Token.set_extension(f"{attr}_original", default=None)
    doc[0]._.by_hand_original = "mine"
    assert list(find_names([doc], attr).metrics) == ["word_l2r", "whole_word"]


def test_docs_that_were_not_scored():
    with pytest.raises(ValueError, match=r"_\.nonesuch.*Score the docs first.*none"):
        find_names([nlp("No scores here.")], "nonesuch")
    assert find_names([]).score == "pll"


def test_the_columns_of_some_metrics():
    names = Names("pll", ["word_l2r", "original"])
    assert select_columns(names) == names.columns
    assert list(select_columns(names, ["original", "word_l2r"])) == ["original", "word_l2r"]
    assert select_columns(names, ["original"]) == {"original": "pll_original"}
    for missing in (["whole_word"], []):
        with pytest.raises(ValueError, match="Set `metrics` to some of these: word_l2r, original"):
            select_columns(names, missing)
