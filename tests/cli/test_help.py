"""What the help of commands shows."""

import re
from pathlib import Path

import pytest
import typer

from spacy_pll.cli import app
from spacy_pll.cli.help import HEADINGS, MOST_USED, OTHER_NAMES, parts, under_headings

from ..doc_commands import check_pll
from .conftest import run

ROOT = Path(__file__).parents[2]
COMMANDS = typer.main.get_command(app).commands
OF_OTHERS = "lm-eval"  # another program reads its options


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != OF_OTHERS])
def test_each_command_has_two_examples_and_its_page(name):
    about, examples, pages = parts(COMMANDS[name].help)
    assert about and "$ spacy-pll" not in about
    assert len(examples) == 2 and len(pages) == 1
    for example in examples:
        words = re.findall(r'"[^"]*"|\S+', example)
        assert words[:2] == ["spacy-pll", name]
        check_pll([word.strip('"') for word in words[1:]])
    path = re.search(r"/blob/HEAD/(docs/[\w-]+\.md)", pages[0])[1]
    assert (ROOT / path).is_file()
    shown = run(name, "--help").output
    assert all(line in shown for line in [*examples, *pages])


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != OF_OTHERS])
def test_each_option_is_shown_once(name):
    command = COMMANDS[name]
    options = [one for one in command.params if one.param_type_name == "option"]
    shown = run(name, "--help").output
    for one in options:
        found = re.findall(
            rf"^  (?:-\w, )?{one.opts[0] if len(one.opts[0]) > 2 else one.opts[1]}\b(?!-)", shown, re.MULTILINE
        )
        assert len(found) == 1, one.name


def test_the_help_of_score_has_headings():
    shown = run("score", "--help").output
    headings = re.findall(r"^([A-Z][\w ]+):$", shown, re.MULTILINE)
    assert headings[:5] == ["Examples", "Read more", "Arguments", "Most used", "Input"]
    assert {"Model", "What is scored", "Output", "Metrics"} < set(headings)
    used = shown[shown.index("Most used:") : shown.index("\nInput:")]
    assert re.findall(r"^  (--[\w-]+)", used, re.MULTILINE)[:4] == ["--model", "--metrics", "--table", "--column"]
    assert "--resume" in used


def test_what_has_a_heading_is_an_option_of_some_command():
    names = {one.name for command in COMMANDS.values() for one in command.params} | {"help"}
    listed = [*MOST_USED, *(name for of_heading in HEADINGS.values() for name in of_heading)]
    assert set(listed) <= names
    assert [name for _, of_heading in under_headings([*names]) for name in of_heading if name not in names] == []


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_names_that_people_type_say_what_to_type(name):
    output = run(name, code=2).output
    commands = re.findall(r"spacy-pll ([\w-]+)", output.split("There is no command")[1])
    assert name not in COMMANDS and set(commands) <= set(COMMANDS)
    assert commands or "docs/citing.md" in output
