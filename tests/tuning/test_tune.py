"""The command `tune` of project.yml: what it prints, and what it refuses."""

import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner
from weasel.util import load_project_config

from scripts.tuning import tune
from spacy_pll import make_pipeline

from ..conftest import SENTENCES
from .conftest import random_texts

ROOT = Path(__file__).parents[2]


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus").mkdir()
    for i, name in enumerate(("a.txt", "b.txt")):
        (tmp_path / "corpus" / name).write_text("".join(text + "\n" for text in random_texts(400, i)))
    return tmp_path / "corpus"


@pytest.fixture
def run():
    """run(*arguments): `python -m scripts.tuning.tune ARGUMENTS`; its output, and its message without line breaks."""
    app = typer.Typer(add_completion=False)
    app.command()(tune.main)

    def run(*arguments, code=0):
        result = CliRunner().invoke(app, list(map(str, arguments)))
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result.stdout, " ".join(result.stderr.split())

    return run


def test_the_project_passes_options_that_the_script_takes(run):
    overrides = {"vars.tune_texts": "nowhere", "vars.tune_options": "--steps 2 --margins 0"}
    config = load_project_config(ROOT, overrides=overrides)
    [command] = [command for command in config["commands"] if command["name"] == "tune"]
    python, flag, module, *arguments = shlex.split(command["script"][0])
    assert (python, flag, module) == ("python", "-m", tune.__name__)
    assert "There is no file or folder 'nowhere'" in run(*arguments, code=1)[1]


def test_a_model_is_tuned_and_scores(run, tmp_path, model_folder, corpus):
    tuned = tmp_path / "tuned"
    bert = model_folder("bert")
    lines = run(bert, corpus, tuned, "--steps", 2, "--metrics", "original", "--margins", "1,2")[0].splitlines()
    assert lines[0].startswith(f"Wrote {tuned}. Agreement with exact scores")
    assert lines[2].startswith("| held-out | `mask_margin` |")
    assert lines[4].startswith("| texts | 1 | before | its own exact scores | ")
    assert lines[-1].startswith("| passages | exact | after | exact scores before | ")
    assert make_pipeline(str(tuned), mask_margin=1)(SENTENCES[0])._.pll < 0
    assert "tuned exists already" in run(bert, corpus, tuned, code=1)[1]


def test_errors_are_messages(run, tmp_path, model_folder, corpus):
    bert, out = model_folder("bert"), tmp_path / "out"
    assert "There is no file or folder" in run(bert, "nowhere", out, code=1)[1]
    message = run(bert, corpus, out, "--margins", "0,x", code=1)[1]
    assert ". It is '0,x'" in message
    assert "cannot be tuned for the metric" in run(bert, corpus, out, "--metrics", "sentence_l2r", code=1)[1]
    assert not out.exists() and not (tmp_path / "out.training").exists()
