"""The examples of the documentation pages: find them, run them, compare them with what the pages print.

    python -m tests.project.test_docs --write  # run them all, and write what came out into the pages

A fenced block of a page is one of these:

- `python`: run. The blocks of a page share their names. `value  # -44.16` states the value of an expression.
- `bash`: commands, run in the page's own folder, or listed in `tests/doc_commands.py` and only checked.
- `ini`: a pipeline's config, which is assembled.
- any language with `title="FILE"`: what FILE holds. If an example before wrote it, the two are compared, else it is
  input and written for the examples that follow.
- no language: what the block before prints. A line `...` stands for lines that are left out, `...` in a line for text.

The docstrings of functions that are used most have such blocks, too, of the first kind and the last.
"""

import ast
import io
import os
import re
import shlex
import tokenize
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import catalogue  # noqa: E402
from spacy.language import Language  # noqa: E402
from spacy.tokens.underscore import Underscore  # noqa: E402
from spacy.util import load_model_from_config  # noqa: E402
from thinc.api import Config  # noqa: E402

import spacy_pll  # noqa: E402, F401  (registers the package's own metrics)

ROOT = Path(__file__).parents[1]
CARD = ROOT / "spacy_pll" / "language_model" / "builtin" / "README.md"
OUTSIDE = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "RELEASING", "SECURITY")]
PAGES = [*OUTSIDE, *sorted((ROOT / "docs").glob("*.md")), CARD]
# Modules with examples in docstrings. Each example stands by itself.
MODULES = [path for path in sorted((ROOT / "spacy_pll").rglob("*.py")) if "```python" in path.read_text("utf8")]

FENCE = re.compile(r'^( *)```(\w*)(?: title="([^"]+)")?$')
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
STATED = re.compile(rf"""(None|True|False|{NUMBER}|"[^"]*"|'[^']*')(?:, |(?=[\s,:;.\]]|$))""")
ELLIPSIS = "..."


@dataclass
class Block:
    """A fenced block of a page."""

    page: Path
    line: int  # of its first line of text, from 1
    language: str
    file: str | None  # the `title`
    text: str
    indent: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_output(self) -> bool:
        return not self.language and not self.file


@dataclass
class Result:
    """What a block of a page should be, after its examples were run."""

    block: Block
    text: str


def read_blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    blocks, block = [], None
    for number, line in enumerate(page.read_text(encoding="utf8").splitlines(), 1):
        fence = FENCE.match(line)
        if block is None and fence:
            block = Block(page, number + 1, fence[2], fence[3], "", fence[1])
        elif block is None:
            if line.lstrip().startswith("```"):
                raise ValueError(f"{page.name}:{number}: not a fence that the tests understand: {line!r}")
        elif fence and not fence[2]:
            blocks.append(block)
            block = None
        else:
            block.text += line.removeprefix(block.indent) + "\n"
    if block is not None:
        raise ValueError(f"{block.where}: the block is not closed")
    return blocks


def read_prose(page: Path) -> str:
    """The text of a page without its fenced blocks."""
    lines, inside = [], False
    for line in page.read_text(encoding="utf8").splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


def read_commands(text: str) -> list[list[str]]:
    """The commands of a bash block, each as its words; `&&` separates commands as a new line does."""
    commands = []
    for line in text.replace("\\\n", " ").splitlines():
        command = []
        for word in [*shlex.split(line, comments=True), "&&"]:
            if word == "&&":
                commands += [command] if command else []
                command = []
            else:
                command.append(word)
    return commands


def reconcile(shown: str, actual: str) -> str:
    """What a page should show: `shown` where it agrees with `actual`, else `actual` with the same parts left out."""
    shown_lines, actual_lines = ([line.rstrip() for line in text.splitlines()] for text in (shown, actual))
    if ELLIPSIS in shown_lines:
        head = shown_lines.index(ELLIPSIS)
        tail = len(shown_lines) - head - 1
        if ELLIPSIS in shown_lines[head + 1 :]:
            raise ValueError("An output block can leave out lines in one place only.")
        actual_lines = [*actual_lines[:head], ELLIPSIS, *actual_lines[len(actual_lines) - tail :]]
    if len(shown_lines) != len(actual_lines):
        return "".join(f"{line}\n" for line in actual_lines)
    return "".join(f"{_reconcile_line(a, b)}\n" for a, b in zip(shown_lines, actual_lines))


def _reconcile_line(shown: str, actual: str) -> str:
    # The text has to be the same, the numbers nearly: scores differ between machines, by up to 1e-5 a piece.
    parts = re.split(f"({NUMBER})", shown)
    texts = [".*?".join(map(re.escape, part.split(ELLIPSIS))) for part in parts[::2]]
    match = re.fullmatch(f"({NUMBER})".join(texts), actual)
    if not match:
        return actual
    if all(map(_close, parts[1::2], match.groups())):
        return shown
    # In a line that was shortened, the numbers may have been shortened, too.
    parts[1::2] = map(_as_short, parts[1::2], match.groups()) if ELLIPSIS in shown else match.groups()
    return "".join(parts)


def _n_decimals(number: str) -> int:
    return len(number.partition(".")[2].partition("e")[0])


def _as_short(shown: str, actual: str) -> str:
    is_shortened = 0 < _n_decimals(shown) < _n_decimals(actual) and "e" not in shown + actual
    return f"{float(actual):.{_n_decimals(shown)}f}" if is_shortened else actual


def _close(shown: str, actual: str) -> bool:
    if "." not in shown:
        return shown == actual
    unit = 0.0 if "e" in shown else 1.01 * 10 ** -min(_n_decimals(shown), 4)
    return abs(float(shown) - float(actual)) <= max(unit, 1e-5 * abs(float(shown)))


class PageRun:
    """Runs the blocks of a page, in order, in a folder.

    run_command (Callable[[list[str]], Optional[str]]): From a command to what it prints; None if it is not run.
    is_run (Callable[[Block], bool]): Whether a block of Python is run.
    """

    def __init__(self, folder: Path, run_command: Callable[[list[str]], str | None], is_run: Callable[[Block], bool]):
        self.folder, self.run_command, self.is_run = folder, run_command, is_run
        self.names = {"__name__": "__main__"}
        self.printed: str | None = None  # by the last example; None: it was not run
        self.not_run = ""

    def run(self, blocks: list[Block]) -> Iterator[Result]:
        """Each block as it should be, without the output of examples that are not run."""
        with _chdir(self.folder), _registries_restored():
            for block, following in zip(blocks, [*blocks[1:], None]):
                text = self._run(block, following is not None and following.is_output)
                if text is not None:
                    yield Result(block, text)

    def _run(self, block: Block, is_shown: bool) -> str | None:
        if block.is_output:
            return None if self.printed is None else reconcile(block.text, self.printed)
        if block.file:
            return self._file(block)
        if block.language == "ini":
            assemble(block.text)
        if block.language not in ("python", "bash"):
            return block.text
        text, self.printed = (self._python if block.language == "python" else self._bash)(block, is_shown)
        self.not_run = block.text if self.printed is None else ""
        if self.printed and not is_shown:
            raise AssertionError(f"{block.where}: the page does not show what this prints:\n{self.printed}")
        return text

    def _file(self, block: Block) -> str | None:
        path = Path(block.file)
        if path.is_file():
            return reconcile(block.text, path.read_text(encoding="utf8"))
        if block.file in self.not_run:
            return None
        path.write_text(block.text, encoding="utf8")
        return block.text

    def _bash(self, block: Block, is_shown: bool) -> tuple[str, str | None]:
        outputs = [self.run_command(words) for words in read_commands(block.text)]
        # Of `python3 -m venv ... && python -m spacy pll show ...` the last is run, and prints.
        printed = re.sub(r"\n{2,}", "\n\n", "".join(filter(None, outputs))).strip("\n")
        return block.text, None if outputs[-1] is None else printed and f"{printed}\n"

    def _python(self, block: Block, is_shown: bool) -> tuple[str, str | None]:
        if not self.is_run(block):
            return block.text, None
        lines, comments = block.text.splitlines(), _stated_values(block.text)
        source = f"{block.page.name}, from line {block.line}"
        printed, value = io.StringIO(), None
        with redirect_stdout(printed):
            for statement in ast.parse(block.text).body:
                if not isinstance(statement, ast.Expr):
                    exec(compile(ast.Module([statement], []), source, "exec"), self.names)
                    continue
                value = eval(compile(ast.Expression(statement.value), source, "eval"), self.names)
                comment = comments.pop(statement.end_lineno, None)
                if comment is not None:
                    line = lines[statement.end_lineno - 1]
                    start = len(line) - len(comment)
                    lines[statement.end_lineno - 1] = line[:start] + restate(comment, value)
        if comments:
            raise AssertionError(f"{block.where}: these state values of no expression: {comments}")
        output = printed.getvalue()
        if is_shown and not output and value is not None:
            output = f"{value}\n"  # as a notebook shows the last value
        return "".join(f"{line}\n" for line in lines), output


def _stated_values(source: str) -> dict[int, str]:
    """The comments of a Python block that begin with a value, by line."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {t.start[0]: t.string.removeprefix("# ") for t in tokens if t.type == tokenize.COMMENT}
    return {line: comment for line, comment in comments.items() if STATED.match(comment.removeprefix("["))}


def restate(comment: str, value: object) -> str:
    """A comment that begins with values, with those that an expression has."""
    if isinstance(value, list) and comment.startswith("["):
        return f"[{restate(comment[1:], tuple(value))}"
    values, stated, end = (value if isinstance(value, tuple) else (value,)), [], 0
    while len(stated) < len(values) and (match := STATED.match(comment, end)):
        stated.append(match[1])
        end = match.end(1) if len(stated) == len(values) else match.end()
    if len(stated) != len(values):
        raise AssertionError(f"{comment!r} does not state as many values as there are: {value!r}")
    now = []
    for text, one in zip(stated, values):
        if isinstance(one, float):
            decimals = len(text.partition(".")[2])
            exact = f"{one:.{decimals + 6}f}"
            now.append(text if _close(text, exact) else f"{one:.{decimals}f}")
        else:
            now.append(text if text.strip("'\"") == str(one) else repr(one))
    return ", ".join(now) + comment[end:]


def assemble(text: str) -> Language:
    """Make the pipeline that an `ini` block describes. RETURNS (Language): The pipeline."""
    if "[nlp]" not in text:
        text = f"[nlp]\nlang = en\npipeline = []\n\n[components]\n\n{text}"
    config = Config().from_str(text)
    config["nlp"]["pipeline"] = config["nlp"]["pipeline"] or list(config["components"])
    return load_model_from_config(config, auto_fill=True)


@contextmanager
def _chdir(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _registries_restored() -> Iterator[None]:
    """What examples register (metrics, attributes) is forgotten when they are done: other tests list all there is."""
    registered = set(catalogue.REGISTRY)
    kinds = ("doc_extensions", "span_extensions", "token_extensions")
    extensions = {kind: dict(getattr(Underscore, kind)) for kind in kinds}
    try:
        yield
    finally:
        # Not all that is new: what spaCy and thinc register when it is first needed, they do not register again.
        for key in [
            key for key in catalogue.REGISTRY if {"pll_metrics", "pll_readers"} & {*key} and key not in registered
        ]:
            del catalogue.REGISTRY[key]
        for kind, before in extensions.items():
            getattr(Underscore, kind).clear()
            getattr(Underscore, kind).update(before)


def write(page: Path, results: list[Result]) -> int:
    """Put what the blocks should be into a page. RETURNS (int): How many blocks that changes."""
    lines = page.read_text(encoding="utf8").splitlines()
    changed = [result for result in results if result.text != result.block.text]
    for result in reversed(changed):
        block = result.block
        first, n_lines = block.line - 1, len(block.text.splitlines())
        lines[first : first + n_lines] = [f"{block.indent}{line}".rstrip() for line in result.text.splitlines()]
    if changed:
        page.write_text("\n".join(lines) + "\n", encoding="utf8")
    return len(changed)
