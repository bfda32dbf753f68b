import csv
import json

import pytest

from .conftest import run

TABLE = "sentence,label\nThe cats sleep.,1\nThe cats sleeps.,0\nShe saw herself.,1\nShe saw himself.,0\n"


@pytest.mark.filterwarnings("ignore:.*they are the same wordpieces")
def test_what_is_printed_and_written(tmp_path, model_folder):
    (tmp_path / "a.csv").write_text(TABLE)
    how = ("--reader", "acceptability", "--model", model_folder("bert"), "--metrics", "original,word_l2r")
    files = ("-o", tmp_path / "o.json", "--items", tmp_path / "o.csv")
    result = run("suite", tmp_path / "a.csv", *how, "--threshold", "-30", *files)
    lines = result.stdout.splitlines()
    assert lines[1].split()[-2:] == ["original", "word_l2r"] and "AUC" in lines[3] and "MCC above -30" in result.stdout
    written = json.loads((tmp_path / "o.json").read_text())
    assert written["settings"]["reader"] == "acceptability" and len(written["results"]) == 6
    with open(tmp_path / "o.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8 and rows[1]["sentence"] == "The cats sleeps." and rows[1]["acceptable"] == "false"
    values = {
        metric: [float(row["score"]) for row in rows if row["metric"] == metric] for metric in ("original", "word_l2r")
    }
    for one in written["results"]:
        if one["measure"] == "AUC":
            a, b, c, d = values[one["scorer"]]
            assert one["value"] == sum((good > bad) + (good == bad) / 2 for good in (a, c) for bad in (b, d)) / 4


def test_errors_are_messages(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    assert "There is no --reader 'x'" in run("suite", tmp_path / "a.csv", "--reader", "x", fails=True).unwrapped_stderr
    error = run("suite", tmp_path / "a.csv", "--reader", "stereoset", "--label", "l", fails=True).unwrapped_stderr
    assert "does not take what is given" in error and "label" in error
    error = run("suite", tmp_path / "a.csv", "--reader", "acceptability", "--label", "x", fails=True).unwrapped_stderr
    assert "line 2: there is no column 'x'" in error and "--label" in error


@pytest.mark.filterwarnings("ignore:.*they are the same wordpieces")
def test_the_other_columns_of_a_table_are_written(tmp_path, model_folder):
    """As those of pairs and choices; one that has the name of ours is refused before anything is scored."""
    folder, how = tmp_path / "in", ("--reader", "acceptability", "--model", model_folder("bert"))
    folder.mkdir()
    (folder / "a.csv").write_text("id,judgment,text,source\n7,1,The cats sleep.,own\n8,0,The cats sleeps.,\n")
    (folder / "b.csv").write_text("judgment,text,extra\n1,She saw herself.,x\n")
    run("suite", folder, *how, "--label", "judgment", "--items", tmp_path / "o.csv")
    with open(tmp_path / "o.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["sentence"] for row in rows] == ["The cats sleep.", "The cats sleeps.", "She saw herself."]
    assert [[row[name] for name in ("file", "id", "source", "extra")] for row in rows] == [
        ["a", "7", "own", ""],
        ["a", "8", "", ""],
        ["b", "", "", "x"],
    ]
    (folder / "b.csv").write_text("judgment,text,score\n1,She saw herself.,x\n")
    assert "AUC" in run("suite", folder, *how, "--label", "judgment").stdout
    error = run(
        "suite", folder, *how, "--label", "judgment", "--items", tmp_path / "p.csv", fails=True
    ).unwrapped_stderr
    assert "b.csv, line 2 already has a column 'score'" in error and "texts [" not in error


def test_means_of_surprisals_are_refused_first(tmp_path, model_folder):
    suite = {"meta": {"name": "n"}, "predictions": [{"formula": "(1;%a%) > -0.5"}]}
    region = {"region_number": 1, "content": "The cats"}
    suite["items"] = [{"item_number": 1, "conditions": [{"condition_name": "a", "regions": [region]}]}]
    (tmp_path / "a.json").write_text(json.dumps(suite))
    command = ("suite", tmp_path / "a.json", "--reader", "syntaxgym", "--model", model_folder("bert"))
    assert "1.000" in run(*command).stdout
    error = run(*command, "--per-piece", fails=True).unwrapped_stderr
    assert "Leave out --per-piece" in error and "texts [" not in error
