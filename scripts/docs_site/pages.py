"""A hook of MkDocs: it makes the documentation site from the pages as GitHub shows them (see mkdocs.yml).

Some pages of the site are files outside docs. Links to files that are not on the site lead to the repository. Where a
page has the comment `<!-- python: NAME ... -->`, the site has the docstrings of these names, and in the place of
`<!-- commands -->` it has the options of all commands. `python -m scripts.docs_site.pages` writes docs/README.md from
the navigation of mkdocs.yml.
"""

import posixpath
import re
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Pages of the site that are not in docs. README.md takes the place of docs/README.md, a list of pages as `nav` is one.
OUTSIDE = {
    "index.md": "README.md",
    "built-in-model.md": "spacy_pll/language_model/builtin/README.md",
    "benchmarks.md": "benchmarks/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
ON_SITE = {"docs/README.md": "index.md", **{path: name for name, path in OUTSIDE.items()}}
# How much pages weigh in the search of the site, against 1: these have a word on everything.
WEIGHTS = {
    "changelog.md": 0.1,
    **dict.fromkeys(["python.md", "built-in-model.md", "benchmarks.md", "contributing.md", "command-line.md"], 0.3),
    **dict.fromkeys(["experiments.md", "project.md", "reliability.md"], 0.5),
    **dict.fromkeys(["how-do-i.md", "tutorial.md"], 2),
}
# Headings of the members of classes, which the search leaves out: "is" is meant as a verb, and not as `is_gold`.
MEMBER = re.compile(r"<h[4-6](?= )")
FENCED = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(\[[^]]*\]\()([^)\s]+)(?=\))")
PYTHON = re.compile(r"<!-- python: (.+?) -->", re.DOTALL)
COMMANDS = "<!-- commands -->"
# Pages whose tables have too much text for the columns of a phone.
LISTED = ["index.md", "settings.md", "command-line.md"]
# Names of options in the text, which a line would break after their hyphens.
INLINE = re.compile(r"(?<!<pre>)(?<!<span></span>)<code>([^<\n]+)</code>")
OPTION = re.compile(r"(?<![^\s>])-[^\s\[<]+")
SEARCH = '<label class="md-header__button md-icon" for="__search">'
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)


def repository() -> str:
    """The address of the repository. setup.cfg is the only place that has it."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf8")
    return config["metadata"]["url"]


def on_config(config):
    # Not as `repo_url`: with it, every page asks GitHub for the number of stars.
    config.extra["social"] = [{"icon": "fontawesome/brands/github", "link": repository(), "name": "The repository"}]


def on_files(files, config):
    from mkdocs.structure.files import File

    for name, path in OUTSIDE.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))


def on_page_markdown(markdown: str, page, **_) -> str:
    page.meta["search"] = {"boost": WEIGHTS.get(page.file.src_uri, 1)}
    markdown = PYTHON.sub(docstrings, mend_links(markdown, page.file.src_uri))
    return markdown.replace(COMMANDS, command_options()) if COMMANDS in markdown else markdown


def on_page_content(html: str, page, **_) -> str:
    if page.file.src_uri == "python.md":
        html = MEMBER.sub(r"\g<0> data-search-exclude", html)
    html = INLINE.sub(whole_options, html)
    return TABLE.sub(as_list, html) if page.file.src_uri in LISTED else html


def on_post_template(html: str, config, **_) -> str:
    """The page for addresses that are not there is made of a template alone."""
    return on_post_page(html, config)


def on_post_page(html: str, config, **_) -> str:
    icons = (Path(folder) / ".icons/fontawesome/brands/github.svg" for folder in config.theme.dirs)
    icon = next(path for path in icons if path.is_file()).read_text(encoding="utf8")
    return html.replace(SEARCH, repository_link(icon) + SEARCH, 1)


def repository_link(icon: str) -> str:
    """A button of the header. icon (str): An image in SVG."""
    name = 'title="The repository" aria-label="The repository"'
    return f'<a class="md-header__button md-icon" href="{repository()}" {name}>{icon}</a>\n'


def whole_options(code: re.Match) -> str:
    """Code in a line of text, whose options site.css does not break."""
    return OPTION.sub(r"<span class=option>\g<0></span>", code[0])


def as_list(table: re.Match) -> str:
    """A table that site.css shows as a list on a phone: each cell has the heading of its column."""
    headings = re.findall(r"<th[^>]*>(.*?)</th>", table[0])

    def label(row: re.Match) -> str:
        cells = iter(headings)
        return re.sub(r"<td", lambda cell: f'<td data-heading="{re.sub("<.*?>", "", next(cells, ""))}"', row[0])

    return f'<div class="listed">{re.sub(r"<tr>.*?</tr>", label, table[0], flags=re.DOTALL)}</div>'


def mend_links(markdown: str, page: str) -> str:
    """A page with links that work on the site.

    page (str): Its name on the site.
    """
    parts = FENCED.split(markdown)
    parts[::2] = [LINK.sub(lambda link: link[1] + target(link[2], page), part) for part in parts[::2]]
    return "".join(parts)


def target(link: str, page: str) -> str:
    """Where a relative link of a page leads to: to a page or picture of the site, or else to the repository."""
    if re.match(r"[a-z]+:|#", link):
        return link
    path, hash_, anchor = link.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(OUTSIDE.get(page, f"docs/{page}")), path))
    if path not in ON_SITE and not re.fullmatch(r"docs/[^/]+\.(md|png|svg)", path):
        return f"{repository()}/{'tree' if (ROOT / path).is_dir() else 'blob'}/HEAD/{path}{hash_}{anchor}"
    return ON_SITE.get(path, path.removeprefix("docs/")) + hash_ + anchor


def docstrings(names: re.Match) -> str:
    """What mkdocstrings replaces with the docstrings."""
    return "\n\n".join(f"::: {name}" for name in names[1].split())


def list_pages() -> str:
    """What docs/README.md is: the pages of the navigation, for who reads them on GitHub."""
    import srsly

    lines = ["# Documentation", ""]
    for section in srsly.read_yaml(ROOT / "mkdocs.yml")["nav"]:
        for title, pages in section.items():
            lines += [f"## {title}", ""]
            for name, page in [item for one in pages for item in one.items()]:
                lines.append(f"- [{name}]({posixpath.relpath(OUTSIDE[page], 'docs') if page in OUTSIDE else page})")
            lines.append("")
    return "\n".join(lines)


def command_options() -> str:
    """What `--help` says of each command, as tables."""
    import typer

    from spacy_pll.cli import app

    commands = typer.main.get_group(app).commands
    return "\n\n".join(
        options(command.make_context(name, [], resilient_parsing=True)) for name, command in commands.items()
    )


def options(context) -> str:
    """The help of a command in Markdown.

    context (click.Context): That of the command.
    """
    from spacy_pll.cli.help import parts, under_headings
    from spacy_pll.documentation import NAMED

    records = {one.name: one.get_help_record(context) for one in context.command.get_params(context)}
    arguments = [one.name for one in context.command.params if one.param_type_name == "argument"]
    options = [name for name in records if name not in arguments]
    names = [*arguments, *(name for _, names in under_headings(options) for name in names)]
    meanings = {name: NAMED.sub(r"[docs/\1](\1)", records[name][1]) for name in names}
    rows = [f"| `{records[name][0]}` | {meanings[name]} |" for name in names]
    table = "\n".join(["| option | meaning |", "| --- | --- |", *rows])
    about, examples, _ = parts(context.command.help)
    code = "\n".join(["```bash", *examples, "```"]) if examples else ""
    return f"### `spacy-pll {context.command.name}`\n\n{about}\n\n{code}\n\n{table}"


if __name__ == "__main__":
    (ROOT / "docs" / "README.md").write_text(list_pages(), encoding="utf8")
