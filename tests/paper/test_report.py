import json
import re
import subprocess
from html.parser import HTMLParser
from importlib.metadata import version

import pytest

from scripts.paper.data import PHENOMENA
from scripts.paper.files import read_json
from scripts.paper.report import ANALYSES, Table, as_text, inline_svg, paragraphs, render

from ..browser import CHROMIUM

SECTIONS = ["summary", "oov", "inflation", "length", "frequency", "causal", "blimp", "runs"]


class Page(HTMLParser):
    """What a page links to, its ids, and whether its tags close."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.open, self.numbers = [], [], [], {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.numbers[tag] = self.numbers.get(tag, 0) + 1
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self._note(attributes)

    def handle_startendtag(self, tag, attributes):
        self._note(attributes)

    def _note(self, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href"):
                self.links.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_needs_no_other_file(results):
    page = Page((results / "report.html").read_text())
    assert not page.open and len(set(page.ids)) == len(page.ids)
    assert page.numbers["figure"] == page.numbers["svg"] == 7
    for link in page.links:
        assert link.startswith(("data:", "https://aclanthology.org/")) or link.removeprefix("#") in page.ids, link
    assert set(SECTIONS) <= set(page.ids)


def test_tables_of_thousands_of_rows_stay_in_files(results):
    assert "frequency/words.csv" in (results / "report.md").read_text()
    assert "Every word in every context" not in (results / "report.html").read_text()


def test_it_says_what_was_run(results, model_folder):
    for report in ("report.html", "report.md"):
        text = (results / report).read_text()
        assert str(model_folder("bert")) in text and re.search(r"sha256 [0-9a-f]{12}", text)
        assert (
            "BertForMaskedLM" in text
            and "GPT2LMHeadModel" in text
            and f"transformers {version('transformers')}" in text
        )


def test_it_has_what_each_analysis_says_about_itself(results):
    markdown, page = ((results / f"report.{kind}").read_text() for kind in ("md", "html"))
    for name in ANALYSES:
        about = read_json(results / name / "contents.json")["about"]
        assert about in markdown and paragraphs(about) in page


def test_published_figures_stand_below_ours(results):
    text = (results / "report.md").read_text()
    assert "| Human |  | published | 88.6 |" in text
    assert all(phenomenon in text for phenomenon in PHENOMENA.values())


def test_markdown_links_to_files_that_are_there(results):
    links = re.findall(r"\]\(((?!http)[^)]+)\)", (results / "report.md").read_text())
    assert len(links) > 20 and all((results / link).is_file() for link in links)


def test_pieces_of_the_page():
    assert as_text(None, ".1f") == as_text(float("nan"), "") == "–" and as_text(1.25, ".1f") == "1.2"
    assert paragraphs("a `<b>` c\n\nsee https://example.org/x.") == (
        '<p>a <code>&lt;b&gt;</code> c</p>\n<p>see <a href="https://example.org/x">https://example.org/x</a>.</p>'
    )
    svg = '<?xml?><svg width="1"><defs><path id="p"/></defs><use xlink:href="#p"/><g clip-path="url(#p)"/></svg>'
    assert inline_svg(svg, "a", "T").count("a-p") == 3 and "<?xml" not in inline_svg(svg, "a", "T")


class TinySection:
    """A section with one table, whose texts hold what has a meaning in HTML or Markdown."""

    name, title, about, files = "tiny", "<i>Title</i>", "About `<b>`", []
    items = [{"kind": "table", "name": "t", "caption": "The <u>caption</u>"}]

    def table(self, item):
        return Table(["name", "n"], [["<x>", "1,000"], ["a|b", "–"]], item["caption"])


def test_values_are_escaped():
    table = Table([], [])
    contents = dict(title="T & U", introduction="", about_summary="", summary=table, versions="", runs=table)
    page = render("report.html.jinja", sections=[TinySection()], **contents)
    assert '<tr><td>&lt;x&gt;</td><td class="number">1,000</td></tr>' in page
    assert "<title>T &amp; U</title>" in page and "<p>About <code>&lt;b&gt;</code></p>" in page
    assert not {"i", "u", "b", "x"} & Page(page).numbers.keys()
    markdown = render("report.md.jinja", sections=[TinySection()], **contents)
    assert "| name | n |\n| --- | --- |\n| <x> | 1,000 |\n| a\\|b | – |\n" in markdown and "# T & U\n" in markdown


MEASURE = """<script>
const sizes = [...document.querySelectorAll("figure svg")].map(svg => {
  const box = svg.getBoundingClientRect();
  return {width: box.width, height: box.height, shapes: svg.querySelectorAll("path, use, image").length};
});
const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
document.body.setAttribute("data-measured", JSON.stringify({sizes, wide}));
</script>"""


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="there is no chromium: apt-get install chromium")
def test_a_browser_shows_the_figures(results, tmp_path):
    page = (results / "report.html").read_text().replace("</body>", f"{MEASURE}</body>")
    (tmp_path / "report.html").write_text(page)
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,900", "--dump-dom"]
    run = subprocess.run(
        [*command, f"--user-data-dir={tmp_path / 'profile'}", (tmp_path / "report.html").as_uri()],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    found = re.search(r'data-measured="([^"]*)"', run.stdout)
    assert found, run.stderr[-2000:]
    measured = json.loads(found.group(1).replace("&quot;", '"'))
    assert len(measured["sizes"]) == 7 and measured["wide"] == 0
    for size in measured["sizes"]:
        assert size["width"] > 300 and size["height"] > 150 and size["shapes"] > 10
