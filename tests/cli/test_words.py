import csv
import json

import pytest

from spacy_pll.files import file_digest

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
    with pytest.warns(UserWarning, match="1 of 5 rows .*'wort'"):
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


def test_what_a_table_depends_on_is_beside_it(tmp_path, model_folder):
    (tmp_path / "a.csv").write_text("item,word\n1,The\n1,cats\n2,She\n2,left\n2,.\n")
    how = ("--model", model_folder("bert"), "--no-log-frequency", "--by", "item", "--metrics", "left_context")
    said = run("words", tmp_path / "a.csv", tmp_path / "o.csv", *how, "--lags", "1").stderr
    assert "o.csv: 2 texts of 2 to 3 words." in " ".join(said.split())
    found = json.loads((tmp_path / "o.csv.manifest.json").read_text())
    assert found["input"] == {"rows": 5, "texts": 2, "digest": file_digest(tmp_path / "a.csv")}
    assert (found["model"], found["metrics"]) == (str(model_folder("bert")), ["left_context"])
    assert found["words"] == "rows"
    assert found["run"]["by"] == ["item"] and found["run"]["lags"] == 1 and found["run"]["delimiter"] is None
    run("score", tmp_path / "a.csv", tmp_path / "s.csv", "--column", "word", *how[:2])
    corpus = json.loads((tmp_path / "s.csv.manifest.json").read_text())
    assert {name for name in corpus if name not in found} <= {"score_columns", "unigrams"}
    assert found["weights"] == corpus["weights"] and found["versions"] == corpus["versions"]


def test_a_table_of_readers_in_turn_is_noticed(tmp_path, model_folder):
    words = "".join(f"{subj},1,{word}\n" for word in ("She", "left", ".") for subj in ("s1", "s2"))
    (tmp_path / "a.csv").write_text(f"subj,item,word\n{words}")
    how = ("--model", model_folder("bert"), "--no-log-frequency")
    with pytest.warns(UserWarning, match="Rows 1 and 2 are read as one text.*column 'subj'.* missing in `by`"):
        said = run("words", tmp_path / "a.csv", tmp_path / "o.csv", "--by", "item", *how).stderr
    assert "1 text of 6 words." in " ".join(said.split())
    (tmp_path / "a.csv").write_text("subj,item,word\ns1,1,She\n,,left\n")
    error = run("words", tmp_path / "a.csv", tmp_path / "p.csv", "--by", "item", *how, fails=True).unwrapped_stderr
    assert "Row 2: there is a word, and no value in the column 'item' of --by" in error


def test_means_by_region_and_condition(tmp_path, model_folder):
    texts = {("1", "a"): "The cat left", ("1", "b"): "A dog left", ("2", "a"): "The bird sat", ("2", "b"): "A cow sat"}
    rows = [(*text, i, word) for text, words in texts.items() for i, word in enumerate(words.split())]
    (tmp_path / "a.csv").write_text("item,kind,region,word\n" + "".join("{},{},{},{}\n".format(*row) for row in rows))
    how = ("--by", "item,kind", "--model", model_folder("bert"), "--no-log-frequency", "--base", "2")
    call = ("words", tmp_path / "a.csv", tmp_path / "o.csv", *how, "--plot", tmp_path / "p.svg")
    printed = run(*call, "--means", "region,kind").stdout.split("\n")
    with open(tmp_path / "o.csv", encoding="utf8") as file:
        scores = list(csv.DictReader(file))
    assert printed[1].split() == "mean surprisal_base2 (bits) (95 % interval) items word_l2r".split()
    assert printed[3] == "REGION X KIND"
    for line, (region, kind) in zip(printed[4:], [(i, kind) for i in "012" for kind in "ab"]):
        values = [float(row["surprisal_base2"]) for row in scores if (row["region"], row["kind"]) == (region, kind)]
        assert line.split()[:5] == [region, "x", kind, "2", f"{sum(values) / 2:.3f}"] and " to " in line
    picture = (tmp_path / "p.svg").read_text()
    assert "</svg>" in picture and "mean surprisal_base2 (word_l2r, bits)" in picture
    assert "Nothing was scored" in run(*call, "--means", "region,kind", "--resume").stderr
    error = run(*call, "--means", "regoin", "--force", fails=True).unwrapped_stderr
    assert "no column 'regoin'. The columns are: 'item', 'kind', 'region', 'word'. Similar: region." in error
    assert "Name their columns with --means" in run(*call, "--force", fails=True).unwrapped_stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "is under word_l2r: the model also sees the words after it. In research on reading,"),
        (["--metrics", "word_l2r"], ""),
        (["--metrics", "left_context"], ""),
    ],
)
def test_which_metric_the_surprisal_is_of_is_said_if_none_was_given(tmp_path, model_folder, given, said):
    (tmp_path / "a.csv").write_text("word\nThe\ncat\n")
    how = ("--model", model_folder("bert"), "--no-log-frequency", *given)
    found = " ".join(run("words", tmp_path / "a.csv", tmp_path / "o.csv", *how).stderr.split())
    assert said in found and ("The surprisal of a word" in found) is bool(said)


def test_a_pipeline_that_sees_the_words_before_alone(tmp_path, make_nlp):
    """Its metric is named, and no other."""
    make_nlp("bert", metrics=["left_context", "word_l2r"]).to_disk(tmp_path / "saved")
    (tmp_path / "a.csv").write_text("word\nThe\ncat\n")
    how = ("--model", tmp_path / "saved", "--no-log-frequency")
    found = " ".join(run("words", tmp_path / "a.csv", tmp_path / "o.csv", *how).stderr.split())
    assert "surprisal of a word is under left_context" in found
    assert "--metrics" not in found


def test_errors_are_messages(tmp_path):
    (tmp_path / "a.csv").write_text("w\nThe\n")
    error = run("words", tmp_path / "a.csv", tmp_path / "o.csv", fails=True).unwrapped_stderr
    assert "The columns are: 'w'. Name another with --word" in error
    assert "There is no file" in run("words", tmp_path / "b.csv", tmp_path / "o.csv", fails=True).unwrapped_stderr
    assert "must end in" in run("words", tmp_path / "a.csv", tmp_path / "o.txt", fails=True).unwrapped_stderr


@pytest.mark.parametrize("word", ["said", "猫は眠る", "two words"])
def test_a_table_of_words_given_to_score_is_noticed(tmp_path, model_folder, word, recwarn):
    (tmp_path / "a.csv").write_text("text,n\n" + f"{word},1\n" * 25)
    run("score", tmp_path / "a.csv", tmp_path / "o.csv", "--model", model_folder("bert"))
    said = [str(one.message) for one in recwarn if "one word each" in str(one.message)]
    assert len(said) == (word == "said") and all(text.startswith("25 of 25 texts") for text in said)
