import pytest

from spacy_pll.errors import InputError
from spacy_pll.evaluation.items import Pair, levels
from spacy_pll.evaluation.readers import read_pairs


def test_columns_that_may_be_missing(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "own.csv").write_text("good,bad,id\nA cat.,A cats.,7\n")
    (tmp_path / "theirs.jsonl").write_text('{"sentence_good": "A.", "sentence_bad": "B.", "UID": "u"}\n')
    pairs = read_pairs(str(tmp_path))
    assert pairs == [
        Pair("A cat.", "A cats.", {"file": "part/own", "id": "7"}),
        Pair("A.", "B.", {"file": "theirs", "UID": "u"}),
    ]
    assert list(levels(pairs)) == [(), ("file",)]
    with pytest.raises(InputError, match="Pair 1 has no column 'UID'. Its columns are: 'file', 'id'"):
        levels(pairs, ["UID"])


def test_files_without_a_header(tmp_path):
    (tmp_path / "pairs.tsv").write_text("1\tA cat.\tA cats.\tshort\n2\tA dog.\tA dogs.\tshort\n")
    pairs = read_pairs(str(tmp_path / "pairs.tsv"), header=["id", "good", "bad", "kind"])
    assert pairs[0] == Pair("A cat.", "A cats.", {"id": "1", "kind": "short"}) and len(pairs) == 2
    with pytest.raises(InputError, match="line 1: the row has 4 fields, but `header` names 2"):
        read_pairs(str(tmp_path / "pairs.tsv"), header=["good", "bad"])
    with pytest.raises(InputError, match="or, if the file has no header, name its columns with `header`"):
        read_pairs(str(tmp_path / "pairs.tsv"))


def test_a_header_is_no_pair(tmp_path):
    (tmp_path / "pairs.tsv").write_text("good\tbad\tkind\nA cat.\tA cats.\tshort\n")
    with pytest.raises(InputError, match="line 1: the file has a header, with the names in `header`. Leave it out"):
        read_pairs(str(tmp_path / "pairs.tsv"), header=["good", "bad", "kind"])
