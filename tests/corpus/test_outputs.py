import json
import math

import pytest

from spacy_pll.corpus.outputs import check_output, csv_text, json_text, write_whole


def test_the_ending_says_which(tmp_path):
    endings = (".json", ".csv")
    assert check_output(None, endings, False) == []
    assert check_output(tmp_path / "a.csv", endings, False) == [tmp_path / "a.csv"]
    assert check_output(tmp_path / "a", endings, False) == [tmp_path / "a.json", tmp_path / "a.csv"]
    with pytest.raises(ValueError, match="ends in '.txt'. Give .json or .csv, or no ending for all of them"):
        check_output(tmp_path / "a.txt", endings, False)


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "a.txt"

    def lines():
        yield "first\n"
        assert not path.exists()
        yield "second\n"

    write_whole(path, lines())
    assert path.read_text() == "first\nsecond\n"

    def broken():
        yield "half"
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_whole(path, broken())
    assert path.read_text() == "first\nsecond\n" and [file.name for file in path.parent.iterdir()] == ["a.txt"]


def test_others_may_read_it(tmp_path):
    (tmp_path / "usual").touch()
    write_whole(tmp_path / "ours", ["text"])
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_json_has_no_infinity():
    assert json.loads(json_text({"a": [math.inf, 1.5], "b": {"c": math.nan}, "d": "é"})) == {
        "a": [None, 1.5],
        "b": {"c": None},
        "d": "é",
    }


def test_a_table_has_a_header():
    assert csv_text([{"a": 1, "b": "x,y"}, {"a": 2, "b": ""}]) == 'a,b\n1,"x,y"\n2,\n'
