"""Texts from arrays and data frames, and what is no text, wherever texts are given."""

from collections import UserList
from enum import Enum

import numpy as np
import pytest
import spacy

import spacy_pll
from spacy_pll import Choice, Option, Unigrams, get_scorer

from .conftest import SENTENCES


class Named(str, Enum):
    """A string that is shown by its name."""

    FIRST = SENTENCES[0]
    SECOND = SENTENCES[1]


@pytest.fixture(scope="module")
def nlp(model_folder):
    return spacy_pll.make_pipeline(str(model_folder("bert")), ["original"], keep_pieces=True)


def scored(nlp, texts):
    return [one.score for one in spacy_pll.score(texts, nlp)]


# From texts to numbers: everywhere a list of texts is given.
WAYS = {
    "score": scored,
    "score_docs": lambda nlp, texts: [doc._.pll for doc in spacy_pll.score_docs(nlp, texts, 2)],
    "perplexity": lambda nlp, texts: spacy_pll.perplexity(nlp, texts).pieces,
    "compare": lambda nlp, texts: spacy_pll.compare(nlp, *texts).difference,
    "log_probability_bounds": lambda nlp, texts: spacy_pll.log_probability_bounds(nlp, texts),
    "agree": lambda nlp, texts: spacy_pll.agree(nlp, nlp, texts).word.r,
    "compare_margins": lambda nlp, texts: spacy_pll.compare_margins(nlp, texts, [1]).comparisons[0].word.r,
    "score_continuations": lambda nlp, texts: [one.score for one in spacy_pll.score_continuations(nlp, "So:", texts)],
    "unigrams": lambda nlp, texts: Unigrams.count(get_scorer(nlp).model.load().tokenizer, texts).counts,
}  # fmt: skip
OF_ITEMS = {
    "minimal_pairs": lambda nlp, texts: [spacy_pll.minimal_pairs(nlp, [tuple(texts)]).scores["original"].sums[0]],
    "choices": lambda nlp, texts: list(
        spacy_pll.choices(nlp, [Choice([Option(one, one) for one in texts], 0)]).scores["original"].sums
    ),
}


@pytest.mark.parametrize("name", [*WAYS, *OF_ITEMS])
@pytest.mark.parametrize("make", [np.array, lambda texts: [Named(text) for text in texts]])
def test_strings_of_other_classes_are_scored_as_what_they_are(nlp, name, make):
    of = {**WAYS, **OF_ITEMS}[name]
    assert of(nlp, make(SENTENCES[:2])) == of(nlp, SENTENCES[:2])


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(
    ("wrong", "advice"), [(float("nan"), "Leave it out"), (b"bytes", "Decode it"), (None, "Leave it out"), (5, "Leave")]
)
def test_what_is_no_text_is_named_with_its_number(nlp, name, wrong, advice):
    with pytest.raises(ValueError, match=rf"(Text|Candidate) 2 is no text, but .*{type(wrong).__name__}.*{advice}"):
        WAYS[name](nlp, [SENTENCES[0], wrong])


class Table(UserList):
    """Has its columns as a data frame has them, of whatever package it is."""

    def __init__(self, columns):
        super().__init__(columns.values())
        self.columns, self.by_name = list(columns), columns

    def __getitem__(self, column):
        return self.by_name[column]


# Where texts are given that `WAYS` does not have, or not as one argument.
LISTS = {name: way for name, way in WAYS.items() if name != "compare"} | {
    "window_perplexities": lambda nlp, texts: spacy_pll.window_perplexities(nlp, texts, 1),
}
COLUMNS = {"number": [1, 2], "sentence": SENTENCES[:2]}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("kind", ["frame", "dict", "other"])
def test_a_table_is_not_scored_by_the_names_of_its_columns(nlp, name, kind):
    pd = pytest.importorskip("pandas")
    table = {"frame": pd.DataFrame, "dict": dict, "other": Table}[kind](COLUMNS)
    message = r"must be a list of texts\. It is a \w+ with the (columns|keys) .'number', 'sentence'"
    with pytest.raises(ValueError, match=message + r".*Give one (column, such as \w+\['sentence'\]|of its values)"):
        LISTS[name](nlp, table)
    LISTS[name](nlp, table["sentence"])


def test_texts_by_their_names_are_not_scored_by_these(nlp):
    with pytest.raises(ValueError, match=r"It is a dict with the keys .'a', 'b'.*or list\(texts.values\(\)\)"):
        scored(nlp, {"a": SENTENCES[0], "b": SENTENCES[1]})


@pytest.mark.parametrize("name", LISTS)
def test_one_text_is_no_list(nlp, name):
    if name != "score":
        with pytest.raises(ValueError, match="must be a list .*one text: 'A traveler.'"):
            LISTS[name](nlp, "A traveler.")


@pytest.mark.parametrize("name", LISTS)
def test_the_path_of_a_file_is_no_list(nlp, name, tmp_path):
    file = tmp_path / "sentences.csv"
    file.write_text("sentence\nA text.\n")
    for path in (file, str(file)) if name != "score" else (file,):
        with pytest.raises(ValueError, match="It is the path .*sentences.csv'.*Read its texts.*pll score FILE"):
            LISTS[name](nlp, path)


def test_a_text_that_is_the_name_of_a_file_is_scored_with_a_warning(nlp, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my sentences.csv").write_text("sentence\nA text.\n")
    (tmp_path / "texts").mkdir()
    for name in ("my sentences.csv", "./texts"):
        with pytest.warns(UserWarning, match="is the path of a file or folder.*`spacy-pll score FILE OUTPUT"):
            assert len(spacy_pll.score(name, nlp)) == 1
    for text in ("texts", "no file.csv", "my sentences.csv\n", "x" * 5000, "\0", ""):
        assert len(spacy_pll.score(text, nlp)) == 1  # without a warning


def test_items_name_their_number_too(nlp):
    with pytest.raises(ValueError, match=r"Pair 2 must be two texts.*nan"):
        spacy_pll.minimal_pairs(nlp, [SENTENCES[:2], (SENTENCES[0], float("nan"))])
    with pytest.raises(ValueError, match="Choice 1: text and context .*nan"):
        spacy_pll.choices(nlp, [Choice([Option("a"), Option(float("nan"))], 0)])
    with pytest.raises(ValueError, match="`prefix` is no text, but None"):
        spacy_pll.score_continuations(nlp, None, ["a"])


def test_a_data_frame(nlp):
    pd = pytest.importorskip("pandas")
    column = pd.Series([SENTENCES[0], None, SENTENCES[1]])
    assert scored(nlp, column.dropna()) == scored(nlp, SENTENCES[:2])
    with pytest.raises(ValueError, match=r"Text 2 \(index 1\) is no text, but (nan|None)"):
        scored(nlp, column)
    with pytest.raises(ValueError, match=r"Text 2 \(index 1\) is no text"):
        list(spacy_pll.score_docs(nlp, column, 1, show_progress=True))
    column.index = ["a", "b", "c"]
    for way in (scored, WAYS["agree"], WAYS["unigrams"]):
        with pytest.raises(ValueError, match=r"Text 2 \(index 'b'\) is no text, but (nan|None)"):
            way(nlp, column)


def test_docs_stay_docs(nlp):
    assert scored(nlp, [spacy.blank("en")(SENTENCES[0])]) == scored(nlp, SENTENCES[:1])


@pytest.mark.parametrize(
    "function",
    [
        lambda nlp, text: spacy_pll.score(["A text.", text], nlp),
        lambda nlp, text: spacy_pll.perplexity(nlp, ["A text.", text]),
        lambda nlp, text: spacy_pll.minimal_pairs(nlp, [("A text.", text)]),
        lambda nlp, text: spacy_pll.score_continuations(nlp, "He saw", [text, "it"]),
        lambda nlp, text: spacy_pll.score_continuations(nlp, text, ["it"]),
        lambda nlp, text: spacy_pll.log_probability_bounds(nlp, [(text, "He saw ", "")]),
    ],
)
def test_half_of_a_character_is_named_with_the_way_to_clean_it(make_nlp, function):
    with pytest.raises(ValueError, match=r"text has a lone surrogate, .*the \\ud83d cat.*'. Clean it: text.encode"):
        function(make_nlp("bert"), "the \ud83d cat")
