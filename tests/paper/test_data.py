import json

import pytest

from scripts.paper.data import DATASETS, PHENOMENA, lower_case_words, read_blimp, read_dataset
from spacy_pll import InputError

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
    ("row", "message"),
    [
        ("{", ".jsonl, line 2: not valid JSON"),
        ("[]", ".jsonl, line 2: this is a JSON list"),
        ({"sentence_good": "A.", "linguistics_term": "ellipsis"}, ".jsonl, line 2: there is no column 'sentence_bad'"),
        (
            {"sentence_good": "A.", "sentence_bad": " ", "linguistics_term": "ellipsis"},
            ".jsonl, line 2: 'sentence_bad' is empty",
        ),
        ({"sentence_good": "A.", "sentence_bad": "B."}, "': the phenomenon '' is none of BLiMP's"),
        (
            {"sentence_good": "A.", "sentence_bad": "B.", "linguistics_term": "gossip"},
            "': the phenomenon 'gossip' is none of BLiMP's: anaphor_agreement",
        ),
    ],
)
def test_malformed_rows_of_blimp(tmp_path, row, message):
    good = {"sentence_good": "A.", "sentence_bad": "B.", "linguistics_term": "ellipsis"}
    row = row if isinstance(row, str) else json.dumps(row)
    (tmp_path / "ellipsis_1.jsonl").write_text(f"{json.dumps(good)}\n{row}\n")
    with pytest.raises(InputError, match=f"ellipsis_1{message}"):
        read_blimp(tmp_path, 1)


def test_what_is_not_there(tmp_path):
    with pytest.raises(
        InputError, match="There is no .*SentenceSet.csv. Get it with: python -m spacy project run data"
    ):
        read_dataset("eventsadapt", tmp_path)
    with pytest.raises(InputError, match="There is no .jsonl file in"):
        read_blimp(tmp_path, 1)
    with pytest.raises(InputError, match="optional: .*assets --extra`"):
        read_dataset("librispeech", tmp_path)
    with pytest.raises(InputError, match="Unknown data set 'nonesuch'. Known ones: eventsadapt, brown, librispeech"):
        read_dataset("nonesuch", tmp_path)


def test_the_real_ones():
    data = data_folder("data")
    assert {name: len(read_dataset(name, data)) for name in DATASETS if name != "librispeech"} == {
        "eventsadapt": 1564,
        "brown": 26997,
    }
    pairs = read_blimp(data / "blimp", 1)
    assert len(pairs) == 67 and {pair.phenomenon for pair in pairs} == set(PHENOMENA.values())
