import json
import zipfile

import pytest

from scripts.paper.data import (
    DATASETS,
    PHENOMENA,
    lower_case_words,
    read_blimp,
    read_brown,
    read_dataset,
    read_eventsadapt,
    read_librispeech,
)
from spacy_pll.corpus.readers import InputError

from ..conftest import data_folder
from .conftest import EVENTS, PAIRS


def test_the_sentences(tiny_assets):
    assert read_dataset("eventsadapt", tiny_assets) == EVENTS
    # The second one begins with no letter. Quotes and marks are written as they are in print.
    assert read_dataset("brown", tiny_assets) == ['The jury said "it is so", did n\'t??']


def test_words_as_the_paper_counts_them():
    assert lower_case_words("The King praised 3 well-known Cooks..") == ["the", "king", "praised", "cooks"]


def test_the_same_pairs_each_time(tiny_assets):
    pairs = read_blimp(tiny_assets / "blimp", 1)
    assert pairs == read_blimp(tiny_assets / "blimp", 1) and len(pairs) == 3
    assert {pair.phenomenon for pair in pairs} == {"S-V AGR", "ISLAND", "ANA. AGR"}
    assert {(pair.good, pair.bad) for pair in read_blimp(tiny_assets / "blimp", 9)} == {pair[:2] for pair in PAIRS}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('"ItemNum","Sentence"\n"1","A cat."\n"2","A dog.","more"\n', "line 3: 3 fields, where the header has 2"),
        ('"ItemNum","Sentence"\n"1","A cat."\n"2"," "\n', "line 3: 'Sentence' must hold text; it is ' '"),
        ('"ItemNum","Text"\n"1","A cat."\n', "line 2: 'Sentence' must hold text; it is None"),
        ('"ItemNum","Sentence"\n"1","A cat.\n', "line 2: unexpected end of data"),
        (b'"ItemNum","Sentence"\n"1","A c\xe4t."\n', "line 2: not valid UTF-8"),
    ],
)
def test_malformed_rows_of_eventsadapt(tmp_path, content, message):
    path = tmp_path / "events.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=f"events.csv, {message}"):
        read_eventsadapt(path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "line 2: not valid JSON"),
        ("[]", "line 2: a JSON list"),
        ({"sentence_good": "A.", "linguistics_term": "ellipsis"}, "line 2: 'sentence_bad' must hold text; it is None"),
        (
            {"sentence_good": "A.", "sentence_bad": "B.", "linguistics_term": "gossip"},
            "line 2: the phenomenon 'gossip'",
        ),
    ],
)
def test_malformed_rows_of_blimp(tmp_path, row, message):
    good = {"sentence_good": "A.", "sentence_bad": "B.", "linguistics_term": "ellipsis"}
    row = row if isinstance(row, str) else json.dumps(row)
    (tmp_path / "ellipsis_1.jsonl").write_text(f"{json.dumps(good)}\n{row}\n")
    with pytest.raises(InputError, match=f"ellipsis_1.jsonl, {message}"):
        read_blimp(tmp_path, 1)


def test_malformed_brown(tmp_path):
    with zipfile.ZipFile(tmp_path / "brown.zip", "w") as archive:
        archive.writestr("brown/ca01", "\n\nThe/at jury/nn said ./.\n")
    with pytest.raises(InputError, match="brown/ca01, line 3: 'said' is no word with a tag"):
        read_brown(tmp_path / "brown.zip")
    (tmp_path / "damaged.zip").write_bytes(b"PK")
    with pytest.raises(InputError, match="damaged.zip: not a zip archive"):
        read_brown(tmp_path / "damaged.zip")


def test_librispeech(tmp_path):
    path = tmp_path / "test-clean.am.json"
    path.write_text(json.dumps({"61-0": {"ref": "he was not an ILL man"}}))
    assert read_librispeech(path) == ["He was not an ill man."]
    path.write_text(json.dumps({"61-0": {"ref": "he"}, "61-1": {"hyp": "he"}}))
    with pytest.raises(InputError, match="test-clean.am.json, 61-1: 'ref' must hold text"):
        read_librispeech(path)
    with pytest.raises(InputError, match="optional: get it with `python -m spacy project assets --extra`"):
        read_dataset("librispeech", tmp_path)


def test_what_is_not_there(tmp_path):
    with pytest.raises(
        InputError, match="There is no .*SentenceSet.csv. Get it with: python -m spacy project run data"
    ):
        read_dataset("eventsadapt", tmp_path)
    with pytest.raises(InputError, match="There is no .jsonl file in"):
        read_blimp(tmp_path, 1)
    with pytest.raises(InputError, match="Unknown data set 'nonesuch'. Known ones: eventsadapt, brown, librispeech"):
        read_dataset("nonesuch", tmp_path)


def test_the_real_ones():
    folder = data_folder("data")
    assert {name: len(read_dataset(name, folder)) for name in DATASETS if name != "librispeech"} == {
        "eventsadapt": 1564,
        "brown": 26997,
    }
    pairs = read_blimp(folder / "blimp", 1)
    assert len(pairs) == 67 and {pair.phenomenon for pair in pairs} == set(PHENOMENA.values())
