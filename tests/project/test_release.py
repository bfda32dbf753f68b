"""What a release repeats of setup.cfg, where nothing can fill it in: a recipe for conda, an entry, forms, pages."""

import re
import shlex
import subprocess
import sys

import pytest
import srsly
from jinja2 import Template

import spacy_pll

from ..doc_commands import read_setup_cfg
from ..doc_examples import ROOT

CONFIG = read_setup_cfg()
URL = CONFIG["metadata"]["url"]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
CONDA_NAMES = {"torch": "pytorch"}  # where conda-forge has another name than package indexes


@pytest.fixture
def recipe():
    text = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf8")
    return srsly.yaml_loads(Template(text).render(PYTHON="python", python_min="3.10"))


def test_the_recipe_requires_what_setup_cfg_does(recipe):
    needed = [
        re.fullmatch(r"([\w-]+)(.+)", line).groups() for line in CONFIG["options"]["install_requires"].split("\n")[1:]
    ]
    expected = {f"{CONDA_NAMES.get(name, name)} {versions}" for name, versions in needed}
    python = f"python {CONFIG['options']['python_requires']}"
    assert len(expected) > 10 and set(recipe["requirements"]["run"]) == expected | {python}
    scripts = CONFIG["options.entry_points"]["console_scripts"].strip()
    assert recipe["build"]["entry_points"] == [scripts]


def test_the_recipe_is_of_this_version(recipe):
    about = CONFIG["metadata"]
    assert str(recipe["package"]["version"]) == about["version"] and recipe["package"]["name"] == about["name"]
    assert recipe["source"]["url"].endswith(f"/spacy_pll-{about['version']}.tar.gz")
    assert recipe["about"]["home"] == URL and recipe["about"]["license"] == about["license"]


def test_the_address_of_the_repository_is_that_of_setup_cfg():
    """Wherever it is written: moving the repository is `url` in setup.cfg, and what this test names."""
    address = re.compile(rf"https://github\.com/[\w-]+/{re.escape(CONFIG['metadata']['name'])}\b")
    written = {}
    for folder in ("", "docs", "recipe", "spacy_pll", "scripts", "examples", ".github"):
        for path in (ROOT / folder).rglob("*") if folder else ROOT.glob("*"):
            if path.is_file() and path.suffix in (".cff", ".cfg", ".ipynb", ".json", ".md", ".py", ".yaml", ".yml"):
                if found := set(address.findall(path.read_text(encoding="utf8"))):
                    written[path.relative_to(ROOT).as_posix()] = found
    assert {path: found for path, found in written.items() if found != {URL}} == {}
    others = {
        "README.md",
        "SECURITY.md",
        "CITATION.cff",
        "docs/citing.md",
        "docs/install.md",
        "docs/universe.json",
        "recipe/meta.yaml",
    }
    assert set(written) == {"setup.cfg", *others, ".github/ISSUE_TEMPLATE/config.yml"}


def test_pages_that_change_once_the_package_is_on_an_index_are_those_of_the_note():
    pages = [path for folder in ("", "docs") for path in (ROOT / folder).glob("*.md") if path.stem != "RELEASING"]
    written = {
        path.relative_to(ROOT).as_posix()
        for path in pages
        if re.search(r"not on PyPI|pip install git\+", path.read_text(encoding="utf8"))
    }
    note = (ROOT / "RELEASING.md").read_text(encoding="utf8")
    assert written == {"README.md", "docs/install.md"} and all(page in note for page in written)


def test_issue_forms_have_what_github_asks_for():
    """GitHub leaves out a form that is not valid, without a word."""
    assert {form.stem for form in FORMS} == {"bug", "config", "feature", "question"}
    for form in map(srsly.read_yaml, FORMS):
        if "contact_links" in form:
            assert all(set(link) == {"name", "url", "about"} for link in form["contact_links"])
        else:
            assert form["name"] and form["description"] and form["body"]
            assert len({part["id"] for part in form["body"]}) == len(form["body"])
            assert all(part["type"] in ("input", "textarea") and part["attributes"]["label"] for part in form["body"])


def test_the_command_in_the_form_for_bugs_prints_versions():
    versions = srsly.read_yaml(ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml")["body"][0]["attributes"]["value"]
    python, *arguments = shlex.split(versions)
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert python == "python" and f"spacy-pll={spacy_pll.__version__}" in done.stdout, done.stderr
