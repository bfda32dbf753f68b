"""What messages advise exists where they are shown: settings in Python, options on the command line."""

import ast
import inspect
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

import spacy_pll
from spacy_pll.cli import app
from spacy_pll.cli.errors import options_of
from spacy_pll.component import DEFAULT_CONFIG
from spacy_pll.errors import SETTING, spell
from spacy_pll.language_model.architectures import CausalLanguageModel, MaskedLanguageModel
from spacy_pll.pipelines import SETTINGS

ROOT = Path(spacy_pll.__file__).parent
SAY = {"warn_user", "_warn_once", "PLLError", "InputError", "ResumeError", "TextError"}
COMMANDS = typer.main.get_command(app).commands
# Settings that only a config has: those of the block `model`, and of the component.
OF_BLOCK = {name for cls in (MaskedLanguageModel, CausalLanguageModel) for name in inspect.signature(cls).parameters}
IN_CONFIG = ({*OF_BLOCK, *DEFAULT_CONFIG} - {*SETTINGS, "name"}) | {"MaskedLM", "CausalLM"}


class Message(NamedTuple):
    module: str
    text: str


@cache
def nodes(path):
    """All nodes of a module's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf8"))))


@cache
def messages():
    """The text of each error and warning. Of what is filled in, it has the names. A guess has its own, which it returns
    or yields.
    """
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        for node in nodes(path):
            call = node.exc if isinstance(node, ast.Raise) else node
            if path.parent.name == "advice" and isinstance(node, ast.FunctionDef):
                of_guess = module if node.name.startswith("_") else f"{module}.{node.name}"
                told = (one for one in ast.walk(node) if isinstance(one, ast.Return | ast.Yield))
                found += [Message(of_guess, text_in(one)) for one in told]
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "id", getattr(call.func, "attr", None))
            if isinstance(node, ast.Raise) or name in SAY:
                found.append(Message(module, text_in(call)))
    return found


def text_in(node):
    """All strings in a part of a syntax tree, and the names in it."""
    parts = (getattr(part, "value", getattr(part, "id", None)) for part in ast.walk(node))
    return " ".join(part for part in parts if isinstance(part, str))


def parameters():
    """The names of all arguments and fields in the package."""
    for path in ROOT.rglob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                yield from (one.arg for one in (*node.args.args, *node.args.kwonlyargs))
            elif isinstance(node, ast.ClassDef):
                yield from (one.target.id for one in node.body if isinstance(one, ast.AnnAssign))
                yield from (one.name for one in node.body if isinstance(one, ast.FunctionDef))


def test_there_are_messages():
    assert len(messages()) > 150 and sum(bool(SETTING.search(one.text)) for one in messages()) > 60


def test_messages_name_addresses_and_the_short_command():
    """Who installed the package has no folder docs."""
    wrong = [one for one in messages() if re.search(r"\bdocs/[\w-]+\.md|`pll [a-z]|python -m spacy pll", one.text)]
    assert not wrong
    pages = {
        name for path in ROOT.rglob("*.py") for name in re.findall(r"\bpage\(['\"](.+?)['\"]\)", path.read_text("utf8"))
    }
    assert len(pages) > 8
    for name in pages:
        file, _, anchor = name.partition("#")
        headings = re.findall(r"^#+ (.+)$", (ROOT.parent / "docs" / file).read_text("utf8"), re.MULTILINE)
        slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in slugs, name


def test_each_name_is_one_of_an_argument_or_a_setting():
    # In files that others write; the factory; fields of theirs.
    others = {"attribute_map", "quantization_config", "trust_remote_code", "pll", "apply_chat_template"}
    known = {*SETTINGS, *DEFAULT_CONFIG, *parameters(), *others}
    wrong = {found[1]: one for one in messages() for found in SETTING.finditer(one.text) if found[1] not in known}
    assert not wrong


def test_what_only_a_config_has_is_advised_as_of_a_config():
    """Or it is said of a value that was given there."""
    of_config = r"in a config|(?:transformer|tokenizer)_config has|with @architectures|tokenizer_config\.json|in_block"
    given = rf"`({'|'.join(IN_CONFIG)})` (must|is|asks)| is set in |has no meaning there"
    about = [one for one in messages() if IN_CONFIG & {*re.findall(r"\w+", one.text)}]
    assert about and not [one for one in about if not re.search(f"{of_config}|{given}", one.text)]


# Names in messages of modules that a command imports, which the command cannot lead to.
NOT_THERE = {
    "beam_size": "of n-best lists, which rescore alone reads",
    "references": "the same",
    "costs": "the same",
    "lang": "said where texts are scored",
    "pll": "the name of a component",
    "nlp": "a pipeline",
    "texts": "a list in Python",
    "attr": "taken by a component of the same pipeline",
    "mutants": "a list in Python; a file on the command line",
    "parts": "a field in Python",
    "regions": "of tables of words that pll score writes",
    "skip_errors": "said only where it is a choice",
    "column": "said only where one column is read",
    "header": "said only of one that was given",
    "precision": "the same",
    "delimiter": "of tables, which the command does not read",
    "encoding": "the same",
    "quoting": "the same",
    "na_as_text": "the same",
    "by": "the groups of a suite are its own",
    "force": "the command writes no file",
    "n_words": "the option says its range",
    "mask_spacing": "the command has only mask_margin, or neither",
    "mask_margin": "the command has only mask_spacing, or neither",
    "spans": "the command has no texts, and the message names the CPU, too",
    "metrics": "the command has none",
    "sample_words": "said of pipelines that were saved with it",
    "n_process": "said where processes are started",
    "causal": "the command has masked models alone, and the message says to choose one",
    "leading_space": "said only where it was given",
    **dict.fromkeys(
        ["target", "masked", "weight", "removed", "within_words"], "of a metric of the user's own, in Python"
    ),
}
# The settings of scorers are written as they are in Python, "builtin,mask_margin=1", and so are those of lm-eval.
AS_IN_PYTHON = {"agree", "lm-eval", "margins"}


def imported(module):
    """The modules of the package that a module imports, and the guesses."""
    folder = ROOT.parent.joinpath(*module.split(".")[:-1])
    for node in nodes(ROOT.parent.joinpath(*module.split(".")).with_suffix(".py")):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [folder, *folder.parents][node.level - 1].joinpath(*(node.module or "").split("."))
            for path in (base, *(base / one.name for one in node.names)):
                if path.with_suffix(".py").exists():
                    yield (found := ".".join(path.relative_to(ROOT.parent).parts))
                    yield from (f"{found}.{one.name}" for one in node.names if of_advice(found))


def of_advice(module):
    return module.startswith("spacy_pll.advice.")


@pytest.mark.parametrize("name", sorted({*COMMANDS} - AS_IN_PYTHON))
def test_a_command_has_the_options_that_its_messages_name(name):
    command = COMMANDS[name]
    start = inspect.unwrap(command.callback).__module__
    modules = {start, *imported(start)}
    modules |= {other for one in modules if one.startswith("spacy_pll.cli") for other in imported(one)}
    modules |= {guess for one in modules if not of_advice(one) for guess in filter(of_advice, imported(one))}
    of_models = ("base", "reading.checkpoint", "reading.checks", "reading.special_tokens")
    modules |= {f"spacy_pll.language_model.{one}" for one in of_models}
    spelling = options_of(command)
    names = {found[1] for one in messages() if one.module in modules for found in SETTING.finditer(one.text)}
    in_config = {one for one in names if one in IN_CONFIG or one in OF_BLOCK - {*SETTINGS}}
    others = {"attribute_map", "quantization_config", "trust_remote_code"}  # said of files
    assert {one for one in names - in_config - others if spelling(one, ...) is None} <= NOT_THERE.keys()
    assert all(spell(f"`{one}`", spelling).startswith("--") for one in {"model", "code"} & names)


def test_a_command_with_one_metric_has_that_option():
    assert options_of(COMMANDS["rescore"])("metrics", ...) == "--metric"
    assert options_of(COMMANDS["score"])("metrics", ...) == "--metrics"
