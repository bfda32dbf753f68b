import csv

import pytest

from .conftest import run


def test_a_table_of_words(tmp_path, model_folder):
    (tmp_path / "a.csv").write_bytes(
        "nr;wort;satz\n1;Zwei;1\n2;Bären,;1\n3;NA;1\n4;dort;1\n5;Zwei;2\n".encode("latin-1")
    )
    how = (
        "--word",
        "wort",
        "--by",
        "satz",
        "--encoding",
        "latin-1",
        "--model",
        model_folder("bert"),
        "--no-log-frequency",
    )
    with pytest.warns(UserWarning, match="1 of 5 rows have no word in the column 'wort'"):
        run("words", tmp_path / "a.csv", tmp_path / "o.csv", *how, "--base", "2", "--lags", "1")
    with open(tmp_path / "o.csv", encoding="utf8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["nr"], row["wort"]) for row in rows] == [
        ("1", "Zwei"),
        ("2", "Bären,"),
        ("3", "NA"),
        ("4", "dort"),
        ("5", "Zwei"),
    ]
    assert [bool(row["surprisal_base2"]) for row in rows] == [True, True, False, True, True]
    assert rows[3]["surprisal_base2_lag1"] == rows[1]["surprisal_base2"] and not rows[4]["surprisal_base2_lag1"]
    run("words", tmp_path / "a.csv", tmp_path / "p.csv", *how, "--na-as-text")
    with open(tmp_path / "p.csv", encoding="utf8") as file:
        assert all(row["surprisal"] for row in csv.DictReader(file))


def test_errors_are_messages(tmp_path):
    (tmp_path / "a.csv").write_text("w\nThe\n")
    error = run("words", tmp_path / "a.csv", tmp_path / "o.csv", fails=True).unwrapped_stderr
    assert "Row 1: there is no column 'word'. The columns are: 'w'. Name another with --word" in error
    assert "There is no file" in run("words", tmp_path / "b.csv", tmp_path / "o.csv", fails=True).unwrapped_stderr
    assert "must end in" in run("words", tmp_path / "a.csv", tmp_path / "o.txt", fails=True).unwrapped_stderr


@pytest.mark.parametrize("word", ["said", "猫は眠る", "two words"])
def test_a_table_of_words_given_to_score_is_noticed(tmp_path, model_folder, word, recwarn):
    (tmp_path / "a.csv").write_text("text,n\n" + f"{word},1\n" * 25)
    run("score", tmp_path / "a.csv", tmp_path / "o.csv", "--model", model_folder("bert"))
    said = [str(one.message) for one in recwarn if "one word each" in str(one.message)]
    assert len(said) == (word == "said") and all(text.startswith("25 of 25 texts") for text in said)
