import json
import zipfile

import pytest

from scripts.paper.published_texts import (
    BROWN_PATH,
    EVENTSADAPT_PATH,
    brown_paragraphs,
    data_sets_folder,
    join_words,
    kauf_ivanova_sentences,
    read_brown,
    read_eventsadapt,
    read_librispeech,
)
from spacy_pll import InputError

from ..conftest import data_folder, get_tokenizer


def save_brown(path, **files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"brown/{name}", content)
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('"ItemNum","Sentence"\n"1","A cat."\n"2","A dog.","more"\n', "line 3: the row has 3 fields, but the header"),
        ('"ItemNum","Sentence"\n"1","A cat."\n"2"," "\n', "line 3: 'Sentence' must hold text; it is ' '"),
        ('"ItemNum","Text"\n"1","A cat."\n', "line 2: 'Sentence' must hold text; it is None"),
        ('"ItemNum","Sentence"\n"1","A cat.\n', "line 2: .*unexpected end of data"),
        (b'"ItemNum","Sentence"\n"1","A c\xe4t."\n', "line 2: not valid UTF-8"),
    ],
)
def test_malformed_rows_of_eventsadapt(tmp_path, content, message):
    path = tmp_path / "events.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=f"events.csv, {message}"):
        read_eventsadapt(path)


def test_brown_has_files_sentences_and_words(tmp_path):
    path = save_brown(tmp_path / "brown.zip", cb01="\n\n\tOne/cd half/nn 1/2/cd ./.\n", ca01="The/at end/nn\n\nNo/at\n")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("brown/README", "no text of the corpus")
    assert read_brown(path) == [[["The", "end"], ["No"]], [["One", "half", "1/2", "."]]]


def test_malformed_brown(tmp_path):
    path = save_brown(tmp_path / "brown.zip", ca01="\n\nThe/at jury/nn said ./.\n")
    with pytest.raises(InputError, match="brown/ca01, line 3: 'said'"):
        read_brown(path)
    with pytest.raises(InputError, match="holds no file of the Brown corpus"):
        read_brown(save_brown(tmp_path / "other.zip", README="no text of the corpus"))
    (tmp_path / "damaged.zip").write_bytes(b"PK")
    with pytest.raises(InputError, match="damaged.zip: not a zip archive"):
        read_brown(tmp_path / "damaged.zip")
    with pytest.raises(InputError, match="There is no file '.*nowhere.zip'"):
        read_brown(tmp_path / "nowhere.zip")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("He said , `` No ; it is so '' ?", 'He said, "No; it is so"?'),
        ("It ( the dog ) ran .", "It (the dog) ran."),
        # Marks at the edge of a word belong to the word.
        ("the `` locatin' '' of 'em in :35.3 ...", "the \"locatin'\" of 'em in :35.3 ..."),
    ],
)
def test_words_are_joined_as_they_are_printed(words, sentence):
    assert join_words(words.split()) == sentence


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("the jury said so today ;", "The jury said so today."),
        ("The jury said so .", None),  # four words
        ("The " + "jury " * 20 + ".", None),
        ("`` The jury said so today '' .", None),  # begins with no letter
        ("The jury `` said so today .", None),
        ("The jury paid 3 $ more today .", None),
    ],
)
def test_sentences_of_kauf_and_ivanova(words, sentence):
    assert kauf_ivanova_sentences([[words.split()]]) == ([sentence] if sentence else [])


def test_paragraphs_end_with_the_sentence_that_fills_them():
    tokenizer = get_tokenizer("wordpiece").backend_tokenizer
    files = [[[name], ["the", "."], ["the", "."]] for name in ("a", "b", "c", "d")]
    assert brown_paragraphs(files, 2, tokenizer, n_pieces=3) == ["a the.", "c the."]
    assert brown_paragraphs(files, 9, tokenizer, n_pieces=4) == [f"{name} the. the." for name in "abcd"]
    assert brown_paragraphs(files, 9, tokenizer, n_pieces=6) == []


def test_librispeech(tmp_path):
    path = tmp_path / "test-clean.am.json"
    path.write_text(json.dumps({"61-0": {"ref": "he was not an ILL man"}}))
    assert read_librispeech(path) == ["He was not an ill man."]
    for content, message in (
        (json.dumps({"61-0": {"ref": "he"}, "61-1": {"hyp": "he"}}), ", 61-1: 'ref' must hold text; it is None"),
        (json.dumps({"61-0": "he"}), ", 61-0: 'ref' must hold text"),
        ("[]", ": a JSON list, where an object is expected"),
        ("{", ": not valid JSON"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=f"test-clean.am.json{message}"):
            read_librispeech(path)


def test_the_folder_of_data_sets(tmp_path):
    assert data_sets_folder(tmp_path) == tmp_path
    (tmp_path / "data").mkdir()
    assert data_sets_folder(str(tmp_path)) == tmp_path / "data"


def test_the_published_files():
    files = read_brown(data_folder("data") / BROWN_PATH)
    assert len(files) == 500 and sum(map(len, files)) == 57340
    assert sum(len(sentence) for file in files for sentence in file) == 1161192
    assert len(read_eventsadapt(data_folder("data") / EVENTSADAPT_PATH)) == 1564
