"""All results on one page: RESULTS/report.html, which needs no other file, and RESULTS/report.md.

python -m scripts.paper.report

The two files are made by the templates report.html.jinja and report.md.jinja.
"""

import argparse
import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from .errors import PLLError, shown_errors
from .files import read_json, write_whole
from .output import CONTENTS
from .scores import Scores

ANALYSES = ["oov", "inflation", "length", "frequency", "causal", "blimp"]
TITLE = "Masked language model scoring: Kauf & Ivanova (2023) on your models"
INTRODUCTION = """Written by `python -m spacy project run report`. The paper: Carina Kauf and Anna Ivanova (2023), "A
Better Way to Do Masked Language Model Scoring", ACL, https://aclanthology.org/2023.acl-short.80/. All scores are
natural logarithms, summed over wordpieces. Words are the pre-tokens of the model's tokenizer (`words = "tokenizer"`).
"""
SUMMARY = """How each metric does on the four criteria of the paper. Longer sentences should be less likely: r of
negative score and length. Frequent words should score higher in a context that fits any word, "My word is _.": r of
score and log frequency. Sentences should be ordered as a left-to-right model orders them: r with its log-likelihood.
Grammatical sentences should score higher than their ungrammatical counterparts: accuracy on BLiMP, in percent."""


@dataclass(frozen=True)
class Table:
    """A table as it is shown: every cell is text."""

    heading: list[str]
    rows: list[list[str]]
    caption: str = ""

    @cached_property
    def numeric(self) -> list[bool]:
        """Whether each column has numbers only, which are aligned to the right."""
        number = re.compile(r"–|[-−]?[\d,.]+(e-?\d+)?|-?inf")
        return [all(number.fullmatch(row[i]) for row in self.rows) for i in range(len(self.heading))]


class Section:
    """One analysis, as it was written. `items` are its tables and figures, with their captions."""

    def __init__(self, folder: Path):
        self.name, self.folder = folder.name, folder
        contents = read_json(folder / CONTENTS)
        self.title, self.about, self.items = contents["title"], contents["about"], contents["items"]

    def rows(self, name: str) -> list[dict]:
        return read_json(self.folder / f"{name}.json")

    def table(self, item: dict) -> Table | None:
        """One of the items as a table; None for a figure, and for a table that is only in the files."""
        columns = item.get("show")
        if not columns:
            return None
        heading = [column.replace("_", " ") if column.islower() else column for column in columns]
        rows = [[as_text(row.get(column), form) for column, form in columns.items()] for row in self.rows(item["name"])]
        return Table(heading, rows, item["caption"])

    def drawing(self, item: dict) -> Markup:
        """One of the items, a figure, as an SVG element."""
        svg = (self.folder / f"{item['name']}.svg").read_text(encoding="utf8")
        return inline_svg(svg, f"{self.name}-{item['name']}", item["caption"])

    @property
    def files(self) -> list[str]:
        """The files of all items, below the folder of results."""
        endings = {"table": ("csv", "json"), "figure": ("svg", "png")}
        return [f"{self.name}/{item['name']}.{end}" for item in self.items for end in endings[item["kind"]]]


def as_text(value: float | str | None, form: str) -> str:
    """The text of a cell; a dash for an unknown value."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return str(value) if isinstance(value, str) or not form else format(value, form)


def runs(scores: Scores) -> Table:
    """Which texts were scored with which model."""
    rows = []
    for model in scores.models("masked") + scores.models("causal"):
        for path in sorted(scores.paths(model)):
            record = read_json(path)
            request, facts = record["request"], record["model"]
            identity = request["model"]
            revision = identity.get("commit") or f"sha256 {identity['digest'][:12]}"
            rows.append(
                [
                    model.title,
                    f"{identity['name']} ({revision})",
                    f"{facts['class']}, {facts['weights'] / 1e6:,.1f} M weights, {facts['vocabulary']:,} pieces",
                    request["collection"],
                    f"{request['texts']:,}",
                    f"{record['seconds']:,.0f} s on {facts['device']}",
                    record["finished"],
                ]
            )
    return Table(["model", "name and revision", "kind", "texts", "number", "time", "finished"], rows)


def versions(scores: Scores) -> str:
    """The package versions that made the scores, and the machine."""
    found: dict[str, dict[str, None]] = {}
    for model in scores.models("masked") + scores.models("causal"):
        for path in scores.paths(model):
            record = read_json(path)
            for package, version in record["request"]["versions"].items():
                found.setdefault(package, {})[version] = None
            found.setdefault("on", {})[record["machine"]] = None
    return ", ".join(f"{package} {' and '.join(values)}" for package, values in found.items())


def summary(sections: list[Section]) -> Table:
    """One row for each model and metric."""
    columns: dict[str, dict] = {"length": {}, "frequency": {}, "causal": {}, "blimp": {}}
    for section in sections:
        for item in section.items if section.name in columns else []:
            if item["name"] not in ("length", "frequency", "causal", "table-1"):
                continue
            column = columns[section.name]
            for row in section.rows(item["name"]):
                key = (row["model"], row["metric"])
                if section.name == "blimp" and row["source"] == "here":
                    column[key] = as_text(row["Overall"], ".1f")
                elif section.name in ("length", "causal") or row.get("context") == "my word":
                    # Of several data sets, or left-to-right models, the first one is shown.
                    column.setdefault(key, as_text(row["r"], ".3f"))
    keys = dict.fromkeys(key for column in columns.values() for key in column)
    rows = [[*key, *(column.get(key, "–") for column in columns.values())] for key in keys]
    return Table(["model", "metric", "r with length", "r with frequency", "r with left-to-right", "BLiMP"], rows)


def paragraphs(text: str) -> Markup:
    """Text as HTML. Blank lines separate paragraphs; `code` and addresses are marked."""
    out = []
    for part in text.split("\n\n"):
        part = str(escape(" ".join(part.split())))
        part = re.sub(r"`([^`]+)`", r"<code>\1</code>", part)
        part = re.sub(r"(https?://[^\s<]+[^\s<.,;])", r'<a href="\1">\1</a>', part)
        out.append(f"<p>{part}</p>")
    return Markup("\n".join(out))


def inline_svg(svg: str, prefix: str, title: str) -> Markup:
    """An SVG file's drawing as part of a page. All ids get the prefix, since a page has several drawings."""
    svg = svg[svg.index("<svg") :]
    # Matplotlib names images by their contents, which two drawings can share; nothing refers to these names.
    svg = re.sub(r' id="image[0-9a-f]+"', "", svg)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'((?:xlink:)?href=")#', rf"\1#{prefix}-", svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return Markup(svg.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1))


def render(template: str, **contents) -> str:
    """The text that a template in this folder makes. Values are escaped where it makes HTML."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=select_autoescape(["html.jinja"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["paragraphs"] = paragraphs
    return environment.get_template(template).render(contents)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    with shown_errors():
        scores = Scores(args.results)
        missing = [name for name in ANALYSES if not (args.results / name / CONTENTS).is_file()]
        if missing:
            raise PLLError(
                f"There are no results of {', '.join(missing)} in {args.results}. Make them: "
                f"python -m spacy project run {missing[0]}"
            )
        sections = [Section(args.results / name) for name in ANALYSES]
        contents = {
            "title": TITLE,
            "introduction": INTRODUCTION.strip(),
            "about_summary": SUMMARY,
            "summary": summary(sections),
            "sections": sections,
            "versions": f"Versions: {versions(scores)}.",
            "runs": runs(scores),
        }
        for name in ("report.md", "report.html"):
            write_whole(args.results / name, render(f"{name}.jinja", **contents))
        print(f"{args.results / 'report.html'} and {args.results / 'report.md'}")


if __name__ == "__main__":
    main()
