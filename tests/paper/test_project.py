"""project.yml: what it names is there, and `spacy project run all` runs, skips, and stops as it should."""

import argparse
import hashlib
import multiprocessing
import re
import runpy
import shlex
import shutil
import sys
from importlib import import_module
from pathlib import Path

import pytest
import srsly
from spacy.cli._util import app
from typer.testing import CliRunner
from weasel.cli.document import project_document
from weasel.util import load_project_config
from weasel.util.hashing import get_checksum

from scripts.paper.assets import read_sums

from ..conftest import data_folder

ROOT = Path(__file__).parents[2]
# Weasel makes these folders as well, and fails if another process makes one at the same moment.
for folder in srsly.read_yaml(ROOT / "project.yml")["directories"]:
    (ROOT / folder).mkdir(exist_ok=True)
CONFIG = load_project_config(ROOT)
COMMANDS = {command["name"]: command for command in CONFIG["commands"]}


def test_everything_named_is_there():
    made = {path for command in COMMANDS.values() for path in command.get("outputs", [])}
    # Extra assets, and their folders. The command "data" does not make them.
    extra = {path for a in CONFIG["assets"] if a.get("extra") for path in (a["dest"], a["dest"].rpartition("/")[0])}
    for command in COMMANDS.values():
        for path in command.get("deps", []):
            assert path in made | extra or (ROOT / path).exists(), (command["name"], path)
    for workflow, names in CONFIG["workflows"].items():
        assert set(names) <= set(COMMANDS), workflow
        if workflow in ("all", "paper"):
            ready = set()
            for name in names:
                needed = {path for path in COMMANDS[name].get("deps", []) if path in made}
                assert needed <= ready, (workflow, name)
                ready |= set(COMMANDS[name].get("outputs", []))


# A command of typer has a test of its own (tests/tuning/test_tune.py), and this one takes two folders.
OTHERS = ("scripts.tuning.tune", "scripts.builtin.data")
LINES = [
    line
    for command in CONFIG["commands"]
    for line in command["script"]
    if line.startswith("python -m scripts.") and line.split()[2] not in OTHERS
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split()[2])
def test_commands_pass_options_that_the_modules_take(line, monkeypatch):
    python, flag, module, *arguments = shlex.split(line)
    module = import_module(module)
    seen = []

    class Stop(Exception):
        pass

    def parse(parser, given=None):
        seen.append(original(parser, arguments))
        raise Stop

    original = argparse.ArgumentParser.parse_args
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    with pytest.raises(Stop):
        module.main()
    assert seen


@pytest.mark.parametrize(
    ("variable", "overrides", "data"),
    [(None, {}, ""), ("/here", {}, "/here"), ("/here", {"vars.data": "there"}, "there")],
)
def test_where_the_data_is(monkeypatch, variable, overrides, data):
    monkeypatch.delenv("SPACY_PLL_DATA", raising=False)
    if variable:
        monkeypatch.setenv("SPACY_PLL_DATA", variable)
    scripts = {c["name"]: " ".join(c["script"]) for c in load_project_config(ROOT, overrides=overrides)["commands"]}
    assert scripts["data"].endswith(f'--local "{data}"')
    assert f'--tokenizer-folder "{data}/tokenizers"' in scripts["oov"]
    assert f'scripts.builtin.train "{data}/corpus"' in scripts["train-builtin"]


def test_the_assets_have_sums():
    sums = read_sums()
    for asset in CONFIG["assets"]:
        assert asset.get("extra") or asset["checksum"]
        assert asset.get("extra") or any(f"assets/{name}".startswith(asset["dest"]) for name in sums)


def test_the_assets_checksums_are_those_of_the_data_sets():
    for asset in CONFIG["assets"]:
        local = data_folder("data") / asset["dest"].removeprefix("assets/")
        assert asset.get("extra") or asset["checksum"] == get_checksum(local)


def test_the_page_about_it_has_all_assets(tmp_path):
    project_document(ROOT, tmp_path / "project.md", no_emoji=True)
    _, _, table = (tmp_path / "project.md").read_text().partition("| File | Source |")
    table = f"{table.partition('<!--')[0].strip()}\n".replace("| --- | --- | --- |", "| -- | -- | -- |")  # mdformat's
    assert table in (ROOT / "docs" / "project.md").read_text()


@pytest.fixture
def project(tmp_path, tiny_assets, model_folder, monkeypatch, capfd):
    """A project folder with this repository's code, the tiny data sets in `local`, and their sums."""
    for name in ("spacy_pll", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "project.yml", tmp_path)
    shutil.copytree(tiny_assets, tmp_path / "local")
    files = [path for path in sorted((tmp_path / "local").rglob("*")) if path.is_file()]
    lines = [f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.relative_to(tmp_path / 'local')}\n" for f in files]
    (tmp_path / "scripts" / "paper" / "assets.sha256").write_text("".join(lines))

    def run(*names, fails=False):
        variables = ["--vars.data", "local", "--vars.model", str(model_folder("bert")), "--vars.tokenizers", "builtin"]
        done = CliRunner().invoke(app, ["project", "run", *names, str(tmp_path), *variables])
        said = done.output + "".join(capfd.readouterr())
        assert done.exit_code == fails, said
        return said

    monkeypatch.setattr("weasel.cli.run.run_command", run_in_a_copy)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    run.folder = tmp_path
    return run


def run_in_a_copy(command, capture):
    """`python -m MODULE ARGUMENTS` in a copy of this process. A new one would need longer for its imports than for what
    is tested. The scripts are imported anew, from the folder of the project.
    """
    python, flag, module, *arguments = command
    assert (python, flag) == (sys.executable, "-m")

    def work():
        for name in [name for name in sys.modules if name.split(".")[0] == "scripts"]:
            del sys.modules[name]
        sys.argv = [module, *arguments]
        sys.stdout, sys.stderr = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))
        runpy.run_module(module, run_name="__main__", alter_sys=True)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(process.exitcode)


@pytest.mark.slow
def test_run_all_twice(project):
    said = project("all")
    # The tiny tokenizer knows few characters, and that is said.
    warned = [line for line in said.splitlines() if re.search(r"Warning|⚠", line)]
    assert not [line for line in warned if not re.search("are unknown to the tokenizer", line)]
    report = (project.folder / "results" / "report.html").read_text()
    assert "No left-to-right model was given" in report and report.count("<svg") >= 5
    assert sorted(path.name for path in (project.folder / "results").iterdir()) == sorted(
        ["oov", "scores", "inflation", "length", "frequency", "causal", "blimp", "report.html", "report.md"]
    )
    again = project("all")
    skipped = {name for name in CONFIG["workflows"]["all"] if f"Skipping '{name}': nothing changed" in again}
    assert skipped == set(CONFIG["workflows"]["all"]) - {"score"}
    assert again.count("scored before") == 6 and " texts in " not in again


@pytest.mark.slow
def test_a_failing_asset_stops_the_run(project):
    table = project.folder / "local" / "eventsadapt" / "clean_EventsAdapt_SentenceSet.csv"
    content = table.read_text()
    table.write_text(content + '"9","One more."\n')
    assert "SentenceSet.csv is not the published file" in " ".join(project("all", fails=True).split())
    assert not (project.folder / "results").exists() or not any((project.folder / "results").iterdir())
    assert not (project.folder / "project.lock").exists()
    # A published file with a malformed row: the line is named, and nothing is taken for done.
    table.write_text(content + '"9"\n')
    sums = project.folder / "scripts" / "paper" / "assets.sha256"
    old = hashlib.sha256(content.encode()).hexdigest()
    sums.write_text(sums.read_text().replace(old, hashlib.sha256(table.read_bytes()).hexdigest()))
    said = " ".join(project("all", fails=True).split())
    assert "SentenceSet.csv, line 10: the row has 1 fields, but the header has 2" in said
    assert not (project.folder / "results" / "oov").exists()
    assert list(srsly.read_yaml(project.folder / "project.lock")) == ["data"]
