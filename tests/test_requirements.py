"""What the package imports is what setup.cfg says it needs, and what people are told to type for the rest."""

import ast
import configparser
import json
import re
import sys
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from spacy_pll import requirements as own_requirements
from spacy_pll.requirements import install_command

from .doc_commands import read_groups

pytestmark = pytest.mark.core

ROOT = Path(__file__).parents[1]
# Not required: it is there where its notebooks are, and is asked for nowhere else.
NOTEBOOKS = {"IPython"}
NEWER_PYTHON = {"compression"}  # part of Python 3.14


def requirements(text: str) -> set[str]:
    names = re.findall(r"^[A-Za-z0-9_.-]+", text, re.MULTILINE)
    return {normalised(name) for name in names}


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imports(path: Path) -> set[str]:
    """The top-level modules that a module imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.fixture(scope="module")
def config():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf8")
    return parser


@pytest.fixture(scope="module")
def bounds(config):
    """The versions of each required package."""
    lines = config["options"]["install_requires"].splitlines()
    return {normalised(one.name): one.specifier for one in map(Requirement, filter(None, lines))}


@pytest.fixture(scope="module")
def third_party():
    """Module name: the files that import it."""
    found = {}
    for path in sorted((ROOT / "spacy_pll").rglob("*.py")):
        for name in imports(path) - set(sys.stdlib_module_names) - NOTEBOOKS - NEWER_PYTHON - {"spacy_pll"}:
            found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found


installed = cache(packages_distributions)


def distributions(module: str) -> set[str]:
    """The distributions that bring a module; where it is not installed, the one of its name."""
    return {normalised(name) for name in installed().get(module, [module])}


def test_each_import_is_declared(config, third_party):
    declared = requirements(config["options"]["install_requires"])
    for extra in config["options.extras_require"].values():
        declared |= requirements(extra)
    assert {"torch", "spacy", "numpy"} <= set(third_party)
    missing = {name: files for name, files in third_party.items() if not distributions(name) & declared}
    assert not missing


def test_nothing_is_declared_without_need(config, third_party):
    needed = set().union(*(distributions(name) for name in third_party))
    assert requirements(config["options"]["install_requires"]) - needed == set()


def pins(name: str) -> dict:
    lines = (ROOT / name).read_text(encoding="utf8").splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {normalised(one.name): one for one in pinned}


@pytest.mark.parametrize("path", sorted(ROOT.glob("constraints*.txt")), ids=lambda path: path.stem)
def test_constraints_are_of_versions_that_are_allowed(bounds, path):
    pinned = pins(path.name)
    for package in set(bounds) & set(pinned):
        (pin,) = pinned[package].specifier
        assert bounds[package].contains(pin.version), package
    if path.stem == "constraints-spacy-transformers":
        assert not pinned.items() & pins("constraints.txt").items(), "only what differs"
    else:
        assert set(bounds) <= set(pinned)


def test_the_oldest_constraints_are_the_lower_bounds(bounds):
    pinned = pins("constraints-oldest.txt")
    for package, allowed in bounds.items():
        (pin,) = pinned[package].specifier
        (lower,) = [bound for bound in allowed if bound.operator == ">="]
        assert Version(lower.version) == Version(pin.version), package


def test_the_readme_names_the_oldest_versions(bounds):
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    named = {"PyTorch": "torch", "spaCy": "spacy", "transformers": "transformers", "NumPy": "numpy"}
    for name, package in named.items():
        (lower,) = [bound.version for bound in bounds[package] if bound.operator == ">="]
        assert f"{name} {lower}" in " ".join(readme.split()), package


def test_the_tested_spacy_transformers_is_the_oldest_that_is_allowed(config):
    extra = Requirement(config["options.extras_require"]["spacy-transformers"].strip())
    (pin,) = pins("constraints-spacy-transformers.txt")["spacy-transformers"].specifier
    (lower,) = [bound for bound in extra.specifier if bound.operator == ">="]
    assert Version(lower.version) == Version(pin.version)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'spacy-pll[plot]'"),
        ({"url": "file:///a%20b/clone", "dir_info": {}}, "pip install '/a b/clone[plot]'"),
        ({"url": "file:///clone", "dir_info": {"editable": True}}, "pip install -e '/clone[plot]'"),
        ({"url": "file:///x/spacy_pll-1.0.0.whl", "archive_info": {}}, "pip install '/x/spacy_pll-1.0.0.whl[plot]'"),
        (
            {"url": "https://a.b/c.git", "vcs_info": {"vcs": "git"}},
            "pip install 'spacy-pll[plot] @ git+https://a.b/c.git'",
        ),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came_from(origin, command, monkeypatch):
    note = SimpleNamespace(read_text=lambda name: origin and json.dumps(origin))
    monkeypatch.setattr(own_requirements, "distribution", {"spacy-pll": note}.__getitem__)
    assert install_command("plot") == command


def test_an_extra_of_a_package_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(own_requirements, "NAME", "no-such-package")
    assert install_command("plot") == "pip install 'no-such-package[plot]'"


def test_the_command_for_extras_is_written_in_one_place():
    """On pages, that is the one about installing."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.ipynb")]
    files += [path for folder in ("spacy_pll", "scripts", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    naming = [path.name for path in files if "spacy-pll[" in path.read_text(encoding="utf8")]
    assert len(files) > 100 and naming == ["install.md"]


def test_the_extras_that_are_named_are_there(config):
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.ipynb")]
    extras = {name for page in pages for name in re.findall(r"`\[([a-z0-9-]+)\]`", page.read_text(encoding="utf8"))}
    for path in (ROOT / "spacy_pll").rglob("*.py"):
        extras |= set(re.findall(r"\b(?:install_command|extra)\([\"'](\w+)[\"']", path.read_text(encoding="utf8")))
    assert {"plot", "dataframe", "explore", "ray", "rescore"} <= extras <= set(config["options.extras_require"])


def test_the_groups_that_are_named_are_there():
    """The groups are for who works on the package: no wheel has them, and each is named where it is needed."""
    files = [ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("constraints*.txt")]
    files += [*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    named = {
        name for file in files for name in re.findall(r"--group ([a-z][a-z0-9-]+)", file.read_text(encoding="utf8"))
    }
    assert named == set(read_groups())
    lanes = set(re.findall(r"^    install \S+ \S+ (\S+)$", (ROOT / ".ci" / "run").read_text(encoding="utf8"), re.M))
    assert lanes == named - {"project"}


def test_what_is_always_installed_is_named_once(config):
    required = requirements(config["options"]["install_requires"])
    for extra in config["options.extras_require"].values():
        assert not requirements(extra) & required, extra
    for group in read_groups().values():
        assert not requirements("\n".join(one for one in group if isinstance(one, str))) & required, group


def test_groups_name_extras_that_are_there(config):
    for group in read_groups().values():
        for one in filter(lambda one: isinstance(one, str) and one.startswith("spacy-pll["), group):
            assert Requirement(one).extras <= set(config["options.extras_require"]), one
