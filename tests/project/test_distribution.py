"""What is released: the wheel and the source distribution, built as for a release."""

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FOLDERS = ["spacy_pll", "tests", "scripts", "benchmarks", "configs", "docs", "examples", "recipe", ".ci", ".github"]
ENDINGS = (".cfg", ".cff", ".in", ".md", ".py", ".toml", ".txt", ".yml")


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the files that belong to the project, so that a build leaves nothing behind here."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in [ROOT / "LICENSE", *(path for path in ROOT.iterdir() if path.suffix in ENDINGS)]:
        shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def expected(checkout):
    return files_below(checkout)


@pytest.fixture(scope="module")
def archives(checkout, expected, tmp_path_factory):
    """The source distribution, and the wheel that is built from it. A warning of setuptools is an error."""
    pytest.importorskip("build", reason="build is not installed: pip install . --group test-all")
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder],
        cwd=checkout, env={**os.environ, "PYTHONWARNINGS": "error::UserWarning"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def metadata(archives):
    with zipfile.ZipFile(archives[1]) as files:
        [name] = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(files.read(name))


def test_the_source_distribution_has_all_files_of_the_project(archives, expected):
    """The suite, what it reads, and what builds and checks the package; besides only what setuptools makes."""
    with tarfile.open(archives[0]) as files:
        names = {member.name.partition("/")[2] for member in files.getmembers() if member.isfile()}
    assert expected <= names
    assert {name for name in names - expected if not name.startswith("spacy_pll.egg-info/")} == {"PKG-INFO"}


def test_the_wheel_has_all_files_of_the_package_and_no_others(archives, expected):
    with zipfile.ZipFile(archives[1]) as files:
        names = set(files.namelist())
    package = {name for name in names if ".dist-info/" not in name}
    assert package == {name for name in expected if name.startswith("spacy_pll/")}
    needed = {"py.typed", "language_model/builtin/model.safetensors", "language_model/builtin/tokenizer.json"}
    needed |= {f"visualize/{name}" for name in ("articles.html", "page.html", "page.js", "page_frame.css", "style.css")}
    assert {f"spacy_pll/{name}" for name in needed} <= package
    about = {name.partition(".dist-info/")[2] for name in names - package}
    assert about == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "top_level.txt", "licenses/LICENSE"}


def test_what_an_earlier_build_left_is_not_packed(tmp_path):
    """`pip install .` packs what is in the package now, and leaves no folder `build`."""
    checkout = tmp_path / "checkout"
    (checkout / "spacy_pll").mkdir(parents=True)
    (checkout / "spacy_pll" / "__init__.py").touch()
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, checkout]
    subprocess.run(command, check=True, capture_output=True)
    assert not (checkout / "build").exists()
    (checkout / "build" / "lib" / "spacy_pll").mkdir(parents=True)
    (checkout / "build" / "lib" / "spacy_pll" / "gone.py").touch()
    subprocess.run(command, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as files:
        assert [name for name in files.namelist() if ".dist-info/" not in name] == ["spacy_pll/__init__.py"]


def test_package_indexes_accept_both(archives):
    pytest.importorskip("twine", reason="twine is not installed: pip install . --group test-all")
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *archives], capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout + done.stderr


def test_the_metadata_says_where_to_find_what(metadata):
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf8")
    assert metadata["Version"] == config["metadata"]["version"]
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL"))
    assert {"Source", "Documentation", "Changelog", "Issues"} <= set(urls)
    classifiers = metadata.get_all("Classifier")
    for minor in range(10, 14):
        assert f"Programming Language :: Python :: 3.{minor}" in classifiers
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata.get_payload().startswith("# spacy-pll")


def test_the_page_on_package_indexes_has_full_links(metadata):
    """Those of README.md, under the only name of the repository."""
    page, readme = metadata.get_payload(), (ROOT / "README.md").read_text(encoding="utf8")
    targets = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", page)
    expected = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", readme)
    url = metadata["Home-page"]
    for (picture, target), (_, relative) in zip(targets, expected, strict=True):
        assert target == (relative if "://" in relative else f"{url}/{'raw' if picture else 'blob'}/HEAD/{relative}")
    assert len([target for _, target in targets if target.startswith(url)]) > 20
    assert page.count("](") == readme.count("](")


def test_installing_it_leaves_transformers_as_it_is(archives):
    """In the environment of this test, which has transformers 5 unless it is that for spacy-transformers.

    Nothing of it needs to be fetched: what the package requires is there.
    """
    done = resolve("--no-index", archives[1])
    assert done.returncode == 0, done.stderr
    changed = {one["metadata"]["name"] for one in json.loads(done.stdout)["install"]}
    assert changed <= {"spacy-pll"}


def resolve(*arguments: Path | str) -> subprocess.CompletedProcess:
    """What pip would install: the report is its output."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--report", "-", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def write_torch(folder: Path, version: str, sympy: str):
    """A wheel with PyTorch's name and what it requires beside its own libraries: pip would load gigabytes to read that.

    The local part of the version makes pip prefer it to an index's.
    """
    about = f"torch-{version}+stand.in.dist-info"
    needed = ["filelock", "fsspec", "jinja2", "networkx", "typing-extensions>=4.10.0", f"sympy{sympy}"]
    lines = ["Metadata-Version: 2.1", "Name: torch", f"Version: {version}+stand.in"]
    with zipfile.ZipFile(folder / f"torch-{version}+stand.in-py3-none-any.whl", "w") as file:
        file.writestr(f"{about}/METADATA", "\n".join([*lines, *(f"Requires-Dist: {one}" for one in needed), ""]))
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")


@pytest.mark.parametrize(
    ("torch", "sympy", "others"),
    [
        ("2.6.0", "==1.13.1", []),
        ("2.6.0", "==1.13.1", ["transformers==5.*"]),
        ("2.7.0", ">=1.13.3", ["transformers==4.51.3", "numpy==2.2.5"]),  # the pins of BabyLM's pipeline of 2026
    ],
)
def test_pip_finds_versions_beside_those_that_people_have(archives, tmp_path, torch, sympy, others):
    """As in an environment where nothing is installed yet. What pip finds is not installed."""
    if resolve("--ignore-installed", "--no-deps", "wasabi").returncode:
        pytest.skip("pip reaches no package index")
    write_torch(tmp_path, torch, sympy)
    done = resolve("--ignore-installed", "--find-links", tmp_path, archives[1], f"torch=={torch}", *others)
    assert done.returncode == 0, done.stderr
    found = {one["metadata"]["name"].lower(): one["metadata"]["version"] for one in json.loads(done.stdout)["install"]}
    assert found["torch"] == f"{torch}+stand.in" and "spacy-pll" in found
    assert all(found[one.partition("==")[0]].startswith(one.partition("==")[2].rstrip("*")) for one in others)


def test_the_source_distribution_passes_core_tests(archives, tmp_path):
    with tarfile.open(archives[0]) as files:
        files.extractall(tmp_path, **{"filter": "data"} if hasattr(tarfile, "data_filter") else {})  # Python 3.11.4
    [folder] = tmp_path.iterdir()
    # The code next to the tests is tested, not an installed copy.
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "core", "-n", "0", "tests/scoring/test_wordpieces.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) > 30  # without data sets
