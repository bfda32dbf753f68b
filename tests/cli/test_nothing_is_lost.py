"""No command writes to what it reads, or two outputs to one file: for each pair of its options and arguments."""

import os
from itertools import combinations, cycle, permutations
from pathlib import Path

import pytest

from .conftest import COMMANDS, parameters_of


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with files that must stay, a link to a folder of them, and another name of one of them."""
    for name in ("mine.csv", "folder/mine.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "twin.csv").hardlink_to(tmp_path / "mine.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(capsys, command, values):
    """What a command says that is given these values for its options and arguments; what else it needs is not there."""
    arguments, options = [], []
    for one in parameters_of(command):
        value = values.get(one.name, "none.json" if one.about.required else None)
        if value is not None:
            arguments += [value] if one.flag is None else []
            options += [one.flag, value] if one.flag else []
    with pytest.raises(SystemExit) as error:
        COMMANDS[command].main([*options, *arguments, "--force"], standalone_mode=False)
    assert error.value.code == 1
    return " ".join(capsys.readouterr().err.split())


def files(folder):
    return {path: path.read_text() for path in Path(folder).rglob("*") if path.is_file()}


def paths_of(command):
    """The names of what a command writes, of what it may read, and of which of these may be a folder."""
    parameters = parameters_of(command)
    # Values of some options are checked before any command runs.
    texts = [one for one in parameters if one.type is str and "|" not in (one.about.metavar or "")]
    return (
        [one.name for one in parameters if one.type is Path],
        [one.name for one in texts],
        [
            one.name
            for one in texts
            if one.flag is None or "folder" in one.about.help.replace("--output is a folder", "")
        ],
    )


WRITING = [command for command in COMMANDS if paths_of(command)[0]]


def test_the_commands_that_write():
    assert set(COMMANDS) - set(WRITING) == {"explore", "show", "lm-eval"}
    assert {"path", "model", "code", "fasta", "assays"} <= set(paths_of("variants")[1])
    assert {"unigrams", "code", "input_path"} <= set(paths_of("score")[1]) and "dev" in paths_of("rescore")[1]
    assert {"path", "model", "assays"} <= set(paths_of("variants")[2])


@pytest.mark.parametrize("command", WRITING)
def test_an_output_that_is_an_input_is_refused(command, place, capsys):
    outputs, inputs, _ = paths_of(command)
    same = [("mine.csv", name) for name in ("mine.csv", "folder/../mine.csv", "link/mine.csv", "twin.csv")]
    beside = [("o.csv.manifest.json", "o.csv"), ("o.csv.unfinished", "o.csv"), ("o.csv.parts/o.csv", "./o.csv")]
    for name in beside:
        Path(name[0]).parent.mkdir(exist_ok=True)
        Path(name[0]).write_text("precious")
    before = files(place)
    spellings = cycle([*same, *beside])
    for output in outputs:
        for name in inputs:
            read, written = next(spellings)
            said = refusal(capsys, command, {output: written, name: read})
            assert "is the input" in said or "would be lost" in said, (output, name, read, written)
    assert files(place) == before


@pytest.mark.parametrize("command", WRITING)
def test_an_output_in_a_folder_that_is_read_is_refused(command, place, capsys):
    outputs, _, folders = paths_of(command)
    Path("folder", "other.csv").symlink_to(place / "read elsewhere.csv")
    Path("read elsewhere.csv").write_text("precious")
    before, spellings = files(place), cycle(["folder/new.csv", "link/folder/a/new.csv", "read elsewhere.csv"])
    for output in outputs:
        for name in folders:
            assert "or lies in it" in refusal(capsys, command, {output: next(spellings), name: "folder"}), name
    assert files(place) == before


@pytest.mark.parametrize("setting", ["mine.csv", "builtin,code=mine.csv", "small=mine.csv,mask_margin=1"])
@pytest.mark.parametrize("command", ["agree", "margins", "pairs"])
def test_settings_of_a_scorer_name_inputs(command, setting, place, capsys):
    name = next(one.name for one in parameters_of(command) if one.name.startswith("scorer"))
    assert "is the input" in refusal(capsys, command, {name: setting, "output": "mine.csv"})


@pytest.mark.parametrize("command", [one for one in WRITING if len(paths_of(one)[0]) > 1])
def test_two_outputs_are_two_files(command, place, capsys):
    same = ["new.json", "./new.json", "link/new.json"]
    spellings = cycle(
        [*permutations(same, 2), ("mine.csv", "twin.csv"), ("n.csv", "n.csv.manifest.json"), ("n", "n/n")]
    )
    before = files(place)
    for _ in range(3):
        for pair in combinations(paths_of(command)[0], 2):
            said = refusal(capsys, command, dict(zip(pair, next(spellings))))
            assert "would both write" in said or "lies in the output" in said
    assert files(place) == before and not any(os.path.lexists(name) for name in ("new.json", "n"))
