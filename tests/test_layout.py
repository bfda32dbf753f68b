"""The order of the package: imports run one way, modules are short, and no file names a folder outside the project."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "spacy_pll"
# A module may import those that stand below it in this list, and its own package.
ORDER = [
    "cli",
    "explorer",
    "distributed",
    "tuning",
    "evaluation",
    "corpus",
    "workers",
    "outcomes",
    "analysis",
    "pipelines",
    "component",
    "attributes",
    "prediction",
    "span_getters",
    "settings",
    "language_model",
    "scoring",
    "metrics",
    "requirements",
    "user_warnings",
]
# The entry points, and the name under which people import pictures: nothing below imports them.
TOP = ["__init__", "__main__", "visualize"]
MAX_LINES = 450
# What scripts/ may use of the command line: the commands, whose help is on the site.
FOR_SCRIPTS = "spacy_pll.cli.app."
OUTSIDE = "../" + "shared"


def imports(source: str, module: str) -> Iterator[str]:
    """The modules of the package that a module imports, anywhere in it, by their full names.

    module (str): Its full name; for a package, with `.__init__`.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == "spacy_pll")
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            full = ".".join([*base, *([node.module] if node.module else [])])
            if full.split(".")[0] == "spacy_pll":
                # `from . import name` may import a module; that of an object is the module it comes from.
                yield from (f"{full}.{name.name}" for name in node.names)


def wrong_way(source: str, module: str) -> list[str]:
    """The imports of a module of the package that run against the order.

    module (str): Its name without `spacy_pll.`.
    """
    own = module.split(".")[0]
    if own in TOP:
        return []
    wrong = []
    for name in imports(source, f"spacy_pll.{module}"):
        target = name.removeprefix("spacy_pll").strip(".")
        room = target.split(".")[0]
        allowed = room == own or (room in ORDER and ORDER.index(room) > ORDER.index(own))
        if not allowed:
            wrong.append(f"{module} imports {target or 'the package itself'}")
    return wrong


def module_name(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts)


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def test_every_module_has_its_place_in_the_order():
    rooms = {module_name(path, PACKAGE).split(".")[0] for path in python_files("spacy_pll")}
    assert rooms <= {*ORDER, *TOP}


def test_the_table_of_modules_has_all_of_them_in_order():
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8"), re.MULTILINE)
    assert [name for name, _ in rows] == ORDER
    missing = [
        f"{name}.{path.stem}"
        for name, about in rows
        for path in (PACKAGE / name).glob("[a-z]*.py")
        if f"`{path.stem}`" not in about
    ]
    assert missing == []


def test_imports_run_one_way():
    wrong = [
        line
        for path in python_files("spacy_pll")
        for line in wrong_way(path.read_text(encoding="utf8"), module_name(path, PACKAGE))
    ]
    assert wrong == []


def test_only_command_lines_know_of_the_command_line():
    wrong = []
    for path in python_files("benchmarks", "scripts"):
        module = module_name(path, ROOT)
        for name in imports(path.read_text(encoding="utf8"), module):
            is_allowed = path.is_relative_to(ROOT / "scripts") and (name + ".").startswith(FOR_SCRIPTS)
            if (name + ".").startswith("spacy_pll.cli.") and not is_allowed:
                wrong.append(f"{module} imports {name}")
    assert wrong == []


def test_no_module_is_too_long():
    lengths = {path: len(path.read_text(encoding="utf8").splitlines()) for path in python_files("spacy_pll", "scripts")}
    assert {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > MAX_LINES} == {}


def test_no_file_names_a_folder_outside_the_project():
    files = [
        *ROOT.glob("*.*"),
        *ROOT.glob("docs/**/*.md"),
        *python_files("spacy_pll", "scripts", "benchmarks", "tests"),
    ]
    files += [path for path in PACKAGE.rglob("*") if path.suffix in (".html", ".css", ".js", ".cfg")]
    assert len(files) > 100
    naming = [path for path in files if path.is_file() and OUTSIDE in path.read_text(encoding="utf8")]
    assert [str(path.relative_to(ROOT)) for path in naming] == []


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("scoring.plan", "from ..metrics import get_metric", []),
        ("scoring.plan", "from .mask_blocks import x\nimport numpy", []),
        ("scoring.plan", "from ..corpus.readers import Record", ["scoring.plan imports corpus.readers.Record"]),
        ("corpus.runs", "def f():\n    from ..cli import app", ["corpus.runs imports cli.app"]),
        ("corpus.__init__", "from ..evaluation import scoring", ["corpus.__init__ imports evaluation.scoring"]),
        ("metrics", "import spacy_pll.component", ["metrics imports component"]),
        ("metrics", "import spacy_pll", ["metrics imports the package itself"]),
        ("metrics", "from spacy_pll import compare", ["metrics imports compare"]),
        ("pipelines", "from . import component, attributes", []),
        ("pipelines", "from . import visualize", ["pipelines imports visualize"]),
        (
            "component",
            "from .analysis.dataframe import to_dataframe",
            ["component imports analysis.dataframe.to_dataframe"],
        ),
        ("attributes", "from .component import PLLScorer", ["attributes imports component.PLLScorer"]),
        ("__init__", "from .cli import app", []),
    ],
)
def test_an_import_against_the_order_is_found(module, source, wrong):
    assert wrong_way(source, module) == wrong
