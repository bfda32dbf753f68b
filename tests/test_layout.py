"""The order of the package: the table of its rooms is complete, modules and functions are short, and no file names a
folder outside the project.

`lint-imports` checks that imports run one way (setup.cfg).
"""

import ast
import configparser
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import spacy_pll
from spacy_pll.cli import LazyCommands

from .conftest import PROJECT

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "spacy_pll"
TESTS = ROOT / "tests"
MAX_LINES = 450
MAX_CODE = 40  # lines of a function
OUTSIDE = "../" + "shared"
# Modules without a test file of their name, and where their tests are.
TESTED_ELSEWHERE = {
    "analysis.filling": "analysis/test_slots.py",
    "analysis.piece_words": "analysis/test_word_search.py",
    "attributes.record": "attributes/test_stored.py",
    "cli.comparison": "cli/test_pairs.py",  # scorers on pairs, and in cli/test_choices.py on choices
    "cli.lm_eval": "test_lm_eval.py",
    "corpus.columns": "corpus/test_formats.py",  # what a format can write
    "corpus.inputs": "corpus/test_runs.py",  # a run is what reads them
    "corpus.records": "corpus/test_readers.py",  # what readers give
    "corpus.scored_texts": "corpus/test_runs.py",
    "evaluation.readers": "evaluation/test_rescoring.py",  # n-best lists
    "language_model.protocol": "language_model/test_architectures.py",  # types alone
    "language_model.running.limits": "properties/test_blimp_rows.py",
    "prediction.adding_up": "component/test_attributes.py",
    "prediction.asking": "scoring/test_scores.py",
    "prediction.reading": "test_span_getters.py",  # and properties/test_samples.py
    "prediction.tokenized": "prediction/test_predictor.py",  # types alone
    "proteins.assays": "proteins/test_cli.py",
    "proteins.plots": "proteins/test_variants.py",
    "proteins.readers": "proteins/test_variants.py",
    "proteins.residues": "proteins/test_variants.py",
    "user_code": "test_pipelines.py",
    "user_warnings": "prediction/test_text_warnings.py",
}


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def test_the_table_of_rooms_has_all_of_them_in_order():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf8")
    layers = config["importlinter:contract:layers"]["layers"].split()
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8")
    section = page.partition("\n## Where things are\n")[2].partition("\n## ")[0]
    rooms = re.findall(r"^\| `(\w+)` \| .+ \|$", section, re.MULTILINE)
    assert rooms == [name for name in layers if name != "__main__"]
    cells = [cell for line in page.splitlines() if line.startswith("| ") for cell in line.split(" | ")]
    assert len(cells) > 100 and [cell for cell in cells if len(cell) > 200] == []


def test_every_module_has_a_test_file_of_its_name():
    """Or a folder. An entry of `TESTED_ELSEWHERE` that is not needed any more goes."""
    modules = [path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("[a-z]*.py")]
    without = [
        ".".join(module.parts)
        for module in modules
        if not (TESTS / module).is_dir() and not (TESTS / module.parent / f"test_{module.name}.py").is_file()
    ]
    assert sorted(without) == sorted(TESTED_ELSEWHERE)
    assert [name for name in TESTED_ELSEWHERE.values() if not (TESTS / name).is_file()] == []


def test_scripts_know_no_more_of_the_command_line_than_the_commands():
    """Their help is on the site, a script compares what they write, and a benchmark measures them."""
    files = {path.name: path.read_text(encoding="utf8") for path in python_files("benchmarks", "scripts")}
    found = {name: re.findall(r".*spacy_pll[. ]+(?:import )?cli.*", source) for name, source in files.items()}
    assert {name: [line.strip() for line in lines] for name, lines in found.items() if lines} == {
        "command_outputs.py": ["from spacy_pll.cli import app"],
        "gpu.py": ["from spacy_pll.cli import app"],
        "pages.py": ["from spacy_pll.cli import app", "from spacy_pll.cli.help import parts, under_headings"],
    }


def test_the_readme_of_a_folder_names_every_file_in_it():
    """Of scripts, which lie in folders by what they are for, and of benchmarks."""
    folders = [path for path in (ROOT / "scripts").iterdir() if path.is_dir() and path.name[0] != "_"]
    assert len(folders) == 6 and [path.name for path in (ROOT / "scripts").iterdir() if path.is_file()] == ["README.md"]
    for folder in [*folders, ROOT / "benchmarks"]:
        readme = (folder / "README.md").read_text(encoding="utf8")
        files = {path.name for path in folder.iterdir() if path.is_file() and path.name[0] not in "._"} - {"README.md"}
        assert files == set(re.findall(r"`([\w.]+\.(?:csv|jinja|jsonl|py|sha256|txt))`", readme)), folder
    index = (ROOT / "scripts" / "README.md").read_text(encoding="utf8")
    assert set(re.findall(r"\]\((\w+)/README\.md\)", index)) == {folder.name for folder in folders}


def imports_of_the_package(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The imports of the package in a file or notebook: the module, and the names; none for the module itself."""
    source = path.read_text(encoding="utf8")
    if path.suffix == ".ipynb":
        cells = ["".join(cell["source"]) for cell in json.loads(source)["cells"] if cell["cell_type"] == "code"]
        source = "\n".join(line for cell in cells for line in cell.splitlines() if line[:1] not in ("!", "%"))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "spacy_pll":
            yield node.module, tuple(alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names if alias.name.split(".")[0] == "spacy_pll")


def test_scripts_import_what_they_may():
    """Public names, and those of the table in CONTRIBUTING.md, which has no other ones."""
    files = [*python_files("scripts", "benchmarks", "examples"), *(ROOT / "examples").rglob("*.ipynb")]
    imports = [found for path in files for found in imports_of_the_package(path)]
    public, inside = ([names for module, names in imports if (module == "spacy_pll") is own] for own in (True, False))
    assert {name for names in public for name in names} <= {*spacy_pll.__all__, "errors"} and len(public) > 30
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8")
    section = contributing.partition("\n### What scripts may import\n")[2].partition("\n#")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (.+?) \|", section, re.MULTILINE)
    listed = {f"spacy_pll.{module}": set(re.findall(r"`(\w+)`", names)) for module, names in rows}
    used = defaultdict[str, set[str]](set)
    for module, names in imports:
        if module != "spacy_pll" and names:
            used[module].update(names)
    assert len(rows) == len(listed) and used == listed
    assert len([names for names in inside if names]) <= 40


def test_tests_of_scripts_are_in_the_folders_of_the_project():
    """`pytest -m project` runs them, and `pytest` does not."""
    uses = re.compile(r"^ *(?:from|import) (?:scripts|benchmarks)\b", re.MULTILINE)
    found = [path for path in python_files("tests") if path.name.startswith("test_") and uses.search(path.read_text())]
    assert found and [path for path in found if not any(map(path.is_relative_to, PROJECT))] == []


def test_nothing_but_the_command_line_names_its_options():
    """Messages name settings, and `pll` writes its options in their place (`spacy_pll.errors.spell`)."""
    parameters = [parameter for command in LazyCommands().values() for parameter in command.params]
    options = {option for one in parameters for option in (*one.opts, *one.secondary_opts) if option.startswith("--")}
    assert {"--resume", "--mask-margin", "--no-log-frequency"} < options
    files = [path for path in PACKAGE.rglob("*.py") if "cli" not in path.with_suffix("").parts]
    named = {path: options.intersection(re.findall(r"--[a-z][a-z-]+", path.read_text("utf8"))) for path in files}
    assert {str(path.relative_to(ROOT)): found for path, found in named.items() if found} == {}


def test_no_module_is_too_long():
    lengths = {path: len(path.read_text(encoding="utf8").splitlines()) for path in python_files("spacy_pll", "scripts")}
    assert {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > MAX_LINES} == {}


def test_no_function_of_the_scores_is_too_long():
    """Lines of code: without docstrings, comments and empty lines."""
    lengths = {}
    for path in [path for room in ("scoring", "prediction") for path in (PACKAGE / room).glob("*.py")]:
        lines = path.read_text(encoding="utf8").splitlines()
        for function in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(function, ast.FunctionDef):
                first = function.body[0]
                skipped = range(first.lineno, first.end_lineno + 1) if ast.get_docstring(function) else ()
                own = set(range(function.lineno, function.end_lineno + 1)).difference(skipped)
                code = [i for i in own if not re.fullmatch(r" *(#.*)?", lines[i - 1])]
                lengths[f"{path.stem}.{function.name}"] = len(code)
    assert max(lengths.values()) > 20
    assert {name: n for name, n in lengths.items() if n > MAX_CODE} == {}


def test_no_file_names_a_folder_outside_the_project():
    files = [
        *ROOT.glob("[!.]*.*"),
        *ROOT.glob("docs/**/*.md"),
        *python_files("spacy_pll", "scripts", "benchmarks", "tests"),
    ]
    files += [path for path in PACKAGE.rglob("*") if path.suffix in (".html", ".css", ".js", ".cfg")]
    assert len(files) > 100
    naming = [path for path in files if path.is_file() and OUTSIDE in path.read_text(encoding="utf8")]
    assert [str(path.relative_to(ROOT)) for path in naming] == []


def test_a_public_name_stands_for_one_thing():
    """None is defined in two modules."""
    places = defaultdict[str, list[str]](list)
    for path in python_files("spacy_pll"):
        for node in ast.parse(path.read_text(encoding="utf8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [node.name] if hasattr(node, "name") else [getattr(target, "id", "_") for target in targets]
            for name in names:
                if not name.startswith("_") and name not in ("T", "logger"):
                    places[name].append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
