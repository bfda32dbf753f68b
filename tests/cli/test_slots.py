import csv

import pytest

from spacy_pll import make_pipeline, slots

from .conftest import run

TABLE = "id,text,kind,right\n1,The ___ lost it.,x,traveler\n2,She lost the ____!,y,the souvenir\n"
WORDS = ["traveler", "the souvenir", "it", "hooligans"]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    return tmp_path / "t.csv"


def test_the_table_and_what_is_measured(path, tmp_path, model_folder):
    out, folder = tmp_path / "out.csv", model_folder("bert")
    options = ("--model", folder, "--candidates", ",".join(WORDS), "--gold", "right", "--by", "kind", "--keep", 1)
    result = run("slots", path, out, *options, "--hits", 2)
    rows = list(csv.DictReader(out.open()))
    texts = ["The ___ lost it.", "She lost the ____!"]
    expected = slots(make_pipeline(str(folder)), texts, WORDS, gold=["traveler", "the souvenir"], keep=1)
    assert [(row["id"], row["candidate"], row["rank"]) for row in rows] == [
        (str(i), one.text, str(one.rank)) for i, some in enumerate(expected, 1) for one in some
    ]
    assert [*rows[0]] == ["id", "text", "kind", "right", "candidate", "score", "pieces", "model_probability",
                          "probability", "rank", "is_gold"]  # fmt: skip
    assert float(rows[0]["score"]) == pytest.approx(expected[0][0].score, abs=1e-5)
    assert [row["is_gold"] for row in rows] == [str(one.is_gold).lower() for some in expected for one in some]
    assert "hits at 2" in result.stdout and "mean reciprocal rank" in result.stdout and "hits at 5" not in result.stdout
    run("slots", path, out, "--model", folder, "--candidates", "it", fails=True)
    run("slots", path, out, "--model", folder, "--candidates", "it", "--force")
    assert [*csv.DictReader(out.open())][0].keys() == rows[0].keys() - {"is_gold"}


def test_what_is_wrong_is_said_before_the_work(path, tmp_path, model_folder):
    out = tmp_path / "out.csv"
    for options, message in (
        ((), "Say what may stand in the gap: --candidates, --candidate-column or --vocabulary, or --top to search"),
        (("--candidates", "a", "--top", "3"), "Say what may stand in the gap"),
        (("--candidates", "a,b,a"), "Candidate 3: 'a' is there twice"),
        (("--candidates", "a", "--gap", "[M]"), "line 2: a text must have one gap, written '[M]'. It has 0"),
        (("--candidates", "a", "--gold", "right"), "line 2: 'traveler' is right, and is no candidate"),
        (("--candidates", "a", "--gold", "right", "--hits", "x"), "--hits must be whole numbers"),
        (("--candidates", "a", "--hits", "5"), "--hits and --by are for --gold"),
        (("--candidates", "traveler,the souvenir", "--gold", "right", "--by", "topic"), "no column 'topic'"),
        (("--candidates", "a", "--column", "kind"), "It has 0: 'x'"),
    ):
        assert message in run("slots", path, out, *options, fails=True).unwrapped_stderr
    (tmp_path / "rank.csv").write_text("text,rank\n___ b,1\n")
    clash = run("slots", tmp_path / "rank.csv", out, "--candidates", "a", fails=True).unwrapped_stderr
    assert "line 2 already has a column 'rank'" in clash
    assert not out.exists()


def test_a_vocabulary_with_unknown_words(path, tmp_path, model_folder):
    (tmp_path / "v.txt").write_text("traveler\nit\n☃\n")
    out = tmp_path / "out.tsv"
    with pytest.warns(UserWarning, match=r"1 candidate has a character .* '☃' \(.*t.csv, line 2, candidate 3\)"):
        run("slots", path, out, "--model", model_folder("bert"), "--vocabulary", tmp_path / "v.txt")
    rows = list(csv.DictReader(out.open(), delimiter="\t"))
    assert [(row["candidate"], row["rank"], row["score"]) for row in rows if row["candidate"] == "☃"] == [
        ("☃", "", "")
    ] * 2


def test_words_are_searched(path, tmp_path, model_folder):
    out, folder = tmp_path / "out.csv", model_folder("bert")
    result = run("slots", path, out, "--model", folder, "--top", 3, "--max-pieces", 2, "--gold", "right")
    expected = slots(make_pipeline(str(folder)), ["The ___ lost it.", "She lost the ____!"], top=3, max_pieces=2,
                     gold=["traveler", "the souvenir"])  # fmt: skip
    rows = list(csv.DictReader(out.open()))
    assert [row["candidate"] for row in rows] == [one.text for some in expected for one in some]
    assert "mean reciprocal rank" in result.stdout
