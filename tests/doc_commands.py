"""The commands of the documentation: which are run by the tests, which are only checked, and the files they need."""

import ast
import configparser
import inspect
import io
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Collection
from contextlib import redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import srsly
import torch
import transformers as hf
import typer
from weasel.util import parse_config_overrides

if sys.version_info < (3, 11):
    import tomli as tomllib  # which pytest needs there
else:
    import tomllib

from spacy_pll.cli import app

from .cli.conftest import run as run_pll
from .cli.conftest import run_spacy
from .conftest import write_jsonl
from .corruption import brown_sentences, n_best_lists
from .doc_examples import CARD, ROOT, Block, read_commands

DATA = Path(os.environ.get("SPACY_PLL_DATA", "")) / "data"
BROWN = DATA / "brown" / "brown.zip"
EVENTSADAPT = DATA / "eventsadapt" / "clean_EventsAdapt_SentenceSet.csv"
RXNFP = find_spec("rxnfp")  # a package with a published checkpoint

# Parts of commands that take more than a few seconds, with the data set or the package that they need.
SLOW = {
    "pairs blimp": DATA / "blimp",
    "ppl eventsadapt.csv": EVENTSADAPT,
    "rescore brown-nbest.jsonl": BROWN,
    "--model rxnfp": Path(RXNFP.origin if RXNFP and RXNFP.origin else "rxnfp"),
}
# Commands of spaCy that are run. What they print is spaCy's own, and no page shows it.
OF_SPACY = ("assemble", "apply")
# What is not run, by a part of the command, with the reason. Its names, files and options are checked.
ONLY_CHECKED = {
    "python3 -m venv": "makes an environment; .ci/run does so",
    "source ": "is for the reader's shell",
    "conda ": "makes an environment",
    "pip install": "needs a package index; .ci/run installs",
    "pytest": "would run the tests within the tests",
    "-m spacy project": "needs a network, or hours",
    "-m spacy package": "builds a wheel; tests/surfaces/test_pipelines.py makes a package",
    "pll agree": "prints how long it took",
    "pll margins": "prints how long it took",
    "pairs eventsadapt.csv": "takes a minute; tests/cli/test_pairs.py does so for seconds",
    "--revisions ": "needs a hub; tests/cli/test_pairs.py has a cache",
    "pll variants": "needs a model of proteins; tests/proteins/test_cli.py has a tiny one",
    "bert-base-german-cased": "needs a model of the hub",
    "--model bert-tuned": "needs a model that was tuned",
    "pll unigrams": "needs a corpus; tests/cli/test_unigrams.py has one",
    "--unigrams unigrams.json": "needs what that command writes",
    "python -m scripts.": "takes minutes to hours",
    "python benchmarks/": "takes minutes, on a machine that does nothing else",
    "tests.project.test_docs": "is what runs these tests",
    "tests.project.test_notebooks": "is a slow test",
    "tests.pictures": "draws pictures that people look at",
    "pll lm-eval": "needs lm-eval; tests/test_lm_eval.py has a task",
    "pll explore": "shows a page until it is ended; tests/explorer/test_browser.py does so",
    "-m build": "builds a release",
    ".ci/run": "makes environments and runs all tests",
    "rm ": "removes what was built before",
    "mike ": "writes to the branch of the site",
    "twine ": "checks and uploads a release",
    "git ": "clones or changes the repository",
    "cd spacy-pll": "is for the reader's shell",
    "make check": "would run the tests within the tests",
    "mkdocs ": "is run by .ci/run",
    "mkdir": "makes a folder",
    "export ": "names a folder of the reader's",
    "Rscript ": "needs R and lme4",
}
# The same for blocks of Python.
PYTHON_ONLY_CHECKED = {
    "eventsadapt.csv": "needs a data set",
    "en_core_web_sm": "needs a pipeline that is not on the package index",
    "facebook/esm2": "needs a model of the hub",
    "s3://": "needs a cluster and its storage; tests/test_distributed.py has both on one machine",
    "import datasets": "needs datasets, which only some installations have",
    "datatrove": "needs datatrove, whose versions of other packages differ",
    "nemo_curator": "needs NeMo Curator and its Ray",
    "lm_eval": "needs lm-eval and a task of the hub",
    "from minicons": "needs minicons, and so transformers 4; scripts/experiments/compare_packages.py runs it",
    "prefer_gpu": "would move the tests that follow to the GPU, where there is one",
}


def reason_not_run(words: list[str]) -> str | None:
    command = " ".join(words)
    return next((reason for part, reason in ONLY_CHECKED.items() if part in command), None)


def slow_part(words: list[str]) -> str | None:
    """The entry of SLOW that a command is, if it is one."""
    return next((part for part in SLOW if part in " ".join(words)), None)


def is_python_run(block: Block) -> bool:
    return not any(part in block.text for part in PYTHON_ONLY_CHECKED)


def plain(words: list[str]) -> list[str]:
    """A command without variables set before it and without the environment's folder."""
    while "=" in words[0]:
        words = words[1:]
    return [words[0].removeprefix(".venv/bin/"), *words[1:]]


def make_runner(slow: Collection[str] = ()) -> Callable[[list[str]], str | None]:
    """From a command to what it prints, or None where it is not run.

    slow (Collection[str]): The entries of SLOW that are run.
    """

    def run_command(words: list[str]) -> str | None:
        part = slow_part(words)
        if reason_not_run(words) or part and not (part in slow and SLOW[part].exists()):
            return None
        words = plain(words)
        if words[:4] == ["python", "-m", "spacy", "pll"]:
            return run_pll(*words[4:]).stdout
        if words[0] == "spacy-pll":
            return run_pll(*words[1:]).stdout
        if words[:3] == ["python", "-m", "spacy"] and words[3] in OF_SPACY:
            run_spacy(*words[3:])
            return ""
        raise AssertionError(f"Neither run nor listed in ONLY_CHECKED: {' '.join(words)}")

    return run_command


def make_inputs(folder: Path, slow: Collection[str], stand_ins: dict[str, Path]):
    """Put into a folder what examples read and pages do not show: data sets, configs, folders in place of hub names."""
    others = {"blimp": DATA / "blimp", "eventsadapt.csv": EVENTSADAPT, "configs": ROOT / "configs"}
    others["examples"] = ROOT / "examples"
    for name, source in {**stand_ins, **others}.items():
        if source.exists():
            (folder / name).symlink_to(source)
    if "rescore brown-nbest.jsonl" in slow and BROWN.is_file():
        lists = n_best_lists(brown_sentences(BROWN, 260), n_hypotheses=5)
        write_jsonl(folder / "brown-nbest.jsonl", *lists[:200])
        write_jsonl(folder / "brown-dev.jsonl", *lists[200:])
    if "--model rxnfp" in slow:
        convert = [sys.executable, "-m", "scripts.experiments.convert_rxnfp", folder / "rxnfp"]
        subprocess.run(convert, cwd=ROOT, check=True)


def make_stand_ins(folder: Path) -> dict[str, Path]:
    """Tiny random models under the hub names of the examples: a folder of that name is read instead of the hub."""
    special = dict(pad_token="[PAD]", unk_token="[UNK]", bos_token="[CLS]", mask_token="[MASK]")
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_file=str(CARD.with_name("tokenizer.json")), **special)
    # Weights large enough that a prediction depends on its context: a model where it does not is refused.
    sizes = dict(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, initializer_range=0.3)
    torch.manual_seed(0)
    masked = hf.BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, **sizes)
    causal = hf.GPT2Config(n_embd=16, n_layer=1, n_head=2, bos_token_id=tokenizer.bos_token_id, **sizes)
    models = {"bert-base-cased": hf.BertForMaskedLM(masked), "gpt2": hf.GPT2LMHeadModel(causal)}
    for name, model in models.items():
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return {name: folder / name for name in models}


def check_command(words: list[str]):
    """RAISES (AssertionError): A command names a file, option, extra, marker or project command that there is not."""
    words = plain(words)
    if words[:4] == ["python", "-m", "spacy", "pll"] or words[0] == "spacy-pll":
        check_pll(words[4:] if words[0] == "python" else words[1:])
    elif words[:4] == ["python", "-m", "spacy", "project"]:
        check_project(words[4:])
    elif words[:3] == ["python", "-m", "spacy"]:
        assert words[3] in OF_SPACY or reason_not_run(words), words
    elif words[:3] == ["python", "-m", "pytest"] or words[0] == "pytest":
        check_pytest(words[3:] if words[0] == "python" else words[1:])
    elif words[:2] == ["python", "-m"] and words[2].startswith("scripts."):
        check_script(f"{words[2].replace('.', '/')}.py", *words[3:])
    elif words[0] == "python" and words[1].startswith("benchmarks/"):
        check_script(*words[1:])
    elif words[:2] == ["pip", "install"]:
        check_install(words[2:])
    else:
        assert reason_not_run(words), f"no test knows the command {' '.join(words)!r}"


def check_pll(words: list[str]):
    """Parse a command of `pll` as the command line does, without running it."""
    group = typer.main.get_command(app)
    command = group.commands[words[0]]
    command.make_context(words[0], list(words[1:]))


def check_project(words: list[str]):
    project = srsly.read_yaml(ROOT / "project.yml")
    assert words[0] in ("run", "assets", "document"), words
    if words[0] == "run":
        assert words[1] in project["workflows"] or words[1] in [c["name"] for c in project["commands"]], words
    given = [word.removeprefix("--") for word in words if word.startswith("--vars.")]
    assert {word.removeprefix("vars.") for word in given} <= set(project["vars"]), words
    if given:
        # As spaCy reads them: a value that begins with `--` is an error there, or another variable.
        overrides = parse_config_overrides(words[words.index(f"--{given[0]}") :])
        assert list(overrides) == given and all(str(overrides[name]) in words for name in given), overrides


def check_pytest(words: list[str]):
    markers = read_setup_cfg()["tool:pytest"]["markers"]
    for option, value in zip(words, [*words[1:], ""]):
        if option == "-m":
            assert value in markers, f"no marker {value!r}"
        if option.startswith("tests"):
            assert (ROOT / option.partition("::")[0]).exists(), f"{option} is not there"


def check_script(path: str, *words: str):
    assert (ROOT / path).is_file(), f"{path} is not there"
    printed, arguments = io.StringIO(), sys.argv
    source = (ROOT / path).read_text(encoding="utf8")
    if "import atheris" in source:  # which is not installed for the tests
        printed.write(source)
    else:
        folder = str((ROOT / path).parent)
        sys.argv = [path, "--help"]
        sys.path.insert(0, folder)  # as Python does: a benchmark imports its neighbours by their names alone
        try:
            with redirect_stdout(printed):
                runpy.run_path(str(ROOT / path), run_name="__main__")
        except SystemExit:
            pass
        finally:
            sys.argv = arguments
            sys.path.remove(folder)
    for word in words:
        if word.startswith("--"):
            assert word in printed.getvalue(), f"{path} has no option {word}"


def check_install(words: list[str]):
    extras = read_setup_cfg()["options.extras_require"]
    for option, word in zip(["", *words], words):
        if option == "--group":
            assert word in read_groups(), f"pyproject.toml has no group {word!r}"
        if word.endswith("]"):
            for extra in word.rstrip("]").partition("[")[2].split(","):
                assert extra in extras, f"setup.cfg has no extra {extra!r}"
        if word.endswith(".txt"):
            assert (ROOT / word).is_file(), f"{word} is not there"


def check_python(block: Block):
    """Python that is not run must compile, and what it imports from the package must have the arguments it gives."""
    tree = ast.parse(block.text)
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("spacy_pll"):
            module = import_module(node.module)
            imported.update({alias.name: getattr(module, alias.name) for alias in node.names})
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in imported:
            parameters = inspect.signature(imported[node.func.id]).parameters
            for keyword in node.keywords:
                assert keyword.arg in parameters, f"{block.where}: {node.func.id} has no argument {keyword.arg!r}"


def check_block(block: Block):
    """Check every command of a bash block."""
    for words in read_commands(block.text):
        try:
            check_command(words)
        except Exception as error:
            raise AssertionError(f"{block.where}: {' '.join(words)}: {error}") from error


def read_groups() -> dict[str, list]:
    """The dependency groups of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["dependency-groups"]


def read_setup_cfg() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return config
