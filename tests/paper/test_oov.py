from collections import Counter

import pytest

from scripts.paper.data import lower_case_words, read_dataset
from scripts.paper.files import read_json
from scripts.paper.oov import load_tokenizer, split_share

from ..conftest import data_folder, get_tokenizer


def test_split_words_are_counted_by_occurrence():
    tokenizer = get_tokenizer("byte-level").backend_tokenizer
    words = Counter({"the": 3, "zzz": 1})
    # A byte-level tokenizer keeps " the" whole, and not "the".
    assert split_share(words, tokenizer) == 100 and split_share(words, tokenizer, " ") == 25


def test_the_command(command, tiny_assets, tmp_path, model_folder):
    names = f"builtin,{model_folder('roberta')}"
    command("oov", "--tokenizers", names, "--tokenizers", "builtin", "--assets", tiny_assets, "--results", tmp_path)
    table = read_json(tmp_path / "oov" / "oov.json")
    assert len(table) == 4 and all(0 <= row["split_alone_percent"] <= 100 for row in table)
    assert (tmp_path / "oov" / "oov.svg").read_text().startswith("<?xml") and (tmp_path / "oov" / "oov.csv").is_file()
    assert (tmp_path / "oov" / "oov.png").read_bytes().startswith(b"\x89PNG")


def test_tokenizers_that_are_not_at_hand_are_named(command, tiny_assets, tmp_path):
    arguments = ["--assets", tiny_assets, "--results", tmp_path]
    printed = command("oov", "--tokenizers", "builtin,no-such/tokenizer", *arguments)
    assert "Not counted: no-such/tokenizer" in printed
    assert "no-such/tokenizer" in read_json(tmp_path / "oov" / "contents.json")["about"]
    assert "None of these tokenizers" in command.fails("oov", "--tokenizers", "no-such/tokenizer", *arguments)


def test_packages_that_are_not_installed(command, tiny_assets, tmp_path, monkeypatch):
    monkeypatch.setattr("scripts.paper.output.find_spec", lambda name: None)
    message = command.fails("oov", "--tokenizers", "builtin", "--assets", tiny_assets, "--results", tmp_path)
    assert "need matplotlib, pandas, not installed here: pip install -c constraints.txt . --group project" in message
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("tokenizer", "dataset", "alone", "in_text"),
    [
        ("bert-base-cased", "eventsadapt", 19.6, 19.6),
        ("roberta-base", "eventsadapt", 40.3, 17.2),
        # Table 2 prints 8 and 25; the authors' own count of their sentences gives 8.14 and 25.1.
        ("bert-base-cased", "brown", 8.1, 8.1),
        ("roberta-base", "brown", 25.1, 6.8),
    ],
)
def test_table_2(tokenizer, dataset, alone, in_text):
    tokenizer = load_tokenizer(tokenizer, data_folder("tokenizers"))
    sentences = read_dataset(dataset, data_folder("data"))
    words = Counter(word for sentence in sentences for word in lower_case_words(sentence))
    assert split_share(words, tokenizer) == pytest.approx(alone, abs=0.051)
    assert split_share(words, tokenizer, " ") == pytest.approx(in_text, abs=0.051)
