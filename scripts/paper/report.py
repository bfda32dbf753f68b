"""All results on one page: RESULTS/report.html, which needs no other file, and RESULTS/report.md.

python -m scripts.paper.report
"""

import argparse
import html
import math
import re
from pathlib import Path

from spacy_pll.cli.errors import shown_errors

from .files import read_json, write_whole
from .output import CONTENTS
from .scores import Scores

ANALYSES = ["oov", "inflation", "length", "frequency", "causal", "blimp"]
TITLE = "Masked language model scoring: Kauf & Ivanova (2023) on your models"
INTRODUCTION = """Written by `python -m spacy project run report`. The paper: Carina Kauf and Anna Ivanova (2023), "A
Better Way to Do Masked Language Model Scoring", ACL, https://aclanthology.org/2023.acl-short.80/. All scores are
natural logarithms, summed over wordpieces; a word is what the model's tokenizer takes for one (`words =
"tokenizer"`)."""
SUMMARY = """Each metric against what the paper asks of it: that long sentences be less likely (r of negative score and
length), that frequent words score higher in a context that fits any word (r of score and log frequency, "My word is
_."), that sentences be ordered as a left-to-right model orders them (r with its log-likelihood), and that grammatical
sentences score higher than their ungrammatical twins (BLiMP, percent)."""


class Section:
    """One analysis, as it was written. `items` are its tables and figures, with their captions."""

    def __init__(self, folder: Path):
        self.name, self.folder = folder.name, folder
        contents = read_json(folder / CONTENTS)
        self.title, self.about, self.items = contents["title"], contents["about"], contents["items"]

    def rows(self, name: str) -> list[dict]:
        return read_json(self.folder / f"{name}.json")

    def shown(self, item: dict) -> list[tuple[list[str], list[list[str]]]]:
        """Heading and rows of a table, as text; nothing for one that stays in the files."""
        columns = item["show"]
        if not columns:
            return []
        rows = [[as_text(row.get(column), form) for column, form in columns.items()] for row in self.rows(item["name"])]
        return [([column.replace("_", " ") if column.islower() else column for column in columns], rows)]


def as_text(value, form: str) -> str:
    """A cell; what is not known is a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return str(value) if isinstance(value, str) or not form else format(value, form)


def runs(scores: Scores) -> tuple[list[str], list[list[str]]]:
    """What was scored by what: heading and rows."""
    rows = []
    for model in scores.models("masked") + scores.models("causal"):
        for path in sorted(scores.paths(model)):
            record = read_json(path)
            request, facts = record["request"], record["model"]
            identity = request["model"]
            revision = identity.get("commit") or f"sha256 {identity['sha256'][:12]}"
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
    return ["model", "name and revision", "kind", "texts", "number", "time", "finished"], rows


def versions(scores: Scores) -> str:
    """The versions under which the scores were made, and on what machine."""
    found = {}
    for model in scores.models("masked") + scores.models("causal"):
        for path in scores.paths(model):
            record = read_json(path)
            for package, version in record["request"]["versions"].items():
                found.setdefault(package, {})[version] = None
            found.setdefault("on", {})[record["machine"]] = None
    return ", ".join(f"{package} {' and '.join(values)}" for package, values in found.items())


def summary(sections: dict[str, Section]) -> tuple[list[str], list[list[str]]]:
    """One row for each model and metric: heading and rows."""
    columns = {"length": {}, "frequency": {}, "causal": {}, "blimp": {}}
    for name, column in columns.items():
        section = sections.get(name)
        for item in section.items if section else []:
            if item["name"] not in ("length", "frequency", "causal", "table-1"):
                continue
            for row in section.rows(item["name"]):
                key = (row["model"], row["metric"])
                if name == "blimp" and row["source"] == "here":
                    column[key] = as_text(row["Overall"], ".1f")
                elif name == "frequency" and row["context"] == "my word" or name in ("length", "causal"):
                    # The first data set, and the first left-to-right model, stand for the others.
                    column.setdefault(key, as_text(row["r"], ".3f"))
    keys = dict.fromkeys(key for column in columns.values() for key in column)
    rows = [[*key, *(column.get(key, "–") for column in columns.values())] for key in keys]
    return ["model", "metric", "r with length", "r with frequency", "r with left-to-right", "BLiMP"], rows


# Markdown


def markdown_table(heading: list[str], rows: list[list[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def to_markdown(scores: Scores, sections: dict[str, Section]) -> str:
    """The report, with links to the figures."""
    parts = [f"# {TITLE}", INTRODUCTION, "## In short", SUMMARY, markdown_table(*summary(sections))]
    for section in sections.values():
        parts += [f"## {section.title}", section.about]
        for item in section.items:
            if item["kind"] == "figure":
                parts += [f"![{item['caption']}]({section.name}/{item['name']}.png)", f"*{item['caption']}.*"]
            for table in section.shown(item) if item["kind"] == "table" else []:
                parts += [f"**{item['caption']}**", markdown_table(*table)]
        if section.items:
            parts.append("Files: " + ", ".join(f"[{name}]({name})" for name in files(section)))
    parts += ["## What was run", f"Versions: {versions(scores)}.", markdown_table(*runs(scores))]
    return "\n\n".join(parts) + "\n"


def files(section: Section) -> list[str]:
    endings = {"table": ("csv", "json"), "figure": ("svg", "png")}
    return [f"{section.name}/{item['name']}.{end}" for item in section.items for end in endings[item["kind"]]]


# HTML

STYLE = """
:root { --ink: #1d2228; --soft: #5b6570; --line: #dde2e7; --paper: #ffffff; --shade: #f5f7f9; --link: #00619e }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --soft: #a3adb8; --line: #39424b; --paper: #171b20; --shade: #20262d; --link: #7cc4f5 }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", sans-serif }
main { max-width: 68rem; margin: 0 auto; padding: 2.5rem 1.5rem 5rem }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 1rem }
h2 { font-size: 1.35rem; margin: 3rem 0 .6rem; padding-top: 1.2rem; border-top: 1px solid var(--line) }
p { max-width: 46rem; margin: .6rem 0 }
a { color: var(--link) }
code { background: var(--shade); padding: .1em .3em; border-radius: 3px; font-size: .9em }
nav { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; margin: 1.2rem 0 0 }
.wide { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums }
caption { text-align: left; font-weight: 600; padding: .3rem 0; caption-side: top }
th, td { padding: .28rem .7rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap }
th { color: var(--soft); font-weight: 600; border-bottom-width: 2px }
td.number, th.number { text-align: right }
tr.published td { color: var(--soft); font-style: italic }
figure { margin: 1.6rem 0; padding: 1rem; background: #ffffff; border: 1px solid var(--line); border-radius: 8px }
figure svg { display: block; width: 100%; height: auto }
figcaption { color: #5b6570; font-size: .86rem; margin-top: .6rem }
"""


def paragraphs(text: str) -> str:
    """Blank lines part paragraphs; `code` and addresses are marked."""
    out = []
    for part in text.split("\n\n"):
        part = html.escape(" ".join(part.split()), quote=False)
        part = re.sub(r"`([^`]+)`", r"<code>\1</code>", part)
        part = re.sub(r"(https?://[^\s<]+[^\s<.,;])", r'<a href="\1">\1</a>', part)
        out.append(f"<p>{part}</p>")
    return "\n".join(out)


def html_table(heading: list[str], rows: list[list[str]], caption: str = "") -> str:
    numeric = [all(re.fullmatch(r"–|[-−]?[\d,.]+(e-?\d+)?|-?inf", row[i]) for row in rows) for i in range(len(heading))]

    def line(cells: list[str], tag: str) -> str:
        published = ' class="published"' if "published" in cells and tag == "td" else ""
        marked = [f"<{tag}{' class=number' * n}>{html.escape(cell)}</{tag}>" for cell, n in zip(cells, numeric)]
        return f"<tr{published}>{''.join(marked)}</tr>"

    body = "\n".join(line(row, "td") for row in rows)
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="wide"><table>{title}<thead>{line(heading, "th")}</thead><tbody>\n{body}\n</tbody></table></div>'
    )


def inline_svg(svg: str, prefix: str, title: str) -> str:
    """The drawing alone, with ids of its own: several drawings stand on one page."""
    svg = svg[svg.index("<svg") :]
    # Pictures in a drawing are named by their contents, which two can share; nothing refers to them.
    svg = re.sub(r' id="image[0-9a-f]+"', "", svg)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'((?:xlink:)?href=")#', rf"\1#{prefix}-", svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(title)}"', 1)


def to_html(scores: Scores, sections: dict[str, Section]) -> str:
    """The report as a page that needs no other file."""
    nav = "\n".join(f'<a href="#{s.name}">{html.escape(s.title)}</a>' for s in sections.values())
    parts = [f"<h1>{html.escape(TITLE)}</h1>", paragraphs(INTRODUCTION)]
    parts.append(f'<nav><a href="#summary">In short</a>\n{nav}\n<a href="#runs">What was run</a></nav>')
    parts += ['<h2 id="summary">In short</h2>', paragraphs(SUMMARY), html_table(*summary(sections))]
    for section in sections.values():
        parts += [f'<h2 id="{section.name}">{html.escape(section.title)}</h2>', paragraphs(section.about)]
        for item in section.items:
            if item["kind"] == "figure":
                svg = (section.folder / f"{item['name']}.svg").read_text(encoding="utf8")
                drawing = inline_svg(svg, f"{section.name}-{item['name']}", item["caption"])
                parts.append(f"<figure>{drawing}<figcaption>{html.escape(item['caption'])}.</figcaption></figure>")
            for table in section.shown(item) if item["kind"] == "table" else []:
                parts.append(html_table(*table, item["caption"]))
    parts += [
        '<h2 id="runs">What was run</h2>',
        paragraphs(f"Versions: {versions(scores)}."),
        html_table(*runs(scores)),
    ]
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{html.escape(TITLE)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{STYLE}</style>\n</head>\n'
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    with shown_errors():
        scores = Scores(args.results)
        missing = [name for name in ANALYSES if not (args.results / name / CONTENTS).is_file()]
        if missing:
            raise ValueError(
                f"There are no results of {', '.join(missing)} in {args.results}. Make them: "
                f"python -m spacy project run {missing[0]}"
            )
        sections = {name: Section(args.results / name) for name in ANALYSES}
        write_whole(args.results / "report.md", to_markdown(scores, sections))
        write_whole(args.results / "report.html", to_html(scores, sections))
        print(f"{args.results / 'report.html'} and {args.results / 'report.md'}")


if __name__ == "__main__":
    main()
