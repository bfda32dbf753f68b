"""A text in its place is scored in the same way wherever it comes from."""

import csv
import json

import numpy as np
import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.lang.en import English
from spacy.language import Language
from spacy.tokens import Doc

from spacy_pll import Choice, InputError, Option, PLLError, choices, minimal_pairs, rescore, score, score_continuations
from spacy_pll.span_getters import TEXT_SPAN, named_spans
from spacy_pll.stream.contexts import check_places, doc_in_context, read_places, separated
from spacy_pll.stream.known import score_places
from spacy_pll.stream.workers import Work

from .. import reference
from ..cli.conftest import run
from ..conftest import score_placed, write_jsonl

KINDS = {"wordpiece": "bert", "byte-level": "roberta", "unigram": "xlm-roberta"}  # models by their tokenizers

PLACES = [
    ("the souvenir", "The traveler lost ", ", and she left."),
    ("It's over.", "", ""),
    (" $3.50 for it.", "Smith paid", ""),
    ("co-workers", "Dr. Smith's ", " left\nnow."),
    ("歩けば", "犬も", "棒"),
]


@pytest.fixture(scope="module")
def blank():
    return spacy.blank("en")


@pytest.mark.parametrize("text, before, after", PLACES)
def test_a_doc_has_all_characters_and_the_text_as_a_span(blank, text, before, after):
    doc = doc_in_context(blank, text, before, after)
    (span,) = named_spans(doc, TEXT_SPAN)
    assert doc.text == before + text + after and span.text == text
    assert [token.text for token in span] == [token.text for token in blank.make_doc(text)]
    assert not doc.has_annotation("SENT_START") or len(doc) == 1


def test_a_doc_keeps_its_tokens_and_stays_as_it_is(blank):
    text = Doc(blank.vocab, ["It", "'s over"], [False, False], sent_starts=[True, True])
    doc = doc_in_context(blank, text, "Yes. ")
    assert [token.text for token in doc.spans[TEXT_SPAN][0]] == ["It", "'s over"]
    assert [token.is_sent_start for token in doc.spans[TEXT_SPAN][0]] == [True, True] and not text.spans
    alone = doc_in_context(blank, text)
    assert named_spans(alone, TEXT_SPAN)[0].text == text.text and not text.spans


@pytest.mark.parametrize("text", ["cup", "a cup"])
def test_no_sentence_is_made_up(blank, text):
    """spaCy takes a doc of one token for a sentence."""
    for one in (text, blank(text)):
        assert not doc_in_context(blank, one, "She poured tea into her ", " of it").has_annotation("SENT_START")


@pytest.mark.parametrize(
    "before, text, expected",
    [("a", "b", "a b"), ("a ", "b", "a b"), ("a", " b", "a b"), ("", "b", "b"), ("a\n", "b", "a\nb")],
)
def test_a_separator(blank, before, text, expected):
    assert separated(before, text) + text == expected == separated(before, blank(text)) + text
    assert separated("犬も", "歩けば", "") == "犬も"


PARTS = st.lists(
    st.sampled_from(["a", "The", "cat", "s", "can't", "é", "東", "😀", ".", "-", " ", "  ", "\n", "\xa0", "\ufeff"]),
    max_size=4,
).map("".join)


@pytest.mark.filterwarnings(
    "ignore:.*wordpieces are unknown", "ignore:.* of .* tokens of the text", "ignore:Characters are"
)
@given(
    places=st.lists(st.tuples(PARTS, PARTS, PARTS), min_size=1, max_size=3), tokenizer=st.sampled_from(sorted(KINDS))
)
@example(places=[("b", "a ", ""), (" b", "a", " "), ("\n", "a", "b")], tokenizer="byte-level")
def test_a_check_and_the_scoring_have_the_same_pieces(make_nlp, places, tokenizer):
    """By the characters of a text in its place, and by the tokens of its doc."""
    scorer = make_nlp(KINDS[tokenizer], tokenizer, targets=TEXT_SPAN).get_pipe("pll")
    encoded, scored, _ = read_places(scorer.model.load(), places)
    read = scorer.predictor.tokenize([doc_in_context(English(), *one) for one in places])
    to_score = np.zeros(len(read.wordpieces), dtype=bool)  # a doc without a piece to score has no context
    to_score[read.contexts.piece] = read.contexts.to_score
    assert scored.tolist() == to_score.tolist()
    assert encoded.ids.tolist() == read.wordpieces.ids.tolist()
    for one, own in zip(places, encoded.pieces_of):
        if not one[1] and not one[2]:
            assert scored[own].all()  # also what is white space


@pytest.mark.parametrize("metric", ["word_l2r", "original"])
@pytest.mark.parametrize("architecture", ["bert", "roberta", "xlm-roberta"])
def test_the_text_alone_is_scored_and_all_is_read(make_nlp, model_folder, architecture, metric):
    tokenizer = {"bert": "wordpiece", "roberta": "byte-level", "xlm-roberta": "unigram"}[architecture]
    nlp = make_nlp(architecture, tokenizer, metrics=[metric])
    model = reference.load_model(nlp.get_pipe("pll").model.name)
    for n_process in (1, 2):
        docs = list(score_placed(nlp, PLACES[:4], Work(n_process=n_process)))
        for doc in docs:
            (text,) = named_spans(doc, TEXT_SPAN)
            values, tokens = reference.score(doc, *model, metric, "spacy")
            here = [value for value, token in zip(values, tokens) if text.start <= token < text.end]
            assert doc._.pll == pytest.approx(sum(here), abs=1e-4) and doc._.pll_pieces == len(here)


def test_every_surface_gives_the_same_score(make_nlp, model_folder, tmp_path):
    """An option, a candidate, a text of a table after its context, and that in the place of pairs of each."""
    nlp, before, text = make_nlp("bert", metrics=["original"]), "The hooligans paid", "souvenirs"
    expected = sum(token._.pll for token in nlp(f"{before} {text}")[3:])
    option = choices(nlp, [Choice([Option(text, before), Option("it", before)])]).scores["original"].sums[0]
    (candidate,) = score_continuations(nlp, before, [text])
    (table := tmp_path / "t.jsonl").write_text(json.dumps({"before": before, "text": text}))
    how = ("--model", model_folder("bert"), "--metrics", "original", "--table", "words", "--no-log-frequency")
    run("score", table, tmp_path / "o.csv", *how, "--context-column", "before")
    rows = list(csv.DictReader((tmp_path / "o.csv").open()))
    assert [option, candidate.score, float(rows[0]["pll_original"])] == pytest.approx([expected] * 3, abs=1e-4)


@pytest.mark.parametrize(
    ("row", "options", "whole"),
    [
        ({"a": "The", "text": "traveler", "b": "lost it."}, ["--context-column", "a", "--after-column", "b"], None),
        ({"text": "hooligans", "b": "paid."}, ["--after-column", "b"], "hooligans paid."),
        ({"text": "The *traveler* lost it."}, ["--marked"], None),
        ({"text": "*Souvenirs*, she said."}, ["--marked"], "Souvenirs, she said."),
        ({"text": "She lost *two souvenirs*."}, ["--marked"], "She lost two souvenirs."),
    ],
)
def test_a_text_with_something_on_both_sides(make_nlp, model_folder, tmp_path, row, options, whole):
    doc = make_nlp("bert", metrics=["original"])(whole or "The traveler lost it.")
    (table := tmp_path / "t.jsonl").write_text(json.dumps(row))
    how = ("--model", model_folder("bert"), "--metrics", "original", "--table", "words", "--no-log-frequency")
    run("score", table, tmp_path / "o.csv", *how, *options)
    rows = list(csv.DictReader((tmp_path / "o.csv").open()))
    scored = row["text"].split("*")[1] if "--marked" in options else row["text"]
    assert " ".join(one["text"] for one in rows) == scored
    begin = doc.text.index(scored)
    expected = doc.char_span(begin, begin + len(scored))._.pll
    assert sum(float(one["pll_original"]) for one in rows) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("text", ["The traveler.", "The *traveler.", "*The* *traveler*", "The ** traveler"])
def test_a_line_with_another_number_of_marked_texts(model_folder, tmp_path, text):
    (tmp_path / "t.txt").write_text(f"The *traveler* lost it.\n{text}\n")
    how = ("--model", model_folder("bert"), "--table", "words", "--no-log-frequency", "--marked")
    assert (
        "t.txt, line 2: in" in run("score", tmp_path / "t.txt", tmp_path / "o.csv", *how, fails=True).unwrapped_stderr
    )


@pytest.mark.parametrize("text", [" A souvenir.", "\n\tA souvenir.", "  $3.50"])
def test_white_space_before_an_option_does_not_depend_on_other_options(make_nlp, text):
    """Without a context it is read as any text is, whether others have one."""
    nlp = make_nlp("roberta")
    with pytest.warns(UserWarning, match="white space stands before one option"):
        alone = choices(nlp, [Choice([Option(text), Option("It.")])]).scores["word_l2r"].sums
        pair = minimal_pairs(nlp, [(text, "It.")]).scores["word_l2r"].sums
    beside = (
        choices(nlp, [Choice([Option(text), Option("It.", "  ")]), Choice([Option("a", "b"), Option("b", "a")])])
        .scores["word_l2r"]
        .sums[:2]
    )
    assert alone == pytest.approx(beside, abs=1e-5) and alone == pytest.approx(pair, abs=1e-5)
    assert alone[0] == pytest.approx(score([text], nlp)[0].score, abs=1e-5)
    ((hypothesis,),) = (one["hypotheses"] for one in rescore(nlp, [{"hypotheses": [{"text": text, "score": 0}]}], 1))
    assert hypothesis["pll"] == pytest.approx(alone[0], abs=1e-5)


def shares(nlp, before, text):
    """A text that shares a piece with what stands before it, without a space between them."""
    with pytest.raises(InputError, match="cannot be scored apart.*which begins before it"):
        check_places(nlp.get_pipe("pll"), [(text, before, "")])


def test_a_piece_that_reaches_over_the_border(make_nlp):
    nlp = make_nlp("bert", metrics=["original"])
    scorer, before, text = nlp.get_pipe("pll"), "The\ntrav", "eler lost it."
    assert "traveler" in scorer.model.load().tokenizer.encode("The traveler lost it.").tokens
    shares(nlp, before, text)
    check_places(scorer, [(text, before, "")], shared_pieces=True)
    with pytest.raises(InputError, match="'trav' after 'The ' before 'eler.' .* which begins there"):
        check_places(scorer, [("trav", "The ", "eler.")])
    # One that the text has no other than.
    with pytest.raises(InputError, match="has no wordpiece of its own"):
        check_places(scorer, [("eler", "The trav", "")], shared_pieces=True)
    expected = sum(token._.pll for token in nlp("The\ntraveler lost it.")[3:])
    assert score_places(nlp, [(text, before, "")])[text, before, ""].scores[0] == pytest.approx(expected, abs=1e-4)
    (found,) = score_continuations(nlp, before, [text], separator="", shared_pieces=True)
    assert found.score == pytest.approx(expected, abs=1e-4)
    (other,) = score_continuations(nlp, "The ", ["trav"], "eler.", separator="", shared_pieces=True)
    assert other.pieces == 1 and other.score == pytest.approx(nlp("The traveler.")[1]._.pll, abs=1e-4)


def test_sentences_by_themselves_have_no_context(make_nlp):
    nlp = make_nlp("bert", get_spans={"@span_getters": "spacy-pll.sent_spans.v1"})
    nlp.add_pipe("sentencizer", first=True)
    with pytest.raises(PLLError, match="reads each sentence alone.*Set `spans` to 'doc', or leave it out"):
        choices(nlp, [Choice([Option("It left.", "He ran."), Option("It ran.", "He ran.")])])
    assert choices(nlp, [Choice([Option("It left."), Option("It ran.")])])


@Language.component("merges_names")
def merges_names(doc):
    """As merge_entities does: neighbours with a capital are one token."""
    with doc.retokenize() as retokenizer:
        start = None
        for token in [*doc, None]:
            if token is not None and token.text[0].isupper():
                start = token.i if start is None else start
            elif start is not None:
                if (end := len(doc) if token is None else token.i) > start + 1:
                    retokenizer.merge(doc[start:end])
                start = None
    return doc


@pytest.mark.parametrize("n_process", [1, 2])
def test_tokens_that_are_merged_before_they_are_scored_do_not_move_the_text(make_nlp, n_process):
    """spaCy does not move the spans of a doc: other tokens were scored, or E035 was raised."""
    plain, merging = make_nlp("bert", metrics=["original"]), make_nlp("bert", metrics=["original"])
    merging.add_pipe("merges_names", first=True)
    places = [("it is not The Old House", "In New York City ", ""), (" San Jose", "They saw Los Angeles and", " then")]
    expected, found = (list(score_placed(nlp, places, Work(2, n_process))) for nlp in (plain, merging))
    for one, other in zip(expected, found, strict=True):
        [plain_span], [span] = named_spans(one, TEXT_SPAN), named_spans(other, TEXT_SPAN)
        assert len(other) < len(one) and span.text == plain_span.text
        assert span._.pll == pytest.approx(plain_span._.pll, abs=1e-5)
        assert other._.pll == pytest.approx(one._.pll, abs=1e-5)
    with pytest.raises(ValueError, match="merged tokens of the text 'York is'"):
        list(score_placed(merging, [("York is", "They saw New ", "")]))


@pytest.mark.parametrize("pipe", [False, True])
def test_targets_and_units_are_found_behind_merged_tokens(make_nlp, pipe):
    text, key = "In New York City it rains, and The Old House is dry.", "some"
    docs = []
    for merges in (False, True):
        nlp = make_nlp("bert", metrics=["original"], targets=key, units=key)
        if merges:
            nlp.add_pipe("merges_names", first=True)
        doc = nlp.make_doc(text)
        doc.spans[key] = [
            doc.char_span(text.index(part), text.index(part) + len(part), label=part) for part in ("rains", "is dry.")
        ]
        docs.append(*nlp.pipe([doc]) if pipe else [nlp(doc)])
    plain, merged = docs
    assert len(merged) < len(plain) and merged._.pll == pytest.approx(plain._.pll, abs=1e-5)
    assert [token.text for token in merged if token._.pll is not None] == ["rains", "is", "dry", "."]
    assert [(span.text, span.label_) for span in merged.spans[key]] == [("rains", "rains"), ("is dry.", "is dry.")]


@pytest.mark.parametrize("place", ["first", "last"])
def test_rows_of_words_are_those_of_the_text_where_tokens_are_merged(make_nlp, tmp_path, place):
    """Also behind the component: rows were those of other tokens, or E035 was raised."""
    rows = [
        {"b": "In New York City ", "text": "it is not The Old House."},
        {"b": "They saw Los Angeles.", "text": "I ran."},
    ]
    table, plain, merging = write_jsonl(tmp_path / "t.jsonl", *rows), make_nlp("bert"), make_nlp("bert")
    merging.add_pipe("merges_names", **{place: True})
    found = []
    for name, nlp in (("plain", plain), ("merging", merging)):
        nlp.to_disk(tmp_path / name)
        how = ("--model", tmp_path / name, "--table", "words", "--no-log-frequency", "--context-column", "b")
        run("score", table, out := tmp_path / f"{name}.jsonl", *how)
        found.append([json.loads(line) for line in out.read_text().splitlines()])
    texts = [[row["text"] for row in rows] for rows in found]
    assert texts == ["it is not The Old House. I ran.".split(), ["it", "is", "not", "The Old House.", "I", "ran."]]
    sums = [
        sum(row["pll_word_l2r"] for row in rows if row["text"] in ("I", "ran.", "it", "is", "not")) for rows in found
    ]
    assert sums[0] == pytest.approx(sums[1], abs=1e-4)


@pytest.mark.parametrize("n_process", [1, 2])
def test_a_text_of_a_table_that_shares_a_piece(make_nlp, model_folder, tmp_path, n_process):
    rows = [{"b": "The ", "text": "cat ran."}, {"b": "The trav", "text": "eler"}, {"b": "He.", "text": "It."}]
    table = write_jsonl(tmp_path / "t.jsonl", *rows)
    how = ("--model", model_folder("bert"), "--table", "words", "--no-log-frequency", "--context-column", "b")
    how += ("--n-process", n_process, "--separator", "")
    error = run("score", table, tmp_path / "o.jsonl", *how, fails=True).unwrapped_stderr
    assert "t.jsonl, line 2: the text cannot be scored apart" in error and "--shared-pieces" in error
    with pytest.warns(UserWarning, match="1 of 3 texts could not be scored"):
        run("score", table, tmp_path / "o.jsonl", *how, "--skip-errors")
    found = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert {row["doc"]: row["error"] is None for row in found} == {0: True, 1: False, 2: True}
    assert [row["pll_word_l2r"] is None for row in found] == [row["doc"] == 1 for row in found]
    run("score", table, tmp_path / "p.jsonl", *how, "--shared-pieces")
    assert {json.loads(line)["doc"] for line in (tmp_path / "p.jsonl").read_text().splitlines()} == {0, 1, 2}
