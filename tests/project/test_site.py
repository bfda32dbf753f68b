"""The documentation site: its parts name all that there is. Only .ci/run builds it."""

import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import srsly
import typer

import spacy_pll
from spacy_pll.cli import app

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.fixture
def pages():
    """The hook of MkDocs."""
    return importlib.import_module("scripts.docs_site.pages")


@pytest.fixture
def docstrings(monkeypatch):
    """The extension of Griffe, which is installed only where the site is built."""
    stand_in = SimpleNamespace(Extension=object, Object=None, Attribute=None)
    monkeypatch.setitem(sys.modules, "griffe", stand_in)
    return importlib.import_module("scripts.docs_site.docstrings")


def test_every_page_is_in_the_navigation(pages):
    sections = srsly.read_yaml(ROOT / "mkdocs.yml")["nav"]
    listed = [name for section in sections for part in section.values() for page in part for name in page.values()]
    assert sorted(listed) == sorted({page.name for page in PAGES} - {"README.md"} | set(pages.OUTSIDE))
    groups = ["Start", "Words and sentences", "Corpora", "Evaluating models", "Other uses", "Reference", "Background"]
    assert [name for section in sections for name in section] == groups


def test_the_list_of_pages_on_github_is_the_navigation(pages):
    assert (ROOT / "docs" / "README.md").read_text(encoding="utf8") == pages.list_pages(), (
        "python -m scripts.docs_site.pages"
    )


@pytest.mark.parametrize(
    ("page", "link", "target"),
    [
        ("settings.md", "speed.md#gpu", "speed.md#gpu"),
        ("settings.md", "#long-texts", "#long-texts"),
        ("settings.md", "https://spacy.io", "https://spacy.io"),
        ("settings.md", "../README.md#extras", "index.md#extras"),
        ("settings.md", "README.md", "index.md"),
        ("spacy.md", "../configs/exact.cfg", "URL/blob/HEAD/configs/exact.cfg"),
        ("index.md", "examples", "URL/tree/HEAD/examples"),
        ("index.md", "docs/hungry.png", "hungry.png"),
        ("index.md", "docs/spacy.md", "spacy.md"),
        (
            "built-in-model.md",
            "../../../docs/experiments.md#six-metrics-compared",
            "experiments.md#six-metrics-compared",
        ),
        ("benchmarks.md", "../docs/experiments.md", "experiments.md"),
    ],
)
def test_where_links_lead_on_the_site(pages, page, link, target):
    assert pages.target(link, page) == target.replace("URL", pages.repository())


def test_links_in_text_are_mended_and_code_stays_as_it_is(pages):
    page = "See [a\nb](../README.md), ![c](render.png).\n\n```python\nx = f[0](../README.md)\n```\n\n[d](../LICENSE)\n"
    mended = page.replace("[a\nb](../README.md)", "[a\nb](index.md)")
    mended = mended.replace("(../LICENSE)", f"({pages.repository()}/blob/HEAD/LICENSE)")
    assert pages.mend_links(page, "analysis.md") == mended


def test_tables_of_settings_can_be_lists(pages):
    table = "<table>\n<thead>\n<tr>\n<th>setting</th>\n<th><code>on</code></th>\n</tr>\n</thead>\n<tbody>\n<tr>\n"
    table += '<td>a</td>\n<td style="x">b</td>\n</tr>\n</tbody>\n</table>'
    page = SimpleNamespace(file=SimpleNamespace(src_uri="settings.md"))
    html = pages.on_page_content(f"<p>{table}</p>", page)
    assert html.startswith('<p><div class="listed"><table>') and html.endswith("</table></div></p>")
    assert '<td data-heading="setting">a</td>' in html and '<td data-heading="on" style="x">b</td>' in html
    page.file.src_uri = "speed.md"
    assert pages.on_page_content(table, page) == table


def test_options_in_a_line_of_text_are_whole(pages):
    page = SimpleNamespace(file=SimpleNamespace(src_uri="speed.md"))
    block = "<pre><span></span><code>pll --metrics a\n</code></pre><pre><code>b --n</code></pre>"
    html = f"<p><code>python -m pll --metrics a-b</code> and <code>word-l2r</code></p>{block}"
    whole = "<span class=option>-m</span> pll <span class=option>--metrics</span>"
    expected = html.replace("-m pll --metrics", whole, 1)
    assert pages.on_page_content(html, page) == expected


def test_the_header_has_a_link_to_the_repository(pages, tmp_path):
    icon = tmp_path / ".icons" / "fontawesome" / "brands" / "github.svg"
    icon.parent.mkdir(parents=True)
    icon.write_text("<svg></svg>")
    config = SimpleNamespace(theme=SimpleNamespace(dirs=["none", str(tmp_path)]))
    for made in (pages.on_post_page, pages.on_post_template):  # of pages, and of the one for unknown addresses
        html = made(f"<header>{pages.SEARCH}</header><p>{pages.SEARCH}</p>", config=config)
        assert html.count(f'href="{pages.repository()}"') == html.count("<svg></svg>") == 1
    assert pages.on_post_template("<urlset></urlset>", config=config) == "<urlset></urlset>"
    assert html.index("<svg>") < html.index(pages.SEARCH)


def test_the_page_about_python_names_what_is_public(pages):
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf8")
    names = [name for part in pages.PYTHON.findall(text) for name in part.split()]
    assert len(set(names)) == len(names)
    for name in names:
        module, _, last = name.rpartition(".")
        if module != "spacy_pll.distributed":  # needs Ray
            assert getattr(importlib.import_module(module), last).__doc__, name
    public = {f"spacy_pll.{name}" for name in spacy_pll.__all__ if name != "visualize"}
    assert public | {f"spacy_pll.visualize.{name}" for name in spacy_pll.visualize.__all__} <= set(names)


def test_the_options_of_all_commands(pages):
    assert pages.COMMANDS in (ROOT / "docs" / "command-line.md").read_text(encoding="utf8")
    text = pages.command_options()
    commands = typer.main.get_command(app).commands
    assert re.findall(r"^### `spacy-pll ([\w-]+)`$", text, re.MULTILINE) == list(commands)
    rows = re.findall(r"^\| `(.+?)` \| .+ \|$", text, re.MULTILINE)
    assert len(rows) == sum(len(command.params) + command.add_help_option for command in commands.values())
    assert "--words [spacy|tokenizer|whitespace|piece]" in rows and "INPUT <str>" in rows


DOCSTRING = """Score texts.

a, b (Union[str, Doc]): The two
    versions.
word (int array, shape (pieces,)): The word.
column: As elsewhere.
The rest: as there.
RETURNS (dict): Values: plain ones.
RAISES (ValueError): None."""
MARKDOWN = """Score texts.

- `a`, `b` (`Union[str, Doc]`): The two
    versions.
- `word` (`int array, shape (pieces,)`): The word.
- `column`: As elsewhere.

The rest: as there.

- **Returns** (`dict`): Values: plain ones.
- **Raises** (`ValueError`): None."""


def test_docstrings_become_lists(docstrings):
    assert docstrings.markdown(DOCSTRING, ["a", "b", "word", "column"]) == MARKDOWN
    assert "- `column`" not in docstrings.markdown(DOCSTRING, [])


@pytest.mark.parametrize(
    ("source", "comment"),
    [
        ("start: int  # the character at which it begins", "the character at which it begins"),
        ("start: int", None),
        ("start: int = f()  # type: ignore[arg]", None),
    ],
)
def test_the_comment_behind_a_field_says_what_it_is(docstrings, monkeypatch, source, comment):
    monkeypatch.setattr(docstrings.griffe, "Docstring", lambda text, parent: text, raising=False)
    field = SimpleNamespace(docstring=None, source=source)
    docstrings.SpacyStyle().on_attribute_instance(attr=field)
    assert field.docstring == comment
