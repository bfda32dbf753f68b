"""How the commands are found: none is imported before it is called."""

import inspect
import json
import subprocess
import sys
from importlib.metadata import version

import pytest

import spacy_pll
from spacy_pll.cli import COMMANDS, LazyCommands
from spacy_pll.metrics import pll_metrics

from .conftest import run

FRESH = """
import json, sys
import spacy.cli
before = set(sys.modules)
from typer.testing import CliRunner
from spacy.cli._util import app
import spacy_pll.cli
for arguments in json.loads(sys.argv[1]):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_listing_the_commands_imports_none():
    """torch and Typer are imported by spaCy itself; what is looked at is what comes on top of that."""
    code = [sys.executable, "-c", FRESH, json.dumps([["pll", "--help"], ["info", "--help"]])]
    modules = json.loads(subprocess.run(code, check=True, capture_output=True, text=True).stdout)
    assert "spacy_pll.cli" in modules
    heavy = {"torch", "transformers", "spacy_transformers", "tokenizers", "pandas", "matplotlib", "ray"}
    assert not heavy & {name.split(".")[0] for name in modules}
    assert not [name for name in modules if name.startswith("spacy_pll.cli.")]


def test_the_list_has_the_first_line_of_each_commands_help():
    for name, command in LazyCommands().items():
        assert inspect.cleandoc(command.help).splitlines()[0] == COMMANDS[name]
        assert command.name == name


def test_the_help_lists_all_commands():
    lines = " ".join(run("--help").stdout.split())
    for name, text in COMMANDS.items():
        assert f"{name} {text}" in lines
    assert "Usage: " in run(code=2).output


def test_every_option_has_a_help_text():
    for name, command in LazyCommands().items():
        for parameter in command.params:
            assert getattr(parameter, "help", None), (name, parameter.name)


def test_the_help_says_what_can_be_given():
    own = [name for name in COMMANDS if name != "lm-eval"]  # which has the help of another program
    texts = {name: " ".join(run(name, "--help").stdout.split()) for name in own}
    for name, text in texts.items():
        about = " ".join(f"{n} {metric.__doc__.splitlines()[0]}" for n, metric in sorted(pll_metrics.get_all().items()))
        assert (f"Metrics: {about}" in text) == ("--metric" in text), name
    assert "windows of 128 tokens that begin 96 tokens apart" in texts["score"]
    assert "[.txt|.jsonl|.json|.csv|.tsv|.parquet|.spacy]" in texts["score"]
    assert all("also compressed, such as texts.txt.gz" in texts[name] for name in ("score", "render", "ppl"))
    assert "The settings are: component, revision, causal" in texts["agree"]
    assert "Give this or --dev" in texts["rescore"] and "Instead of --weight" in texts["rescore"]


def test_the_version_is_that_of_the_package():
    assert run("--version").stdout == f"spacy-pll {spacy_pll.__version__}\n"
    assert spacy_pll.__version__ == version("spacy-pll")


def test_a_command_that_is_not_there():
    assert "No such command" in run("skore", code=2).output
    with pytest.raises(KeyError):
        LazyCommands()["skore"]
