import csv
import json

from .conftest import run

TABLE = "sentence,label\nThe cats sleep.,1\nThe cats sleeps.,0\nShe saw herself.,1\nShe saw himself.,0\n"


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
