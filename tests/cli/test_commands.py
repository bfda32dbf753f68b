"""How the commands are found: none is imported before it is called."""

import inspect
import json
import subprocess
import sys
from importlib.metadata import version

import pytest

import spacy_pll
from spacy_pll.cli import about, find_commands
from spacy_pll.metrics import BUILTINS, pll_metrics

from .conftest import COMMANDS, run

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
    for name, command in COMMANDS.items():
        [place] = find_commands()[name]
        assert inspect.cleandoc(command.help).splitlines()[0] == about(place)
        assert command.name == name


def test_the_help_lists_all_commands():
    lines = " ".join(run("--help").stdout.split())
    for name, [place] in find_commands().items():
        assert f"{name} {about(place)}" in lines
    assert "Usage: " in run(code=2).output


def test_every_option_has_a_help_text():
    for name, command in COMMANDS.items():
        for parameter in command.params:
            assert getattr(parameter, "help", None), (name, parameter.name)


def test_the_help_says_what_can_be_given():
    own = [name for name in COMMANDS if name != "lm-eval"]  # which has the help of another program
    texts = {name: " ".join(run(name, "--help").stdout.split()) for name in own}
    for name, text in texts.items():
        about = " ".join(f"{n} {metric.__doc__.splitlines()[0]}" for n, metric in sorted(pll_metrics.get_all().items()))
        assert (f"Metrics: {about}" in text) == ("--metric" in text), name
    assert all(metric.__doc__.splitlines()[0].endswith(".") for metric in BUILTINS.values()), "a sentence is cut"
    assert "windows of 128 tokens that begin 96 tokens apart" in texts["score"]
    assert "[.txt|.jsonl|.json|.csv|.tsv|.parquet|.spacy]" in texts["score"]
    assert all("also compressed, such as texts.txt.gz" in texts[name] for name in ("score", "render", "ppl"))
    assert "The settings are: component, revision, causal" in texts["agree"]
    assert "Give this or --dev" in texts["rescore"] and "Instead of --weight" in texts["rescore"]


HELLO = '''
import sys
import typer
from spacy_pll.errors import PLLError

def hello_cli(name: str, loud: bool = typer.Option(False, help="In capital letters.")) -> None:
    """Say hello.

    To somebody.
    """
    if name == "nobody":
        raise PLLError("There is nobody. Give a `name`, or `loud=True`.")
    print(name.upper() if loud else name)
'''


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package with commands, given as `NAME = MODULE:FUNCTION`."""

    def install(*commands, package="theirs"):
        (tmp_path / f"{package}-1.0.dist-info").mkdir()
        (tmp_path / f"{package}-1.0.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\n")
        lines = "\n".join(["[spacy_pll_commands]", *commands, ""])
        (tmp_path / f"{package}-1.0.dist-info" / "entry_points.txt").write_text(lines)
        monkeypatch.syspath_prepend(tmp_path)

    (tmp_path / "with_hello.py").write_text(HELLO)
    (tmp_path / "damaged.py").write_text(f"raise RuntimeError('no such luck')\n{HELLO}")
    return install


def test_a_command_of_another_package(install):
    """It is listed without being imported, and its errors name its options."""
    install("hello = with_hello:hello_cli")
    assert "variants Score the variants of a protein." in (listed := " ".join(run("--help").stdout.split()))
    assert "hello Say hello." in listed and "with_hello" not in sys.modules
    assert run("hello", "you", "--loud").stdout == "YOU\n"
    assert "To somebody." in run("hello", "--help").stdout
    assert "There is nobody. Give a NAME, or --loud." in run("hello", "nobody", fails=True).unwrapped_stderr


@pytest.mark.parametrize("place", ["damaged:hello_cli", "nowhere:hello_cli", "with_hello:goodbye_cli"])
def test_a_command_that_cannot_be_imported(install, place):
    install(f"hello = {place}")
    assert "hello" in run("--help").stdout and "Score the texts" in run("score", "--help").stdout
    message = run("hello", "you", fails=True).unwrapped_stderr
    assert f"The command 'hello' is {place}, which cannot be imported (" in message
    assert ("RuntimeError: no such luck" in message) == place.startswith("damaged")


@pytest.mark.parametrize(
    ("name", "ours"), [("score", "spacy_pll.cli.score:score_cli"), ("variants", "spacy_pll.proteins.cli:variants_cli")]
)
def test_a_command_that_several_packages_have(install, name, ours):
    install(f"{name} = with_hello:hello_cli", "hello = with_hello:hello_cli")
    message = run(name, "you", fails=True).unwrapped_stderr
    assert f"Several packages have a command {name!r}: " in message and ours in message
    assert "with_hello:hello_cli" in message
    assert run("hello", "you").stdout == "you\n" and "Print the tokens" in run("show", "--help").stdout


def test_the_version_is_that_of_the_package():
    assert run("--version").stdout == f"spacy-pll {spacy_pll.__version__}\n"
    assert spacy_pll.__version__ == version("spacy-pll")


def test_a_command_that_is_not_there():
    assert "No such command" in run("skore", code=2).output
    with pytest.raises(KeyError):
        COMMANDS["skore"]
