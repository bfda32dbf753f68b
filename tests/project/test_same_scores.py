"""The script that compares the scores of two versions."""

import sys

import numpy as np
import pytest

from scripts.checks import command_outputs, same_scores
from scripts.checks.same_scores import differences

VALUES = ((-1.5, 3), (-1.500003, 3))


@pytest.fixture
def run(monkeypatch):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["same_scores.py", *map(str, arguments)])
        same_scores.main()

    return run


@pytest.mark.slow
def test_a_version_equals_itself_and_a_changed_score_is_found(tmp_path, run, capsys, monkeypatch):
    few = {name: same_scores.SETTINGS[name] for name in ("spacy", "units, margin", "windows", "expected")}
    few["windows"] = {**few["windows"], "model": {"name": "builtin", "tokenizer_config": {"model_max_length": 40}}}
    monkeypatch.setattr(same_scores, "SETTINGS", few)
    monkeypatch.setattr(same_scores, "LONG", 400)
    every = command_outputs.COMMANDS.strip().splitlines()
    monkeypatch.setattr(command_outputs, "COMMANDS", "\n".join(every[:: len(every) // 8]))
    texts, before, after = (tmp_path / name for name in ("texts.txt", "before.npz", "after.npz"))
    texts.write_text("The cats sleep.\n\nThe souvenir.\n", encoding="utf8")
    run(texts, before)
    with np.load(before) as file:
        scores = dict(file)
    assert scores["spacy: scores"].shape[0] == 6 and len(scores) >= 4 * 9
    with pytest.raises(SystemExit) as end:
        run(texts, after, "--against", before)
    assert end.value.code == 0 and "wordpieces and outputs of commands are equal." in capsys.readouterr().out
    np.savez(before, **{**scores, "spacy: scores": np.nextafter(scores["spacy: scores"], 0)})
    monkeypatch.setattr(same_scores, "snapshot", lambda texts: scores)  # as was seen
    with pytest.raises(SystemExit) as end:
        run(texts, after, "--against", before)
    assert end.value.code == 1 and "spacy: scores: " in capsys.readouterr().out


def test_what_differs():
    a, b = {"x": np.array([1.0, np.nan]), "y": np.array("m")}, {"x": np.array([1.0, np.nan]), "y": np.array("n")}
    assert differences(a, a) == []
    assert differences(a, b) == ["y: 1 of 1 differ"]
    assert differences(a, {"x": np.zeros(3)}) == ["x: shape (2,), then (3,)", "y: only before"]


def test_a_command_that_writes_another_number_or_text():
    before, after = ({"command: a > o.csv": np.array(f"text,pll,n\nA cat.,{value},{n}")} for value, n in VALUES)
    assert differences(before, before) == []
    assert differences(before, after) == ["command: a > o.csv: 1 of 1 differ, by up to 3e-06"]
    assert differences(before, after, tolerance=1e-5) == []
    more = {"command: a > o.csv": np.array("text,pll,n\nA cat.,-1.5,4")}
    assert differences(before, more, tolerance=1e-5) == [
        "command: a > o.csv: 'text,pll,n\\nA cat.,#,3', then 'text,pll,n\\nA cat.,#,4'"
    ]


def test_what_only_one_version_records_is_no_difference():
    before = {"spacy: wordpieces' ids": np.array("m")}
    after = {**before, "spacy: wordpieces' word": np.array("n")}
    assert differences(before, after) == differences(after, before) == []
    after["spacy: wordpieces' ids"] = np.array("n")
    assert differences(before, after) == ["spacy: wordpieces' ids: 1 of 1 differ"]
